#include "halograd/kernels/cuda/algorithm_search.hpp"

#include "halograd/core/log.hpp"
#include "halograd/device/cuda/runtime.hpp"
#include "halograd/kernels/cuda/device_buffer.hpp"
#include "halograd/kernels/cuda/workspace.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

namespace halograd::cuda {
namespace {

/// Configurations that are tried for one cut, of those that are admitted.
constexpr std::size_t most_tried = 10;
/// With fewer candidates, those that take nearly everything are tried too: they are slow for tensor cores, but may be
/// the best in true float32.
constexpr std::size_t few_candidates = 4;

std::vector<Algorithm> admitted(const CudnnTarget& target, ConvPass pass, const ConvPart& part, bool direct,
                                Suggestions suggestions) {
  const CudnnDescriptor graph = convolution_graph(target, pass, part, {});
  std::vector<Algorithm> algorithms;
  for (EngineConfig& config : suggested_configs(target, graph, suggestions)) {
    if (admits(config.notes, part.desc.precision, direct)) algorithms.push_back(std::move(config.algorithm));
  }
  return algorithms;
}

/// The passes that need `limit` of workspace or less, and the one of the others that needs the least.
struct Found {
  std::vector<PlannedPass> within;
  std::optional<PlannedPass> smallest;
};

void find(const CudnnTarget& target, ConvPass pass, const ConvPart& whole, std::int64_t pieces, std::int64_t limit,
          Suggestions suggestions, Found& found) {
  const ConvPart first = cut(whole, pieces, pass == ConvPass::backward_data).front();
  std::size_t tried = 0;
  for (Algorithm& algorithm : admitted(target, pass, first, false, suggestions)) {
    algorithm.pieces = pieces;
    if (std::ranges::find(found.within, algorithm, &PlannedPass::algorithm) != found.within.end()) continue;
    std::optional<PlannedPass> planned = PlannedPass::make(target, pass, whole, algorithm);
    if (!planned) continue;
    if (planned->workspace_bytes() <= limit) {
      found.within.push_back(std::move(*planned));
    } else if (!found.smallest || planned->workspace_bytes() < found.smallest->workspace_bytes()) {
      found.smallest = std::move(planned);
    }
    if (++tried == most_tried) break;
  }
}

[[noreturn]] void refuse(ConvPass pass, const ConvPart& whole) {
  throw ResourceError("{}: cuDNN has no engine for it that gives the same bits run after run", describe(pass, whole));
}

/// Into how many pieces a pass may be worth cutting: as few as can be, and as many as keep copies of its operands
/// within the limit of workspace.
std::vector<std::int64_t> cuts(ConvPass pass, const ConvPart& whole) {
  const bool by_input = pass == ConvPass::backward_data;
  const std::int64_t fewest = fewest_pieces(whole, by_input);
  // A little less than the limit, since engines keep more than their copies.
  const std::int64_t small = pieces_within(whole, by_input, workspace_limit / 16 * 15);
  return small > fewest ? std::vector{fewest, small} : std::vector{fewest};
}

struct DestroyEvent {
  void operator()(cudaEvent_t event) const { static_cast<void>(cudaEventDestroy(event)); }
};
using TimedEvent = std::unique_ptr<CUevent_st, DestroyEvent>;

TimedEvent timed_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "making an event to measure with");
  return TimedEvent(event);
}

/// Buffers to measure in. Zeros: their values do not matter, but numbers that are none might take another path.
class Bench {
public:
  /// Empty where there is no memory for it.
  static std::unique_ptr<Bench> make(const Queue& queue, const ConvPart& whole, std::int64_t workspace_bytes) {
    const Conv3dDesc& desc = whole.desc;
    const std::int64_t size = dtype_size(activation_type(desc.precision));
    auto bench = std::make_unique<Bench>(queue);
    const auto allocate = [&](std::unique_ptr<DeviceBuffer>& buffer, std::int64_t bytes) {
      buffer = DeviceBuffer::if_there_is(bytes);
      if (buffer) queue.clear(buffer->data(), bytes);
      return buffer != nullptr;
    };
    const bool all = allocate(bench->x_, size * desc.samples * desc.in_channels * whole.in.volume()) &&
                     allocate(bench->y_, size * desc.samples * desc.out_channels * whole.out.volume()) &&
                     allocate(bench->w_, size * desc.out_channels * desc.in_channels * desc.kernel.volume()) &&
                     allocate(bench->workspace_, workspace_bytes);
    return all ? std::move(bench) : nullptr;
  }

  explicit Bench(const Queue& queue) : queue_(queue) {}

  /// Milliseconds of a run. One before loads the kernels; one is all where it takes three times `best`.
  double milliseconds(PlannedPass& pass, double best) {
    timed(pass, 1);
    const double one = timed(pass, 1);
    return one > 3 * best || one > 50 ? one : timed(pass, 5);
  }

private:
  double timed(PlannedPass& pass, int runs) {
    const cudaStream_t stream = stream_of(queue_);
    check(cudaEventRecord(start_.get(), stream), "measuring a convolution");
    for (int run = 0; run < runs; ++run) {
      for (std::size_t piece = 0; piece < pass.pieces(); ++piece) {
        pass.run(piece, x_->data(), y_->data(), w_->data(), workspace_->data());
      }
    }
    check(cudaEventRecord(end_.get(), stream), "measuring a convolution");
    check(cudaEventSynchronize(end_.get()), "measuring a convolution");
    float total = 0;
    check(cudaEventElapsedTime(&total, start_.get(), end_.get()), "measuring a convolution");
    return static_cast<double>(total) / runs;
  }

