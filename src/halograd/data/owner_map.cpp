#include "halograd/data/owner_map.hpp"

#include "halograd/core/error.hpp"
#include "halograd/tensor/process_grid.hpp"

namespace halograd {

OwnerMap::OwnerMap(std::int64_t samples, std::int64_t groups) : groups_(groups) {
  if (samples < 0) throw UsageError("owner map: {} samples: expected 0 or more", samples);
  if (groups < 1) throw UsageError("owner map: {} groups: expected 1 or more", groups);
  owners_.assign(static_cast<std::size_t>(samples), SampleMove::file);
}

std::vector<SampleMove> OwnerMap::next(std::span<const std::int64_t> mini_batch, bool keep) {
  const auto batch = static_cast<std::int64_t>(mini_batch.size());
  const auto samples = static_cast<std::int64_t>(owners_.size());
  std::vector<SampleMove> moves;
  moves.reserve(mini_batch.size());
  for (std::int64_t group = 0; group < groups_; ++group) {
    const SampleRange share = group_samples(batch, groups_, group);
    for (std::int64_t i = share.first; i < share.first + share.count; ++i) {
      const std::int64_t sample = mini_batch[static_cast<std::size_t>(i)];
      if (sample < 0 || sample >= samples) {
        throw UsageError("owner map: sample {} in a mini-batch: expected 0 to {}", sample, samples - 1);
      }
      moves.push_back({.sample = sample, .from = owner(sample), .to = group});
    }
  }
  if (!keep) return moves;
  // Only now: nothing read for this mini-batch can be passed on within it. Of two that read one the first owns it.
  for (const SampleMove& move : moves) {
    auto& owner = owners_[static_cast<std::size_t>(move.sample)];
    if (owner == SampleMove::file) owner = move.to;
  }
  return moves;
}

std::vector<std::int64_t> OwnerMap::owned_by(std::int64_t group) const {
  std::vector<std::int64_t> samples;
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    if (owners_[i] == group) samples.push_back(static_cast<std::int64_t>(i));
  }
  return samples;
}

}  // namespace halograd
