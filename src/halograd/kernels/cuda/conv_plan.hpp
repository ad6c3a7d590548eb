#pragma once

#include "halograd/device/algorithm_record.hpp"
#include "halograd/kernels/cuda/conv_geometry.hpp"
#include "halograd/kernels/cuda/conv_pass.hpp"
#include "halograd/kernels/cuda/cudnn_support.hpp"
#include "halograd/kernels/cuda/engine_notes.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

// One convolution, or part of one, in cuDNN: what is to be computed (a graph of one operation), the engines that can,
// and a plan to run it with one of them.
namespace halograd::cuda {

/// The tensors' names in graphs.
enum ConvTensor : std::int64_t { tensor_x = 1, tensor_y = 2, tensor_w = 3 };

/// Where a plan's tensors begin, in bytes of alignment.
struct ConvAlignment {
  std::int64_t x = 16;
  std::int64_t y = 16;
  friend constexpr bool operator==(const ConvAlignment&, const ConvAlignment&) = default;
};

CudnnDescriptor convolution_graph(const CudnnTarget& target, ConvPass pass, const ConvPart& part,
                                  const ConvAlignment& alignment);

/// An engine with its settings, for one graph.
struct EngineConfig {
  CudnnDescriptor descriptor;
  Algorithm algorithm;  ///< engine and knobs
  EngineNotes notes;
};

/// Those that cuDNN expects to be fast, best first; or those that take nearly everything.
enum class Suggestions { fast, fallback };
std::vector<EngineConfig> suggested_configs(const CudnnTarget& target, const CudnnDescriptor& graph,
                                            Suggestions suggestions);
/// Empty where the engine does not take this graph, or not with these settings.
std::optional<EngineConfig> config_of(const CudnnTarget& target, const CudnnDescriptor& graph,
                                      const Algorithm& algorithm);

/// A convolution ready to run. A recording of its work (a CUDA graph) must not be launched after it is gone: cuDNN may
/// have compiled kernels for the plan, which go with it.
class ConvPlan {
public:
  /// Empty where the algorithm's engine does not take it.
  static std::optional<ConvPlan> make(const CudnnTarget& target, ConvPass pass, const ConvPart& part,
                                      const ConvAlignment& alignment, const Algorithm& algorithm);

  [[nodiscard]] std::int64_t workspace_bytes() const { return workspace_bytes_; }
  [[nodiscard]] const CudnnDescriptor& descriptor() const { return plan_; }

private:
  CudnnDescriptor graph_;
  CudnnDescriptor config_;
  CudnnDescriptor plan_;
  std::int64_t workspace_bytes_ = 0;
};

}  // namespace halograd::cuda
