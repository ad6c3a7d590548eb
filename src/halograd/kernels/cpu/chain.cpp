#include "halograd/kernels/cpu/chain.hpp"

#include "halograd/core/bf16.hpp"
#include "halograd/core/error.hpp"
#include "halograd/kernels/cpu/chain_backward.hpp"
#include "halograd/kernels/cpu/chain_forward.hpp"
#include "halograd/kernels/cpu/chain_moments.hpp"
#include "halograd/kernels/cpu/chain_parts.hpp"
#include "halograd/kernels/typed.hpp"

#include <algorithm>
#include <vector>

namespace halograd::cpu {
namespace {

/// Per-channel constants as the row kernels take them; without normalisation z is y itself.
class ChannelConstants {
public:
  explicit ChannelConstants(const ChainDesc& desc)
      : desc_(desc),
        mean_(static_cast<std::size_t>(desc.channels), 0.0F),
        scale_(static_cast<std::size_t>(desc.channels), 1.0F),
        shift_(static_cast<std::size_t>(desc.channels), 0.0F),
        offset_(static_cast<std::size_t>(desc.channels), 0.0F),
        pull_(static_cast<std::size_t>(desc.channels), 0.0F) {}

  Activation activation(const Normalisation& norm) {
    if (desc_.normalise) {
      for (std::size_t c = 0; c < mean_.size(); ++c) {
        mean_[c] = norm.mean[c];
        scale_[c] = norm.inverse_deviation[c] * norm.gamma[c];
        shift_[c] = norm.beta[c];
      }
    }
    return {mean_.data(), scale_.data(), shift_.data(), desc_.negative_slope, leaves_y_as_it_is(desc_)};
  }

  /// The gradient's way through the statistics, for y − mean instead of ẑ.
  Correction correction(const Normalisation& norm, const NormGradient& statistics) {
    const bool flows = desc_.normalise && statistics.offset != nullptr;
    for (std::size_t c = 0; c < mean_.size() && flows; ++c) {
      offset_[c] = static_cast<float>(statistics.offset[c]);
      pull_[c] = static_cast<float>(statistics.pull[c] * static_cast<double>(norm.inverse_deviation[c]));
    }
    if (!flows) {
      std::fill(offset_.begin(), offset_.end(), 0.0F);
      std::fill(pull_.begin(), pull_.end(), 0.0F);
    }
    return {offset_.data(), pull_.data()};
  }

  [[nodiscard]] std::int64_t held_bytes() const { return 5 * bytes_of(mean_); }

private:
  ChainDesc desc_;
  std::vector<float> mean_;
  std::vector<float> scale_;
  std::vector<float> shift_;
  std::vector<float> offset_;
  std::vector<float> pull_;
};

/// Samples that share statistics, which begin at number `statistics` of each array.
struct SampleSet {
  Range samples;
  std::int64_t statistics = 0;

  [[nodiscard]] Normalisation of(const Normalisation& norm) const {
    if (norm.mean == nullptr) return norm;
    return {norm.mean + statistics, norm.inverse_deviation + statistics, norm.gamma, norm.beta};
  }
  [[nodiscard]] NormGradient of(const NormGradient& gradient) const {
    if (gradient.offset == nullptr) return gradient;
    return {gradient.offset + statistics, gradient.pull + statistics};
  }
};

template <typename T>
class CpuChain final : public TypedChain<T> {
public:
  explicit CpuChain(const ChainDesc& desc)
      : desc_(desc),
        constants_(desc),
        moments_(desc),
        forward_(desc),
        backward_(desc),
        weighted_(static_cast<std::size_t>(desc.channels)) {}

  void moments(const T* y, double* mean, double* m2) override {
    for_each_set(
        [&](const SampleSet& set) { moments_.run(y, set.samples, mean + set.statistics, m2 + set.statistics); });
  }

  void forward(const T* y, const FaceBuffers<const T>& faces, const Normalisation& norm, const DropoutKey& dropout,
               const Box& part, T* dst, std::uint8_t* argmax) override {
    for_each_set([&](const SampleSet& set) {
      const Activation activation = constants_.activation(set.of(norm));
      forward_.run({y, faces, activation, dropout, dst, desc_.training ? argmax : nullptr, set.samples}, part);
    });
  }

  void backward_faces(const T* dout, const std::uint8_t* argmax, const DropoutKey& dropout,
                      const FaceBuffers<T>& dfaces) override {
    backward_.faces({dout, argmax, dropout}, dfaces);
  }

  void backward_sums(const T* y, const FaceBuffers<const T>& received, const Normalisation& norm, const T* dout,
                     const std::uint8_t* argmax, const DropoutKey& dropout, const Box& part, double* sums) override {
    for_each_set([&](const SampleSet& set) {
      const Normalisation here = set.of(norm);
      const Activation activation = constants_.activation(here);
      double* const plain = sums + 2 * set.statistics;
      double* const with_unit = plain + desc_.channels;
      weighted_.assign(weighted_.size(), 0.0);
      backward_.sums({y, received, activation, {dout, argmax, dropout}, set.samples}, part, plain, weighted_.data());
      for (std::size_t c = 0; c < weighted_.size(); ++c) {
        with_unit[c] += weighted_[c] * (desc_.normalise ? static_cast<double>(here.inverse_deviation[c]) : 1.0);
      }
    });
  }

  void backward_data(const T* y, const FaceBuffers<const T>& received, const Normalisation& norm, const T* dout,
                     const std::uint8_t* argmax, const DropoutKey& dropout, const NormGradient& statistics,
                     T* dy) override {
    for_each_set([&](const SampleSet& set) {
      const Normalisation here = set.of(norm);
      const Activation activation = constants_.activation(here);
      const Correction correction = constants_.correction(here, set.of(statistics));
      backward_.data({y, received, activation, {dout, argmax, dropout}, set.samples}, correction, dy);
    });
  }

  [[nodiscard]] std::int64_t held_bytes() const override {
    return constants_.held_bytes() + moments_.held_bytes() + forward_.held_bytes() + backward_.held_bytes() +
           bytes_of(weighted_);
  }

private:
  template <typename Body>
  void for_each_set(const Body& body) const {
    if (!desc_.per_sample) return body(SampleSet{{0, desc_.samples}, 0});
    for (std::int64_t n = 0; n < desc_.samples; ++n) body(SampleSet{{n, n + 1}, n * desc_.channels});
  }

  ChainDesc desc_;
  ChannelConstants constants_;
  ChainMoments<T> moments_;
  ChainForward<T> forward_;
  ChainBackward<T> backward_;
  std::vector<double> weighted_;  ///< Σ dz·(y − mean): [C]
};

}  // namespace

std::unique_ptr<Chain> make_chain(const ChainDesc& desc) {
  if (desc.pool == PoolKind::max && desc.window.kernel.volume() > 256) {
    throw UsageError("a max pool's window of {} voxels is too large: it may have at most 256",
                     desc.window.kernel.volume());
  }
  if (desc.type == DType::bf16) return std::make_unique<CpuChain<Bf16>>(desc);
  return std::make_unique<CpuChain<float>>(desc);
}

}  // namespace halograd::cpu
