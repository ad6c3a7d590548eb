#pragma once

#include "halograd/core/random.hpp"
#include "halograd/core/types.hpp"
#include "halograd/device/queue.hpp"
#include "halograd/tensor/layout.hpp"
#include "halograd/tensor/partition.hpp"

#include <array>
#include <memory>

namespace halograd {

enum class PoolKind { none, average, max };

/// Everything that stands between two convolutions, as one operation on one rank:
///     z = normalise(y);  a = z > 0 ? z : negative_slope · z;  p = pool(a);  out = dropout(p)
/// each part optional. It reads the convolution's output y, writes straight into the next layer's input buffer `dst`
/// (its margins excepted) and stores neither z nor a: the backward pass rebuilds them from y.
///
/// All boxes are in global indices, so that padding is decided by where the volume ends, never by what a margin holds.
struct ChainDesc {
  DType type = DType::f32;  ///< of y, the output and their gradients: f32 or bf16; all is computed in f32
  std::int64_t samples = 0;
  std::int64_t channels = 0;
  Extent in_extent;  ///< the whole volume of y
  Box in;            ///< this rank's part of it
  VoxelLayout src;   ///< of y and its gradient; holds `in`, and where y is another layer's input too, margins
  Halo faces = {};   ///< neighbours' voxels of y around `in` that pooling reads
  Halo returned =
      {};  ///< own voxels, counted from each side, that neighbours' pooling reads (their faces, seen from here)
  bool normalise = false;
  bool per_sample = false;   ///< every sample has statistics of its own (instance and group normalisation)
  float negative_slope = 1;  ///< 1: no activation; 0: ReLU; 0.01: leaky ReLU
  PoolKind pool = PoolKind::none;
  Window window = {};  ///< of the pool; 1/1/0 without one
  float keep = 1;      ///< dropout's keep probability; 1: no dropout
  Extent out_extent;   ///< the whole volume of the output
  Box out;             ///< this rank's part of it
  VoxelLayout dst;     ///< of the destination and its gradient: `out` widened by margins or, where a strided consumer
                       ///< skips voxels, narrowed. Output voxels outside it are not written (their gradient is 0).
  bool training = true;
  bool accumulate = false;  ///< backward_data adds to dy: another consumer of y has left its gradient there
};

/// z = (y − mean) · inverse_deviation · gamma + beta. mean, inverse_deviation: [C], with per_sample [N,C]; gamma, beta:
/// [C]. Unused without `normalise`.
struct Normalisation {
  const float* mean = nullptr;
  const float* inverse_deviation = nullptr;
  const float* gamma = nullptr;
  const float* beta = nullptr;
};

/// Neighbours' voxels around a box, one dense buffer a side (null where the width is 0), for dimension i in order D, H,
/// W: [N, …] with the face's width along i, extents widened by both faces along dimensions before i, and plain extents
/// along those after it; so corners live in the later dimensions' faces.
template <typename T>
struct FaceBuffers {
  std::array<T*, 3> lo{};
  std::array<T*, 3> hi{};

  /// As faces of no type in particular, or of constants.
  template <typename U>
  operator FaceBuffers<U>() const {
    return {{lo[0], lo[1], lo[2]}, {hi[0], hi[1], hi[2]}};
  }
};

/// Extent of the face buffer of `width` voxels along `dimension` at a box of `extent` whose faces are `faces`.
inline Extent face_extent(const Extent& extent, const Halo& faces, int dimension, std::int64_t width) {
  Extent result = extent;
  for (int i = 0; i < dimension; ++i) result[i] += faces.lo[i] + faces.hi[i];
  result[dimension] = width;
  return result;
}

/// Dropout's random numbers: element ((n·D + d)·H + h)·W + w)·C + c of the whole output, n counted in the global
/// mini-batch from `first_sample`, is kept where stream.uniform(element) < keep, then divided by keep.
struct DropoutKey {
  RandomStream stream;
  std::int64_t first_sample = 0;
  const std::uint32_t* step = nullptr;  ///< where the stream's step stands by the time the kernel runs; null: in it
};

/// What statistics that depend on y add to its gradient: dy = gamma · inverse_deviation · dz + offset + ẑ · pull, with
/// ẑ and dz as below. [C] each, with per_sample [N,C]; null: the statistics are fixed, and add nothing.
struct NormGradient {
  const double* offset = nullptr;
  const double* pull = nullptr;
};

/// Works on the queue it was made for; all pointers are to memory of its device.
class Chain {
public:
  virtual ~Chain() = default;

  /// This rank's mean and summed squared distance from it, in double, over all samples and voxels: mean, m2: [C] each,
  /// or (per_sample) of each sample [N,C].
  virtual void moments(const void* y, double* mean, double* m2) = 0;

  /// Writes the output voxels `part` (inside `out`, any box) into dst. Max pooling in training also writes which voxel
  /// of its window won, argmax: [N,D,H,W,C] bytes of `out`, dense, counted w fastest (the first wins a tie). Where a
  /// part needs no face voxel, `faces` may hold anything.
  virtual void forward(const void* y, const FaceBuffers<const void>& faces, const Normalisation& norm,
                       const DropoutKey& dropout, const Box& part, void* dst, std::uint8_t* argmax) = 0;

  /// What this rank's outputs give back to neighbours' activations: dfaces, laid out like `faces`, assigned.
  /// dout: laid out as `dst`, complete inside `out`; what its margins hold is not read.
  virtual void backward_faces(const void* dout, const std::uint8_t* argmax, const DropoutKey& dropout,
                              const FaceBuffers<void>& dfaces) = 0;

  /// Adds Σ dz and Σ dz·ẑ over the voxels `part` (inside `in`, any box) to sums: [2,C], with per_sample [N,2,C], where
  /// ẑ is z before gamma and beta and dz the gradient of z. `received` holds what neighbours' outputs gave to this
  /// rank's activations, added in: buffers laid out like faces (widened by `faces` along earlier dimensions) but
  /// `returned` wide and lying inside the box; only their voxels inside `in` are read. Null where the width is 0.
  virtual void backward_sums(const void* y, const FaceBuffers<const void>& received, const Normalisation& norm,
                             const void* dout, const std::uint8_t* argmax, const DropoutKey& dropout, const Box& part,
                             double* sums) = 0;

  /// dy = gradient of y over `in`, laid out as `src`, assigned or (accumulate) added; may be y itself unless it adds.
  /// y is not read where the chain neither normalises nor activates.
  virtual void backward_data(const void* y, const FaceBuffers<const void>& received, const Normalisation& norm,
                             const void* dout, const std::uint8_t* argmax, const DropoutKey& dropout,
                             const NormGradient& statistics, void* dy) = 0;

  [[nodiscard]] virtual std::int64_t held_bytes() const = 0;
};

std::unique_ptr<Chain> make_chain(const Queue& queue, const ChainDesc& desc);

}  // namespace halograd
