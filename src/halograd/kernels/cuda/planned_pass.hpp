#pragma once

#include "halograd/device/algorithm_record.hpp"
#include "halograd/kernels/cuda/conv_plan.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace halograd::cuda {

/// A convolution's pass with its algorithm: all its parts, ready to run.
class PlannedPass {
public:
  /// Empty where the algorithm's engine does not take one of the parts.
  static std::optional<PlannedPass> make(const CudnnTarget& target, ConvPass pass, const Conv3dDesc& desc,
                                         const Algorithm& algorithm);

  [[nodiscard]] const Algorithm& algorithm() const { return algorithm_; }
  /// "cudnn engine 28", "cudnn engine 70 in 4 parts".
  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::int64_t workspace_bytes() const { return workspace_bytes_; }
  [[nodiscard]] std::size_t parts() const { return parts_.size(); }
  /// Whether all of x is written (backward data) or else what is not must be zero before.
  [[nodiscard]] bool covers_input() const { return covers_input_; }

  /// Lists a part's work on the target's queue. x, y, w: where the whole buffers begin, at multiples of 16 bytes. The
  /// workspace must be as large as workspace_bytes(). Backward weights assigns this part's sum to w.
  void run(std::size_t part, const void* x, const void* y, const void* w, void* workspace);

private:
  struct Part {
    std::size_t plan = 0;
    std::int64_t x_bytes = 0;  ///< before its first element
    std::int64_t y_bytes = 0;
    std::array<const void*, 4> bound{};  ///< x, y, w and workspace of the pack
    CudnnDescriptor pack{};
  };

  CudnnTarget target_;
  Algorithm algorithm_;
  std::vector<ConvPlan> plans_;  ///< one for parts that differ in their place alone
  std::vector<Part> parts_;
  std::int64_t workspace_bytes_ = 0;
  bool covers_input_ = true;

  explicit PlannedPass(const CudnnTarget& target) : target_(target) {}
};

}  // namespace halograd::cuda
