#pragma once

#include "halograd/kernels/cpu/chain_geometry.hpp"
#include "halograd/kernels/cpu/chain_rows.hpp"

#include <vector>

namespace halograd::cpu {

/// The gradient of a chain's outputs, as the next layer gives it.
struct OutputGradient {
  const float* dout = nullptr;
  const std::uint8_t* argmax = nullptr;
  const DropoutKey& dropout;
};

/// Output gradients summed over the rows that read one row of input voxels: [outputs, C]. Where `padded`, a voxel of
/// zeros follows. Without readers `outputs` is empty.
struct ReaderSum {
  const float* g = nullptr;
  Range outputs;
  bool padded = false;
};

/// Scratch memory of one thread that gathers.
struct GatherScratch {
  std::vector<float> sum;      ///< [W + 1, C]
  std::vector<float> dropped;  ///< [W, C], with dropout only
  std::vector<const float*> rows;
};

/// Gathers da, the gradient of activations, from the output gradients that this rank holds: for each row of input
/// voxels first the 1 to 4 (window 3, stride 2) rows of outputs that read it are summed, then that row is spread along
/// w.
class ChainGather {
public:
  explicit ChainGather(const ChainDesc& desc);
  [[nodiscard]] GatherScratch make_scratch() const;

  /// 1 / voxels of the window for averages, else 1: what a sum over readers still lacks.
  [[nodiscard]] float share() const { return share_; }

  /// The sum over the readers of the voxels `w` of row (d, h); not for max pooling.
  ReaderSum sum_readers(const OutputGradient& from, std::int64_t n, std::int64_t d, std::int64_t h, const Range& w,
                        GatherScratch& scratch) const;

  /// da of the voxels `w` from their readers' sum (which may cover more): [w, C], assigned.
  void spread(const ReaderSum& readers, const Range& w, float* da) const;

  /// da of the voxels `w` of row (d, h) where the maximum won: [w, C], assigned.
  void gather_max(const OutputGradient& from, std::int64_t n, std::int64_t d, std::int64_t h, const Range& w,
                  GatherScratch& scratch, float* da) const;

private:
  const float* output_row(const OutputGradient& from, std::int64_t n, std::int64_t d, std::int64_t h,
                          const Range& outputs, GatherScratch& scratch) const;
  [[nodiscard]] SpreadShape spread_shape(const Range& outputs, const Range& w) const;

  ChainDesc desc_;
  const RowKernels& kernels_;
  Box known_;  ///< outputs whose gradient is not 0
  float share_ = 1;
  bool drops_ = false;
};

}  // namespace halograd::cpu
