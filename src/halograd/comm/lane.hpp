#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace halograd {

/// A thread that runs communication in the order given, while the caller computes: nothing progresses by itself here,
/// MPI moves only while somebody waits in it. Each activity (halos, gradients) has its lane and its own communicators,
/// so that all ranks call in the same order on each.
class Lane {
public:
  Lane();
  ~Lane();  ///< finishes what was posted
  Lane(Lane&&) noexcept;
  Lane& operator=(Lane&&) noexcept;

  /// Posts `job` (it must outlive its run; nothing is copied or allocated) and returns its ticket.
  std::uint64_t start(const std::function<void()>& job);
  /// Waits for a ticket; rethrows what its job, or one before, threw. Returns the seconds waited.
  double wait(std::uint64_t ticket);

private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace halograd
