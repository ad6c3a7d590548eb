#include "halograd/kernels/cpu/cast_conv3d.hpp"

#include "halograd/kernels/cpu/cast.hpp"
#include "halograd/kernels/cpu/line_vector.hpp"
#include "halograd/kernels/typed.hpp"

#include <algorithm>
#include <utility>

namespace halograd::cpu {
namespace {

/// Of the scratch that a piece's activations fill: they stay in the caches. Where weights are many it is more, as what
/// each piece does with them costs less beside the arithmetic then.
constexpr std::int64_t least_cast_bytes = 8 << 20;
constexpr std::int64_t casts_to_weights = 8;
/// Pieces that would have too few slices may take this part of all activations.
constexpr std::int64_t share_of_activations = 5;
/// Slices of a piece come in multiples of what fills tiles of Winograd's, in depth and height.
constexpr std::int64_t tile[2] = {2, 4};

/// How many samples make a piece, along which dimension a sample is cut, and how many outputs of it a piece has: all
/// where it is not cut.
struct Cut {
  int axis = 0;
  std::int64_t slices = 0;
  std::int64_t samples = 1;
};

/// Inputs that a window has in common with the next one.
std::int64_t overlap(const Conv3dDesc& desc, int axis) {
  return std::max<std::int64_t>(0, desc.kernel[axis] - desc.stride[axis]);
}

/// Outputs before one whose windows reach into its stride of inputs.
std::int64_t reaching(const Conv3dDesc& desc, int axis) {
  return (desc.kernel[axis] - 1) / desc.stride[axis];
}

std::int64_t in_elements(const Conv3dDesc& desc) {
  return desc.samples * desc.in.volume() * desc.in_channels;
}
std::int64_t out_elements(const Conv3dDesc& desc) {
  return desc.samples * desc.out.volume() * desc.out_channels;
}

bool fits_whole(const Conv3dDesc& desc, std::int64_t bytes) {
  return (in_elements(desc) + out_elements(desc)) * static_cast<std::int64_t>(sizeof(float)) <= bytes;
}

int longest_axis(const Conv3dDesc& desc) {
  return desc.out.h > desc.out.d ? 1 : 0;
}

/// Slices along the longest axis whose scratch takes no more; none, where not even one's does.
std::int64_t slices_within(const Conv3dDesc& desc, std::int64_t bytes) {
  const int axis = longest_axis(desc);
  const std::int64_t in = in_elements(desc) / (desc.samples * desc.in[axis]);
  const std::int64_t out = out_elements(desc) / (desc.samples * desc.out[axis]);
  const std::int64_t most = bytes / static_cast<std::int64_t>(sizeof(float));
  const std::int64_t rest = most - overlap(desc, axis) * in - reaching(desc, axis) * out;
  return std::clamp<std::int64_t>(rest / (desc.stride[axis] * in + out), 0, desc.out[axis]);
}

std::int64_t enough_slices(const Conv3dDesc& desc) {
  const int axis = longest_axis(desc);
  return std::min(2 * tile[axis], desc.out[axis]);
}

/// The most slices that a piece may have. Enough of them may take a share of the activations too.
std::int64_t most_slices(const Conv3dDesc& desc, std::int64_t bytes) {
  const std::int64_t within = slices_within(desc, bytes);
  const std::int64_t enough = enough_slices(desc);
  if (within >= enough) return within;
  const std::int64_t elements = in_elements(desc) + out_elements(desc);
  const std::int64_t share = elements * static_cast<std::int64_t>(sizeof(Bf16)) / share_of_activations;
  return std::max(within, std::min(enough, slices_within(desc, share)));
}

/// Pieces of about the same size.
Cut cut_of(const Conv3dDesc& desc, std::int64_t bytes) {
  const int axis = longest_axis(desc);
  const std::int64_t count = desc.out[axis];
  if (fits_whole(desc, bytes)) return {axis, count, desc.samples};
  const std::int64_t most = std::max<std::int64_t>(1, most_slices(desc, bytes));
  if (most == count) return {axis, count, 1};
  const std::int64_t pieces = (count + most - 1) / most;
  const std::int64_t unit = most >= tile[axis] ? tile[axis] : 1;
  const std::int64_t even = ((count + pieces - 1) / pieces + unit - 1) / unit * unit;
  return {axis, std::min(even, most / unit * unit), 1};
}

/// The kernel for pieces of the output, or for all that a convolution does where it is not cut. What pads the volume
/// lies in the scratch, so that one kernel serves all pieces.
Conv3dDesc output_piece(const Conv3dDesc& desc, const Cut& cut) {
  Conv3dDesc piece = desc;
  piece.precision = Precision::f32;
  piece.samples = cut.samples;
  if (cut.slices == desc.out[cut.axis]) return piece;
  piece.out[cut.axis] = cut.slices;
  piece.in[cut.axis] = (cut.slices - 1) * desc.stride[cut.axis] + desc.kernel[cut.axis];
  piece.pad_lo[cut.axis] = 0;
  piece.backwards = false;
  piece.input_gradient = false;
  return piece;
}

/// The kernel for pieces of the input's gradient, of as many strides, which reads all outputs that reach into them: the
/// same sums as of the whole.
Conv3dDesc input_piece(const Conv3dDesc& desc, const Cut& cut) {
  Conv3dDesc piece = output_piece(desc, cut);
  piece.in[cut.axis] = cut.slices * desc.stride[cut.axis];
  piece.out[cut.axis] = cut.slices + reaching(desc, cut.axis);
  piece.pad_lo[cut.axis] = reaching(desc, cut.axis) * desc.stride[cut.axis];
  piece.backwards = true;
  piece.training = false;
  return piece;
}

/// A sample's buffer as slices along the axis that is cut: [outer, count, inner].
struct Slices {
  std::int64_t outer = 0;
  std::int64_t count = 0;
  std::int64_t inner = 0;
};

Slices slices_of(const Extent& extent, std::int64_t channels, int axis) {
  const std::int64_t outer = axis == 0 ? 1 : extent.d;
  return {outer, extent[axis], extent.volume() * channels / (outer * extent[axis])};
}

/// Slices [first, first + count), as f32; zeros before `lowest` and outside the sample.
void load(const Slices& slices, const Bf16* sample, std::int64_t first, std::int64_t lowest, std::int64_t count,
          float* to) {
  const std::int64_t begin = std::clamp(std::max<std::int64_t>(lowest, 0), first, first + count);
  const std::int64_t end = std::clamp(slices.count, begin, first + count);
  for (std::int64_t i = 0; i < slices.outer; ++i) {
    float* part = to + i * count * slices.inner;
    std::fill_n(part, (begin - first) * slices.inner, 0.0F);
    if (end > begin) {
      widen(sample + (i * slices.count + begin) * slices.inner, (end - begin) * slices.inner,
            part + (begin - first) * slices.inner);
    }
    std::fill_n(part + (end - first) * slices.inner, (first + count - end) * slices.inner, 0.0F);
  }
}

/// Slices [begin, end) of a sample, of a piece whose `count` slices begin with `first`.
void store(const Slices& slices, std::int64_t begin, std::int64_t end, const float* from, std::int64_t first,
           std::int64_t count, Bf16* sample) {
  if (end <= begin) return;
  for (std::int64_t i = 0; i < slices.outer; ++i) {
    narrow(from + (i * count + begin - first) * slices.inner, (end - begin) * slices.inner,
           sample + (i * slices.count + begin) * slices.inner);
  }
}

/// Calls body(first, fresh) for pieces of `thickness` slices from `first` on, of which those before `fresh` have been.
template <typename Body>
void for_each_piece(std::int64_t count, std::int64_t thickness, const Body& body) {
  for (std::int64_t fresh = 0; fresh < count;) {
    const std::int64_t first = std::min(fresh, count - thickness);
    body(first, fresh);
    fresh = first + thickness;
  }
}

class CastConv3d final : public TypedConv3d<Bf16> {
public:
  CastConv3d(const Conv3dDesc& desc, const Cut& cut, std::string prefix,
             std::unique_ptr<Conv3d> (*make)(const Conv3dDesc&))
      : desc_(desc),
        cut_(cut),
        is_cut_(cut_.slices < desc.out[cut_.axis]),
        output_(output_piece(desc, cut_)),
        input_(is_cut_ ? input_piece(desc, cut_) : output_),
        prefix_(std::move(prefix)),
        x_(line_vector(std::max(in_elements(output_), in_elements(input_)))),
        y_(line_vector(std::max(out_elements(output_), out_elements(input_)))) {
    if (!is_cut_ || desc.calls_forward() || desc.calls_backward_weights()) conv_ = make(output_);
    if (is_cut_ && desc.calls_backward_data()) backward_data_ = make(input_);
    if (desc.calls_backward_weights() && (is_cut_ || cut_.samples < desc.samples)) part_ = line_vector(weights());
  }

