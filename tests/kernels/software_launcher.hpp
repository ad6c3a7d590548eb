#pragma once

#include "halograd/kernels/cuda/chain_dispatch.hpp"

#include <cstring>
#include <limits>
#include <memory>
#include <vector>

namespace halograd::test {

/// A block of threads that run one after the other, each stage on all of them before the next begins.
template <typename Thread>
class SoftwareTeam {
public:
  SoftwareTeam(std::uint32_t block, std::uint32_t threads, bool backwards) : block_(block), backwards_(backwards) {
    for (std::uint32_t i = 0; i < threads; ++i) threads_.push_back(Thread{block, i});
  }

  [[nodiscard]] std::uint32_t block() const { return block_; }
  template <typename Stage>
  void each(const Stage& stage) {
    const std::size_t count = threads_.size();
    for (std::size_t i = 0; i < count; ++i) stage(threads_[backwards_ ? count - 1 - i : i]);
  }
  template <typename Stage>
  void last(const Stage& stage) {
    each(stage);
  }

private:
  std::uint32_t block_;
  bool backwards_;
  std::vector<Thread> threads_;
};

/// Runs the CUDA kernels' code on the host: every thread of every block, in order or from the last to the first, as on
/// a GPU of so many processors. What kernels find in shared and scratch memory at first is NaN. `scratch`: where
/// scratch memory is to be, for those who want to look.
class SoftwareLauncher {
public:
  explicit SoftwareLauncher(int processors = 2, bool backwards = false, std::vector<double>* scratch = nullptr)
      : processors_(processors), backwards_(backwards), lent_(scratch) {}

  [[nodiscard]] int processors() const { return processors_; }
  void allocate(std::int64_t count) {
    memory().assign(static_cast<std::size_t>(count), std::numeric_limits<double>::quiet_NaN());
  }
  [[nodiscard]] double* scratch() const { return memory().data(); }

  template <typename Kernel>
  void launch(const typename Kernel::Args& args, std::int64_t blocks) const {
    for (std::int64_t i = 0; i < blocks; ++i) {
      const auto shared = std::make_unique<typename Kernel::Shared>();
      std::memset(static_cast<void*>(shared.get()), 0xFF, sizeof(*shared));
      SoftwareTeam<typename Kernel::Thread> team(static_cast<std::uint32_t>(backwards_ ? blocks - 1 - i : i),
                                                 Kernel::threads, backwards_);
      Kernel::run(team, args, *shared);
    }
  }

private:
  [[nodiscard]] std::vector<double>& memory() const { return lent_ != nullptr ? *lent_ : own_; }

  int processors_;
  bool backwards_;
  std::vector<double>* lent_;
  mutable std::vector<double> own_;
};

}  // namespace halograd::test
