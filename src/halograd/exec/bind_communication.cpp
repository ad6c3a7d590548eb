#include "halograd/exec/bound_plan.hpp"

namespace halograd {

/// Without other ranks the job runs at once.
BoundPlan::Task BoundPlan::start_on(LaneKind kind, std::size_t step, Task job) {
  if (to_.fabric == nullptr) return job;
  jobs_[step] = std::move(job);
  Lane& lane = kind == LaneKind::halo ? to_.fabric->halo_lane() : to_.fabric->gradient_lane();
  return [this, &lane, step] { tickets_[step] = lane.start(jobs_[step]); };
}

BoundPlan::Task BoundPlan::wait_on(LaneKind kind, std::size_t step) {
  if (to_.fabric == nullptr) return [] {};
  Lane& lane = kind == LaneKind::halo ? to_.fabric->halo_lane() : to_.fabric->gradient_lane();
  return [this, &lane, start = static_cast<std::size_t>(plan_.steps[step].start)] { lane.wait(tickets_[start]); };
}

BoundPlan::Task BoundPlan::bind_communication(std::size_t index) {
  const Step& step = plan_.steps[index];
  const auto unit = static_cast<std::size_t>(step.unit);
  switch (step.kind) {
    case StepKind::statistics_start:
      return start_on(LaneKind::halo, index, [this, unit] { finish_statistics(plan_.chains[unit], chains_[unit]); });
    case StepKind::sums_start:
      return start_on(LaneKind::halo, index, [this, unit] { finish_sums(plan_.chains[unit], chains_[unit]); });
    case StepKind::exchange_start:
      return start_on(LaneKind::halo, index, [this, unit] { exchanges_[unit].run(addresses_); });
    case StepKind::loss_sum_start:
      return start_on(LaneKind::halo, index, [this, &loss = plan_.losses[unit]] {
        if (to_.fabric != nullptr) to_.fabric->world_sum().run(&loss_, 1, loss.contributes);
        loss_ /= loss.global_elements;
      });
    case StepKind::segmentation_start:
      return start_on(LaneKind::halo, index,
                      [this, unit] { sum_segmentation(plan_.segmentations[unit], segmentations_[unit]); });
    case StepKind::bucket_start:
      return start_on(LaneKind::gradient, index, [this, bucket = plan_.buckets[unit]] {
        to_.fabric->gradient_sum().run(to_.parameters->gradients() + bucket.offset, bucket.count, bucket.contributes);
      });
    case StepKind::bucket_wait: return wait_on(LaneKind::gradient, index);
    default: return wait_on(LaneKind::halo, index);
  }
}

}  // namespace halograd
