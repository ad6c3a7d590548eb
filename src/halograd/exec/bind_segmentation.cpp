#include "halograd/exec/bound_plan.hpp"

#include <algorithm>

namespace halograd {

BoundPlan::Task BoundPlan::bind_segmentation(const Step& step) {
  const auto index = static_cast<std::size_t>(step.unit);
  const SegmentationUnit& unit = plan_.segmentations[index];
  SegmentationState& state = segmentations_[index];
  const auto labels = [this] { return reinterpret_cast<const std::uint8_t*>(address(plan_.input.labels)); };
  if (step.kind == StepKind::segmentation_sums) {
    return [this, &unit, &state, labels] {
      segmentation_sums(to_.backend, unit.desc, address(unit.prediction), labels(), state.sums.data());
    };
  }
  return [this, &unit, &state, labels] {
    float* const prediction = address(unit.prediction);
    const std::int64_t per_sample = 2 * unit.desc.classes;
    const std::span<const double> dice(state.dice.data() + plan_.samples.first * per_sample,
                                       static_cast<std::size_t>(plan_.samples.count * per_sample));
    segmentation_gradient(to_.backend, unit.desc, prediction, labels(), state.outcome.cross_entropy_scale, dice,
                          prediction);
  };
}

/// Every rank puts its samples' sums in their places of the mini-batch and adds up all of them.
void BoundPlan::sum_segmentation(const SegmentationUnit& unit, SegmentationState& state) {
  std::vector<double>& sums = state.sums;
  const std::int64_t shared = segmentation_sum_count(unit.desc, 0);
  const std::int64_t own = segmentation_sum_count(unit.desc, plan_.samples.count);
  const std::int64_t per_sample = segmentation_sum_count(unit.desc, 1) - shared;
  const auto begin = sums.begin() + shared;
  const auto place = begin + plan_.samples.first * per_sample;
  if (plan_.samples.count == 0) std::fill(sums.begin(), sums.end(), 0.0);
  if (place != begin) std::copy_backward(begin, sums.begin() + own, place + (own - shared));
  std::fill(begin, place, 0.0);
  std::fill(place + (own - shared), sums.end(), 0.0);
  if (to_.fabric != nullptr) {
    to_.fabric->world_sum().run(sums.data(), static_cast<std::int64_t>(sums.size()), unit.contributes);
  }
  state.outcome = finish_segmentation(unit.desc, plan_.batch, sums, state.dice);
  loss_ = state.outcome.loss;
}

}  // namespace halograd
