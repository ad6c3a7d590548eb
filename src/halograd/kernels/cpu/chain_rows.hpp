#pragma once

#include <cstddef>
#include <cstdint>

namespace halograd::cpu {

/// Per channel z = (y − mean) · scale + shift, then leaky ReLU of `slope`.
struct Activation {
  const float* mean = nullptr;
  const float* scale = nullptr;
  const float* shift = nullptr;
  float slope = 1;
  bool none = false;  ///< a is y: mean 0, scale 1, shift 0, slope 1
};

/// The extents of a row of a channels-last tensor: [voxels, channels].
struct RowShape {
  std::int64_t voxels = 0;
  std::int64_t channels = 0;
};

/// Where such a row lies: `pitch` numbers from one voxel to the next, dense where that is the number of channels.
template <typename T>
struct Row {
  T* data = nullptr;
  std::int64_t pitch = 0;
};

/// Pooling along a row: output j reads voxels j·stride … + kernel − 1.
struct RowWindow {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
};

/// Where a row of input voxels stands to a row of outputs: voxel i of the row is seen at `shift` + i by windows whose
/// output 0 is the first of the `outputs` given.
struct SpreadShape {
  RowShape inputs;
  std::int64_t outputs = 0;
  std::int64_t shift = 0;
  RowWindow window;
};

/// One of the rows of inputs a max pool's windows cover, from the first window's first voxel on, and the place in the
/// window of that voxel.
template <typename T>
struct MaxRow {
  Row<const T> y;
  int code = 0;
};

/// How average pooling of stride 2 hands its gradient down a row: voxels 2j and 2j + 1 get da = g[j] and, for the
/// second, with window 3 (`overlapping`), g[j] + g[j + 1]. g is the sum of `rows` rows of outputs: 1, 2 or 4, without
/// overlap 1.
struct PairShape {
  std::int64_t pairs = 0;
  std::int64_t channels = 0;
  std::int64_t rows = 1;
  bool overlapping = false;
  bool closed = false;  ///< no output follows that of the last pair
};

/// What da is multiplied by to give dz: `above` where z > 0, else `below`.
struct Gain {
  float above = 1;
  float below = 1;
};

/// dy = scale · dz + offset + (y − mean) · pull, per channel.
struct Correction {
  const float* offset = nullptr;
  const float* pull = nullptr;
};

/// Per channel, of `count` voxels.
struct RunningMoments {
  double count = 0;
  double* mean = nullptr;
  double* m2 = nullptr;
};

// The loops of the fused chain, each over one row of voxels, compiled for one processor level. Rows of activations and
// their gradients are of type T, float or Bf16; scratch rows are of floats, and so is all arithmetic. What is stored in
// bf16 is rounded once.

/// Rows of one type into rows of another: float, or of the two types one is T and the other T or float.
template <typename From, typename To>
struct MoveKernels {
  /// to = from; both [shape].
  void (*copy_row)(const RowShape& shape, const Row<const From>& from, const Row<To>& to);

  /// out += row; both [shape].
  void (*add_row)(const RowShape& shape, const Row<const From>& row, const Row<To>& out);

  /// out = scale · Σ rows, of `elements` each; zeros where there are no rows.
  void (*sum_rows)(const From* const* rows, std::int64_t row_count, std::int64_t elements, float scale, To* out);
};

/// What reads rows of y alone.
template <typename T>
struct InputKernels {
  /// out[j] = Σ of the window's activated voxels, every window inside y; out: [shape], dense.
  void (*pool_sum)(const Activation& activation, const RowShape& shape, const RowWindow& window, const Row<const T>& y,
                   float* out);

  /// Takes in the voxels of `y`: [shape], at least one. Their moments are joined to those so far (Chan, Golub and
  /// LeVeque 1983); every call but the last must bring no more voxels than those before it together, save the first.
  void (*moments)(const RowShape& shape, const Row<const T>& y, RunningMoments& moments);
};

/// Activations, as Out: T or float.
template <typename T, typename Out>
struct ActivateKernels {
  /// a = activation(y); y, a: [shape].
  void (*activate)(const Activation& activation, const RowShape& shape, const Row<const T>& y, const Row<Out>& a);

  /// best[j] = the largest of the window's activated voxels over all rows, arg[j] its place, the first of equals; a NaN
  /// wins. best, arg: [shape], arg dense.
  void (*pool_max)(const Activation& activation, const RowShape& shape, const RowWindow& window, const MaxRow<T>* rows,
                   std::int64_t row_count, const Row<Out>& best, std::uint8_t* arg);
};

/// Gradients of outputs or activations, as Given: T or float.
template <typename T, typename Given>
struct GradientKernels {
  /// da += scale · g from every output that reads the voxel. g: [outputs, channels], da: [inputs].
  void (*spread)(const SpreadShape& shape, float scale, const Row<const Given>& g, const Row<float>& da);

  /// da += g where arg, less `code`, is the voxel's place in the window. g, arg: [outputs, channels], arg dense; da:
  /// [inputs].
  void (*spread_max)(const SpreadShape& shape, int code, const Row<const Given>& g, const std::uint8_t* arg,
                     const Row<float>& da);

  /// Adds Σ dz and Σ dz · (y − mean) to sums and weighted: [channels] each; y, da: [shape].
  void (*sums)(const Activation& activation, const Gain& gain, const RowShape& shape, const Row<const T>& y,
               const Row<const Given>& da, double* sums, double* weighted);

  /// Likewise for pairs of voxels; all rows dense.
  void (*sums_pairs)(const Activation& activation, const Gain& gain, const PairShape& shape, const T* y,
                     const Given* const* g, double* sums, double* weighted);

  /// dy from da, assigned (dy may be y) or, with `accumulate`, added; y, da, dy: [shape].
  void (*data)(const Activation& activation, const Correction& correction, const Gain& gain, const RowShape& shape,
               const Row<const T>& y, const Row<const Given>& da, const Row<T>& dy, bool accumulate);

  /// Likewise for pairs of voxels; assigned, all rows dense.
  void (*data_pairs)(const Activation& activation, const Correction& correction, const Gain& gain,
                     const PairShape& shape, const T* y, const Given* const* g, T* dy);
};

/// Those of the kind `Kernels` for this processor.
template <typename Kernels>
const Kernels& row_kernels();

}  // namespace halograd::cpu
