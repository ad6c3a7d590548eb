#include "halograd/kernels/cpu/conv_floor.hpp"

#include "halograd/core/bf16.hpp"
#include "halograd/core/system.hpp"
#include "halograd/kernels/cpu/cast_conv3d.hpp"
#include "halograd/kernels/cpu/conv3d.hpp"
#include "halograd/kernels/cpu/conv_problem.hpp"
#include "halograd/kernels/cpu/line_vector.hpp"
#include "halograd/kernels/cpu/onednn_gradient.hpp"
#include "halograd/kernels/cpu/patch_conv3d.hpp"
#include "halograd/kernels/cpu/winograd_conv3d.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace halograd::cpu {
namespace {

template <typename T>
void fill(T* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<T>(ordinary_number(i));
  }
}

/// A warm buffer.
dnnl::memory filled(const dnnl::memory::desc& desc) {
  dnnl::memory memory = onednn::owned(desc);
  if (desc.data_type() == dnnl::memory::data_type::bf16) {
    fill(static_cast<Bf16*>(memory.get_data_handle()), desc.get_size() / sizeof(Bf16));
  } else {
    fill(static_cast<float*>(memory.get_data_handle()), desc.get_size() / sizeof(float));
  }
  return memory;
}

/// The best time of one call, the first not counted.
template <typename Body>
double best_seconds(const Body& call, int repetitions) {
  call();
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < std::max(1, repetitions); ++i) {
    const double start = now_seconds();
    call();
    best = std::min(best, now_seconds() - start);
  }
  return best;
}

template <typename Primitive>
ConvTiming time_call(std::string name, const typename Primitive::primitive_desc& desc,
                     std::unordered_map<int, dnnl::memory> arguments, int repetitions) {
  const auto scratch = desc.scratchpad_desc();
  if (scratch.get_size() > 0) arguments.emplace(DNNL_ARG_SCRATCHPAD, onednn::owned(scratch));
  onednn::Call call(Primitive(desc), std::move(arguments));
  return {std::move(name), desc.impl_info_str(), best_seconds([&] { call.run(); }, repetitions)};
}

template <typename T>
std::vector<T, LineAllocator<T>> filled_line_vector(std::int64_t elements) {
  std::vector<T, LineAllocator<T>> values(static_cast<std::size_t>(elements));
  fill(values.data(), values.size());
  return values;
}

template <typename T>
std::vector<ConvTiming> time_typed(const Conv3dDesc& desc, Conv3d& conv, int repetitions) {
  auto x = filled_line_vector<T>(desc.samples * desc.in.volume() * desc.in_channels);
  auto y = filled_line_vector<T>(desc.samples * desc.out.volume() * desc.out_channels);
  auto w = filled_line_vector<float>(desc.in_channels * desc.out_channels * desc.kernel.volume());
  conv.set_weights(w.data());
  return time_calls(desc, conv, x.data(), y.data(), w.data(),
                    [&](const auto& call) { return best_seconds(call, repetitions); });
}

/// Kernels of ours, where they are faster than oneDNN's convolutions.
std::vector<ConvTiming> time_ours(const Conv3dDesc& desc, Conv3d& conv, int repetitions) {
  return with_activation_type(activation_type(desc.precision),
                              [&](auto type) { return time_typed<decltype(type)>(desc, conv, repetitions); });
}

ConvTiming time_gradient(const Conv3dDesc& desc, const dnnl::memory& x, const dnnl::memory& y, int repetitions) {
  OnednnGradient gradient(desc);
  const dnnl::memory dw = filled(gradient.format());
  const dnnl::memory scratch = onednn::owned(onednn::bytes(gradient.scratch_bytes()));
  gradient.use_scratch(scratch.get_data_handle());
  const auto call = [&] {
    gradient.run(x.get_data_handle(), y.get_data_handle(), static_cast<float*>(dw.get_data_handle()));
  };
  return {"backward_weights", gradient.implementation(), best_seconds(call, repetitions)};
}

std::vector<ConvTiming> time_problem(const Conv3dDesc& desc, int repetitions) {
  const ConvProblem problem(desc);
  const dnnl::memory x = filled(problem.src);
  const dnnl::memory y = filled(problem.dst);
  std::vector<ConvTiming> result;
  const auto forward = problem.forward();
  if (desc.calls_forward()) {
    result.push_back(time_call<ConvProblem::Forward>(
        forward_name(desc), forward,
        {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}, {DNNL_ARG_WEIGHTS, filled(forward.weights_desc())}}, repetitions));
  }
  if (desc.calls_backward_data()) {
    const auto data = problem.backward_data(forward);
    result.push_back(time_call<ConvProblem::BackwardData>(
        backward_data_name(desc), data,
        {{DNNL_ARG_DIFF_SRC, x}, {DNNL_ARG_DIFF_DST, y}, {DNNL_ARG_WEIGHTS, filled(data.weights_desc())}},
        repetitions));
  }
  if (desc.calls_backward_weights()) {
    result.push_back(time_gradient(desc, x, y, repetitions));
  }
  return result;
}

}  // namespace

std::vector<ConvTiming> time_convolution(const Conv3dDesc& desc, int repetitions) {
  require_precision(desc.precision);
  try {
    if (!has_instructions(desc.precision)) return time_ours(desc, *make_conv3d(desc), repetitions);
    if (is_patchwise(desc)) return time_ours(desc, *make_patch_conv3d(desc), repetitions);
    if (prefers_winograd(desc)) return time_ours(desc, *make_in_f32(desc, make_winograd_conv3d), repetitions);
    return time_problem(desc, repetitions);
  } catch (const dnnl::error& error) {
    throw ResourceError("{}: oneDNN cannot time it ({})", describe(desc), error.what());
  }
}

}  // namespace halograd::cpu