  void set_weights(const float* w) override {
    if (conv_) conv_->set_weights(w);
    if (backward_data_) backward_data_->set_weights(w);
  }

  void forward(const Bf16* x, Bf16* y) override {
    for_each_part([&](std::int64_t n, std::int64_t first, std::int64_t fresh) {
      load_x(x, n, first);
      conv_->forward(x_.data(), y_.data());
      if (!is_cut_) return narrow(y_.data(), out_elements(output_), y + out_offset(n));
      store(outputs(), fresh, first + cut_.slices, y_.data(), first, cut_.slices, y + out_offset(n));
    });
  }

  void backward_weights(const Bf16* x, const Bf16* dy, float* dw) override {
    bool assign = true;
    for_each_part([&](std::int64_t n, std::int64_t first, std::int64_t fresh) {
      load_x(x, n, first);
      load_dy(dy, n, first, fresh);
      conv_->backward_weights(x_.data(), y_.data(), assign ? dw : part_.data());
      if (!assign) accumulate(part_.data(), weights(), dw);
      assign = false;
    });
  }

  void backward_data(const Bf16* dy, Bf16* dx) override {
    if (is_cut_) return backward_data_cut(dy, dx);
    for (std::int64_t n = 0; n < desc_.samples; n += cut_.samples) {
      load_dy(dy, n, 0, 0);
      conv_->backward_data(y_.data(), x_.data());
      narrow(x_.data(), in_elements(output_), dx + in_offset(n));
    }
  }

