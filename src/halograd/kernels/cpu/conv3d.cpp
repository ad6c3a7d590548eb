#include "halograd/kernels/cpu/conv3d.hpp"

#include "halograd/kernels/cpu/cast_conv3d.hpp"
#include "halograd/kernels/cpu/conv_problem.hpp"
#include "halograd/kernels/cpu/onednn.hpp"
#include "halograd/kernels/cpu/onednn_conv3d.hpp"
#include "halograd/kernels/cpu/patch_conv3d.hpp"
#include "halograd/kernels/cpu/small_conv3d.hpp"
#include "halograd/kernels/cpu/winograd_conv3d.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <vector>

namespace halograd::cpu {
namespace {

/// Output voxels of all samples up to which a convolution runs as a matrix product: unless direct ones are asked for,
/// or if it has no fast kernel.
constexpr std::int64_t few_matrix_rows = 32;
constexpr std::int64_t most_matrix_rows = 512;

/// No samples or no voxels on this rank: no sum has a term.
class EmptyConv3d final : public Conv3d {
public:
  explicit EmptyConv3d(const Conv3dDesc& desc)
      : dx_bytes_(static_cast<std::size_t>(desc.samples * desc.in_channels * desc.in.volume() *
                                           dtype_size(activation_type(desc.precision)))),
        dw_elements_(desc.in_channels * desc.out_channels * desc.kernel.volume()) {}

  void set_weights(const float*) override {}
  void forward(const void*, void*) override {}
  void backward_data(const void*, void* dx) override {
    if (dx_bytes_ > 0) std::memset(dx, 0, dx_bytes_);
  }
  void backward_weights(const void*, const void*, float* dw) override { std::fill_n(dw, dw_elements_, 0.0F); }
  [[nodiscard]] std::int64_t held_bytes() const override { return 0; }
  [[nodiscard]] std::vector<std::string> implementations() const override { return {}; }

private:
  std::size_t dx_bytes_;
  std::int64_t dw_elements_;
};

int slowest(const Conv3dDesc& desc, const ConvProblem& problem) {
  const auto forward = problem.forward();
  int result = 0;
  const auto consider = [&](const auto& call) { result = std::max(result, onednn::slowness(call.impl_info_str())); };
  if (desc.calls_forward()) consider(forward);
  if (desc.backwards) consider(problem.backward_data(forward));
  if (desc.calls_backward_weights()) consider(problem.backward_weights(forward));
  return result;
}

/// Where reorders cost more than the arithmetic, and where oneDNN would go by way of a matrix itself (backward-weights
/// of 2³ voxels: 28 MB of scratch memory, and a gradient to reorder).
bool better_as_matrix(const Conv3dDesc& desc, const ConvProblem& problem) {
  if (desc.direct && desc.precision == Precision::bf16) return false;
  const std::int64_t rows = desc.samples * desc.out.volume();
  return rows <= most_matrix_rows && slowest(desc, problem) > 0;
}

std::unique_ptr<Conv3d> make_fastest(const Conv3dDesc& desc) {
  const ConvProblem problem(desc);
  if (!desc.direct && desc.samples * desc.out.volume() <= few_matrix_rows) return make_in_f32(desc, make_small_conv3d);
  if (!has_instructions(desc.precision))
    return make_cast_conv3d(desc, "no bf16 instructions, f32:", make_fastest, cast_bytes(desc));
  if (is_patchwise(desc)) return make_patch_conv3d(desc);
  if (prefers_winograd(desc)) return make_in_f32(desc, make_winograd_conv3d);
  if (better_as_matrix(desc, problem)) return make_in_f32(desc, make_small_conv3d);
  return make_onednn_conv3d(desc, problem);
}

}  // namespace

std::unique_ptr<Conv3d> make_conv3d(const Conv3dDesc& desc) {
  require_precision(desc.precision);
  if (!desc.forward_parts.empty()) throw UsageError("{}: on the CPU it computes all outputs at once", describe(desc));
  try {
    if (desc.samples * desc.out.volume() == 0) return std::make_unique<EmptyConv3d>(desc);
    return make_fastest(desc);
  } catch (const dnnl::error& error) {
    throw ResourceError("{}: oneDNN cannot make it ({})", describe(desc), error.what());
  } catch (const std::bad_alloc&) {
    throw ResourceError("{}: no memory for packed weights or scratch", describe(desc));
  }
}

}  // namespace halograd::cpu
