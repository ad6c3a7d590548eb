#include "halograd/plan/compiler.hpp"

#include "halograd/core/error.hpp"
#include "halograd/plan/compiler_state.hpp"
#include "halograd/plan/lifetimes.hpp"

namespace halograd {

Compiler::Compiler(const Network& network, const CompileOptions& options) : network_(network), options_(options) {
  plan_.grid = options.grid;
  plan_.rank = options.rank;
  plan_.batch = options.batch;
  plan_.mode = options.mode;
  plan_.scope = options.scope;
  const GridPlace at = options.grid.place(options.rank);
  place_ = at.place;
  plan_.samples = group_samples(options.batch, options.grid.data, at.group);
}

Plan Compiler::run() {
  if (network_.nodes().empty()) throw UsageError("a network needs at least one layer");
  lay_out_parameters();
  lay_out_stages();
  emit_forward();
  if (training()) {
    emit_backward();
    emit_updates();
  }
  plan_.arena_bytes = place_buffers(plan_.steps, pinned_, options_.traits.alignment, plan_.buffers);
  return std::move(plan_);
}

void Compiler::lay_out_parameters() {
  for (ParameterSpec& spec : network_.parameters()) plan_.parameters.push_back({std::move(spec), 0});
  // The backward pass finishes the last layer first. A layer's own arrays keep their order.
  std::int64_t offset = 0;
  for (const bool trainable : {true, false}) {
    std::size_t end = plan_.parameters.size();
    while (end > 0) {
      std::size_t begin = end - 1;
      while (begin > 0 && plan_.parameters[begin - 1].spec.layer == plan_.parameters[begin].spec.layer) --begin;
      for (std::size_t i = begin; i < end; ++i) {
        if (plan_.parameters[i].spec.trainable != trainable) continue;
        plan_.parameters[i].offset = offset;
        offset += plan_.parameters[i].spec.elements();
      }
      end = begin;
    }
    if (trainable) plan_.trainable_elements = offset;
  }
  plan_.parameter_elements = offset;
}

Partition Compiler::input_partition() const {
  const Extent extent = network_.input().extent;
  if (options_.input_partition) {
    if (options_.input_partition->extent() != extent || options_.input_partition->parts() != options_.grid.spatial()) {
      throw UsageError("the input partition does not match the network's input and the grid");
    }
    return *options_.input_partition;
  }
  return Partition::even(extent, options_.grid.spatial(), network_.total_stride());
}

Box Compiler::needed_by(const StageState& state, const Index& part) const {
  if (state.stage.kind != StageKind::convolution) return state.place.in.box(part);
  return state.stage.window.input_needed(state.place.out.box(part), state.stage.in.extent);
}

BufferId Compiler::buffer(const std::string& name, std::int64_t bytes) {
  plan_.buffers.push_back({.name = name, .bytes = bytes});
  return static_cast<BufferId>(plan_.buffers.size()) - 1;
}

Tile Compiler::tile(const std::string& name, std::int64_t channels, const Box& box) {
  return {buffer(name, 4 * plan_.samples.count * channels * box.volume()), box};
}

void Compiler::place_input(StageState& state, std::size_t index) {
  const Extent grid = options_.grid.spatial();
  const auto wide_of = [&](const Index& part) { return needed_by(state, part); };
  state.margins = neighbourhood(state.place.in, state.in_site, wide_of);
  state.faces = neighbourhood(state.place.in, state.in_site, [&](const Index& part) {
    if (state.stage.kind != StageKind::chain) return state.place.in.box(part);
    const Box own = state.place.in.box(part);
    return own.hull(state.stage.window.input_needed(state.place.out.box(part), state.stage.in.extent));
  });
  state.input = tile(state.stage.name + ".x", state.stage.in.channels, state.margins.wide);
  if (state.place.reshard_from) {
    const Site from(*state.place.reshard_from, grid, place_);
    state.staging =
        tile(state.stage.name + ".staging", state.stage.in.channels, state.place.reshard_from->box(from.part()));
  }
  state.contributes = state.in_site.leads() && !idle();
  state.input_gradient = state.input;
  const bool own_gradient = state.stage.kind == StageKind::convolution || state.stage.kind == StageKind::dense;
  if (training() && own_gradient && (index > 0 || options_.input_gradient)) {
    state.input_gradient = tile(state.stage.name + ".dx", state.stage.in.channels, state.margins.wide);
  }
}

void Compiler::lay_out_stages() {
  std::vector<Stage> stages = fuse(network_);
  const std::vector<StagePlacement> placements = place(stages, input_partition());
  for (std::size_t i = 0; i < stages.size(); ++i) {
    StageState state{.stage = std::move(stages[i]),
                     .place = placements[i],
                     .in_site = Site(placements[i].in, options_.grid.spatial(), place_),
                     .input = {},
                     .input_gradient = {},
                     .staging = {},
                     .margins = {},
                     .faces = {}};
    place_input(state, i);
    plan_.placements.push_back(
        {state.stage.name, state.stage.out, state.place.out.name(), state.place.reshard_from.has_value()});
    stages_.push_back(std::move(state));
  }
  const StageState& first = stages_.front();
  const Tile& entry = first.staging.buffer >= 0 ? first.staging : first.input;
  plan_.input = {network_.input(), {}, entry, {}};
  if (training() && options_.input_gradient) {
    plan_.input.gradient = first.staging.buffer >= 0 ? first.staging : first.input_gradient;
    pinned_.push_back(plan_.input.gradient.buffer);
  }
  const Partition input = input_partition();
  plan_.input.own = input.box(Site(input, options_.grid.spatial(), place_).part());
  plan_.buffers[static_cast<std::size_t>(entry.buffer)].external = true;

  const StageState& last = stages_.back();
  const bool loss = last.stage.kind == StageKind::loss;
  if (!loss) {
    result_ = tile("output", last.stage.out.channels,
                   last.place.out.box(Site(last.place.out, options_.grid.spatial(), place_).part()));
  }
  const Tile& output = loss ? last.input : result_;
  const Site output_site(last.place.out, options_.grid.spatial(), place_);
  plan_.output = {network_.output(), output.box, output_site.leads(), output.buffer};
  pinned_.push_back(output.buffer);
}

const Tile& Compiler::output_of(std::size_t stage) const {
  if (stage + 1 == stages_.size()) return result_;
  const StageState& next = stages_[stage + 1];
  return next.staging.buffer >= 0 ? next.staging : next.input;
}

Tile Compiler::output_gradient_of(std::size_t stage) const {
  if (stage + 1 == stages_.size()) return result_;
  const StageState& next = stages_[stage + 1];
  return next.staging.buffer >= 0 ? next.staging : next.input_gradient;
}

int Compiler::parameter(NodeId node) const {
  const std::string& layer = network_.node(node).name;
  for (std::size_t i = 0; i < plan_.parameters.size(); ++i) {
    if (plan_.parameters[i].spec.layer == layer) return static_cast<int>(i);
  }
  return no_parameter;
}

int Compiler::emit(Step step) {
  plan_.steps.push_back(std::move(step));
  return static_cast<int>(plan_.steps.size()) - 1;
}

int Compiler::start_exchange(ExchangePlan exchange, Phase phase) {
  Step step{.kind = StepKind::exchange_start, .unit = static_cast<int>(plan_.exchanges.size()), .phase = phase};
  step.message_bytes = exchange.bytes_sent();
  for (const auto& transfers : exchange.phases) {
    for (const Transfer& transfer : transfers) {
      for (const Piece& piece : transfer.send) step.touches.push_back(piece.tile.buffer);
      for (const Piece& piece : transfer.receive) step.touches.push_back(piece.tile.buffer);
    }
  }
  plan_.exchanges.push_back(std::move(exchange));
  return emit(std::move(step));
}

void Compiler::wait_exchange(int start, Phase phase) {
  if (start < 0) return;
  emit({.kind = StepKind::exchange_wait,
        .unit = plan_.steps[static_cast<std::size_t>(start)].unit,
        .phase = phase,
        .start = start});
}

Plan compile(const Network& network, const CompileOptions& options) {
  if (options.batch < 1) throw UsageError("the mini-batch holds at least one sample, not {}", options.batch);
  return Compiler(network, options).run();
}

}  // namespace halograd
