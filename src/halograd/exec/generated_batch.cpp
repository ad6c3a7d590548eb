#include "halograd/exec/generated_batch.hpp"

namespace halograd {
namespace {

void append(const VoxelFunction& function, std::int64_t sample, const Box& box, std::int64_t channels,
            std::vector<float>& values) {
  for (std::int64_t d = box.lo.d; d < box.hi.d; ++d) {
    for (std::int64_t h = box.lo.h; h < box.hi.h; ++h) {
      for (std::int64_t w = box.lo.w; w < box.hi.w; ++w) {
        for (std::int64_t c = 0; c < channels; ++c) values.push_back(function(sample, {d, h, w}, c));
      }
    }
  }
}

}  // namespace

GeneratedBatch::GeneratedBatch(const Plan& plan, const VoxelFunction& input, const VoxelFunction& target) {
  const std::int64_t channels = plan.input.labels >= 0 ? 1 : plan.output.shape.channels;
  for (std::int64_t n = 0; n < plan.samples.count; ++n) {
    append(input, plan.samples.first + n, plan.input.own, plan.input.shape.channels, inputs_);
    append(target, plan.samples.first + n, plan.output.own, channels, targets_);
  }
  if (plan.input.labels >= 0) labels_.assign(targets_.begin(), targets_.end());
  batch_.size = plan.batch;
  batch_.targets = targets_.data();
  for (std::int64_t n = 0; n < plan.samples.count; ++n) {
    const auto offset = n * plan.input.shape.channels * plan.input.own.volume();
    const std::uint8_t* labels = labels_.empty() ? nullptr : labels_.data() + n * plan.input.own.volume();
    batch_.samples.push_back({.data = inputs_.data() + offset, .labels = labels, .name = "generated"});
  }
}

}  // namespace halograd
