#include "halograd/plan/compiler_state.hpp"

#include <algorithm>

namespace halograd {

/// From the last stage to the first, since a tensor lies where the last stage that takes it wants it.
void Compiler::lay_out_stages() {
  const Placement placement = place(network_, fuse(network_), input_partition());
  std::vector<Stage> stages;
  for (const PlacedStage& placed : placement.stages) {
    stages.push_back(placed.stage);
    stages_.push_back(make_state(placed));
  }
  const Readers readers(stages);
  for (StageId id = network_input; id < static_cast<StageId>(stages.size()); ++id) {
    const bool input = id == network_input;
    const Stage* stage = input ? nullptr : &state(id).stage();
    tensors_.push_back({.name = input ? "input" : stage->name,
                        .shape = input ? network_.input() : stage->out,
                        .partition = placement.partition_of(id),
                        .home = {},
                        .gradient = {},
                        .readers = readers.of(id),
                        .joins = input ? placement.input_joins : state(id).placed.joins});
  }
  find_types();
  find_wanted_gradients();
  for (StageId id = static_cast<StageId>(stages.size()) - 1; id >= network_input; --id) {
    lay_out_tensor(id);
    if (id >= 0) take_buffer(state(id));
  }
  lay_out_ends();
  describe_placements();
}

/// The dense head computes in f32, from where it is flattened on.
void Compiler::find_types() {
  tensor(network_input).type = activation_type(options_.precision);
  for (StageId id = 0; id < static_cast<StageId>(stages_.size()); ++id) {
    const Stage& stage = state(id).stage();
    const DType taken = tensor(stage.inputs.front()).type;
    const bool head = stage.kind == StageKind::flatten || stage.kind == StageKind::dense;
    tensor(id).type = head ? DType::f32 : taken;
  }
}

/// What has neither parameters below it nor an input whose gradient was asked for needs no backward pass.
void Compiler::find_wanted_gradients() {
  if (!training()) return;
  tensor(network_input).wants_gradient = options_.input_gradient;
  for (StageId id = 0; id < static_cast<StageId>(stages_.size()); ++id) {
    const Stage& stage = state(id).stage();
    const bool learns = (stage.node && parameter(*stage.node) >= 0) || stage.norm;
    tensor(id).wants_gradient =
        learns || std::ranges::any_of(stage.inputs, [&](StageId input) { return tensor(input).wants_gradient; });
  }
}

StageState Compiler::make_state(PlacedStage placed) const {
  const Site site(placed.in, options_.grid.spatial(), place_);
  StageState state{
      .placed = std::move(placed), .in_site = site, .input = {}, .input_gradient = {}, .margins = {}, .faces = {}};
  const PlacedStage& at = state.placed;
  state.margins = neighbourhood(at.in, state.in_site, [&](const Index& part) { return needed_by(at, part); });
  state.faces = neighbourhood(at.in, state.in_site, [&](const Index& part) {
    const Box own = at.in.box(part);
    if (at.stage.kind != StageKind::chain) return own;
    return own.hull(at.stage.window.input_needed(at.out.box(part), at.stage.in.extent));
  });
  state.contributes = state.in_site.leads() && !idle();
  return state;
}

/// Whether no other stage needs the values of a tensor, or of those that it joins, once its reader has them.
bool Compiler::is_taken_once(StageId id) const {
  if (tensor(id).readers.size() != 1) return false;
  if (id == network_input || state(id).stage().kind != StageKind::concatenation) return true;
  return std::ranges::all_of(state(id).stage().inputs, [&](StageId joined) { return is_taken_once(joined); });
}

/// Whether the one stage that takes this tensor writes its gradient over it.
bool Compiler::works_in_place(StageId id) const {
  if (!is_taken_once(id)) return false;
  const Stage& stage = state(tensor(id).readers.front().stage).stage();
  if (stage.kind == StageKind::flatten || stage.kind == StageKind::loss) return true;
  // Without normalisation and activation a chain's backward pass needs no input: the memory is free earlier.
  return stage.kind == StageKind::chain && (stage.norm || stage.activation);
}

void Compiler::lay_out_tensor(StageId id) {
  Tensor& at = tensor(id);
  if (!at.joins) {
    at.home = tile(id == network_input ? "input" : at.name + ".y", at.type, at.shape.channels, own_box(at.partition));
    if (!at.wants_gradient) return;
    at.gradient = works_in_place(id) ? at.home : tile(at.name + ".dy", at.type, at.shape.channels, at.home.box);
    return;
  }
  const Reader last = at.readers.back();
  const StageState& taker = state(last.stage);
  if (taker.stage().kind != StageKind::concatenation) {
    at.home = taker.input;
    at.gradient = taker.input_gradient;
    at.taker = last.stage;
    return;
  }
  const Tensor& joined = tensor(last.stage);
  at.home = joined.home;
  at.gradient = joined.gradient;
  at.taker = joined.taker;
  for (std::size_t slot = 0; slot < last.slot; ++slot) {
    const std::int64_t channels = tensor(taker.stage().inputs[slot]).shape.channels;
    at.home.offset += channels;
    at.gradient.offset += channels;
  }
}

void Compiler::take_buffer(StageState& state) {
  const Stage& stage = state.stage();
  if (!takes_own_buffer(stage.kind) || stage.kind == StageKind::concatenation) return;
  const Tensor& input = tensor(stage.inputs.front());
  state.input = tile(stage.name + ".x", input.type, stage.in.channels, state.margins.wide);
  if (input.wants_gradient) {
    state.input_gradient = tile(stage.name + ".dx", input.type, stage.in.channels, state.margins.wide);
  }
}

void Compiler::lay_out_ends() {
  const Tensor& input = tensor(network_input);
  plan_.input = {network_.input(), own_box(input.partition), input.home, {}};
  plan_.buffers[static_cast<std::size_t>(input.home.buffer)].external = true;
  if (training() && options_.input_gradient) {
    plan_.input.gradient = input.gradient;
    pinned_.push_back(input.gradient.buffer);
  }
  const StageState& last = stages_.back();
  const bool loss = last.stage().kind == StageKind::loss;
  const Tensor& output = loss ? input_of(stages_.size() - 1) : tensors_.back();
  const Site site(output.partition, options_.grid.spatial(), place_);
  plan_.output = {network_.output(), output.partition.box(site.part()), output.type, site.leads(), output.home.buffer};
  pinned_.push_back(output.home.buffer);
}

void Compiler::describe_placements() {
  for (const StageState& at : stages_) {
    const Stage& stage = at.stage();
    const bool copy = stage.kind == StageKind::copy;
    plan_.placements.push_back({.name = stage.name,
                                .layers = stage.layers(),
                                .partition = at.placed.out.name(),
                                .copied_from = copy ? tensor(stage.inputs.front()).name : "",
                                .resharded = !(at.placed.in == at.placed.out) && copy});
  }
}

}  // namespace halograd