  Queue queue_;
  TimedEvent start_ = timed_event();
  TimedEvent end_ = timed_event();
  std::unique_ptr<DeviceBuffer> x_;
  std::unique_ptr<DeviceBuffer> y_;
  std::unique_ptr<DeviceBuffer> w_;
  std::unique_ptr<DeviceBuffer> workspace_;
};

std::size_t fastest(const Queue& queue, ConvPass pass, const ConvPart& whole, std::vector<PlannedPass>& passes) {
  std::int64_t workspace = 0;
  for (const PlannedPass& planned : passes) workspace = std::max(workspace, planned.workspace_bytes());
  const std::unique_ptr<Bench> bench = Bench::make(queue, whole, workspace);
  if (!bench) {
    log::warn("{}: no memory to measure cuDNN's engines in; taking the one it expects to be the fastest",
              describe(pass, whole));
    return 0;
  }
  std::size_t chosen = passes.size();
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < passes.size(); ++i) {
    try {
      const double time = bench->milliseconds(passes[i], best);
      if (time >= best) continue;
      best = time;
      chosen = i;
    } catch (const ResourceError& error) {
      log::warn("{} is left out: {}", passes[i].name(), error.what());
    }
  }
  if (chosen == passes.size()) throw ResourceError("{}: none of cuDNN's engines runs it", describe(pass, whole));
  return chosen;
}

std::string device_name(const Queue& queue) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device_of(queue)), "asking for a GPU's name");
  return static_cast<const char*>(properties.name);
}

std::int64_t free_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for a GPU's free memory");
  return static_cast<std::int64_t>(free);
}

/// The layer on a volume of a fixed size, with zeros on one side alone, as parts of volumes have: engines that need
/// them on both are then not preferred.
Conv3dDesc model_case(const Conv3dDesc& desc) {
  Conv3dDesc model = desc;
  model.samples = 1;
  model.out = Extent::cube(32);
  model.pad_lo = {};
  for (int i = 0; i < 3; ++i) model.in[i] = window_span(model, i) - (model.kernel[i] - 1) / 2;
  return model;
}

}  // namespace

std::string algorithm_key(ConvPass pass, const ConvPart& whole, const std::string& device_name) {
  return fmt::format("{}; {}; cuDNN {}", describe(pass, whole), device_name, cudnnGetVersion());
}

std::vector<PlannedPass> candidates(const CudnnTarget& target, ConvPass pass, const ConvPart& whole,
                                    std::int64_t limit) {
  Found found;
  for (const Suggestions suggestions : {Suggestions::fast, Suggestions::fallback}) {
    for (const std::int64_t pieces : cuts(pass, whole)) {
      find(target, pass, whole, pieces, limit, suggestions, found);
    }
    if (found.within.size() >= few_candidates) break;
  }
  if (found.within.empty() && found.smallest) found.within.push_back(std::move(*found.smallest));
  if (found.within.empty()) refuse(pass, whole);
  return std::move(found.within);
}

PlannedPass direct_pass(const CudnnTarget& target, ConvPass pass, const ConvPart& whole) {
  const std::int64_t pieces = cuts(pass, whole).back();
  for (const Suggestions suggestions : {Suggestions::fast, Suggestions::fallback}) {
    for (Algorithm& algorithm : admitted(target, pass, whole_part(model_case(whole.desc)), true, suggestions)) {
      algorithm.pieces = pieces;
      if (auto planned = PlannedPass::make(target, pass, whole, algorithm)) return std::move(*planned);
    }
  }
  refuse(pass, whole);
}

PlannedPass chosen_pass(const Queue& queue, const CudnnTarget& target, ConvPass pass, const ConvPart& whole) {
  // A weight's sum goes over all voxels, and so depends on the cut whatever its order.
  if (whole.desc.direct && pass != ConvPass::backward_weights) return direct_pass(target, pass, whole);
  const std::string key = algorithm_key(pass, whole, device_name(queue));
  if (const auto recorded = algorithm_record().find(key)) {
    if (auto planned = PlannedPass::make(target, pass, whole, *recorded)) return std::move(*planned);
    log::warn("{}: cuDNN does not take the recorded {}; measuring again", key, algorithm_text(*recorded));
  }
  const std::int64_t room = free_bytes() + workspace_of(queue)->bytes();
  std::vector<PlannedPass> passes = candidates(target, pass, whole, std::min(workspace_limit, room));
  PlannedPass chosen = std::move(passes[passes.size() == 1 ? 0 : fastest(queue, pass, whole, passes)]);
  algorithm_record().set(key, chosen.algorithm());
  return chosen;
}

}  // namespace halograd::cuda
