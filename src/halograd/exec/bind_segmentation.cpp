#include "halograd/exec/bound_plan.hpp"

namespace halograd {

void BoundPlan::make_segmentation_state(const SegmentationUnit& unit) {
  const std::int64_t own = segmentation_sum_count(unit.desc, plan_.samples.count);
  const std::int64_t all = segmentation_sum_count(unit.desc, plan_.batch);
  SegmentationState state;
  state.memory = to_.device.allocate(8 * (own + all + plan_.batch * 2 * unit.desc.classes));
  state.own = reinterpret_cast<double*>(state.memory.data());
  state.sums = state.own + own;
  state.dice = state.sums + all;
  segmentations_.push_back(std::move(state));
}

BoundPlan::Task BoundPlan::bind_segmentation(const Step& step) {
  const auto index = static_cast<std::size_t>(step.unit);
  const SegmentationUnit& unit = plan_.segmentations[index];
  SegmentationState& state = segmentations_[index];
  const auto labels = [this] { return reinterpret_cast<const std::uint8_t*>(address(plan_.input.labels)); };
  if (step.kind == StepKind::segmentation_sums) {
    return [this, &unit, &state, labels] {
      segmentation_sums(to_.queue, unit.desc, address(unit.prediction), labels(), state.own);
    };
  }
  return [this, &unit, labels, dice = state.dice + plan_.samples.first * 2 * unit.desc.classes] {
    std::byte* const prediction = address(unit.prediction);
    segmentation_gradient(to_.queue, unit.desc, prediction, labels(), to_.block->outcome(), dice, prediction);
  };
}

/// Every rank puts its samples' sums in their places of the mini-batch and adds up all of them.
void BoundPlan::sum_segmentation(const Queue& queue, const SegmentationUnit& unit, SegmentationState& state) {
  const std::int64_t shared = segmentation_sum_count(unit.desc, 0);
  const std::int64_t per_sample = segmentation_sum_count(unit.desc, 1) - shared;
  queue.clear(state.sums, 8 * segmentation_sum_count(unit.desc, plan_.batch));
  if (plan_.samples.count > 0) {
    queue.copy(state.own, state.sums, 8 * shared);
    queue.copy(state.own + shared, state.sums + shared + plan_.samples.first * per_sample,
               8 * plan_.samples.count * per_sample);
  }
  if (to_.fabric != nullptr) {
    to_.fabric->world_sum().run(state.sums, segmentation_sum_count(unit.desc, plan_.batch), unit.contributes);
  }
  finish_segmentation(queue, unit.desc, plan_.batch, state.sums, to_.block->outcome(), state.dice);
}

}  // namespace halograd