  [[nodiscard]] std::int64_t held_bytes() const override {
    const std::size_t elements = x_.size() + y_.size() + part_.size();
    auto bytes = static_cast<std::int64_t>(elements * sizeof(float));
    for (const Conv3d* conv : {conv_.get(), backward_data_.get()}) bytes += conv != nullptr ? conv->held_bytes() : 0;
    return bytes;
  }

  [[nodiscard]] std::vector<std::string> implementations() const override {
    std::vector<std::string> names;
    if (!is_cut_) {
      names = conv_->implementations();
    } else {
      if (desc_.calls_forward()) names.push_back(conv_->implementations().front());
      if (desc_.calls_backward_data()) names.push_back(backward_data_->implementations().front());
      if (desc_.calls_backward_weights()) names.push_back(conv_->implementations().back());
    }
    for (std::string& name : names) name.insert(0, prefix_);
    return names;
  }

private:
  [[nodiscard]] std::int64_t weights() const { return desc_.in_channels * desc_.out_channels * desc_.kernel.volume(); }
  [[nodiscard]] std::int64_t in_offset(std::int64_t n) const { return n * in_elements(desc_) / desc_.samples; }
  [[nodiscard]] std::int64_t out_offset(std::int64_t n) const { return n * out_elements(desc_) / desc_.samples; }
  [[nodiscard]] Slices inputs() const { return slices_of(desc_.in, desc_.in_channels, cut_.axis); }
  [[nodiscard]] Slices outputs() const { return slices_of(desc_.out, desc_.out_channels, cut_.axis); }

