#include "halograd/exec/bound_plan.hpp"

#include "halograd/core/error.hpp"
#include "halograd/core/log.hpp"
#include "halograd/core/system.hpp"

#include <fmt/format.h>

namespace halograd {

BoundPlan::BoundPlan(Plan plan, const Binding& binding)
    : plan_(std::move(plan)), to_(binding), converter_(binding.device, binding.queue) {
  for (const BufferPlan& buffer : plan_.buffers) {
    addresses_.push_back(buffer.external ? nullptr : to_.arena + buffer.offset);
  }
  make_kernels();
}

void BoundPlan::connect() {
  for (const ExchangePlan& exchange : plan_.exchanges) {
    exchanges_.emplace_back(to_.fabric->group(), exchange);
  }
  flights_.resize(plan_.steps.size());
  for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
    labels_.push_back(
        fmt::format("{} {} {}", i, step_kind_name(plan_.steps[i].kind), step_name(plan_, plan_.steps[i])));
    tasks_.push_back(bind(i));
  }
}

void BoundPlan::make_kernels() {
  for (const ConvolutionUnit& unit : plan_.convolutions) {
    const auto* convolution = std::get_if<Conv3dDesc>(&unit.desc);
    convolutions_.push_back({convolution != nullptr ? make_conv3d(to_.queue, *convolution)
                                                    : make_deconv3d(to_.queue, std::get<Deconv3dDesc>(unit.desc)),
                             -1});
  }
  for (const DenseUnit& unit : plan_.denses) denses_.push_back(make_dense(to_.queue, unit.desc));
  for (const ChainUnit& unit : plan_.chains) make_chain_state(unit);
  for (const SegmentationUnit& unit : plan_.segmentations) make_segmentation_state(unit);
}

BoundPlan::Task BoundPlan::bind(std::size_t index) {
  const Step& step = plan_.steps[index];
  if (!computes(step.kind)) return bind_communication(index);
  if (is_convolution(step.kind)) return bind_convolution(step);
  switch (step.kind) {
    case StepKind::load_input: return [this] { load(*context_.batch, context_.input, context_.labels); };
    case StepKind::copy:
    case StepKind::upsample_forward:
    case StepKind::upsample_backward:
    case StepKind::flatten_forward:
    case StepKind::flatten_backward:
    case StepKind::dense_forward:
    case StepKind::dense_backward_data:
    case StepKind::dense_backward_weights:
    case StepKind::loss:
    case StepKind::update: return bind_layer(step);
    case StepKind::chain_moments:
    case StepKind::running_statistics:
    case StepKind::chain_forward:
    case StepKind::chain_backward_faces:
    case StepKind::chain_backward_sums:
    case StepKind::chain_backward_data: return bind_chain(step);
    case StepKind::segmentation_sums:
    case StepKind::segmentation_gradient: return bind_segmentation(step);
    default: return {};
  }
}

void BoundPlan::load(const MiniBatch& batch, std::byte* input, std::uint8_t* labels) {
  const InputUnit& unit = plan_.input;
  const std::int64_t sample_bytes = dtype_size(unit.tile.type) * unit.shape.channels * unit.tile.box.volume();
  converted_.clear();
  converter_.begin(static_cast<std::int64_t>(batch.samples.size()));
  for (std::size_t n = 0; n < batch.samples.size(); ++n) {
    const SampleView& sample = batch.samples[n];
    if (sample.labels != nullptr && labels != nullptr) {
      const std::int64_t voxels = unit.own.volume();
      converter_.copy_labels(sample.labels, labels + static_cast<std::int64_t>(n) * voxels, voxels);
    }
    if (sample.data == nullptr) continue;
    const ConvertDesc desc{.dtype = sample.dtype,
                           .dst_type = unit.tile.type,
                           .transform = batch.transform,
                           .channels = unit.shape.channels,
                           .channels_first = sample.channels_first,
                           .source = unit.own,
                           .dst = unit.tile.box};
    converter_.convert(desc, sample.data, input + static_cast<std::int64_t>(n) * sample_bytes);
    converted_.push_back(sample.name);
  }
  if (batch.targets != nullptr && !plan_.losses.empty()) {
    const LossUnit& loss = plan_.losses.front();
    to_.queue.copy(batch.targets, address(loss.target), 4 * loss.elements);
  }
  if (converted_.empty()) return;
  const std::int64_t refused = converter_.finish();
  if (refused < 0) return;
  throw DataError("{}: a voxel is not a finite number after the input transform",
                  converted_[static_cast<std::size_t>(refused)]);
}

