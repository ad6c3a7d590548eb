#include "halograd/data/sampler.hpp"

#include "halograd/core/error.hpp"
#include "halograd/data/permutation.hpp"

#include <algorithm>

namespace halograd {

Sampler::Sampler(std::vector<std::int64_t> samples, const SamplerOptions& options)
    : samples_(std::move(samples)), options_(options), order_(samples_) {
  if (options_.batch < 1) throw UsageError("batch size {}: expected 1 or more", options_.batch);
}

std::int64_t Sampler::batches_per_epoch() const {
  return samples() / options_.batch + (samples() % options_.batch > 0 ? 1 : 0);
}

void Sampler::shuffle_for(std::int64_t epoch) {
  if (!options_.shuffle || epoch == epoch_) return;
  const RandomStream stream =
      random_stream(options_.seed, RandomPurpose::shuffle, 0, static_cast<std::uint32_t>(epoch));
  const std::vector<std::int64_t> places = permutation(samples(), stream);
  std::transform(places.begin(), places.end(), order_.begin(),
                 [this](std::int64_t place) { return samples_[static_cast<std::size_t>(place)]; });
  epoch_ = epoch;
}

std::vector<std::int64_t> Sampler::mini_batch(std::int64_t epoch, std::int64_t index) {
  if (epoch < 0 || index < 0 || index >= batches_per_epoch()) {
    throw UsageError("mini-batch {} of epoch {}: expected 0 to {} of an epoch from 0", index, epoch,
                     batches_per_epoch() - 1);
  }
  shuffle_for(epoch);
  const std::int64_t begin = index * options_.batch;
  const std::int64_t end = begin + std::min(options_.batch, samples() - begin);
  return {order_.begin() + begin, order_.begin() + end};
}

}  // namespace halograd
