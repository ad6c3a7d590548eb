#pragma once

#include "halograd/kernels/cpu/chain_geometry.hpp"
#include "halograd/kernels/cpu/chain_rows.hpp"
#include "halograd/kernels/cpu/line_vector.hpp"

#include <vector>

namespace halograd::cpu {

/// The gradient of a chain's outputs, as the next layer gives it.
template <typename T>
struct OutputGradient {
  const T* dout = nullptr;
  const std::uint8_t* argmax = nullptr;
  const DropoutKey& dropout;
};

/// The rows of output gradients, [outputs, C] each, `pitch` numbers from one voxel to the next, whose sum is what one
/// row of input voxels gets before it is spread along w. Without readers `outputs` is empty.
template <typename T>
struct ReaderRows {
  const T* const* rows = nullptr;  ///< as the next layer left them, or
  const float* sum = nullptr;      ///< one row, their sum
  std::int64_t count = 0;
  std::int64_t pitch = 0;
  Range outputs;

  /// Calls `body` with the rows, of whatever type they are.
  template <typename Body>
  void visit(const Body& body) const {
    sum != nullptr ? body(&sum) : body(rows);
  }
};

/// Scratch memory of one thread that gathers.
template <typename T>
struct GatherScratch {
  LineVector sum;   ///< [W, C]
  LineVector copy;  ///< [W, C], where rows cannot be taken as they are
  std::vector<const T*> rows;
};

/// Gathers da, the gradient of activations, from the output gradients that this rank holds: for each row of input
/// voxels first the 1 to 4 (window 3, stride 2) rows of outputs that read it are summed, then that row is spread along
/// w.
template <typename T>
class ChainGather {
public:
  explicit ChainGather(const ChainDesc& desc);
  [[nodiscard]] GatherScratch<T> make_scratch() const;

  /// 1 / voxels of the window for averages, else 1: what a sum over readers still lacks.
  [[nodiscard]] float share() const { return share_; }

  /// The rows that read the voxels `w` of row (d, h): 1, 2 or 4 (`single`: 1), added up where there are others; not for
  /// max pooling. They stay until the scratch memory is used again.
  ReaderRows<T> reader_rows(const OutputGradient<T>& from, std::int64_t n, std::int64_t d, std::int64_t h,
                            const Range& w, bool single, GatherScratch<T>& scratch) const;

  /// Adds da of the voxels `w` from their readers (which may be more): [w, C].
  void spread(const ReaderRows<T>& readers, const Range& w, const Row<float>& da) const;

  /// Adds da of the voxels `w` of row (d, h) where the maximum won: [w, C].
  void gather_max(const OutputGradient<T>& from, std::int64_t n, std::int64_t d, std::int64_t h, const Range& w,
                  GatherScratch<T>& scratch, const Row<float>& da) const;

private:
  [[nodiscard]] Row<const T> output_row(const OutputGradient<T>& from, std::int64_t n, std::int64_t d, std::int64_t h,
                                        const Range& outputs) const;
  Row<const float> copied_row(const OutputGradient<T>& from, std::int64_t n, std::int64_t d, std::int64_t h,
                              const Range& outputs, GatherScratch<T>& scratch) const;
  [[nodiscard]] SpreadShape spread_shape(const Range& outputs, const Range& w) const;

  ChainDesc desc_;
  Box known_;  ///< outputs whose gradient is not 0
  float share_ = 1;
  bool drops_ = false;
  bool copies_ = false;  ///< rows of dout are made dense, or dropout is applied to them, before they are used
};

}  // namespace halograd::cpu
