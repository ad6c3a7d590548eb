#pragma once

#include "halograd/kernels/cpu/chain_geometry.hpp"
#include "halograd/kernels/cpu/chain_rows.hpp"

#include <vector>

namespace halograd::cpu {

/// Per-channel mean and summed squared distance from it, of the voxels of y, block by block.
template <typename T>
class ChainMoments {
public:
  explicit ChainMoments(const ChainDesc& desc);

  /// Over this rank's voxels of `samples`; mean, m2: [C], assigned (0 where there are no voxels).
  void run(const T* y, const Range& samples, double* mean, double* m2);
  [[nodiscard]] std::int64_t held_bytes() const;

private:
  struct Partial {
    std::vector<double> mean;  ///< [C]
    std::vector<double> m2;    ///< [C]
    double count = 0;
  };

  [[nodiscard]] const T* block(const T* y, const Range& samples, std::int64_t index) const;

  ChainDesc desc_;
  bool contiguous_;            ///< voxels lie one after the other, through all rows and samples
  std::int64_t block_voxels_;  ///< where they do not, a row's
  std::vector<Partial> partials_;
};

}  // namespace halograd::cpu
