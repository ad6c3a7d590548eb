#include "halograd/plan/compiler_state.hpp"

namespace halograd {
namespace {

double bytes_of(const Tile& tile, std::int64_t samples, std::int64_t channels) {
  return 4.0 * static_cast<double>(samples * channels * tile.box.volume());
}

}  // namespace

void Compiler::emit_forward() {
  emit_input();
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    await(i);
    switch (stages_[i].stage.kind) {
      case StageKind::convolution: emit_convolution(i); break;
      case StageKind::chain: emit_chain(i); break;
      case StageKind::flatten: emit_flatten(i); break;
      case StageKind::dense: emit_dense(i); break;
      case StageKind::loss: emit_loss(i); break;
    }
    if (stages_[i].stage.kind != StageKind::chain && i + 1 < stages_.size()) send_to(i + 1);
  }
}

void Compiler::emit_input() {
  if (!idle()) emit({.kind = StepKind::load_input, .touches = {plan_.input.tile.buffer}});
  send_to(0);
}

void Compiler::send_to(std::size_t stage) {
  StageState& state = stages_[stage];
  if (idle()) return;
  const std::int64_t channels = state.stage.in.channels;
  if (!state.place.reshard_from) {
    if (!state.margins.anyone) return;
    state.arrival = start_exchange(
        {state.stage.name + " halo", plan_.samples.count, channels, fill_phases(state.margins, {state.input})},
        Phase::forward);
    return;
  }
  CopyUnit copy{state.stage.name + " reshard", plan_.samples.count, channels, state.staging, state.input, {}};
  auto phases = reshard_phases(
      *state.place.reshard_from, state.place.in, options_.grid.spatial(), place_, state.staging, state.input,
      [&](const Index& part) { return needed_by(state, part); }, &copy.region);
  state.arrival = start_exchange({copy.name, plan_.samples.count, channels, std::move(phases)}, Phase::forward);
  if (!copy.region.empty()) {
    plan_.copies.push_back(copy);
    emit({.kind = StepKind::copy,
          .unit = static_cast<int>(plan_.copies.size()) - 1,
          .touches = {state.staging.buffer, state.input.buffer}});
  }
}

void Compiler::await(std::size_t stage) {
  wait_exchange(stages_[stage].arrival, Phase::forward);
}

void Compiler::emit_convolution(std::size_t stage) {
  StageState& state = stages_[stage];
  const Tile& out = output_of(stage);
  const Window& window = state.stage.window;
  ConvolutionUnit unit{.name = state.stage.name, .desc = {}, .weight = parameter(*state.stage.node)};
  unit.desc = {.samples = plan_.samples.count,
               .in_channels = state.stage.in.channels,
               .out_channels = state.stage.out.channels,
               .in = state.input.box.extent(),
               .out = out.box.extent(),
               .kernel = window.kernel,
               .stride = window.stride,
               .pad_lo = {},
               .input_gradient = training() && state.input_gradient.buffer != state.input.buffer,
               .training = training()};
  for (int i = 0; i < 3; ++i) {
    unit.desc.pad_lo[i] = state.input.box.lo[i] - (out.box.lo[i] * window.stride[i] - window.padding[i]);
  }
  unit.x = state.input.buffer;
  unit.y = out.buffer;
  unit.dx = unit.desc.input_gradient ? state.input_gradient.buffer : no_buffer;
  state.unit = static_cast<int>(plan_.convolutions.size());
  plan_.convolutions.push_back(unit);
  if (idle()) return;
  emit({.kind = StepKind::convolution_forward,
        .unit = state.unit,
        .touches = {unit.x, unit.y},
        .flops = unit.desc.forward_flops(),
        .bytes = bytes_of(state.input, plan_.samples.count, unit.desc.in_channels) +
                 bytes_of(out, plan_.samples.count, unit.desc.out_channels)});
}

