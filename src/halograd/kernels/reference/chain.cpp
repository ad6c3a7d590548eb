#include "halograd/kernels/reference/chain.hpp"

#include "halograd/core/parallel.hpp"
#include "halograd/kernels/reference/chain_steps.hpp"
#include "halograd/kernels/reference/f32_only.hpp"
#include "halograd/kernels/typed.hpp"

#include <cstddef>
#include <vector>

namespace halograd::reference {
namespace {

Box widened(const Box& box, const Halo& halo) {
  Box result = box;
  for (int i = 0; i < 3; ++i) {
    result.lo[i] -= halo.lo[i];
    result.hi[i] += halo.hi[i];
  }
  return result;
}

class ReferenceChain final : public TypedChain<float> {
public:
  explicit ReferenceChain(const ChainDesc& desc) : desc_(desc), seen_(widened(desc.in, desc.faces)) {
    const auto elements = static_cast<std::size_t>(desc.samples * seen_.volume() * desc.channels);
    activations_.resize(elements);
    if (desc.training) gradients_.resize(elements);
  }

  void moments(const float* y, double* mean, double* m2) override {
    const Voxels<const float> own = own_voxels(y);
    if (!desc_.per_sample) return moments_of(own, 0, desc_.samples, mean, m2);
    for (std::int64_t n = 0; n < desc_.samples; ++n) {
      moments_of(own, n, n + 1, mean + n * desc_.channels, m2 + n * desc_.channels);
    }
  }

  void forward(const float* y, const FaceBuffers<const float>& faces, const Normalisation& norm,
               const DropoutKey& dropout, const Box& part, float* dst, std::uint8_t* argmax) override {
    const Voxels<float> activations{activations_.data(), seen_, desc_.channels};
    activate(desc_, y, faces, norm, activations);
    pool_and_drop(desc_, activations, dropout, part, {dst, desc_.dst.box, desc_.dst.pitch},
                  desc_.training ? argmax : nullptr);
  }

  void backward_faces(const float* dout, const std::uint8_t* argmax, const DropoutKey& dropout,
                      const FaceBuffers<float>& dfaces) override {
    const Voxels<double> gradient = gradients();
    activation_gradient(desc_, {dout, desc_.dst.box, desc_.dst.pitch}, argmax, dropout, gradient);
    const auto assign = [&](float* buffer, const Box& box) {
      if (buffer == nullptr) return;
      const Voxels<float> face{buffer, box, desc_.channels};
      for (std::int64_t n = 0; n < desc_.samples; ++n) {
        for_each_voxel(box, [&](const Index& at) {
          for (std::int64_t c = 0; c < desc_.channels; ++c) {
            face.voxel(n, at)[c] = static_cast<float>(gradient.voxel(n, at)[c]);
          }
        });
      }
    };
    for (int i = 0; i < 3; ++i) {
      assign(dfaces.lo[static_cast<std::size_t>(i)], face_box(desc_, i, false, false));
      assign(dfaces.hi[static_cast<std::size_t>(i)], face_box(desc_, i, true, false));
    }
  }

  void backward_sums(const float* y, const FaceBuffers<const float>& received, const Normalisation& norm,
                     const float* dout, const std::uint8_t* argmax, const DropoutKey& dropout, const Box& part,
                     double* sums) override {
    const Voxels<double> gradient = rebuild_gradient(y, received, norm, dout, argmax, dropout);
    const Voxels<const float> own = own_voxels(y);
    parallel_for(desc_.channels, [&](std::int64_t c) {
      for (std::int64_t n = 0; n < desc_.samples; ++n) {
        double* const at = sums + (desc_.per_sample ? n * 2 * desc_.channels : 0);
        for_each_voxel(part, [&](const Index& voxel) {
          double unit = 0;
          normalised(desc_, norm, n, c, own.voxel(n, voxel)[c], &unit);
          at[c] += gradient.voxel(n, voxel)[c];
          at[desc_.channels + c] += gradient.voxel(n, voxel)[c] * unit;
        });
      }
    });
  }

