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
        state.kernel->moments(address(unit.y), state.moments, state.moments + unit.desc.channels);
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
        if (part == 0) std::fill_n(state.moments, 2 * unit.desc.channels, 0.0);
        state.kernel->backward_sums(address(unit.y), face_addresses<const float>(unit.received, *this), state.norm,
                                    address(unit.dout), argmax_address(unit, *this), dropout_key(unit),
                                    unit.sum_parts[part], state.moments);
      };
    case StepKind::chain_backward_data:
      return [this, &unit, &state] {
        float* const y = address(unit.y);  // dy is written over it
        state.kernel->backward_data(y, face_addresses<const float>(unit.received, *this), state.norm,
                                    address(unit.dout), argmax_address(unit, *this), dropout_key(unit), state.moments,
                                    unit.statistics_count, y);
      };
    default: return {};
  }
}

/// The two sums of DESIGN's rule: the mean first, then M2 + n (mean_i − mean)², never E[x²] − E[x]².
void BoundPlan::finish_statistics(const ChainUnit& unit, ChainState& state) {
  const std::int64_t channels = unit.desc.channels;
  double* const own_mean = state.moments;
  double* const own_m2 = state.moments + channels;
  double* const mean = state.scratch.data();
  double* const variance = mean + channels;
  const double total = unit.statistics_count;
  if (unit.statistics_travel) {
    SumReduction<double>& sum =
        plan_.scope == StatisticsScope::global ? to_.fabric->world_sum() : to_.fabric->group_sum();
    const auto own = static_cast<double>(unit.desc.samples * unit.desc.in.volume());
    for (std::int64_t c = 0; c < channels; ++c) mean[c] = unit.contributes ? own * own_mean[c] : 0;
    sum.run(mean, channels, unit.contributes);
    for (std::int64_t c = 0; c < channels; ++c) {
      mean[c] = total > 0 ? mean[c] / total : 0;
      const double apart = own_mean[c] - mean[c];
      variance[c] = unit.contributes ? own_m2[c] + own * apart * apart : 0;
    }
    sum.run(variance, channels, unit.contributes);
  } else {
    std::copy_n(own_mean, 2 * channels, mean);
  }
  float* const inverse_deviation = state.mean + channels;
  for (std::int64_t c = 0; c < channels; ++c) {
    variance[c] = total > 0 ? variance[c] / total : 0;
    state.mean[c] = static_cast<float>(mean[c]);
    inverse_deviation[c] = static_cast<float>(1.0 / std::sqrt(variance[c] + unit.epsilon));
  }
  update_running_averages(unit, state, mean, variance);
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
  double* const sums = state.moments;
  if (unit.statistics_travel) {
    SumReduction<double>& sum =
        plan_.scope == StatisticsScope::global ? to_.fabric->world_sum() : to_.fabric->group_sum();
    sum.run(sums, 2 * channels, unit.contributes);
  }
  float* const dgamma = to_.parameters->gradient(unit.gamma);
  float* const dbeta = to_.parameters->gradient(unit.gamma + 1);
  for (std::int64_t c = 0; c < channels; ++c) {
    dgamma[c] = unit.writes_gradient ? static_cast<float>(sums[channels + c]) : 0;
    dbeta[c] = unit.writes_gradient ? static_cast<float>(sums[c]) : 0;
  }
}

}  // namespace halograd
