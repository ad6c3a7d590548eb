#include "halograd/kernels/cpu/patch_conv3d.hpp"

#include "halograd/core/bf16.hpp"
#include "halograd/core/parallel.hpp"
#include "halograd/kernels/cpu/onednn.hpp"
#include "halograd/kernels/typed.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace halograd::cpu {
namespace {

using onednn::borrowed;
using onednn::Call;
using onednn::Tag;

/// Numbers of a block of patches: with the weights they stay in the second-level caches of two cores.
constexpr std::int64_t block_elements = 1 << 19;
constexpr std::int64_t fewest_block_rows = 64;

/// Copies between the input buffer and patches: a patch is [kd, kh, kw, channels], and its runs along w lie together
/// in both.
class Patches {
public:
  explicit Patches(const Conv3dDesc& desc)
      : in_(desc.in), out_(desc.out), kernel_(desc.kernel), run_(desc.kernel.w * desc.in_channels) {}

  [[nodiscard]] std::int64_t elements() const { return kernel_.d * kernel_.h * run_; }

  template <typename T>
  void gather(const T* x, std::int64_t first, std::int64_t rows, T* patches) const {
    for_each_run(first, rows, [&](std::int64_t at, std::int64_t patch) { copy(x + at, patches + patch); });
  }
  template <typename T>
  void scatter(const T* patches, std::int64_t first, std::int64_t rows, T* x) const {
    for_each_run(first, rows, [&](std::int64_t at, std::int64_t patch) { copy(patches + patch, x + at); });
  }

private:
  template <typename T>
  void copy(const T* from, T* to) const {
    std::memcpy(to, from, static_cast<std::size_t>(run_) * sizeof(T));
  }

  template <typename Body>
  void for_each_run(std::int64_t first, std::int64_t rows, const Body& body) const {
    parallel_for(rows, [&](std::int64_t row) {
      const std::int64_t voxel = first + row;
      const std::int64_t w = voxel % out_.w;
      const std::int64_t h = voxel / out_.w % out_.h;
      const std::int64_t plane = voxel / (out_.w * out_.h);  // n · out.d + d, and in.d = out.d · kernel.d
      std::int64_t patch = row * elements();
      for (std::int64_t kd = 0; kd < kernel_.d; ++kd) {
        for (std::int64_t kh = 0; kh < kernel_.h; ++kh) {
          const std::int64_t line = (plane * kernel_.d + kd) * in_.h + h * kernel_.h + kh;
          body((line * out_.w + w) * run_, patch);
          patch += run_;
        }
      }
    });
  }

  Extent in_;
  Extent out_;
  Extent kernel_;
  std::int64_t run_;
};

/// c = a · b, or c += a · b, with the matrices bound before each run.
class Product {
public:
  Product() = default;
  Product(const dnnl::memory::desc& a, const dnnl::memory::desc& b, const dnnl::memory::desc& c, bool accumulate) {
    const auto desc = onednn::matmul_desc(a, b, c, accumulate);
    std::unordered_map<int, dnnl::memory> arguments{
        {DNNL_ARG_SRC, borrowed(a)}, {DNNL_ARG_WEIGHTS, borrowed(b)}, {DNNL_ARG_DST, borrowed(c)}};
    if (desc.scratchpad_desc().get_size() > 0) {
      arguments.emplace(DNNL_ARG_SCRATCHPAD, onednn::owned(desc.scratchpad_desc()));
      held_bytes_ = static_cast<std::int64_t>(desc.scratchpad_desc().get_size());
    }
    implementation_ = desc.impl_info_str();
    call_ = Call(dnnl::matmul(desc), std::move(arguments));
  }

  void run(const void* a, const void* b, void* c) {
    call_.bind(DNNL_ARG_SRC, a);
    call_.bind(DNNL_ARG_WEIGHTS, b);
    call_.bind(DNNL_ARG_DST, c);
    call_.run();
  }

  [[nodiscard]] std::int64_t held_bytes() const { return held_bytes_; }
  [[nodiscard]] std::string implementation() const { return "patches:" + implementation_; }

private:
  Call call_;
  std::int64_t held_bytes_ = 0;
  std::string implementation_;
};

/// T: of activations, float or Bf16; weights are rounded to it, their gradient is f32.
template <typename T>
class PatchConv3d final : public TypedConv3d<T> {
public:
  explicit PatchConv3d(const Conv3dDesc& desc)
      : desc_(desc),
        patches_(desc),
        rows_(desc.samples * desc.out.volume()),
        block_rows_(std::min(rows_, std::max(fewest_block_rows, block_elements / patches_.elements()))),
        block_(static_cast<std::size_t>(block_rows_ * patches_.elements())),
        weights_(static_cast<std::size_t>(desc.out_channels * patches_.elements())) {
    if (desc.calls_backward_weights()) gradient_.resize(weights_.size());
    make_products(block_rows_, full_);
    if (rows_ % block_rows_ > 0) make_products(rows_ % block_rows_, rest_);
  }

