#pragma once

#include "halograd/device/algorithm_record.hpp"
#include "halograd/kernels/cuda/conv_plan.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace halograd::cuda {

/// A pass of a convolution, or of a box of one, with its algorithm: all the pieces it is cut into, ready to run.
class PlannedPass {
public:
  /// Empty where the algorithm's engine does not take one of the pieces.
  static std::optional<PlannedPass> make(const CudnnTarget& target, ConvPass pass, const ConvPart& whole,
                                         const Algorithm& algorithm);

  [[nodiscard]] const Algorithm& algorithm() const { return algorithm_; }
  /// "cudnn engine 28", "cudnn engine 70 in 4 pieces".
  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::int64_t workspace_bytes() const { return workspace_bytes_; }
  [[nodiscard]] std::size_t pieces() const { return pieces_.size(); }
  /// Whether all of x is written (backward data) or else what is not must be zero before.
  [[nodiscard]] bool covers_input() const { return covers_input_; }

  /// Lists a piece's work on the target's queue. x, y, w: where the whole buffers begin, at multiples of 16 bytes. The
  /// workspace must be as large as workspace_bytes(). Backward weights assigns this piece's sum to w.
  void run(std::size_t piece, const void* x, const void* y, const void* w, void* workspace);

private:
  struct Piece {
    std::size_t plan = 0;
    std::int64_t x_bytes = 0;  ///< before its first element
    std::int64_t y_bytes = 0;
    std::array<const void*, 4> bound{};  ///< x, y, w and workspace of the pack
    CudnnDescriptor pack{};
  };

  CudnnTarget target_;
  Algorithm algorithm_;
  std::vector<ConvPlan> plans_;  ///< one for pieces that differ in their place alone
  std::vector<Piece> pieces_;
  std::int64_t workspace_bytes_ = 0;
  bool covers_input_ = true;

  explicit PlannedPass(const CudnnTarget& target) : target_(target) {}
};

}  // namespace halograd::cuda
