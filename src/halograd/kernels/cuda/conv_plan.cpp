#include "halograd/kernels/cuda/conv_plan.hpp"

#include <algorithm>
#include <utility>

namespace halograd::cuda {
namespace {

/// The names of a pass's operation and its attributes.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t convolution, x, y, w, alpha, beta;
};

constexpr OperationNames names_of(ConvPass pass) {
  switch (pass) {
    case ConvPass::forward: break;
    case ConvPass::backward_data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvPass::backward_weights:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
}

CudnnDescriptor tensor(ConvTensor name, cudnnDataType_t type, const TensorShape& shape, std::int64_t alignment) {
  CudnnDescriptor descriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  descriptor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, static_cast<std::int64_t>(name));
  descriptor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  descriptor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, shape.dims);
  descriptor.set(CUDNN_ATTR_TENSOR_STRIDES, shape.strides);
  descriptor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
  descriptor.finish("describing a tensor to cuDNN");
  return descriptor;
}

CudnnDescriptor convolution(const Conv3dDesc& desc) {
  constexpr std::array<std::int64_t, 3> no_dilation{1, 1, 1};
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  CudnnDescriptor descriptor(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  descriptor.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  descriptor.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  descriptor.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{3});
  descriptor.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, std::array{desc.pad_lo.d, desc.pad_lo.h, desc.pad_lo.w});
  descriptor.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, std::array{pad_hi(desc, 0), pad_hi(desc, 1), pad_hi(desc, 2)});
  descriptor.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::array{desc.stride.d, desc.stride.h, desc.stride.w});
  descriptor.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, no_dilation);
  descriptor.finish("describing a convolution to cuDNN");
  return descriptor;
}

EngineNotes notes_of(const CudnnDescriptor& engine) {
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> values{};
  const std::int64_t count = engine.read(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                         CUDNN_NUMERICAL_NOTE_TYPE_COUNT, values.data());
  const auto end = values.begin() + std::min<std::int64_t>(count, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  const auto has = [&](cudnnBackendNumericalNote_t note) { return std::find(values.begin(), end, note) != end; };
  return {.tensor_cores = has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE),
          .narrows_inputs = has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS),
          .narrow_sums = has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION),
          .nondeterministic = has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC),
          .fourier = has(CUDNN_NUMERICAL_NOTE_FFT),
          .winograd = has(CUDNN_NUMERICAL_NOTE_WINOGRAD),
          .winograd_13 = has(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13)};
}

/// What a finished configuration is made of.
EngineConfig read_config(CudnnDescriptor descriptor) {
  EngineConfig config;
  const auto engines = descriptor.descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  config.algorithm.engine = engines.at(0).integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  config.notes = notes_of(engines.at(0));
  for (const CudnnDescriptor& choice : descriptor.descriptors(
           CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS)) {
    cudnnBackendKnobType_t knob = CUDNN_KNOB_TYPE_COUNTS;
    choice.read(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &knob);
    const std::int64_t value = choice.integer(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
    config.algorithm.knobs.emplace_back(static_cast<std::int64_t>(knob), value);
    if (knob == CUDNN_KNOB_TYPE_STREAM_K && value != 0) config.notes.shares_by_position = true;
  }
  config.descriptor = std::move(descriptor);
  return config;
}

}  // namespace

CudnnDescriptor convolution_graph(const CudnnTarget& target, ConvPass pass, const ConvPart& part,
                                  const ConvAlignment& alignment) {
  const cudnnDataType_t type = part.desc.precision == Precision::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  const OperationNames names = names_of(pass);
  CudnnDescriptor operation(names.type);
  operation.set(names.convolution, convolution(part.desc));
  operation.set(names.x, tensor(tensor_x, type, part.x(), alignment.x));
  operation.set(names.y, tensor(tensor_y, type, part.y(), alignment.y));
  operation.set(names.w, tensor(tensor_w, type, part.w(), 16));
  operation.set(names.alpha, 1.0F);
  operation.set(names.beta, 0.0F);
  operation.finish("describing a convolution's pass to cuDNN");

  CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  if (cudnnHandle_t handle = target.handle()) {
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  }
  graph.finish("making a cuDNN graph of a convolution");
  return graph;
}

std::vector<EngineConfig> suggested_configs(const CudnnTarget& target, const CudnnDescriptor& graph,
                                            Suggestions suggestions) {
  const cudnnBackendHeurMode_t mode = suggestions == Suggestions::fast ? CUDNN_HEUR_MODE_A : CUDNN_HEUR_MODE_FALLBACK;
  CudnnDescriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (target.is_described()) heuristic.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, target.description());
  std::vector<EngineConfig> configs;
  if (!heuristic.try_finish()) return configs;
  const std::int64_t count = heuristic.read(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
  for (CudnnDescriptor& result :
       heuristic.descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, count)) {
    configs.push_back(read_config(std::move(result)));
  }
  return configs;
}

std::optional<EngineConfig> config_of(const CudnnTarget& target, const CudnnDescriptor& graph,
                                      const Algorithm& algorithm) {
  // Numbers that the library has not are errors to it, and not just unsupported.
  if (algorithm.engine < 0 || algorithm.engine >= graph.integer(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT)) {
    return std::nullopt;
  }
  CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph);
  engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, algorithm.engine);
  if (target.is_described()) engine.set(CUDNN_ATTR_ENGINE_DEVICEPROP, target.description());
  if (!engine.try_finish()) return std::nullopt;

  std::vector<CudnnDescriptor> choices;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const auto& [knob, value] : algorithm.knobs) {
    const auto type = static_cast<cudnnBackendKnobType_t>(knob);
    CudnnDescriptor& choice = choices.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    if (!choice.try_set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type) ||
        !choice.try_set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &value) || !choice.try_finish()) {
      return std::nullopt;
    }
    raw.push_back(choice.get());
  }
  CudnnDescriptor config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  config.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  const auto count = static_cast<std::int64_t>(raw.size());
  if (count > 0 &&
      !config.try_set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, raw.data())) {
    return std::nullopt;
  }
  if (!config.try_finish()) return std::nullopt;
  return read_config(std::move(config));
}

std::optional<ConvPlan> ConvPlan::make(const CudnnTarget& target, ConvPass pass, const ConvPart& part,
                                       const ConvAlignment& alignment, const Algorithm& algorithm) {
  ConvPlan result;
  result.graph_ = convolution_graph(target, pass, part, alignment);
  std::optional<EngineConfig> config = config_of(target, result.graph_, algorithm);
  if (!config) return std::nullopt;
  result.config_ = std::move(config->descriptor);
  result.plan_ = CudnnDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  result.plan_.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, result.config_);
  if (!result.plan_.try_finish()) return std::nullopt;
  result.workspace_bytes_ = result.plan_.integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  return result;
}

}  // namespace halograd::cuda
