#pragma once

#include "halograd/kernels/conv3d.hpp"
#include "halograd/kernels/cpu/line_vector.hpp"
#include "halograd/kernels/cpu/onednn.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace halograd::cpu {

/// Backward-weights by oneDNN. Of bf16 its kernels take scratch memory for both activations once a thread, and of more
/// than 2³¹ numbers too little of it; so a volume is cut in depth, and the pieces' gradients are added in order. A
/// volume of few planes may be, too.
class OnednnGradient {
public:
  explicit OnednnGradient(const Conv3dDesc& desc);

  /// Of dw; not always plain.
  [[nodiscard]] const dnnl::memory::desc& format() const { return format_; }
  [[nodiscard]] std::size_t scratch_bytes() const { return scratch_bytes_; }
  /// scratch: scratch_bytes() that stay readable while this runs, none where that is 0.
  void use_scratch(void* scratch);
  /// Assigns dw, of `format`.
  void run(const void* x, const void* dy, float* dw);

  [[nodiscard]] std::int64_t held_bytes() const { return static_cast<std::int64_t>(part_.size() * sizeof(float)); }
  [[nodiscard]] const std::string& implementation() const { return implementation_; }

private:
  /// Where a piece's buffers begin, in bytes, and which of the primitives takes it.
  struct Piece {
    std::size_t x = 0;
    std::size_t dy = 0;
    std::size_t primitive = 0;
  };

  void add_piece(const Conv3dDesc& whole, const Conv3dDesc& piece, std::int64_t sample, std::int64_t first_in,
                 std::int64_t first_out);
  std::size_t primitive_of(const Conv3dDesc& piece);

  std::vector<Conv3dDesc> shapes_;  ///< of the primitives
  std::vector<onednn::Call> primitives_;
  std::vector<Piece> pieces_;
  dnnl::memory::desc format_;
  std::size_t scratch_bytes_ = 0;
  LineVector part_;  ///< the gradient of a piece behind the first
  std::string implementation_;
};

}  // namespace halograd::cpu
