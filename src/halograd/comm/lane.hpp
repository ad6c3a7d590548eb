#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace halograd {

/// Who runs a lane's jobs: a thread of its own, or the caller of start() there and then, for jobs that only list work
/// on a device (Link::returns_when_listed).
enum class LaneMode { threaded, at_once };

/// Runs communication in the order given, by a thread while the caller computes: nothing progresses by itself here,
/// MPI moves only while somebody waits in it. Each activity (halos, gradients) has its lane and its own communicators,
/// so that all ranks call in the same order on each.
class Lane {
public:
  explicit Lane(LaneMode mode = LaneMode::threaded);
  ~Lane();  ///< finishes what was posted
  Lane(Lane&&) noexcept;
  Lane& operator=(Lane&&) noexcept;

  /// Posts `job` (it must outlive its run; nothing is copied or allocated) and returns its ticket.
  std::uint64_t start(const std::function<void()>& job);
  /// Waits for a ticket; rethrows what its job, or one before, threw (in either mode, and never start()). Returns the
  /// seconds waited.
  double wait(std::uint64_t ticket);
  /// Runs jobs again after one failed, for a caller that begins anew with what failed and what was skipped behind it.
  void forget_failure();

  struct Implementation;

private:
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace halograd