  void backward_data(const float* y, const FaceBuffers<const float>& received, const Normalisation& norm,
                     const float* dout, const std::uint8_t* argmax, const DropoutKey& dropout,
                     const NormGradient& statistics, float* dy) override {
    const Voxels<double> gradient = rebuild_gradient(y, received, norm, dout, argmax, dropout);
    const Voxels<const float> own = own_voxels(y);
    const Voxels<float> result{dy, desc_.src.box, desc_.src.pitch};
    for (std::int64_t n = 0; n < desc_.samples; ++n) {
      for_each_voxel(desc_.in, [&](const Index& at) {
        for (std::int64_t c = 0; c < desc_.channels; ++c) {
          double value = gradient.voxel(n, at)[c];
          if (desc_.normalise) value = through_norm(norm, statistics, n, c, own.voxel(n, at)[c], value);
          if (desc_.accumulate) value += static_cast<double>(result.voxel(n, at)[c]);
          result.voxel(n, at)[c] = static_cast<float>(value);
        }
      });
    }
  }

  [[nodiscard]] std::int64_t held_bytes() const override {
    return static_cast<std::int64_t>(activations_.size() * sizeof(float) + gradients_.size() * sizeof(double));
  }

private:
  [[nodiscard]] Voxels<double> gradients() { return {gradients_.data(), seen_, desc_.channels}; }

  [[nodiscard]] Voxels<const float> own_voxels(const float* y) const { return {y, desc_.src.box, desc_.src.pitch}; }

  /// Mean and squared distance over the samples [begin, end): [C] each.
  void moments_of(const Voxels<const float>& y, std::int64_t begin, std::int64_t end, double* mean, double* m2) const {
    const auto total = [&](const auto& term) {
      double sum = 0;
      for (std::int64_t n = begin; n < end; ++n) {
        for_each_voxel(desc_.in, [&](const Index& at) { sum += term(y.voxel(n, at)); });
      }
      return sum;
    };
    const std::int64_t voxels = (end - begin) * desc_.in.volume();
    parallel_for(desc_.channels, [&](std::int64_t c) {
      const double sum = total([&](const float* voxel) { return static_cast<double>(voxel[c]); });
      mean[c] = voxels > 0 ? sum / static_cast<double>(voxels) : 0;
      m2[c] = total([&](const float* voxel) {
        const double distance = static_cast<double>(voxel[c]) - mean[c];
        return distance * distance;
      });
    });
  }

  /// The gradient of y from that of z.
  [[nodiscard]] double through_norm(const Normalisation& norm, const NormGradient& statistics, std::int64_t n,
                                    std::int64_t c, float y, double dz) const {
    double unit = 0;
    normalised(desc_, norm, n, c, y, &unit);
    const std::int64_t at = statistics_index(desc_, n, c);
    const double fixed = dz * static_cast<double>(norm.gamma[c]) * static_cast<double>(norm.inverse_deviation[at]);
    return statistics.offset == nullptr ? fixed : fixed + statistics.offset[at] + unit * statistics.pull[at];
  }

  /// dz over `in` (what it holds in the faces means nothing): da of own and neighbours' outputs times the activation's
  /// derivative.
  Voxels<double> rebuild_gradient(const float* y, const FaceBuffers<const float>& received, const Normalisation& norm,
                                  const float* dout, const std::uint8_t* argmax, const DropoutKey& dropout) {
    const Voxels<double> gradient = gradients();
    activation_gradient(desc_, {dout, desc_.dst.box, desc_.dst.pitch}, argmax, dropout, gradient);
    add_received(desc_, received, gradient);
    if (!desc_.normalise && desc_.negative_slope == 1) return gradient;  // y is not there to be read
    const Voxels<const float> own = own_voxels(y);
    for (std::int64_t n = 0; n < desc_.samples; ++n) {
      for_each_voxel(desc_.in, [&](const Index& at) {
        for (std::int64_t c = 0; c < desc_.channels; ++c) {
          const float z = normalised(desc_, norm, n, c, own.voxel(n, at)[c]);
          gradient.voxel(n, at)[c] *= z > 0 ? 1.0 : static_cast<double>(desc_.negative_slope);
        }
      });
    }
    return gradient;
  }

  ChainDesc desc_;
  Box seen_;  ///< `in` and its faces
  std::vector<float> activations_;
  std::vector<double> gradients_;
};

}  // namespace

std::unique_ptr<Chain> make_chain(const ChainDesc& desc) {
  expect_f32(desc.type);
  return std::make_unique<ReferenceChain>(desc);
}

}  // namespace halograd::reference
