#include "halograd/kernels/cpu/winograd_conv3d.hpp"

#include "halograd/core/parallel.hpp"
#include "halograd/kernels/cpu/cast_conv3d.hpp"
#include "halograd/kernels/cpu/winograd_gradient.hpp"
#include "halograd/kernels/cpu/winograd_pass.hpp"
#include "halograd/kernels/typed.hpp"

#include <algorithm>
#include <optional>

namespace halograd::cpu {
namespace {

constexpr std::int64_t taps = 27;
/// Channels that lie together in a line of the cache.
constexpr std::int64_t lane = 16;

/// From `wide` channels on few tiles are worth the transforms, of weights above all.
constexpr std::int64_t wide = 64;
constexpr std::int64_t few_tiles = 64;
/// With fewer channels less is gained, so that small volumes keep the smaller rounding errors.
constexpr std::int64_t narrow = 32;
constexpr std::int64_t many_tiles = 4096;
/// Beside activations in bf16 those errors are nothing. Measured on the processors that have bf16 in vectors.
constexpr std::int64_t few_bf16_tiles = 32;

WinogradShape forward_shape(const Conv3dDesc& desc) {
  return {desc.samples, desc.in_channels, desc.out_channels, desc.in, desc.out, desc.pad_lo};
}

/// dx[i] = Σ dy[i + pad_lo − k] · w[k], which is a convolution with the taps in reverse.
WinogradShape backward_shape(const Conv3dDesc& desc) {
  const Extent pad_lo{2 - desc.pad_lo.d, 2 - desc.pad_lo.h, 2 - desc.pad_lo.w};
  return {desc.samples, desc.out_channels, desc.in_channels, desc.out, desc.in, pad_lo};
}

/// Calls body(t, c) for all taps and `lane` channels.
template <typename Body>
void for_each_in_lane(const Body& body) {
  for (std::int64_t t = 0; t < taps; ++t) {
    for (std::int64_t c = 0; c < lane; ++c) body(t, c);
  }
}

class WinogradConv3d final : public TypedConv3d<float> {
public:
  explicit WinogradConv3d(const Conv3dDesc& desc) : in_(desc.in_channels), out_(desc.out_channels) {
    if (desc.calls_forward()) forward_.emplace(forward_shape(desc));
    if (desc.calls_backward_data()) backward_data_.emplace(backward_shape(desc));
    if (desc.calls_backward_weights()) backward_weights_.emplace(forward_shape(desc));
    std::int64_t scratch = 0;
    if (forward_) scratch = std::max(scratch, forward_->scratch_elements());
    if (backward_data_) scratch = std::max(scratch, backward_data_->scratch_elements());
    if (backward_weights_) scratch = std::max(scratch, backward_weights_->scratch_elements());
    scratch_ = line_vector(scratch);
  }

  void set_weights(const float* w) override {
    if (forward_) {
      float* to = forward_->taps();  // [taps, I, O]
      for_each_lane(in_, out_, [&](std::int64_t i, std::int64_t o) {
        for_each_in_lane([&](std::int64_t t, std::int64_t c) {
          to[(t * in_ + i) * out_ + o + c] = w[((o + c) * in_ + i) * taps + t];
        });
      });
      forward_->prepare();
    }
    if (backward_data_) {
      float* to = backward_data_->taps();  // [taps, O, I]
      for_each_lane(out_, in_, [&](std::int64_t o, std::int64_t i) {
        for_each_in_lane([&](std::int64_t t, std::int64_t c) {
          to[((taps - 1 - t) * out_ + o) * in_ + i + c] = w[(o * in_ + i + c) * taps + t];
        });
      });
      backward_data_->prepare();
    }
  }

  void forward(const float* x, float* y) override { forward_->run(x, y, scratch_.data()); }

  void backward_data(const float* dy, float* dx) override { backward_data_->run(dy, dx, scratch_.data()); }

  void backward_weights(const float* x, const float* dy, float* dw) override {
    const float* from = backward_weights_->run(x, dy, scratch_.data());  // [taps, I, O]
    for_each_lane(in_, out_, [&](std::int64_t i, std::int64_t o) {
      for_each_in_lane([&](std::int64_t t, std::int64_t c) {
        dw[((o + c) * in_ + i) * taps + t] = from[(t * in_ + i) * out_ + o + c];
      });
    });
  }

  [[nodiscard]] std::int64_t held_bytes() const override {
    auto bytes = static_cast<std::int64_t>(scratch_.size() * sizeof(float));
    if (forward_) bytes += forward_->held_bytes();
    if (backward_data_) bytes += backward_data_->held_bytes();
    if (backward_weights_) bytes += backward_weights_->held_bytes();
    return bytes;
  }

  [[nodiscard]] std::vector<std::string> implementations() const override {
    const int calls = (forward_ ? 1 : 0) + (backward_data_ ? 1 : 0) + (backward_weights_ ? 1 : 0);
    return std::vector<std::string>(static_cast<std::size_t>(calls), "winograd:2x4x4");
  }

private:
  /// Calls body(row, column) for each `lane` of columns, spread over the threads.
  template <typename Body>
  static void for_each_lane(std::int64_t rows, std::int64_t columns, const Body& body) {
    parallel_for(columns / lane, [&](std::int64_t i) {
      for (std::int64_t row = 0; row < rows; ++row) body(row, i * lane);
    });
  }

  std::int64_t in_;
  std::int64_t out_;
  std::optional<WinogradPass> forward_;
  std::optional<WinogradPass> backward_data_;
  std::optional<WinogradGradient> backward_weights_;
  LineVector scratch_;
};

}  // namespace

bool fits_winograd(const Conv3dDesc& desc) {
  bool fits = desc.in_channels % lane == 0 && desc.out_channels % lane == 0;
  for (int i = 0; i < 3; ++i) {
    fits = fits && desc.kernel[i] == 3 && desc.stride[i] == 1 && desc.pad_lo[i] >= 0 && desc.pad_lo[i] <= 2;
  }
  return fits && desc.samples * desc.out.volume() > 0;
}

bool prefers_winograd(const Conv3dDesc& desc) {
  if (desc.direct) return false;
  if (!fits_winograd(desc)) return false;
  const WinogradShape shape = forward_shape(desc);
  const std::int64_t tiles = shape.all_tiles();
  if (2 * desc.samples * desc.out.volume() < tiles * winograd_extent.volume()) return false;  // most would stick out
  const std::int64_t channels = std::min(desc.in_channels, desc.out_channels);
  if (desc.precision == Precision::bf16) {
    return !onednn::has_amx() && channels >= narrow && tiles >= few_bf16_tiles && casts_in_small_pieces(desc);
  }
  return channels >= wide ? tiles >= few_tiles : channels >= narrow && shape.tiles().volume() >= many_tiles;
}

std::unique_ptr<Conv3d> make_winograd_conv3d(const Conv3dDesc& desc) {
  return std::make_unique<WinogradConv3d>(desc);
}

}  // namespace halograd::cpu
