#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace halograd {

/// A set of ranks that talk to each other: a small value, copied by reference. `self()` is one rank alone (no MPI
/// needed); the rest are MPI communicators, with a shared-memory path where all ranks sit on one node. Every member
/// that moves data is collective over the communicator; ranks call them in the same order. Failures throw
/// ResourceError.
class Communicator {
public:
  static Communicator self();
  /// All ranks of the job (a duplicate of MPI_COMM_WORLD), or self() in a process that started no MPI session.
  static Communicator world();

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  [[nodiscard]] bool on_one_node() const;
  /// How many of its ranks share this rank's node.
  [[nodiscard]] int ranks_on_node() const;
  /// How many of those come before this rank.
  [[nodiscard]] int rank_on_node() const;
  /// Whether messages go through shared memory: all on one node, and HALOGRAD_SHARED_MEMORY does not say 0.
  [[nodiscard]] bool uses_shared_memory() const;

  /// Collective. Ranks of one colour, in the order of `key`.
  [[nodiscard]] Communicator split(int color, int key) const;
  /// Collective. The same ranks with traffic of its own, for use from another thread.
  [[nodiscard]] Communicator duplicate() const;

  void barrier() const;
  void broadcast(void* data, std::int64_t bytes, int root) const;
  /// receive: size() · bytes, in rank order.
  void all_gather(const void* send, std::int64_t bytes, void* receive) const;
  /// Every rank's string, in rank order.
  [[nodiscard]] std::vector<std::string> all_gather(const std::string& text) const;
  /// Sums in rank order, so that the same ranks get the same bits; small messages.
  void all_reduce_sum(double* values, std::int64_t count) const;
  [[nodiscard]] double all_reduce_max(double value) const;
  [[nodiscard]] std::int64_t all_reduce_max(std::int64_t value) const;

  struct Implementation;
  explicit Communicator(std::shared_ptr<const Implementation> implementation);
  [[nodiscard]] const Implementation& implementation() const { return *implementation_; }

private:
  std::shared_ptr<const Implementation> implementation_;
};

/// Collective. Runs `work` on every rank; if it threw on any, throws on all: the first failing rank's error, with the
/// rank named where there are several. The phase boundary at which ranks agree on failures. With `patience`, a rank
/// that failed waits for the others no longer than that and then throws its own error, alone.
void agree(const Communicator& communicator, const std::function<void()>& work,
           std::optional<std::chrono::milliseconds> patience = std::nullopt);

}  // namespace halograd
