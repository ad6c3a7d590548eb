#include "halograd/kernels/cpu/small_conv3d.hpp"

#include "halograd/core/parallel.hpp"
#include "halograd/kernels/cpu/dense.hpp"
#include "halograd/kernels/typed.hpp"

#include <algorithm>
#include <utility>

namespace halograd::cpu {
namespace {

/// Which input voxel each tap of each output voxel reads: [samples · out.volume(), taps], −1 where that is padding.
std::vector<std::int64_t> tap_sources(const Conv3dDesc& desc) {
  const auto at = [](const Extent& extent, std::int64_t i) {
    return Index{i / (extent.h * extent.w), i / extent.w % extent.h, i % extent.w};
  };
  std::vector<std::int64_t> sources;
  for (std::int64_t n = 0; n < desc.samples; ++n) {
    for (std::int64_t v = 0; v < desc.out.volume(); ++v) {
      for (std::int64_t t = 0; t < desc.kernel.volume(); ++t) {
        const Index out = at(desc.out, v);
        const Index tap = at(desc.kernel, t);
        bool inside = true;
        std::int64_t source = n;
        for (int i = 0; i < 3; ++i) {
          const std::int64_t from = out[i] * desc.stride[i] + tap[i] - desc.pad_lo[i];
          inside = inside && from >= 0 && from < desc.in[i];
          source = source * desc.in[i] + from;
        }
        sources.push_back(inside ? source : -1);
      }
    }
  }
  return sources;
}

class SmallConv3d final : public TypedConv3d<float> {
public:
  explicit SmallConv3d(const Conv3dDesc& desc)
      : channels_(desc.in_channels),
        taps_(desc.kernel.volume()),
        rows_(desc.samples * desc.out.volume()),
        in_voxels_(desc.samples * desc.in.volume()),
        calls_forward_(desc.calls_forward()),
        calls_backward_data_(desc.calls_backward_data()),
        calls_backward_weights_(desc.calls_backward_weights()),
        sources_(tap_sources(desc)),
        columns_(static_cast<std::size_t>(rows_ * channels_ * taps_)),
        bias_(static_cast<std::size_t>(desc.out_channels)),
        bias_gradient_(bias_.size()),
        product_(make_dense({rows_, channels_ * taps_, desc.out_channels, desc.training || desc.backwards})) {
    readers_begin_.assign(static_cast<std::size_t>(in_voxels_) + 1, 0);
    for (const std::int64_t source : sources_) {
      if (source >= 0) ++readers_begin_[static_cast<std::size_t>(source) + 1];
    }
    for (std::size_t i = 1; i < readers_begin_.size(); ++i) readers_begin_[i] += readers_begin_[i - 1];
    readers_.resize(static_cast<std::size_t>(readers_begin_.back()));
    std::vector<std::int64_t> next(readers_begin_);
    for (std::int64_t i = 0; i < rows_ * taps_; ++i) {
      const std::int64_t source = sources_[static_cast<std::size_t>(i)];
      if (source < 0) continue;
      const std::int64_t column = i / taps_ * channels_ * taps_ + i % taps_;
      readers_[static_cast<std::size_t>(next[static_cast<std::size_t>(source)]++)] = column;
    }
  }

  void set_weights(const float* w) override { weights_ = w; }

  void forward(const float* x, float* y) override {
    gather(x);
    product_->forward(columns_.data(), weights_, bias_.data(), y);
  }

  void backward_data(const float* dy, float* dx) override {
    product_->backward_data(dy, weights_, columns_.data());
    scatter(dx);
  }

  void backward_weights(const float* x, const float* dy, float* dw) override {
    gather(x);
    product_->backward_weights(columns_.data(), dy, dw, bias_gradient_.data());
  }

  [[nodiscard]] std::int64_t held_bytes() const override {
    const auto bytes = [](const auto& values) { return static_cast<std::int64_t>(values.size() * sizeof(values[0])); };
    return bytes(columns_) + bytes(sources_) + bytes(readers_) + bytes(readers_begin_) + 2 * bytes(bias_) +
           product_->held_bytes();
  }

  [[nodiscard]] std::vector<std::string> implementations() const override {
    const std::vector<std::string> products = product_->implementations();
    const bool called[] = {calls_forward_, calls_backward_data_, calls_backward_weights_};
    std::vector<std::string> names;
    for (std::size_t i = 0; i < products.size(); ++i) {
      if (called[i]) names.push_back("matrix:" + products[i]);
    }
    return names;
  }

private:
  /// columns: [rows, channels, taps], the order of plain weights.
  void gather(const float* x) {
    parallel_for(rows_, [&](std::int64_t row) {
      const std::int64_t* sources = sources_.data() + row * taps_;
      float* columns = columns_.data() + row * channels_ * taps_;
      for (std::int64_t c = 0; c < channels_; ++c) {
        for (std::int64_t t = 0; t < taps_; ++t) {
          columns[c * taps_ + t] = sources[t] < 0 ? 0.0F : x[sources[t] * channels_ + c];
        }
      }
    });
  }

  /// dx = what all columns that were read from a voxel hold, added in a fixed order.
  void scatter(float* dx) {
    parallel_for(in_voxels_, [&](std::int64_t voxel) {
      const auto at = static_cast<std::size_t>(voxel);
      float* sum = dx + voxel * channels_;
      std::fill_n(sum, channels_, 0.0F);
      for (std::int64_t i = readers_begin_[at]; i < readers_begin_[at + 1]; ++i) {
        const float* column = columns_.data() + readers_[static_cast<std::size_t>(i)];
        for (std::int64_t c = 0; c < channels_; ++c) sum[c] += column[c * taps_];
      }
    });
  }

  std::int64_t channels_;
  std::int64_t taps_;
  std::int64_t rows_;
  std::int64_t in_voxels_;
  bool calls_forward_;
  bool calls_backward_data_;
  bool calls_backward_weights_;
  std::vector<std::int64_t> sources_;
  std::vector<std::int64_t> readers_begin_;  ///< where each input voxel's part of readers_ begins
  std::vector<std::int64_t> readers_;        ///< offsets of the columns' elements, at channel 0
  std::vector<float> columns_;
  std::vector<float> bias_;
  std::vector<float> bias_gradient_;
  std::unique_ptr<Dense> product_;
  const float* weights_ = nullptr;
};

}  // namespace

std::unique_ptr<Conv3d> make_small_conv3d(const Conv3dDesc& desc) {
  return std::make_unique<SmallConv3d>(desc);
}

}  // namespace halograd::cpu