  void set_weights(const float* w) override {
    for_each_weight([&](std::size_t plain, std::size_t ours) { weights_[ours] = static_cast<T>(w[plain]); });
  }

  void forward(const T* x, T* y) override {
    for_each_block([&](Products& products, std::int64_t first, std::int64_t rows) {
      patches_.gather(x, first, rows, block_.data());
      products.forward.run(block_.data(), weights_.data(), y + first * desc_.out_channels);
    });
  }

  void backward_data(const T* dy, T* dx) override {
    for_each_block([&](Products& products, std::int64_t first, std::int64_t rows) {
      products.backward_data.run(dy + first * desc_.out_channels, weights_.data(), block_.data());
      patches_.scatter(block_.data(), first, rows, dx);
    });
  }

  void backward_weights(const T* x, const T* dy, float* dw) override {
    std::fill(gradient_.begin(), gradient_.end(), 0.0F);
    for_each_block([&](Products& products, std::int64_t first, std::int64_t rows) {
      patches_.gather(x, first, rows, block_.data());
      products.backward_weights.run(dy + first * desc_.out_channels, block_.data(), gradient_.data());
    });
    for_each_weight([&](std::size_t plain, std::size_t ours) { dw[plain] = gradient_[ours]; });
  }

  [[nodiscard]] std::int64_t held_bytes() const override {
    auto bytes = static_cast<std::int64_t>((block_.size() + weights_.size()) * sizeof(T));
    bytes += static_cast<std::int64_t>(gradient_.size() * sizeof(float));
    for (const Products* products : {&full_, &rest_}) {
      bytes += products->forward.held_bytes() + products->backward_data.held_bytes() +
               products->backward_weights.held_bytes();
    }
    return bytes;
  }

  [[nodiscard]] std::vector<std::string> implementations() const override {
    std::vector<std::string> names;
    if (desc_.calls_forward()) names.push_back(full_.forward.implementation());
    if (desc_.calls_backward_data()) names.push_back(full_.backward_data.implementation());
    if (desc_.calls_backward_weights()) names.push_back(full_.backward_weights.implementation());
    return names;
  }

private:
  struct Products {
    Product forward;
    Product backward_data;
    Product backward_weights;
  };

  void make_products(std::int64_t rows, Products& products) const {
    const std::int64_t channels = desc_.out_channels;
    const std::int64_t elements = patches_.elements();
    const DType type = activation_type(desc_.precision);
    const auto voxels = onednn::values(type, {rows, channels}, Tag::ab);
    const auto block = onednn::values(type, {rows, elements}, Tag::ab);
    const auto weights = onednn::values(type, {channels, elements}, Tag::ab);
    const auto gradient = onednn::f32({channels, elements}, Tag::ab);
    if (desc_.calls_forward()) {
      products.forward = Product(block, onednn::values(type, {elements, channels}, Tag::ba), voxels, false);
    }
    if (desc_.calls_backward_data()) products.backward_data = Product(voxels, weights, block, false);
    if (desc_.calls_backward_weights()) {
      products.backward_weights = Product(onednn::values(type, {channels, rows}, Tag::ba), block, gradient, true);
    }
  }

  template <typename Body>
  void for_each_block(const Body& body) {
    for (std::int64_t first = 0; first < rows_; first += block_rows_) {
      const std::int64_t rows = std::min(block_rows_, rows_ - first);
      body(rows == block_rows_ ? full_ : rest_, first, rows);
    }
  }

  /// Pairs the weights' plain order [O, I, kernel] with ours, [O, kernel, I].
  template <typename Body>
  void for_each_weight(const Body& body) const {
    const std::int64_t taps = desc_.kernel.volume();
    parallel_for(desc_.out_channels, [&](std::int64_t o) {
      for (std::int64_t k = 0; k < taps; ++k) {
        for (std::int64_t i = 0; i < desc_.in_channels; ++i) {
          body(static_cast<std::size_t>((o * desc_.in_channels + i) * taps + k),
               static_cast<std::size_t>((o * taps + k) * desc_.in_channels + i));
        }
      }
    });
  }

  Conv3dDesc desc_;
  Patches patches_;
  std::int64_t rows_;
  std::int64_t block_rows_;
  std::vector<T> block_;         ///< [block rows, kernel, I]
  std::vector<T> weights_;       ///< [O, kernel, I]
  std::vector<float> gradient_;  ///< likewise
  Products full_;
  Products rest_;
};

}  // namespace

bool is_patchwise(const Conv3dDesc& desc) {
  bool tiles = desc.kernel.volume() > 1;
  for (int i = 0; i < 3; ++i) {
    tiles =
        tiles && desc.stride[i] == desc.kernel[i] && desc.pad_lo[i] == 0 && desc.in[i] == desc.out[i] * desc.stride[i];
  }
  return tiles;
}

std::unique_ptr<Conv3d> make_patch_conv3d(const Conv3dDesc& desc) {
  return with_activation_type(activation_type(desc.precision), [&](auto type) -> std::unique_ptr<Conv3d> {
    return std::make_unique<PatchConv3d<decltype(type)>>(desc);
  });
}

}  // namespace halograd::cpu