ChainUnit Compiler::make_chain_unit(std::size_t stage) {
  const StageState& state = stages_[stage];
  const Stage& layers = state.stage;
  const Tile& out = output_of(stage);
  ChainUnit unit{.name = layers.name, .desc = {}};
  ChainDesc& desc = unit.desc;
  desc.samples = plan_.samples.count;
  desc.channels = layers.in.channels;
  desc.in_extent = layers.in.extent;
  desc.in = state.input.box;
  desc.window = layers.window;
  desc.out_extent = layers.out.extent;
  desc.out = state.place.out.box(Site(state.place.out, options_.grid.spatial(), place_).part());
  desc.dst = out.box;
  desc.training = training();
  if (layers.activation)
    desc.negative_slope = std::get<LeakyRelu>(network_.node(*layers.activation).layer).negative_slope;
  if (layers.pool) desc.pool = std::get<Pool>(network_.node(*layers.pool).layer).kind;
  if (layers.dropout && training()) {
    desc.keep = std::get<Dropout>(network_.node(*layers.dropout).layer).keep;
    unit.dropout_index = static_cast<std::uint32_t>(layers.dropout->index);
  }
  if (layers.batch_norm) {
    const auto& norm = std::get<BatchNorm>(network_.node(*layers.batch_norm).layer);
    desc.normalise = true;
    unit.gamma = parameter(*layers.batch_norm);
    unit.epsilon = norm.epsilon;
    unit.decay = norm.decay;
  }
  desc.faces = state.faces.receives;
  desc.returned = state.faces.gives;
  unit.first_sample = plan_.samples.first;
  unit.contributes = state.contributes;
  const bool shared = options_.scope == StatisticsScope::global;
  unit.writes_gradient = shared ? plan_.rank == 0 : options_.grid.place(plan_.rank).place == Index{};
  const std::int64_t samples = shared ? plan_.batch : plan_.samples.count;
  unit.statistics_count = static_cast<double>(samples * layers.in.extent.volume());
  unit.statistics_travel = state.place.in.parts().volume() > 1 || (shared && options_.grid.data > 1);
  unit.y = state.input.buffer;
  unit.dst = out.buffer;
  unit.dout = output_gradient_of(stage).buffer;
  return unit;
}

void Compiler::emit_statistics(std::size_t stage, ChainUnit& unit) {
  const std::int64_t channels = unit.desc.channels;
  unit.statistics = buffer(unit.name + ".statistics", channels * 24);
  const int index = stages_[stage].unit;
  if (!training()) {
    if (!idle()) emit({.kind = StepKind::running_statistics, .unit = index, .touches = {unit.statistics}});
    return;
  }
  if (unit.contributes || (!unit.statistics_travel && !idle())) {
    emit({.kind = StepKind::chain_moments,
          .unit = index,
          .touches = {unit.y, unit.statistics},
          .bytes = bytes_of(stages_[stage].input, plan_.samples.count, channels)});
  }
  const int start = emit({.kind = StepKind::statistics_start,
                          .unit = index,
                          .touches = {unit.statistics},
                          .message_bytes = unit.statistics_travel ? 16 * channels : 0});
  emit({.kind = StepKind::statistics_wait, .unit = index, .start = start});
}

/// Buffers for the voxels around (or, `inside`, at the rim of) a box that travel for pooling's sake.
FaceTiles Compiler::face_tiles(const std::string& name, std::int64_t channels, const Neighbourhood& at, bool inside) {
  FaceTiles tiles;
  Box slab = at.own;
  for (int i = 0; i < 3; ++i) {
    for (const bool high : {false, true}) {
      const Halo& widths = inside ? at.gives : at.receives;
      const std::int64_t width = high ? widths.hi[i] : widths.lo[i];
      if (width == 0 || idle()) continue;
      Box face = slab;
      const bool below = high == inside;  // the face ends at the box's edge, else it begins there
      const std::int64_t edge = high ? at.own.hi[i] : at.own.lo[i];
      face.lo[i] = below ? edge - width : edge;
      face.hi[i] = below ? edge : edge + width;
      (high ? tiles.hi : tiles.lo)[static_cast<std::size_t>(i)] = tile(name, channels, face);
    }
    slab.lo[i] = at.wide.lo[i];
    slab.hi[i] = at.wide.hi[i];
  }
  return tiles;
}

/// Starts fetching neighbours' voxels that pooling reads, into face buffers of their own.
int Compiler::start_faces(std::size_t stage, ChainUnit& unit) {
  const StageState& state = stages_[stage];
  if (!state.faces.anyone || idle()) return -1;
  unit.faces = face_tiles(unit.name + ".face", unit.desc.channels, state.faces, false);
  std::vector<Tile> tiles = unit.faces.present();
  tiles.push_back(state.input);
  return start_exchange(
      {unit.name + " faces", plan_.samples.count, unit.desc.channels, fill_phases(state.faces, tiles)}, Phase::forward);
}

