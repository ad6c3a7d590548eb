#pragma once

#include "halograd/kernels/cuda/divider.hpp"
#include "halograd/kernels/upsample.hpp"

#include <array>
#include <cstdint>

namespace halograd::cuda {

/// The inputs, one or two side by side, that an output reads along one dimension.
struct Taps {
  std::int32_t first = 0;
  int count = 1;
  std::array<float, 2> weights{1, 0};
};

/// One dimension, in whole numbers so that every weight is the same on any grid and 0 only where it should be: output o
/// lies at position(o) / 2f of the inputs, held between the first and the last.
class UpsampleAxis {
public:
  constexpr UpsampleAxis() = default;
  UpsampleAxis(const UpsampleDesc& desc, const Window& window, int dimension)
      : factor_(static_cast<std::uint32_t>(desc.factor[dimension])),
        twice_(static_cast<std::uint32_t>(2 * desc.factor[dimension])),
        nearest_(desc.kind == UpsampleKind::nearest),
        padding_(static_cast<std::int32_t>(window.padding[dimension])),
        kernel_(static_cast<std::int32_t>(window.kernel[dimension])),
        last_(static_cast<std::int32_t>(2 * desc.factor[dimension] * (desc.in_extent[dimension] - 1))),
        out_lo_(static_cast<std::int32_t>(desc.out.lo[dimension])),
        out_hi_(static_cast<std::int32_t>(desc.out.hi[dimension])),
        scale_(1.0F / static_cast<float>(2 * desc.factor[dimension])) {}

  [[nodiscard]] constexpr Taps taps(std::int32_t o) const {
    if (nearest_) return {.first = static_cast<std::int32_t>(factor_.quotient(static_cast<std::uint32_t>(o)))};
    auto first = static_cast<std::uint32_t>(position(o));
    const std::uint32_t beyond = twice_.split(first);
    if (beyond == 0) return {.first = static_cast<std::int32_t>(first)};
    return {.first = static_cast<std::int32_t>(first),
            .count = 2,
            .weights = {static_cast<float>(twice_.divisor() - beyond) * scale_, static_cast<float>(beyond) * scale_}};
  }

  [[nodiscard]] constexpr float weight(std::int32_t i, std::int32_t o) const {
    if (nearest_) return 1;
    const auto twice = static_cast<std::int32_t>(twice_.divisor());
    const std::int32_t apart = position(o) - i * twice;
    const std::int32_t near = twice - (apart < 0 ? -apart : apart);
    return near > 0 ? static_cast<float>(near) * scale_ : 0.0F;
  }

  /// This rank's outputs that an input reaches.
  [[nodiscard]] constexpr std::int32_t first_output(std::int32_t i) const {
    const std::int32_t first = i * static_cast<std::int32_t>(factor_.divisor()) - padding_;
    return first > out_lo_ ? first : out_lo_;
  }
  [[nodiscard]] constexpr std::int32_t end_output(std::int32_t i) const {
    const std::int32_t end = i * static_cast<std::int32_t>(factor_.divisor()) - padding_ + kernel_;
    return end < out_hi_ ? end : out_hi_;
  }

private:
  [[nodiscard]] constexpr std::int32_t position(std::int32_t o) const {
    const std::int32_t at = 2 * o + 1 - static_cast<std::int32_t>(factor_.divisor());
    return at < 0 ? 0 : at > last_ ? last_ : at;
  }

  Divider factor_;
  Divider twice_;
  bool nearest_ = true;
  std::int32_t padding_ = 0;
  std::int32_t kernel_ = 0;
  std::int32_t last_ = 0;
  std::int32_t out_lo_ = 0;
  std::int32_t out_hi_ = 0;
  float scale_ = 0;
};

}  // namespace halograd::cuda
