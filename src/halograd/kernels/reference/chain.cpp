#include "halograd/kernels/reference/chain.hpp"

#include "halograd/core/parallel.hpp"
#include "halograd/kernels/reference/chain_steps.hpp"

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

class ReferenceChain final : public Chain {
public:
  explicit ReferenceChain(const ChainDesc& desc) : desc_(desc), seen_(widened(desc.in, desc.faces)) {
    const auto elements = static_cast<std::size_t>(desc.samples * seen_.volume() * desc.channels);
    activations_.resize(elements);
    if (desc.training) gradients_.resize(elements);
  }

  void moments(const float* y, double* mean, double* m2) override {
    const std::int64_t voxels = desc_.samples * desc_.in.volume();
    parallel_for(desc_.channels, [&](std::int64_t c) {
      double sum = 0;
      for (std::int64_t v = 0; v < voxels; ++v) sum += static_cast<double>(y[v * desc_.channels + c]);
      mean[c] = voxels > 0 ? sum / static_cast<double>(voxels) : 0;
      double squares = 0;
      for (std::int64_t v = 0; v < voxels; ++v) {
        const double distance = static_cast<double>(y[v * desc_.channels + c]) - mean[c];
        squares += distance * distance;
      }
      m2[c] = squares;
    });
  }

  void forward(const float* y, const FaceBuffers<const float>& faces, const Normalisation& norm,
               const DropoutKey& dropout, const Box& part, float* dst, std::uint8_t* argmax) override {
    const Voxels<float> activations{activations_.data(), seen_, desc_.channels};
    activate(desc_, y, faces, norm, activations);
    pool_and_drop(desc_, activations, dropout, part, {dst, desc_.dst, desc_.channels},
                  desc_.training ? argmax : nullptr);
  }

  void backward_faces(const float* dout, const std::uint8_t* argmax, const DropoutKey& dropout,
                      const FaceBuffers<float>& dfaces) override {
    const Voxels<double> gradient = gradients();
    activation_gradient(desc_, {dout, desc_.dst, desc_.channels}, argmax, dropout, gradient);
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
    const Voxels<const float> own{y, desc_.in, desc_.channels};
    parallel_for(desc_.channels, [&](std::int64_t c) {
      double plain_sum = 0;
      double weighted_sum = 0;
      for (std::int64_t n = 0; n < desc_.samples; ++n) {
        for_each_voxel(part, [&](const Index& at) {
          double unit = 0;
          normalised(desc_, norm, c, own.voxel(n, at)[c], &unit);
          plain_sum += gradient.voxel(n, at)[c];
          weighted_sum += gradient.voxel(n, at)[c] * unit;
        });
      }
      sums[c] += plain_sum;
      sums[desc_.channels + c] += weighted_sum;
    });
  }

  void backward_data(const float* y, const FaceBuffers<const float>& received, const Normalisation& norm,
                     const float* dout, const std::uint8_t* argmax, const DropoutKey& dropout, const double* sums,
                     double count, float* dy) override {
    const Voxels<double> gradient = rebuild_gradient(y, received, norm, dout, argmax, dropout);
    const Voxels<const float> own{y, desc_.in, desc_.channels};
    const Voxels<float> result{dy, desc_.in, desc_.channels};
    for (std::int64_t n = 0; n < desc_.samples; ++n) {
      for_each_voxel(desc_.in, [&](const Index& at) {
        for (std::int64_t c = 0; c < desc_.channels; ++c) {
          double value = gradient.voxel(n, at)[c];
          if (desc_.normalise) {
            double unit = 0;
            normalised(desc_, norm, c, own.voxel(n, at)[c], &unit);
            if (sums != nullptr) value -= sums[c] / count + unit * sums[desc_.channels + c] / count;
            value *= static_cast<double>(norm.gamma[c]) * static_cast<double>(norm.inverse_deviation[c]);
          }
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

  /// dz over `in` (what it holds in the faces means nothing): da of own and neighbours' outputs times the activation's
  /// derivative.
  Voxels<double> rebuild_gradient(const float* y, const FaceBuffers<const float>& received, const Normalisation& norm,
                                  const float* dout, const std::uint8_t* argmax, const DropoutKey& dropout) {
    const Voxels<double> gradient = gradients();
    activation_gradient(desc_, {dout, desc_.dst, desc_.channels}, argmax, dropout, gradient);
    add_received(desc_, received, gradient);
    const Voxels<const float> own{y, desc_.in, desc_.channels};
    for (std::int64_t n = 0; n < desc_.samples; ++n) {
      for_each_voxel(desc_.in, [&](const Index& at) {
        for (std::int64_t c = 0; c < desc_.channels; ++c) {
          const float z = normalised(desc_, norm, c, own.voxel(n, at)[c]);
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
  return std::make_unique<ReferenceChain>(desc);
}

}  // namespace halograd::reference
