#pragma once

#include "halograd/kernels/cpu/chain_geometry.hpp"
#include "halograd/kernels/cpu/chain_rows.hpp"
#include "halograd/kernels/cpu/line_vector.hpp"

#include <vector>

namespace halograd::cpu {

/// What one forward run reads and writes; see Chain::forward.
template <typename T>
struct ForwardCall {
  const T* y = nullptr;
  const FaceBuffers<const T>& faces;
  const Activation& activation;
  const DropoutKey& dropout;
  T* dst = nullptr;
  std::uint8_t* argmax = nullptr;
  Range samples;
};

/// The forward pass of a chain. Average pooling is separable: rows are activated and pooled along w on the way, kept
/// for as long as another output row needs them, and likewise whole planes; outputs are walked depth first in tiles of
/// rows whose planes stay in the second-level cache, so that y is read once. Sums stand in
/// float until they are written.
template <typename T>
class ChainForward {
public:
  explicit ChainForward(const ChainDesc& desc);
  void run(const ForwardCall<T>& call, const Box& part);
  [[nodiscard]] std::int64_t held_bytes() const;

private:
  struct Scratch {
    LineVector planes;  ///< [kernel.d, tile rows, W, C]: pooled along h and w
    LineVector rows;    ///< [kernel.h, W, C]: pooled along w
    LineVector voxel;   ///< [C]
    LineVector output;  ///< [W, C], where outputs are worked on before they go to their place
    std::vector<std::int64_t> plane_held;
    std::vector<std::int64_t> row_held;
    std::vector<const float*> summands;
    std::vector<MaxRow<T>> max_rows;    ///< [voxels of the window]
    std::vector<std::uint8_t> winners;  ///< [W, C], where nobody asks for them
  };

  void run_tile(const ForwardCall<T>& call, std::int64_t n, const Box& tile, Scratch& scratch) const;
  void activate_tile(const ForwardCall<T>& call, std::int64_t n, const Box& tile, Scratch& scratch) const;
  void average_tile(const ForwardCall<T>& call, std::int64_t n, const Box& tile, Scratch& scratch) const;
  void max_tile(const ForwardCall<T>& call, std::int64_t n, const Box& tile, Scratch& scratch) const;
  const float* pooled_plane(const ForwardCall<T>& call, std::int64_t n, std::int64_t d, const Box& tile,
                            Scratch& scratch) const;
  const float* pooled_row(const ForwardCall<T>& call, std::int64_t n, std::int64_t d, std::int64_t h,
                          const Range& outputs, Scratch& scratch) const;
  std::int64_t max_rows(const ForwardCall<T>& call, std::int64_t n, const Index& at, std::int64_t starts,
                        Scratch& scratch) const;
  template <typename Make>
  void write_row(const ForwardCall<T>& call, std::int64_t n, const Index& at, std::int64_t voxels, Scratch& scratch,
                 const Make& make) const;
  [[nodiscard]] Range interior(const Range& outputs) const;

  ChainDesc desc_;
  RowWindow row_window_;
  bool drops_ = false;
  bool writes_apart_ = false;  ///< outputs are made in scratch memory, in float, and then copied to their place
  std::int64_t tile_rows_ = 1;
  std::vector<Scratch> scratch_;
};

}  // namespace halograd::cpu
