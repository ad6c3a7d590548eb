#include "halograd/kernels/cpu/chain.hpp"

#include "halograd/core/error.hpp"
#include "halograd/kernels/cpu/chain_backward.hpp"
#include "halograd/kernels/cpu/chain_forward.hpp"
#include "halograd/kernels/cpu/chain_moments.hpp"
#include "halograd/kernels/cpu/chain_parts.hpp"

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
    return {mean_.data(), scale_.data(), shift_.data(), desc_.negative_slope};
  }

  /// The gradient's way through the statistics: −scale · (sums₀ + ẑ · sums₁) / count.
  Correction correction(const Normalisation& norm, const double* sums, double count) {
    const bool flows = desc_.normalise && sums != nullptr;
    for (std::size_t c = 0; c < mean_.size(); ++c) {
      const double scale =
          flows ? static_cast<double>(norm.gamma[c]) * static_cast<double>(norm.inverse_deviation[c]) : 0;
      offset_[c] = flows ? static_cast<float>(-scale * sums[c] / count) : 0.0F;
      pull_[c] = flows ? static_cast<float>(-scale * static_cast<double>(norm.inverse_deviation[c]) *
                                            sums[mean_.size() + c] / count)
                       : 0.0F;
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

class CpuChain final : public Chain {
public:
  explicit CpuChain(const ChainDesc& desc)
      : desc_(desc),
        constants_(desc),
        moments_(desc.channels),
        forward_(desc),
        backward_(desc),
        weighted_(static_cast<std::size_t>(desc.channels)) {}

  void moments(const float* y, double* mean, double* m2) override {
    moments_.run(y, desc_.samples * desc_.in.volume(), mean, m2);
  }

  void forward(const float* y, const FaceBuffers<const float>& faces, const Normalisation& norm,
               const DropoutKey& dropout, const Box& part, float* dst, std::uint8_t* argmax) override {
    const Activation activation = constants_.activation(norm);
    forward_.run({y, faces, activation, dropout, dst, desc_.training ? argmax : nullptr}, part);
  }

  void backward_faces(const float* dout, const std::uint8_t* argmax, const DropoutKey& dropout,
                      const FaceBuffers<float>& dfaces) override {
    backward_.faces({dout, argmax, dropout}, dfaces);
  }

  void backward_sums(const float* y, const FaceBuffers<const float>& received, const Normalisation& norm,
                     const float* dout, const std::uint8_t* argmax, const DropoutKey& dropout, const Box& part,
                     double* sums) override {
    const Activation activation = constants_.activation(norm);
    weighted_.assign(weighted_.size(), 0.0);
    backward_.sums({y, received, activation, {dout, argmax, dropout}}, part, sums, weighted_.data());
    for (std::size_t c = 0; c < weighted_.size(); ++c) {
      const double inverse_deviation = desc_.normalise ? static_cast<double>(norm.inverse_deviation[c]) : 1.0;
      sums[weighted_.size() + c] += weighted_[c] * inverse_deviation;
    }
  }

  void backward_data(const float* y, const FaceBuffers<const float>& received, const Normalisation& norm,
                     const float* dout, const std::uint8_t* argmax, const DropoutKey& dropout, const double* sums,
                     double count, float* dy) override {
    const Activation activation = constants_.activation(norm);
    const Correction correction = constants_.correction(norm, sums, count);
    backward_.data({y, received, activation, {dout, argmax, dropout}}, correction, dy);
  }

  [[nodiscard]] std::int64_t held_bytes() const override {
    return constants_.held_bytes() + moments_.held_bytes() + forward_.held_bytes() + backward_.held_bytes() +
           bytes_of(weighted_);
  }

private:
  ChainDesc desc_;
  ChannelConstants constants_;
  ChainMoments moments_;
  ChainForward forward_;
  ChainBackward backward_;
  std::vector<double> weighted_;  ///< Σ dz·(y − mean): [C]
};

}  // namespace

std::unique_ptr<Chain> make_chain(const ChainDesc& desc) {
  if (desc.pool == PoolKind::max && desc.window.kernel.volume() > 256) {
    throw UsageError("a max pool's window of {} voxels is too large: it may have at most 256",
                     desc.window.kernel.volume());
  }
  return std::make_unique<CpuChain>(desc);
}

}  // namespace halograd::cpu
