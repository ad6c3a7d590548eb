#pragma once

#include "halograd/kernels/cpu/chain_rows.hpp"

#include <vector>

namespace halograd::cpu {

/// Per-channel mean and summed squared distance from it, of channels-last voxels, block by block.
class ChainMoments {
public:
  explicit ChainMoments(std::int64_t channels);

  /// y: [voxels, C]; mean, m2: [C], assigned (0 where there are no voxels).
  void run(const float* y, std::int64_t voxels, double* mean, double* m2);
  [[nodiscard]] std::int64_t held_bytes() const;

private:
  struct Partial {
    std::vector<double> mean;  ///< [C]
    std::vector<double> m2;    ///< [C]
    double count = 0;
  };

  std::int64_t channels_;
  std::int64_t block_voxels_;
  std::vector<Partial> partials_;
};

}  // namespace halograd::cpu
