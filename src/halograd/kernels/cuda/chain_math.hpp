#pragma once

#include "halograd/kernels/cuda/chain_index.hpp"
#include "halograd/kernels/cuda/chain_lanes.hpp"

namespace halograd::cuda::chain {

/// What a channel's normalisation makes of y: z = (y − mean) · scale + shift.
struct ChannelNorm {
  float mean = 0;
  float scale = 1;
  float shift = 0;
};

constexpr ChannelNorm channel_norm(const Geometry& g, const Normalisation& norm, std::int32_t set, std::int32_t c) {
  if (!g.normalise) return {};
  const std::int64_t at = static_cast<std::int64_t>(set) * g.channels + c;
  return {norm.mean[at], norm.inverse_deviation[at] * norm.gamma[c], norm.beta[c]};
}

/// Normalisation and leaky ReLU of neighbouring channels.
template <int N>
struct Activation {
  Lanes<N> mean;
  Lanes<N> scale;
  Lanes<N> shift;
  float slope;

  [[nodiscard]] constexpr Lanes<N> operator()(const Lanes<N>& y) const {
    Lanes<N> a;
    for (int i = 0; i < N; ++i) {
      const float z = (y.at[i] - mean.at[i]) * scale.at[i] + shift.at[i];
      a.at[i] = z > 0 ? z : slope * z;
    }
    return a;
  }
};

template <int N>
constexpr Activation<N> load_activation(const Geometry& g, const Normalisation& norm, std::int32_t set,
                                        std::int32_t channel) {
  Activation<N> activation;
  activation.slope = g.slope;
  for (int i = 0; i < N; ++i) {
    const ChannelNorm of = channel_norm(g, norm, set, channel + i);
    activation.mean.at[i] = of.mean;
    activation.scale.at[i] = of.scale;
    activation.shift.at[i] = of.shift;
  }
  return activation;
}

/// DropoutKey as the kernels see it.
struct Dropout {
  bool on = false;
  float keep = 1;
  float scale = 1;  ///< of what is kept
  RandomStream stream;
  const std::uint32_t* step = nullptr;
  std::int64_t first_sample = 0;
};

constexpr Dropout dropout_of(const ChainDesc& desc, const DropoutKey& key) {
  return {desc.training && desc.keep < 1, desc.keep, 1.0F / desc.keep, key.stream, key.step, key.first_sample};
}

/// Drops or scales the output voxel `out`'s channels from `channel` on. Four neighbouring elements, the first a
/// multiple of 4, share one block of the generator: RandomStream::uniform of each at a quarter of the cost.
template <int N>
constexpr void apply_dropout(const Geometry& g, const Dropout& dropout, std::int32_t n, const Point& out,
                             std::int32_t channel, Lanes<N>& lanes) {
  static_assert(N == 1 || N % 4 == 0);
  if (!dropout.on) return;
  const std::int64_t plane = (dropout.first_sample + n) * g.out_volume.d + out.d;
  const std::int64_t voxel = (plane * g.out_volume.h + out.h) * g.out_volume.w + out.w;
  const auto element = static_cast<std::uint64_t>(voxel * g.channels + channel);
  const std::uint32_t step = dropout.step != nullptr ? *dropout.step : dropout.stream.step;
  const std::uint64_t high = (std::uint64_t{dropout.stream.purpose} << 32) | step;
  for (int first = 0; first < N; first += 4) {
    const auto words = philox(dropout.stream.seed, high, element / 4 + static_cast<std::uint64_t>(first / 4));
    for (int i = first; i < N && i < first + 4; ++i) {
      // Constant places in the block, so that it stays in registers.
      std::uint32_t word = words[0];
      const auto place = N == 1 ? static_cast<int>(element % 4) : i - first;
      if (place == 1) word = words[1];
      if (place == 2) word = words[2];
      if (place == 3) word = words[3];
      const float uniform = static_cast<float>(word >> 8) * 0x1p-24F;
      lanes.at[i] = uniform < dropout.keep ? lanes.at[i] * dropout.scale : 0.0F;
    }
  }
}

}  // namespace halograd::cuda::chain
