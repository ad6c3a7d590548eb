#include "halograd/kernels/reference/conv3d.hpp"

#include "halograd/core/parallel.hpp"
#include "halograd/kernels/reference/f32_only.hpp"
#include "halograd/kernels/typed.hpp"

#include <algorithm>
#include <array>

namespace halograd::reference {
namespace {

// Channels summed side by side, so that the compiler can use vector registers; a sum's order never depends on it.
constexpr std::int64_t lanes = 8;
using Sums = std::array<double, lanes>;

std::int64_t blocks_of(std::int64_t channels) {
  return (channels + lanes - 1) / lanes;
}

/// Weights in blocks of `lanes` channels of the result: [block][k][channel summed over][lane], the last block filled
/// with zeros.
class PackedWeights {
public:
  PackedWeights() = default;
  PackedWeights(std::int64_t kernel_volume, std::int64_t summed, std::int64_t results)
      : kernel_volume_(kernel_volume),
        summed_(summed),
        results_(results),
        values_(static_cast<std::size_t>(blocks_of(results) * kernel_volume * summed * lanes)) {}

  /// `weight(k, summed channel, result channel)` gives the value.
  template <typename Weight>
  void fill(const Weight& weight) {
    parallel_for(blocks_of(results_), [&](std::int64_t block) {
      const std::int64_t used = std::min(lanes, results_ - block * lanes);
      for (std::int64_t k = 0; k < kernel_volume_; ++k) {
        for (std::int64_t s = 0; s < summed_; ++s) {
          for (std::int64_t lane = 0; lane < used; ++lane) {
            values_[offset(block, k) + static_cast<std::size_t>(s * lanes + lane)] =
                static_cast<double>(weight(k, s, block * lanes + lane));
          }
        }
      }
    });
  }

  /// sums[lane] += Σ over the summed channels of values[s] · weight.
  void add(std::int64_t block, std::int64_t k, const float* values, Sums& sums) const {
    const double* weights = values_.data() + offset(block, k);
    Sums local = sums;
    for (std::int64_t s = 0; s < summed_; ++s) {
      const double value = static_cast<double>(values[s]);
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        local[static_cast<std::size_t>(lane)] += value * weights[s * lanes + lane];
      }
    }
    sums = local;
  }

  [[nodiscard]] std::int64_t bytes() const { return static_cast<std::int64_t>(values_.size() * sizeof(double)); }

private:
  [[nodiscard]] std::size_t offset(std::int64_t block, std::int64_t k) const {
    return static_cast<std::size_t>((block * kernel_volume_ + k) * summed_ * lanes);
  }

  std::int64_t kernel_volume_ = 0;
  std::int64_t summed_ = 0;
  std::int64_t results_ = 0;
  std::vector<double> values_;
};

void store(const Sums& sums, std::int64_t block, std::int64_t channels, float* voxel) {
  for (std::int64_t c = block * lanes; c < std::min(channels, (block + 1) * lanes); ++c) {
    voxel[c] = static_cast<float>(sums[static_cast<std::size_t>(c - block * lanes)]);
  }
}

std::int64_t voxel_offset(const Extent& extent, std::int64_t n, const Index& at) {
  return ((n * extent.d + at.d) * extent.h + at.h) * extent.w + at.w;
}

class ReferenceConv3d final : public TypedConv3d<float> {
public:
  explicit ReferenceConv3d(const Conv3dDesc& desc) : desc_(desc) {
    if (desc.calls_forward()) {
      forward_weights_ = PackedWeights(desc.kernel.volume(), desc.in_channels, desc.out_channels);
    }
    if (desc.calls_backward_data()) {
      backward_weights_ = PackedWeights(desc.kernel.volume(), desc.out_channels, desc.in_channels);
    }
    if (desc.calls_backward_weights()) {
      weight_sums_.resize(
          static_cast<std::size_t>(desc.kernel.volume() * desc.in_channels * blocks_of(desc.out_channels)));
    }
  }