void Compiler::emit_chain_part(std::size_t stage, const ChainUnit& unit, std::size_t part) {
  if (idle()) return;
  Step step{.kind = StepKind::chain_forward, .unit = stages_[stage].unit, .part = static_cast<int>(part)};
  step.touches = {unit.y, unit.dst};
  if (unit.statistics >= 0) step.touches.push_back(unit.statistics);
  if (unit.argmax >= 0) step.touches.push_back(unit.argmax);
  for (const Tile& face : unit.faces.present()) step.touches.push_back(face.buffer);
  const std::int64_t written = plan_.samples.count * unit.desc.channels * unit.forward_parts[part].volume();
  step.bytes = 4.0 * static_cast<double>(written * (1 + unit.desc.window.stride.volume()));
  emit(std::move(step));
}

void Compiler::emit_chain(std::size_t stage) {
  StageState& state = stages_[stage];
  state.unit = static_cast<int>(plan_.chains.size());
  ChainUnit unit = make_chain_unit(stage);
  const int faces = start_faces(stage, unit);
  if (unit.desc.normalise) emit_statistics(stage, unit);
  if (unit.desc.pool == PoolKind::max && training()) {
    unit.argmax = buffer(unit.name + ".argmax", plan_.samples.count * unit.desc.channels * unit.desc.out.volume());
  }
  wait_exchange(faces, Phase::forward);

  // The shell that neighbours wait for first, so that it travels while the interior is computed.
  ShellSplit split{{}, unit.desc.out};
  const bool margins_follow = stage + 1 < stages_.size() && !stages_[stage + 1].place.reshard_from;
  if (margins_follow) split = split_shell(unit.desc.out, stages_[stage + 1].margins.gives);
  unit.forward_parts = split.shell;
  if (!split.interior.empty()) unit.forward_parts.push_back(split.interior);
  for (std::size_t part = 0; part < split.shell.size(); ++part) emit_chain_part(stage, unit, part);
  if (margins_follow) send_to(stage + 1);
  if (!split.interior.empty()) emit_chain_part(stage, unit, split.shell.size());
  if (!margins_follow && stage + 1 < stages_.size()) send_to(stage + 1);
  plan_.chains.push_back(std::move(unit));
}

void Compiler::emit_dense(std::size_t stage) {
  StageState& state = stages_[stage];
  DenseUnit unit{.name = state.stage.name,
                 .desc = {plan_.samples.count, state.stage.in.channels, state.stage.out.channels, training()},
                 .weight = parameter(*state.stage.node),
                 .x = state.input.buffer,
                 .y = output_of(stage).buffer,
                 .dx = no_buffer};
  if (training() && state.input_gradient.buffer != state.input.buffer) unit.dx = state.input_gradient.buffer;
  state.unit = static_cast<int>(plan_.denses.size());
  plan_.denses.push_back(unit);
  if (idle()) return;
  const double weights = static_cast<double>(unit.desc.in_features * unit.desc.out_features);
  emit({.kind = StepKind::dense_forward,
        .unit = state.unit,
        .touches = {unit.x, unit.y},
        .flops = 2 * weights * static_cast<double>(unit.desc.samples),
        .bytes = 4 * weights});
}

void Compiler::emit_flatten(std::size_t stage) {
  StageState& state = stages_[stage];
  FlattenUnit unit{.name = state.stage.name,
                   .shape = {plan_.samples.count, state.stage.in.channels, state.stage.in.extent},
                   .x = state.input.buffer,
                   .y = output_of(stage).buffer,
                   .dy = output_gradient_of(stage).buffer};
  state.unit = static_cast<int>(plan_.flattens.size());
  plan_.flattens.push_back(unit);
  if (!idle()) emit({.kind = StepKind::flatten_forward, .unit = state.unit, .touches = {unit.x, unit.y}});
}

void Compiler::emit_loss(std::size_t stage) {
  StageState& state = stages_[stage];
  if (options_.mode == Mode::predict) return;
  const std::int64_t elements = plan_.samples.count * state.stage.in.channels * state.input.box.volume();
  LossUnit unit{.name = state.stage.name,
                .prediction = state.input.buffer,
                .target = buffer("target", 4 * elements),
                .elements = elements,
                .global_elements = static_cast<double>(plan_.batch * state.stage.in.elements()),
                .contributes = state.contributes};
  pinned_.push_back(unit.target);
  state.unit = static_cast<int>(plan_.losses.size());
  plan_.losses.push_back(unit);
  if (!idle()) emit({.kind = StepKind::loss, .unit = state.unit, .touches = {unit.prediction, unit.target}});
  const int start = emit({.kind = StepKind::loss_sum_start, .unit = state.unit, .message_bytes = 8});
  if (!training()) emit({.kind = StepKind::loss_sum_wait, .unit = state.unit, .start = start});
}

}  // namespace halograd