  /// Calls body(n, first, fresh) for pieces of the output, or once for samples that are not cut.
  template <typename Body>
  void for_each_part(const Body& body) const {
    for (std::int64_t n = 0; n < desc_.samples; n += cut_.samples) {
      for_each_piece(desc_.out[cut_.axis], cut_.slices,
                     [&](std::int64_t first, std::int64_t fresh) { body(n, first, fresh); });
    }
  }

  void load_x(const Bf16* x, std::int64_t n, std::int64_t first) {
    if (!is_cut_) return widen(x + in_offset(n), in_elements(output_), x_.data());
    const std::int64_t window = first * desc_.stride[cut_.axis] - desc_.pad_lo[cut_.axis];
    load(inputs(), x + in_offset(n), window, 0, output_.in[cut_.axis], x_.data());
  }

  void load_dy(const Bf16* dy, std::int64_t n, std::int64_t first, std::int64_t fresh) {
    if (!is_cut_) return widen(dy + out_offset(n), out_elements(output_), y_.data());
    load(outputs(), dy + out_offset(n), first, fresh, output_.out[cut_.axis], y_.data());
  }

  /// Strides of the input are counted so that a window begins with each; the first may begin before the volume.
  void backward_data_cut(const Bf16* dy, Bf16* dx) {
    const int axis = cut_.axis;
    const std::int64_t stride = desc_.stride[axis];
    const std::int64_t before = desc_.pad_lo[axis] % stride;
    const std::int64_t windows_before = desc_.pad_lo[axis] / stride;
    const std::int64_t count = (desc_.in[axis] + before + stride - 1) / stride;
    const auto inside = [&](std::int64_t at) {
      return std::clamp<std::int64_t>(at * stride - before, 0, desc_.in[axis]);
    };
    for (std::int64_t n = 0; n < desc_.samples; ++n) {
      for_each_piece(count, cut_.slices, [&](std::int64_t first, std::int64_t fresh) {
        load(outputs(), dy + out_offset(n), first + windows_before - reaching(desc_, axis), 0, input_.out[axis],
             y_.data());
        backward_data_->backward_data(y_.data(), x_.data());
        store(inputs(), inside(fresh), inside(first + cut_.slices), x_.data(), first * stride - before, input_.in[axis],
              dx + in_offset(n));
      });
    }
  }

  Conv3dDesc desc_;
  Cut cut_;
  bool is_cut_;
  Conv3dDesc output_;
  Conv3dDesc input_;
  std::string prefix_;
  std::unique_ptr<Conv3d> conv_;           ///< of pieces of the output
  std::unique_ptr<Conv3d> backward_data_;  ///< of pieces of the input, where it is cut
  LineVector x_;
  LineVector y_;
  LineVector part_;  ///< a piece's gradient of the weights
};

}  // namespace

std::int64_t cast_bytes(const Conv3dDesc& desc) {
  const std::int64_t weights = desc.in_channels * desc.out_channels * desc.kernel.volume();
  return std::max(least_cast_bytes, weights * static_cast<std::int64_t>(sizeof(float)) * casts_to_weights);
}

bool casts_in_small_pieces(const Conv3dDesc& desc) {
  const std::int64_t bytes = cast_bytes(desc);
  return fits_whole(desc, bytes) || most_slices(desc, bytes) >= enough_slices(desc);
}

std::unique_ptr<Conv3d> make_cast_conv3d(const Conv3dDesc& desc, const std::string& prefix,
                                         std::unique_ptr<Conv3d> (*make)(const Conv3dDesc&), std::int64_t bytes) {
  return std::make_unique<CastConv3d>(desc, cut_of(desc, bytes), prefix, make);
}

std::unique_ptr<Conv3d> make_in_f32(const Conv3dDesc& desc, std::unique_ptr<Conv3d> (*make)(const Conv3dDesc&)) {
  return desc.precision == Precision::f32 ? make(desc) : make_cast_conv3d(desc, "cast:", make, cast_bytes(desc));
}

}  // namespace halograd::cpu
