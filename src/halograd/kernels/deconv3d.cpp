#include "halograd/kernels/deconv3d.hpp"

#include <utility>

namespace halograd {
namespace {

class Deconv3d final : public Conv3d {
public:
  Deconv3d(const Queue& queue, const Conv3dDesc& desc)
      : conv_(make_conv3d(queue, desc)), swaps_(desc.calls_forward()) {}

  void set_weights(const float* w) override { conv_->set_weights(w); }
  void forward(const void* x, void* y) override { conv_->backward_data(x, y); }
  void backward_data(const void* dy, void* dx) override { conv_->forward(dy, dx); }
  void backward_weights(const void* x, const void* dy, float* dw) override { conv_->backward_weights(dy, x, dw); }
  [[nodiscard]] std::int64_t held_bytes() const override { return conv_->held_bytes(); }
  [[nodiscard]] std::vector<std::string> implementations() const override {
    std::vector<std::string> names = conv_->implementations();
    if (swaps_ && names.size() > 1) std::swap(names[0], names[1]);
    return names;
  }

private:
  std::unique_ptr<Conv3d> conv_;
  bool swaps_;  ///< whether the convolution names its forward, which is our backward data, before its backward data
};

}  // namespace

Conv3dDesc transposed(const Deconv3dDesc& desc) {
  return {.samples = desc.samples,
          .in_channels = desc.out_channels,
          .out_channels = desc.in_channels,
          .in = desc.out,
          .out = desc.in,
          .kernel = desc.kernel,
          .stride = desc.stride,
          .pad_lo = desc.pad_lo,
          .input_gradient = desc.input_gradient,
          .training = desc.training,
          .precision = desc.precision,
          .direct = desc.direct,
          .backwards = true};
}

std::unique_ptr<Conv3d> make_deconv3d(const Queue& queue, const Deconv3dDesc& desc) {
  return std::make_unique<Deconv3d>(queue, transposed(desc));
}

}  // namespace halograd
