#include "halograd/exec/bound_plan.hpp"

#include <algorithm>
#include <cmath>

namespace halograd {
namespace {

template <typename T>
FaceBuffers<T> face_addresses(const FaceTiles& tiles, const BoundPlan& plan) {
  FaceBuffers<T> faces;
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
  return {random_stream(context_.seed, RandomPurpose::dropout, unit.dropout_index,
                        static_cast<std::uint32_t>(context_.step)),
          unit.first_sample};
}

BoundPlan::Task BoundPlan::bind_chain(const Step& step) {
  const auto index = static_cast<std::size_t>(step.unit);
  const auto part = static_cast<std::size_t>(step.part);
  const ChainUnit& unit = plan_.chains[index];
  ChainState& state = chains_[index];
  switch (step.kind) {
    case StepKind::chain_moments:
      return [this, &unit, &state] {
        state.kernel->moments(address(unit.y), state.moments, state.moments + state.values);
      };
    case StepKind::running_statistics: return [this, &unit, &state] { use_running_statistics(unit, state); };
    case StepKind::chain_forward:
      return [this, &unit, &state, part] {
        state.kernel->forward(address(unit.y), face_addresses<const float>(unit.faces, *this), state.norm,
                              dropout_key(unit), unit.forward_parts[part], address(unit.dst),
                              argmax_address(unit, *this));
      };
    case StepKind::chain_backward_faces:
      return [this, &unit, &state] {
        state.kernel->backward_faces(address(unit.dout), argmax_address(unit, *this), dropout_key(unit),
                                     face_addresses<float>(unit.dfaces, *this));
      };
    case StepKind::chain_backward_sums:
      return [this, &unit, &state, part] {
        if (part == 0) std::fill_n(state.moments, 2 * state.values, 0.0);
        state.kernel->backward_sums(address(unit.y), face_addresses<const float>(unit.received, *this), state.norm,
                                    address(unit.dout), argmax_address(unit, *this), dropout_key(unit),
                                    unit.sum_parts[part], state.moments);
      };
    case StepKind::chain_backward_data:
      return [this, &unit, &state] {
        state.kernel->backward_data(address(unit.y), face_addresses<const float>(unit.received, *this), state.norm,
                                    address(unit.dout), argmax_address(unit, *this), dropout_key(unit), state.gradient,
                                    address(unit.dy));
      };
    default: return {};
  }
}

void BoundPlan::make_chain_state(const ChainUnit& unit) {
  ChainState state;
  state.kernel = make_chain(to_.backend, unit.desc);
  if (unit.desc.normalise) {
    state.values = unit.statistics_sets() * unit.desc.channels;
    state.moments = reinterpret_cast<double*>(address(unit.statistics));
    state.mean = reinterpret_cast<float*>(state.moments + 2 * state.values);
    state.scratch.resize(static_cast<std::size_t>(2 * state.values));
    state.norm = {state.mean, state.mean + state.values, to_.parameters->value(unit.gamma),
                  to_.parameters->value(unit.gamma + 1)};
    state.gradient = {state.scratch.data(), state.scratch.data() + state.values};
  }
  chains_.push_back(std::move(state));
}

void BoundPlan::sum_over_ranks(const ChainUnit& unit, double* values, std::int64_t count) {
  SumReduction<double>& sum = unit.statistics_world ? to_.fabric->world_sum() : to_.fabric->group_sum();
  sum.run(values, count, unit.contributes);
}

/// The two sums of DESIGN's rule: the mean first, then M2 + n (mean_i − mean)², never E[x²] − E[x]².
void BoundPlan::finish_statistics(const ChainUnit& unit, ChainState& state) {
  if (unit.desc.per_sample) return finish_group_statistics(unit, state);
  const std::int64_t channels = unit.desc.channels;
  double* const own_mean = state.moments;
  double* const own_m2 = state.moments + channels;
  double* const mean = state.scratch.data();
  double* const variance = mean + channels;
  const double total = unit.statistics_count;
  if (unit.statistics_travel) {
    const auto own = static_cast<double>(unit.desc.samples * unit.desc.in.volume());
    for (std::int64_t c = 0; c < channels; ++c) mean[c] = unit.contributes ? own * own_mean[c] : 0;
    sum_over_ranks(unit, mean, channels);
    for (std::int64_t c = 0; c < channels; ++c) {
      mean[c] = total > 0 ? mean[c] / total : 0;
      const double apart = own_mean[c] - mean[c];
      variance[c] = unit.contributes ? own_m2[c] + own * apart * apart : 0;
    }
    sum_over_ranks(unit, variance, channels);
  } else {
    std::copy_n(own_mean, 2 * channels, mean);
  }
  float* const inverse_deviation = state.mean + channels;
  for (std::int64_t c = 0; c < channels; ++c) {
    variance[c] = total > 0 ? variance[c] / total : 0;
    state.mean[c] = static_cast<float>(mean[c]);
    inverse_deviation[c] = static_cast<float>(1.0 / std::sqrt(variance[c] + unit.epsilon));
  }
  if (plan_.mode == Mode::train) update_running_averages(unit, state, mean, variance);
}

/// Likewise for each sample and group of channels; the result stands at every channel of the group.
void BoundPlan::finish_group_statistics(const ChainUnit& unit, ChainState& state) {
  const std::int64_t size = unit.group_channels;
  const std::int64_t groups = state.values / size;
  const auto own = static_cast<double>(unit.desc.in.volume());
  const bool counts = unit.contributes || !unit.statistics_travel;  // a replica on its own knows all there is
  double* const mean = state.scratch.data();
  double* const variance = mean + groups;
  const auto for_each_group = [&](auto&& body) {
    for (std::int64_t g = 0; g < groups; ++g) {
      for (std::int64_t c = g * size; c < (g + 1) * size; ++c) body(g, c);
    }
  };
  std::fill_n(mean, 2 * groups, 0.0);
  if (counts) for_each_group([&](std::int64_t g, std::int64_t c) { mean[g] += own * state.moments[c]; });
  if (unit.statistics_travel) sum_over_ranks(unit, mean, groups);
  for (std::int64_t g = 0; g < groups; ++g) mean[g] /= unit.statistics_count;
  if (counts) {
    for_each_group([&](std::int64_t g, std::int64_t c) {
      const double apart = state.moments[c] - mean[g];
      variance[g] += state.moments[state.values + c] + own * apart * apart;
    });
  }
  if (unit.statistics_travel) sum_over_ranks(unit, variance, groups);
  for_each_group([&](std::int64_t g, std::int64_t c) {
    state.mean[c] = static_cast<float>(mean[g]);
    state.mean[state.values + c] =
        static_cast<float>(1.0 / std::sqrt(variance[g] / unit.statistics_count + unit.epsilon));
  });
}

void BoundPlan::update_running_averages(const ChainUnit& unit, ChainState& state, const double* mean,
                                        const double* variance) {
  const std::int64_t channels = unit.desc.channels;
  const double total = unit.statistics_count;
  const double unbiased = total > 1 ? total / (total - 1) : 1;
  const double usual = 1.0 - unit.decay;
  const double weight = context_.averages_begin ? std::max(usual, 1.0 / static_cast<double>(context_.step + 1)) : usual;
  float* const running_mean = to_.parameters->value(unit.gamma + 2);
  float* const running_variance = to_.parameters->value(unit.gamma + 3);
  double* const averages = state.scratch.data();
  for (std::int64_t c = 0; c < channels; ++c) {
    averages[c] = mean[c];
    averages[channels + c] = variance[c] * unbiased;
  }
  if (plan_.scope == StatisticsScope::spatial && plan_.grid.data > 1) {
    // Every group has its own statistics: the saved averages are the mean over those that have samples.
    to_.fabric->world_sum().run(averages, 2 * channels, unit.writes_gradient && plan_.samples.count > 0);
    const double groups = static_cast<double>(std::min(plan_.batch, plan_.grid.data));
    for (std::int64_t c = 0; c < 2 * channels; ++c) averages[c] /= groups;
  }
  for (std::int64_t c = 0; c < channels; ++c) {
    running_mean[c] += static_cast<float>(weight * (averages[c] - running_mean[c]));
    running_variance[c] += static_cast<float>(weight * (averages[channels + c] - running_variance[c]));
  }
}

void BoundPlan::use_running_statistics(const ChainUnit& unit, ChainState& state) {
  const std::int64_t channels = unit.desc.channels;
  const float* const running_variance = to_.parameters->value(unit.gamma + 3);
  std::copy_n(to_.parameters->value(unit.gamma + 2), channels, state.mean);
  for (std::int64_t c = 0; c < channels; ++c) {
    state.mean[channels + c] = static_cast<float>(1.0 / std::sqrt(running_variance[c] + unit.epsilon));
  }
}

/// The sums over all that share the statistics are beta's and gamma's gradients too. One rank writes them into the
/// bucket, the others zeros, so that the bucket's own sum leaves them as they are (or adds the groups', where each has
/// its own).
void BoundPlan::finish_sums(const ChainUnit& unit, ChainState& state) {
  const std::int64_t channels = unit.desc.channels;
  if (unit.statistics_travel) sum_over_ranks(unit, state.moments, 2 * state.values);
  float* const dgamma = to_.parameters->gradient(unit.gamma);
  float* const dbeta = to_.parameters->gradient(unit.gamma + 1);
  for (std::int64_t c = 0; c < channels; ++c) {
    double beta = 0;
    double gamma = 0;
    for (std::int64_t set = 0; unit.writes_gradient && set < unit.statistics_sets(); ++set) {
      beta += state.moments[2 * set * channels + c];
      gamma += state.moments[(2 * set + 1) * channels + c];
    }
    dbeta[c] = static_cast<float>(beta);
    dgamma[c] = static_cast<float>(gamma);
  }
  unit.desc.per_sample ? correct_group_gradient(unit, state) : correct_batch_gradient(unit, state);
}

/// Ioffe and Szegedy 2015: dy = gamma · inverse_deviation · (dz − Σ dz / count − ẑ · Σ dz·ẑ / count).
void BoundPlan::correct_batch_gradient(const ChainUnit& unit, ChainState& state) {
  const std::int64_t channels = unit.desc.channels;
  for (std::int64_t c = 0; c < channels; ++c) {
    const double factor = -static_cast<double>(state.norm.gamma[c]) *
                          static_cast<double>(state.norm.inverse_deviation[c]) / unit.statistics_count;
    state.scratch[static_cast<std::size_t>(c)] = factor * state.moments[c];
    state.scratch[static_cast<std::size_t>(channels + c)] = factor * state.moments[channels + c];
  }
}

/// The same with sums over the channels of a group, which gamma weights: dẑ = gamma · dz.
void BoundPlan::correct_group_gradient(const ChainUnit& unit, ChainState& state) {
  const std::int64_t channels = unit.desc.channels;
  for (std::int64_t at = 0; at < state.values; at += unit.group_channels) {
    const std::int64_t set = at / channels;
    const double* const sums = state.moments + 2 * set * channels;
    double plain = 0;
    double weighted = 0;
    for (std::int64_t c = at % channels; c < at % channels + unit.group_channels; ++c) {
      plain += static_cast<double>(state.norm.gamma[c]) * sums[c];
      weighted += static_cast<double>(state.norm.gamma[c]) * sums[channels + c];
    }
    const double factor = -static_cast<double>(state.norm.inverse_deviation[at]) / unit.statistics_count;
    std::fill_n(state.scratch.begin() + at, unit.group_channels, factor * plain);
    std::fill_n(state.scratch.begin() + state.values + at, unit.group_channels, factor * weighted);
  }
}

}  // namespace halograd
