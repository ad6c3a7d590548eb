#include "halograd/exec/bound_plan.hpp"

#include <algorithm>

namespace halograd {
namespace {

FaceBuffers<std::byte> face_addresses(const FaceTiles& tiles, const BoundPlan& plan) {
  FaceBuffers<std::byte> faces;
  for (std::size_t i = 0; i < 3; ++i) {
    faces.lo[i] = plan.address(tiles.lo[i].buffer);
    faces.hi[i] = plan.address(tiles.hi[i].buffer);
  }
  return faces;
}

std::uint8_t* argmax_address(const ChainUnit& unit, const BoundPlan& plan) {
  return reinterpret_cast<std::uint8_t*>(plan.address(unit.argmax));
}

}  // namespace

DropoutKey BoundPlan::dropout_key(const ChainUnit& unit) const {
  return {random_stream(context_.seed, RandomPurpose::dropout, unit.dropout_index), unit.first_sample,
          to_.block->step()};
}

BoundPlan::Task BoundPlan::bind_chain(const Step& step) {
  const auto index = static_cast<std::size_t>(step.unit);
  const auto part = static_cast<std::size_t>(step.part);
  const ChainUnit& unit = plan_.chains[index];
  ChainState& state = chains_[index];
  switch (step.kind) {
    case StepKind::chain_moments:
      return [this, &unit, &state] {
        state.kernel->moments(address(unit.y), state.moments, state.moments + state.statistics.values());
      };
    case StepKind::running_statistics:
      return [this, &unit, &state] {
        use_running_statistics(to_.queue, unit.desc.channels, unit.epsilon,
                               to_.parameters->device_value(unit.gamma + 2),
                               to_.parameters->device_value(unit.gamma + 3), state.mean, state.inverse_deviation);
      };
    case StepKind::chain_forward:
      return [this, &unit, &state, part] {
        state.kernel->forward(address(unit.y), face_addresses(unit.faces, *this), state.norm, dropout_key(unit),
                              unit.forward_parts[part], address(unit.dst), argmax_address(unit, *this));
      };
    case StepKind::chain_backward_faces:
      return [this, &unit, &state] {
        state.kernel->backward_faces(address(unit.dout), argmax_address(unit, *this), dropout_key(unit),
                                     face_addresses(unit.dfaces, *this));
      };
    case StepKind::chain_backward_sums:
      return [this, &unit, &state, part] {
        if (part == 0) to_.queue.clear(state.moments, 16 * state.statistics.values());
        state.kernel->backward_sums(address(unit.y), face_addresses(unit.received, *this), state.norm,
                                    address(unit.dout), argmax_address(unit, *this), dropout_key(unit),
                                    unit.sum_parts[part], state.moments);
      };
    case StepKind::chain_backward_data:
      return [this, &unit, &state] {
        state.kernel->backward_data(address(unit.y), face_addresses(unit.received, *this), state.norm,
                                    address(unit.dout), argmax_address(unit, *this), dropout_key(unit), state.gradient,
                                    address(unit.dy));
      };
    default: return {};
  }
}

void BoundPlan::make_chain_state(const ChainUnit& unit) {
  ChainState state;
  state.kernel = make_chain(to_.queue, unit.desc);
  if (unit.desc.normalise) {
    // Statistics over a rank alone are those of its own voxels, also where it is a replica whose share would not count.
    const double own = static_cast<double>((unit.desc.per_sample ? 1 : unit.desc.samples) * unit.desc.in.volume());
    state.statistics = {.channels = unit.desc.channels,
                        .sets = unit.statistics_sets(),
                        .group_channels = std::max<std::int64_t>(1, unit.group_channels),
                        .own_count = own,
                        .count = unit.statistics_count,
                        .epsilon = unit.epsilon,
                        .contributes = own > 0 && (unit.contributes || !unit.statistics_travel)};
    const StatisticsBuffer at{state.statistics.values()};
    auto* const doubles = reinterpret_cast<double*>(address(unit.statistics));
    state.moments = doubles + at.moments();
    state.sums = doubles + at.sums();
    state.mean = floats(unit.statistics) + at.mean();
    state.inverse_deviation = floats(unit.statistics) + at.inverse_deviation();
    state.norm = {state.mean, state.inverse_deviation, to_.parameters->device_value(unit.gamma),
                  to_.parameters->device_value(unit.gamma + 1)};
    state.gradient = {state.sums, state.sums + at.values};
  }
  chains_.push_back(std::move(state));
}

void BoundPlan::sum_over_ranks(const ChainUnit& unit, double* values, std::int64_t count) {
  if (!unit.statistics_travel) return;
  SumReduction<double>& sum = unit.statistics_world ? to_.fabric->world_sum() : to_.fabric->group_sum();
  sum.run(values, count, unit.contributes);
}

void BoundPlan::finish_statistics(const Queue& queue, const ChainUnit& unit, ChainState& state) {
  const StatisticsDesc& desc = state.statistics;
  double* const mean = state.sums;
  double* const variance = mean + desc.groups();
  statistics_sums(queue, desc, state.moments, mean);
  sum_over_ranks(unit, mean, desc.groups());
  statistics_squares(queue, desc, state.moments, mean, variance);
  sum_over_ranks(unit, variance, desc.groups());
  halograd::finish_statistics(queue, desc, mean, variance, state.mean, state.inverse_deviation);
  if (plan_.mode == Mode::train && !unit.desc.per_sample) finish_averages(queue, unit, state);
}

void BoundPlan::finish_averages(const Queue& queue, const ChainUnit& unit, ChainState& state) {
  const std::int64_t channels = unit.desc.channels;
  double* const averages = state.sums;  // [2, C]: means and variances
  unbias_variance(queue, state.statistics, averages + channels);
  RunningAverages desc{.channels = channels, .decay = unit.decay};
  if (plan_.scope == StatisticsScope::spatial && plan_.grid.data > 1) {
    // Every group has its own statistics: the saved averages are the mean over those that have samples.
    to_.fabric->world_sum().run(averages, 2 * channels, unit.writes_gradient && plan_.samples.count > 0);
    desc.divisor = static_cast<double>(std::min(plan_.batch, plan_.grid.data));
  }
  update_running_averages(queue, desc, averages, to_.block->least_weight(),
                          to_.parameters->device_value(unit.gamma + 2), to_.parameters->device_value(unit.gamma + 3));
}

/// The sums over all that share the statistics are beta's and gamma's gradients too. One rank writes them into the
/// bucket, the others zeros, so that the bucket's own sum leaves them as they are (or adds the groups', where each has
/// its own).
void BoundPlan::finish_sums(const Queue& queue, const ChainUnit& unit, ChainState& state) {
  sum_over_ranks(unit, state.moments, 2 * state.statistics.values());
  finish_norm_gradient(queue, {state.statistics, unit.writes_gradient}, state.moments, state.norm.gamma,
                       state.inverse_deviation, to_.parameters->device_gradient(unit.gamma),
                       to_.parameters->device_gradient(unit.gamma + 1), state.sums,
                       state.sums + state.statistics.values());
}

}  // namespace halograd