  void set_weights(const float* w) override {
    const auto weight = [&](std::int64_t k, std::int64_t i, std::int64_t o) {
      return w[(o * desc_.in_channels + i) * desc_.kernel.volume() + k];
    };
    if (forward_weights_.bytes() > 0) forward_weights_.fill(weight);
    if (backward_weights_.bytes() > 0) {
      backward_weights_.fill([&](std::int64_t k, std::int64_t o, std::int64_t i) { return weight(k, i, o); });
    }
  }

  void forward(const float* x, float* y) override { forward_box(Box::whole(desc_.out), x, y); }

  void forward_part(std::size_t part, const void* x, void* y) override {
    const Box box = desc_.forward_parts.empty() ? Box::whole(desc_.out) : desc_.forward_parts[part];
    forward_box(box, static_cast<const float*>(x), static_cast<float*>(y));
  }

  void backward_data(const float* dy, float* dx) override {
    for_each_row(desc_.in, [&](std::int64_t n, Index at) {
      for (std::int64_t block = 0; block < blocks_of(desc_.in_channels); ++block) {
        for (at.w = 0; at.w < desc_.in.w; ++at.w) {
          Sums sums{};
          for_each_tap([&](std::int64_t k, const Index& tap) {
            Index output;
            if (!output_of(at, tap, output)) return;
            backward_weights_.add(block, k, dy + voxel_offset(desc_.out, n, output) * desc_.out_channels, sums);
          });
          store(sums, block, desc_.in_channels, dx + voxel_offset(desc_.in, n, at) * desc_.in_channels);
        }
      }
    });
  }

  /// Each weight is one thread's from first to last, summed over n, d, h, w in that order: one plane of outputs at a
  /// time, so that the plane stays in the cache while every weight passes over it.
  void backward_weights(const float* x, const float* dy, float* dw) override {
    const std::int64_t blocks = blocks_of(desc_.out_channels);
    std::fill(weight_sums_.begin(), weight_sums_.end(), Sums{});
    parallel_ranges(desc_.kernel.volume() * desc_.in_channels * blocks, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t n = 0; n < desc_.samples; ++n) {
        for (std::int64_t d = 0; d < desc_.out.d; ++d) {
          for (std::int64_t item = begin; item < end; ++item) {
            const std::int64_t i = item / blocks % desc_.in_channels;
            add_plane(x + i, dy, n, d, tap_index(item / blocks / desc_.in_channels), item % blocks,
                      weight_sums_[static_cast<std::size_t>(item)]);
          }
        }
      }
      for (std::int64_t item = begin; item < end; ++item) {
        const std::int64_t i = item / blocks % desc_.in_channels;
        const std::int64_t k = item / blocks / desc_.in_channels;
        for (std::int64_t o = item % blocks * lanes; o < std::min(desc_.out_channels, (item % blocks + 1) * lanes);
             ++o) {
          dw[(o * desc_.in_channels + i) * desc_.kernel.volume() + k] =
              static_cast<float>(weight_sums_[static_cast<std::size_t>(item)][static_cast<std::size_t>(o % lanes)]);
        }
      }
    });
  }

  [[nodiscard]] std::int64_t held_bytes() const override {
    return forward_weights_.bytes() + backward_weights_.bytes() +
           static_cast<std::int64_t>(weight_sums_.size() * sizeof(Sums));
  }

  [[nodiscard]] std::vector<std::string> implementations() const override {
    return {"reference", "reference", "reference"};
  }

