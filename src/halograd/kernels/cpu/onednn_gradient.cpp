#include "halograd/kernels/cpu/onednn_gradient.hpp"

#include "halograd/core/parallel.hpp"
#include "halograd/kernels/cpu/cast.hpp"
#include "halograd/kernels/cpu/conv_problem.hpp"

#include <algorithm>
#include <utility>

namespace halograd::cpu {
namespace {

using BackwardWeights = ConvProblem::BackwardWeights;

/// Scratch memory may take as much for each thread, or a share of the activations; smaller pieces cost up to a tenth of
/// the time.
constexpr std::int64_t scratch_bytes_per_thread = 32 << 20;
constexpr std::int64_t share_of_activations = 16;
/// Up to here oneDNN 2.6 counts them rightly.
constexpr std::int64_t most_elements = 1 << 30;

std::int64_t in_plane(const Conv3dDesc& desc) {
  return desc.in.h * desc.in.w * desc.in_channels;
}
std::int64_t out_plane(const Conv3dDesc& desc) {
  return desc.out.h * desc.out.w * desc.out_channels;
}

BackwardWeights::primitive_desc gradient_desc(const ConvProblem& problem) {
  return problem.backward_weights(problem.forward());
}

bool takes_little_scratch(const Conv3dDesc& desc, std::int64_t activation_bytes) {
  if (desc.samples * std::max(in_plane(desc) * desc.in.d, out_plane(desc) * desc.out.d) > most_elements) return false;
  const auto bytes = static_cast<std::int64_t>(gradient_desc(ConvProblem(desc)).scratchpad_desc().get_size());
  return bytes <= std::max(scratch_bytes_per_thread * thread_count(), activation_bytes / share_of_activations);
}

/// The part of a convolution of one sample that has the output planes [first, first + count). Its input begins with
/// plane `first_in`.
struct Part {
  Conv3dDesc desc;
  std::int64_t first_in = 0;
};

Part part_of(const Conv3dDesc& desc, std::int64_t first, std::int64_t count) {
  const std::int64_t window = first * desc.stride.d - desc.pad_lo.d;
  Part part{desc, std::max<std::int64_t>(0, window)};
  part.desc.samples = 1;
  part.desc.out.d = count;
  part.desc.pad_lo.d = part.first_in - window;
  part.desc.in.d = std::min(desc.in.d, window + (count - 1) * desc.stride.d + desc.kernel.d) - part.first_in;
  return part;
}

/// Where a window that begins below a volume is followed by one that ends above it, and windows are more than a voxel
/// apart, the kernels of 2.6 for bf16 sum wrongly. Of one output they don't.
bool sums_wrongly(const Conv3dDesc& desc) {
  return desc.stride.d > 1 && desc.pad_lo.d > 0 && desc.out.d > 1 &&
         desc.stride.d - desc.pad_lo.d + desc.kernel.d > desc.in.d;
}

/// Output planes of a piece; 0 where all samples are one.
std::int64_t planes_of_piece(const Conv3dDesc& desc) {
  if (desc.precision == Precision::f32) return 0;
  if (sums_wrongly(desc)) return 1;
  const std::int64_t elements = desc.samples * (in_plane(desc) * desc.in.d + out_plane(desc) * desc.out.d);
  const std::int64_t bytes = elements * dtype_size(activation_type(desc.precision));
  if (takes_little_scratch(desc, bytes)) return 0;
  // Every piece has a window that reaches into the volume.
  const std::int64_t least = std::min(desc.out.d, desc.kernel.d);
  std::int64_t planes = desc.out.d;
  while (planes > least && !takes_little_scratch(part_of(desc, 0, planes).desc, bytes)) {
    planes = std::max(least, (planes + 1) / 2);
  }
  return planes;
}

bool same_shape(const Conv3dDesc& a, const Conv3dDesc& b) {
  return a.in.d == b.in.d && a.out.d == b.out.d && a.pad_lo.d == b.pad_lo.d;
}

}  // namespace

OnednnGradient::OnednnGradient(const Conv3dDesc& desc) {
  const std::int64_t planes = planes_of_piece(desc);
  if (planes == 0) {
    add_piece(desc, desc, 0, 0, 0);
    return;
  }
  for (std::int64_t n = 0; n < desc.samples; ++n) {
    for (std::int64_t first = 0; first < desc.out.d; first += planes) {
      const Part part = part_of(desc, first, std::min(planes, desc.out.d - first));
      if (part.desc.in.d > 0) add_piece(desc, part.desc, n, part.first_in, first);
    }
  }
  part_ = line_vector(static_cast<std::int64_t>(format_.get_size() / sizeof(float)));
}

void OnednnGradient::add_piece(const Conv3dDesc& whole, const Conv3dDesc& piece, std::int64_t sample,
                               std::int64_t first_in, std::int64_t first_out) {
  const std::int64_t size = dtype_size(activation_type(whole.precision));
  pieces_.push_back({static_cast<std::size_t>((sample * whole.in.d + first_in) * in_plane(whole) * size),
                     static_cast<std::size_t>((sample * whole.out.d + first_out) * out_plane(whole) * size),
                     primitive_of(piece)});
}

std::size_t OnednnGradient::primitive_of(const Conv3dDesc& piece) {
  const auto known =
      std::find_if(shapes_.begin(), shapes_.end(), [&](const Conv3dDesc& shape) { return same_shape(shape, piece); });
  if (known != shapes_.end()) return static_cast<std::size_t>(known - shapes_.begin());
  ConvProblem problem(piece);
  if (format_) problem.any_gradient = format_;
  const auto desc = gradient_desc(problem);
  format_ = desc.diff_weights_desc();
  if (shapes_.empty()) implementation_ = desc.impl_info_str();
  std::unordered_map<int, dnnl::memory> arguments{{DNNL_ARG_SRC, onednn::borrowed(problem.src)},
                                                  {DNNL_ARG_DIFF_DST, onednn::borrowed(problem.dst)},
                                                  {DNNL_ARG_DIFF_WEIGHTS, onednn::borrowed(format_)}};
  const std::size_t bytes = desc.scratchpad_desc().get_size();
  if (bytes > 0) arguments.emplace(DNNL_ARG_SCRATCHPAD, onednn::borrowed(desc.scratchpad_desc()));
  scratch_bytes_ = std::max(scratch_bytes_, bytes);
  shapes_.push_back(piece);
  primitives_.emplace_back(BackwardWeights(desc), std::move(arguments));
  return primitives_.size() - 1;
}

void OnednnGradient::use_scratch(void* scratch) {
  for (onednn::Call& primitive : primitives_) {
    if (primitive.takes(DNNL_ARG_SCRATCHPAD)) primitive.bind(DNNL_ARG_SCRATCHPAD, scratch);
  }
}

void OnednnGradient::run(const void* x, const void* dy, float* dw) {
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    onednn::Call& primitive = primitives_[piece.primitive];
    primitive.bind(DNNL_ARG_SRC, static_cast<const char*>(x) + piece.x);
    primitive.bind(DNNL_ARG_DIFF_DST, static_cast<const char*>(dy) + piece.dy);
    primitive.bind(DNNL_ARG_DIFF_WEIGHTS, i == 0 ? dw : part_.data());
    primitive.run();
    if (i > 0) accumulate(part_.data(), static_cast<std::int64_t>(part_.size()), dw);
  }
}

}  // namespace halograd::cpu
