#pragma once

#include "halograd/kernels/chain.hpp"
#include "halograd/kernels/reference/voxels.hpp"

namespace halograd::reference {

/// Box of the face buffer of `width` voxels that lies outside (or, for `returned`, inside) `in` along `dimension`.
Box face_box(const ChainDesc& desc, int dimension, bool high, bool inside);

/// Where the statistics of a channel of sample `n` stand: [C], with per_sample [N,C].
std::int64_t statistics_index(const ChainDesc& desc, std::int64_t n, std::int64_t channel);

/// z of one voxel of sample `n` before activation, rounded to float: normalised where the chain normalises, else y
/// itself. `plain`, where given, receives the normalised value before gamma and beta.
float normalised(const ChainDesc& desc, const Normalisation& norm, std::int64_t n, std::int64_t channel, float y,
                 double* plain = nullptr);

/// a = activation(normalise(y)) over `in` and its faces; voxels of faces without a buffer are left alone.
void activate(const ChainDesc& desc, const float* y, const FaceBuffers<const float>& faces, const Normalisation& norm,
              const Voxels<float>& activations);

/// Pools the windows of the output voxels `part` into dst, with dropout; argmax may be null.
void pool_and_drop(const ChainDesc& desc, const Voxels<float>& activations, const DropoutKey& dropout, const Box& part,
                   const Voxels<float>& dst, std::uint8_t* argmax);

/// da over `in` and its faces: what this rank's outputs give each activation.
void activation_gradient(const ChainDesc& desc, const Voxels<const float>& dout, const std::uint8_t* argmax,
                         const DropoutKey& dropout, const Voxels<double>& gradient);

/// Adds what neighbours gave to the voxels inside `in`, in the order D low, D high, H low, …
void add_received(const ChainDesc& desc, const FaceBuffers<const float>& received, const Voxels<double>& gradient);

}  // namespace halograd::reference
