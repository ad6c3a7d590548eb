#pragma once

#include <cstdint>
#include <vector>

namespace halograd {

struct SamplerOptions {
  std::int64_t batch = 1;  ///< the global mini-batch
  bool shuffle = true;     ///< a new order each epoch (training); false: the given order (validation, test)
  std::uint64_t seed = 1;
};

/// The order of samples in each epoch: a pure function of samples, seed and epoch, the same on every grid and rank
/// count. Each epoch takes each sample once; the last mini-batch is kept even when short. Not collective.
class Sampler {
public:
  /// Throws UsageError where the batch is less than 1.
  Sampler(std::vector<std::int64_t> samples, const SamplerOptions& options);

  [[nodiscard]] std::int64_t samples() const { return static_cast<std::int64_t>(samples_.size()); }
  /// 0 where there are no samples.
  [[nodiscard]] std::int64_t batches_per_epoch() const;

  /// The sample numbers of mini-batch `index` of `epoch`, in order: `batch` of them, fewer in the last. A group takes
  /// its `group_samples(size, groups, group)` of them. Throws UsageError where there is no such mini-batch.
  [[nodiscard]] std::vector<std::int64_t> mini_batch(std::int64_t epoch, std::int64_t index);

private:
  void shuffle_for(std::int64_t epoch);

  std::vector<std::int64_t> samples_;
  SamplerOptions options_;
  std::vector<std::int64_t> order_;  // of the epoch asked for last
  std::int64_t epoch_ = -1;
};

}  // namespace halograd
