#include "halograd/cli/plan_figures.hpp"

#include <algorithm>

namespace halograd {

PlanFigures figures_of(const Plan& plan, int optimizer_slots) {
  PlanFigures figures{.arena_bytes = plan.arena_bytes + plan.input_bytes() + plan.label_bytes(),
                      .input_bytes = plan.input_bytes() + plan.label_bytes(),
                      .parameter_bytes = plan.parameter_bytes(optimizer_slots),
                      .message_buffer_bytes = plan.message_buffer_bytes(),
                      .halo_bytes = plan.halo_bytes_sent()};
  for (const ExchangePlan& exchange : plan.exchanges) {
    for (const auto& phase : exchange.phases) {
      figures.halo_messages += std::ranges::count_if(phase, [](const Transfer& t) { return !t.send_box.empty(); });
    }
  }
  figures.sums = std::ranges::count_if(plan.steps, [](const Step& step) {
    return step.kind == StepKind::statistics_start || step.kind == StepKind::sums_start ||
           step.kind == StepKind::loss_sum_start || step.kind == StepKind::segmentation_start ||
           step.kind == StepKind::bucket_start;
  });
  return figures;
}

PlanFigures largest_figures(const Network& network, CompileOptions options, int optimizer_slots) {
  PlanFigures largest;
  for (options.rank = 0; options.rank < options.grid.spatial_size(); ++options.rank) {
    const PlanFigures one = figures_of(compile(network, options), optimizer_slots);
    for (const auto member : {&PlanFigures::arena_bytes, &PlanFigures::input_bytes, &PlanFigures::parameter_bytes,
                              &PlanFigures::message_buffer_bytes, &PlanFigures::halo_bytes, &PlanFigures::halo_messages,
                              &PlanFigures::sums}) {
      largest.*member = std::max(largest.*member, one.*member);
    }
  }
  return largest;
}

}  // namespace halograd