private:
  void forward_box(const Box& box, const float* x, float* y) const {
    for_each_row(box.extent(), [&](std::int64_t n, const Index& row) {
      Index at{box.lo.d + row.d, box.lo.h + row.h, 0};
      for (std::int64_t block = 0; block < blocks_of(desc_.out_channels); ++block) {
        for (at.w = box.lo.w; at.w < box.hi.w; ++at.w) {
          Sums sums{};
          for_each_tap([&](std::int64_t k, const Index& tap) {
            Index input;
            if (!input_of(at, tap, input)) return;
            forward_weights_.add(block, k, x + voxel_offset(desc_.in, n, input) * desc_.in_channels, sums);
          });
          store(sums, block, desc_.out_channels, y + voxel_offset(desc_.out, n, at) * desc_.out_channels);
        }
      }
    });
  }

  template <typename Body>
  void for_each_row(const Extent& extent, const Body& body) const {
    parallel_for(desc_.samples * extent.d * extent.h, [&](std::int64_t row) {
      body(row / extent.h / extent.d, Index{row / extent.h % extent.d, row % extent.h, 0});
    });
  }

  template <typename Body>
  void for_each_tap(const Body& body) const {
    std::int64_t k = 0;
    for (std::int64_t d = 0; d < desc_.kernel.d; ++d) {
      for (std::int64_t h = 0; h < desc_.kernel.h; ++h) {
        for (std::int64_t w = 0; w < desc_.kernel.w; ++w) body(k++, Index{d, h, w});
      }
    }
  }

  [[nodiscard]] Index tap_index(std::int64_t k) const {
    return {k / (desc_.kernel.h * desc_.kernel.w), k / desc_.kernel.w % desc_.kernel.h, k % desc_.kernel.w};
  }

  /// The input that kernel position `tap` of an output reads; false in the padding.
  bool input_of(const Index& output, const Index& tap, Index& input) const {
    for (int i = 0; i < 3; ++i) {
      input[i] = output[i] * desc_.stride[i] - desc_.pad_lo[i] + tap[i];
      if (input[i] < 0 || input[i] >= desc_.in[i]) return false;
    }
    return true;
  }

  /// The output that reads an input through kernel position `tap`; false where there is none.
  bool output_of(const Index& input, const Index& tap, Index& output) const {
    for (int i = 0; i < 3; ++i) {
      const std::int64_t distance = input[i] + desc_.pad_lo[i] - tap[i];
      if (distance < 0 || distance % desc_.stride[i] != 0) return false;
      output[i] = distance / desc_.stride[i];
      if (output[i] >= desc_.out[i]) return false;
    }
    return true;
  }

  /// sums[lane] += Σ x·dy over the output plane `d` of sample `n`; `x` starts at the weight's input channel.
  void add_plane(const float* x, const float* dy, std::int64_t n, std::int64_t d, const Index& tap, std::int64_t block,
                 Sums& sums) const {
    const std::int64_t used = std::min(lanes, desc_.out_channels - block * lanes);
    Sums local = sums;
    for (std::int64_t h = 0; h < desc_.out.h; ++h) {
      for (std::int64_t w = 0; w < desc_.out.w; ++w) {
        const Index output{d, h, w};
        Index input;
        if (!input_of(output, tap, input)) continue;
        const double value = static_cast<double>(x[voxel_offset(desc_.in, n, input) * desc_.in_channels]);
        const float* gradient = dy + voxel_offset(desc_.out, n, output) * desc_.out_channels + block * lanes;
        if (used == lanes) {
          for (std::size_t lane = 0; lane < lanes; ++lane) local[lane] += value * static_cast<double>(gradient[lane]);
        } else {
          for (std::int64_t lane = 0; lane < used; ++lane) {
            local[static_cast<std::size_t>(lane)] += value * static_cast<double>(gradient[lane]);
          }
        }
      }
    }
    sums = local;
  }

  Conv3dDesc desc_;
  PackedWeights forward_weights_;
  PackedWeights backward_weights_;
  std::vector<Sums> weight_sums_;  ///< [k][input channel][block of output channels]
};

}  // namespace

std::unique_ptr<Conv3d> make_conv3d(const Conv3dDesc& desc) {
  expect_f32(desc.precision);
  return std::make_unique<ReferenceConv3d>(desc);
}

}  // namespace halograd::reference
