#include "halograd/exec/bound_plan.hpp"

namespace halograd {

/// What a job reads was listed on the compute queue before it; what waits for it is listed there after. Without other
/// ranks it runs at once, on the compute queue.
BoundPlan::Task BoundPlan::start_on(LaneKind kind, std::size_t step, Job job) {
  if (to_.fabric == nullptr) return [this, job = std::move(job)] { job(to_.queue); };
  FabricLane& lane = kind == LaneKind::halo ? to_.fabric->halos() : to_.fabric->gradients();
  Flight& flight = flights_[step];
  flight.posted = to_.queue.make_event();
  flight.done = lane.queue.make_event();
  flight.job = [this, step, &lane, &flight, job = std::move(job)] {
    lane.queue.wait(flight.posted);
    lane.queue.label(labels_[step]);
    job(lane.queue);
    lane.queue.record(flight.done);
  };
  return [this, &lane, &flight] {
    to_.queue.record(flight.posted);
    flight.ticket = lane.lane.start(flight.job);
  };
}

BoundPlan::Task BoundPlan::wait_on(LaneKind kind, std::size_t step) {
  if (to_.fabric == nullptr) return [] {};
  FabricLane& lane = kind == LaneKind::halo ? to_.fabric->halos() : to_.fabric->gradients();
  Flight& flight = flights_[static_cast<std::size_t>(plan_.steps[step].start)];
  return [this, &lane, &flight] {
    lane.lane.wait(flight.ticket);
    to_.queue.wait(flight.done);
  };
}

BoundPlan::Task BoundPlan::bind_communication(std::size_t index) {
  const Step& step = plan_.steps[index];
  const auto unit = static_cast<std::size_t>(step.unit);
  switch (step.kind) {
    case StepKind::statistics_start:
      return start_on(LaneKind::halo, index, [this, unit](const Queue& queue) {
        finish_statistics(queue, plan_.chains[unit], chains_[unit]);
      });
    case StepKind::sums_start:
      return start_on(LaneKind::halo, index,
                      [this, unit](const Queue& queue) { finish_sums(queue, plan_.chains[unit], chains_[unit]); });
    case StepKind::exchange_start:
      return start_on(LaneKind::halo, index, [this, unit](const Queue&) { exchanges_[unit].run(addresses_); });
    case StepKind::loss_sum_start:
      return start_on(LaneKind::halo, index, [this, &loss = plan_.losses[unit]](const Queue&) {
        if (to_.fabric != nullptr) to_.fabric->world_sum().run(to_.block->loss_sum(), 1, loss.contributes);
      });
    case StepKind::segmentation_start:
      return start_on(LaneKind::halo, index, [this, unit](const Queue& queue) {
        sum_segmentation(queue, plan_.segmentations[unit], segmentations_[unit]);
      });
    case StepKind::bucket_start:
      return start_on(LaneKind::gradient, index, [this, bucket = plan_.buckets[unit]](const Queue&) {
        to_.fabric->gradient_sum().run(to_.parameters->device_gradients() + bucket.offset, bucket.count,
                                       bucket.contributes);
      });
    case StepKind::bucket_wait: return wait_on(LaneKind::gradient, index);
    default: return wait_on(LaneKind::halo, index);
  }
}

}  // namespace halograd
