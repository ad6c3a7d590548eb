#include "halograd/kernels/cpu/conv_floor.hpp"

#include "halograd/core/system.hpp"
#include "halograd/kernels/cpu/conv_problem.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace halograd::cpu {
namespace {

/// The same convolution as one rank alone would do it for this output: zeros in place of the neighbours' voxels.
Conv3dDesc without_margins(Conv3dDesc desc) {
  for (int i = 0; i < 3; ++i) {
    desc.in[i] = std::min(desc.in[i], desc.out[i] * desc.stride[i]);
    desc.pad_lo[i] = std::max(desc.pad_lo[i], (desc.kernel[i] - 1) / 2);
  }
  return desc;
}

/// A warm buffer of small ordinary numbers (zeros may run faster, denormals slower).
dnnl::memory filled(const dnnl::memory::desc& desc) {
  dnnl::memory memory = onednn::owned(desc);
  auto* values = static_cast<float*>(memory.get_data_handle());
  const auto count = static_cast<std::int64_t>(desc.get_size() / sizeof(float));
  for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 13 - 6) * 0.1F;
  return memory;
}

template <typename Primitive>
ConvTiming time_call(std::string name, const typename Primitive::primitive_desc& desc,
                     std::unordered_map<int, dnnl::memory> arguments, int repetitions) {
  const auto scratch = desc.scratchpad_desc();
  if (scratch.get_size() > 0) arguments.emplace(DNNL_ARG_SCRATCHPAD, onednn::owned(scratch));
  onednn::Call call(Primitive(desc), std::move(arguments));
  call.run();
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < std::max(1, repetitions); ++i) {
    const double start = now_seconds();
    call.run();
    best = std::min(best, now_seconds() - start);
  }
  return {std::move(name), desc.impl_info_str(), best};
}

std::vector<ConvTiming> time_problem(const Conv3dDesc& desc, int repetitions) {
  const ConvProblem problem(desc);
  const dnnl::memory x = filled(problem.src);
  const dnnl::memory y = filled(problem.dst);
  std::vector<ConvTiming> result;
  const auto forward = problem.forward(desc.training);
  result.push_back(time_call<ConvProblem::Forward>(
      "forward", forward, {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}, {DNNL_ARG_WEIGHTS, filled(forward.weights_desc())}},
      repetitions));
  if (desc.training && desc.input_gradient) {
    const auto data = problem.backward_data(forward);
    result.push_back(time_call<ConvProblem::BackwardData>(
        "backward_data", data,
        {{DNNL_ARG_DIFF_SRC, x}, {DNNL_ARG_DIFF_DST, y}, {DNNL_ARG_WEIGHTS, filled(data.weights_desc())}},
        repetitions));
  }
  if (desc.training) {
    const auto weights = problem.backward_weights(forward);
    result.push_back(time_call<ConvProblem::BackwardWeights>(
        "backward_weights", weights,
        {{DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_DST, y}, {DNNL_ARG_DIFF_WEIGHTS, filled(weights.diff_weights_desc())}},
        repetitions));
  }
  return result;
}

}  // namespace

std::vector<ConvTiming> time_convolution(const Conv3dDesc& desc, int repetitions) {
  if (desc.samples * desc.out.volume() == 0) return {};
  try {
    return time_problem(without_margins(desc), repetitions);
  } catch (const dnnl::error& error) {
    throw ResourceError("{}: oneDNN cannot time it ({})", describe(desc), error.what());
  }
}

double conv_floor_seconds(const std::vector<Conv3dDesc>& convolutions, int repetitions) {
  double seconds = 0;
  for (const Conv3dDesc& desc : convolutions) {
    for (const ConvTiming& timing : time_convolution(desc, repetitions)) seconds += timing.seconds;
  }
  return seconds;
}

}  // namespace halograd::cpu