StepResult BoundPlan::run(const StepContext& context) {
  if (static_cast<std::int64_t>(context.batch->samples.size()) != plan_.samples.count) {
    throw UsageError("a mini-batch of {} gives this rank {} samples, not {}", plan_.batch, plan_.samples.count,
                     context.batch->samples.size());
  }
  context_ = context;
  addresses_[static_cast<std::size_t>(plan_.input.tile.buffer)] = context.input;
  if (plan_.input.labels >= 0) {
    addresses_[static_cast<std::size_t>(plan_.input.labels)] = reinterpret_cast<std::byte*>(context.labels);
  }
  const double least_weight = context.averages_begin ? 1.0 / static_cast<double>(context.step + 1) : 0;
  to_.block->begin(to_.queue, {.least_weight = least_weight, .step = static_cast<std::uint32_t>(context.step)});
  if (to_.optimizer != nullptr && plan_.mode == Mode::train) to_.optimizer->begin_step(context.learning_rate);
  StepResult result;
  const double begin = now_seconds();
  // What the host brings can't be recorded.
  const bool loads = !tasks_.empty() && plan_.steps.front().kind == StepKind::load_input;
  if (loads) tasks_.front()();
  result.forward_seconds = now_seconds() - begin;
  if (context.step_seconds != nullptr && loads) context.step_seconds[0] = result.forward_seconds;
  const bool recordable = to_.record && plan_.mode == Mode::train && context.step_seconds == nullptr &&
                          to_.queue.can_record() && (to_.fabric == nullptr || to_.fabric->returns_when_listed());
  recordable ? list_recorded(loads ? 1 : 0, result) : list(loads ? 1 : 0, result);
  if (plan_.mode == Mode::train) to_.parameters->stepped();
  const double before = now_seconds();
  result.loss = finish_loss();
  (result.recorded_seconds > 0 ? result.recorded_seconds : result.update_seconds) += now_seconds() - before;
  return result;
}

/// Runs the steps from `first` on, or lists them on a device whose work takes its time: then phase by phase, so that
/// each has a time.
void BoundPlan::list(std::size_t first, StepResult& result) {
  double before = now_seconds();
  for (std::size_t i = first; i < tasks_.size(); ++i) {
    const Step& step = plan_.steps[i];
    to_.queue.label(labels_[i]);
    tasks_[i]();
    const bool phase_ends = i + 1 == tasks_.size() || plan_.steps[i + 1].phase != step.phase;
    if (phase_ends || context_.step_seconds != nullptr) to_.queue.synchronize();
    const double after = now_seconds();
    double& bin = step.start >= 0                 ? result.communication_seconds
                  : step.phase == Phase::forward  ? result.forward_seconds
                  : step.phase == Phase::backward ? result.backward_seconds
                                                  : result.update_seconds;
    bin += after - before;
    if (context_.step_seconds != nullptr) context_.step_seconds[i] = after - before;
    before = after;
  }
}

/// Launches the step as one piece: its list of hundreds of kernels costs the host as much as a single one.
void BoundPlan::list_recorded(std::size_t first, StepResult& result) {
  Recording& recording = recordings_[context_.input];
  if (!recording.warm) {
    recording.warm = true;
    return list(first, result);
  }
  const double before = now_seconds();
  if (!recording.graph) recording.graph = try_to_record(first);
  if (!recording.graph) {
    stop_recording();
    return list(first, result);
  }
  to_.queue.launch(recording.graph);
  result.recorded_seconds = now_seconds() - before;
}

/// Throws what a step throws, but not before the queue does work again.
Graph BoundPlan::record(std::size_t first) {
  to_.queue.begin_recording();
  try {
    for (std::size_t i = first; i < tasks_.size(); ++i) tasks_[i]();
  } catch (...) {
    try {
      static_cast<void>(to_.queue.end_recording());
    } catch (const ResourceError&) {  // follows from what was thrown first
    }
    throw;
  }
  return to_.queue.end_recording();
}

/// Nothing where a rank's device refuses, on all ranks: NCCL wants its calls recorded by all or by none.
Graph BoundPlan::try_to_record(std::size_t first) {
  Graph graph;
  try {
    const auto work = [&] { graph = record(first); };
    to_.fabric == nullptr ? work() : agree(to_.fabric->world(), work);
    return graph;
  } catch (const ResourceError& error) {
    log::warn("training steps are listed kernel by kernel from now on, since they can't be recorded: {}", error.what());
    return {};
  }
}

/// Lists steps one by one from now on. What the host noted down as done in a recording that never runs, it was not.
void BoundPlan::stop_recording() {
  to_.record = false;
  recordings_.clear();
  for (PackedConvolution& convolution : convolutions_) convolution.version = -1;
  for (HaloExchange& exchange : exchanges_) exchange.release();
  if (to_.fabric == nullptr) return;
  to_.fabric->halos().lane.forget_failure();
  to_.fabric->gradients().lane.forget_failure();
}

double BoundPlan::finish_loss() {
  const double loss = to_.block->loss(to_.queue);
  return plan_.losses.empty() ? loss : loss / plan_.losses.front().global_elements;
}

std::vector<std::int64_t> BoundPlan::held_bytes() const {
  std::vector<std::int64_t> bytes;
  for (const PackedConvolution& convolution : convolutions_) bytes.push_back(convolution.kernel->held_bytes());
  return bytes;
}

std::vector<std::string> BoundPlan::implementations() const {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < convolutions_.size(); ++i) {
    std::string line = plan_.convolutions[i].name + ":";
    for (const std::string& name : convolutions_[i].kernel->implementations()) line += " " + name;
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace halograd
