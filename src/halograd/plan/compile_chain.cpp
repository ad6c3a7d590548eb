#include "halograd/plan/compiler_state.hpp"

namespace halograd {

ChainUnit Compiler::make_chain_unit(std::size_t stage) {
  const StageState& at = stages_[stage];
  const Stage& layers = at.stage();
  const Tensor& in = input_of(stage);
  const Tensor& out = output_of(stage);
  ChainUnit unit{.name = layers.name, .desc = {}};
  ChainDesc& desc = unit.desc;
  desc.type = in.type;
  desc.samples = plan_.samples.count;
  desc.channels = layers.in.channels;
  desc.in_extent = layers.in.extent;
  desc.in = own_box(at.placed.in);
  desc.src = in.home.layout();
  desc.window = layers.window;
  desc.out_extent = layers.out.extent;
  desc.out = own_box(at.placed.out);
  desc.dst = out.home.layout();
  desc.training = training();
  if (layers.activation)
    desc.negative_slope = std::get<LeakyRelu>(network_.node(*layers.activation).layer).negative_slope;
  if (layers.pool) desc.pool = std::get<Pool>(network_.node(*layers.pool).layer).kind;
  if (layers.dropout && training()) {
    desc.keep = std::get<Dropout>(network_.node(*layers.dropout).layer).keep;
    unit.dropout_index = static_cast<std::uint32_t>(layers.dropout->index);
  }
  desc.faces = at.faces.receives;
  desc.returned = at.faces.gives;
  desc.accumulate = in.adds(static_cast<StageId>(stage));
  unit.first_sample = plan_.samples.first;
  unit.contributes = at.contributes;
  unit.y = in.home;
  unit.dst = out.home;
  unit.dout = out.gradient;
  unit.dy = in.gradient;
  if (layers.norm) add_norm(stage, unit);
  return unit;
}

void Compiler::add_norm(std::size_t stage, ChainUnit& unit) {
  const StageState& at = stages_[stage];
  const Stage& layers = at.stage();
  const Layer& layer = network_.node(*layers.norm).layer;
  unit.desc.normalise = true;
  unit.gamma = parameter(*layers.norm);
  const bool split = at.placed.in.parts().volume() > 1;
  const double voxels = static_cast<double>(layers.in.extent.volume());
  if (const auto* group = std::get_if<GroupNorm>(&layer)) {
    unit.desc.per_sample = true;
    unit.group_channels = group->groups == 0 ? 1 : layers.in.channels / group->groups;
    unit.epsilon = group->epsilon;
    unit.statistics_world = false;
    unit.statistics_count = voxels * static_cast<double>(unit.group_channels);
    unit.statistics_travel = split;
  } else {
    const auto& batch = std::get<BatchNorm>(layer);
    unit.epsilon = batch.epsilon;
    unit.decay = batch.decay;
    unit.statistics_world = options_.scope == StatisticsScope::global;
    const std::int64_t samples = unit.statistics_world ? plan_.batch : plan_.samples.count;
    unit.statistics_count = voxels * static_cast<double>(samples);
    unit.statistics_travel = split || (unit.statistics_world && options_.grid.data > 1);
  }
  unit.writes_gradient = unit.statistics_world ? plan_.rank == 0 : options_.grid.place(plan_.rank).place == Index{};
}

void Compiler::emit_statistics(std::size_t stage, ChainUnit& unit) {
  const std::int64_t values = unit.statistics_sets() * unit.desc.channels;
  unit.statistics = buffer(unit.name + ".statistics", StatisticsBuffer{values}.bytes());
  const int index = stages_[stage].unit;
  if (!training() && !unit.desc.per_sample) {
    if (!idle()) emit({.kind = StepKind::running_statistics, .unit = index, .touches = {unit.statistics}});
    return;
  }
  if (unit.contributes || (!unit.statistics_travel && !idle())) {
    emit({.kind = StepKind::chain_moments,
          .unit = index,
          .touches = {unit.y.buffer, unit.statistics},
          .bytes = static_cast<double>(dtype_size(unit.desc.type) * plan_.samples.count * unit.desc.channels *
                                       unit.desc.in.volume())});
  }
  const int start = emit({.kind = StepKind::statistics_start,
                          .unit = index,
                          .touches = {unit.statistics},
                          .message_bytes = unit.statistics_travel ? 16 * values : 0});
  emit({.kind = StepKind::statistics_wait, .unit = index, .start = start});
}

/// Buffers for the voxels around (or, `inside`, at the rim of) a box that travel for pooling's sake.
FaceTiles Compiler::face_tiles(const std::string& name, const ChainDesc& desc, const Neighbourhood& at, bool inside) {
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
      (high ? tiles.hi : tiles.lo)[static_cast<std::size_t>(i)] = tile(name, desc.type, desc.channels, face);
    }
    slab.lo[i] = at.wide.lo[i];
    slab.hi[i] = at.wide.hi[i];
  }
  return tiles;
}

/// Starts fetching neighbours' voxels that pooling reads, into face buffers of their own.
int Compiler::start_faces(std::size_t stage, ChainUnit& unit) {
  const StageState& at = stages_[stage];
  if (!at.faces.anyone || idle()) return -1;
  unit.faces = face_tiles(unit.name + ".face", unit.desc, at.faces, false);
  return start_exchange({unit.name + " faces", plan_.samples.count, unit.desc.channels,
                         fill_phases(at.faces, unit.y, &unit.faces), unit.desc.type},
                        Phase::forward);
}

void Compiler::emit_chain_part(std::size_t stage, const ChainUnit& unit, std::size_t part) {
  if (idle()) return;
  Step step{.kind = StepKind::chain_forward, .unit = stages_[stage].unit, .part = static_cast<int>(part)};
  step.touches = {unit.y.buffer, unit.dst.buffer};
  if (unit.statistics >= 0) step.touches.push_back(unit.statistics);
  if (unit.argmax >= 0) step.touches.push_back(unit.argmax);
  for (const Tile& face : unit.faces.present()) step.touches.push_back(face.buffer);
  const auto written =
      static_cast<double>(plan_.samples.count * unit.desc.channels * unit.forward_parts[part].volume());
  step.bytes = static_cast<double>(dtype_size(unit.desc.type)) * written *
               (1 + static_cast<double>(unit.desc.in.volume()) / static_cast<double>(unit.desc.out.volume()));
  emit(std::move(step));
}

void Compiler::emit_chain(std::size_t stage) {
  StageState& at = stages_[stage];
  at.unit = static_cast<int>(plan_.chains.size());
  ChainUnit unit = make_chain_unit(stage);
  const int faces = start_faces(stage, unit);
  if (unit.desc.normalise) emit_statistics(stage, unit);
  if (unit.desc.pool == PoolKind::max && training()) {
    unit.argmax = buffer(unit.name + ".argmax", plan_.samples.count * unit.desc.channels * unit.desc.out.volume());
  }
  wait_exchange(faces, Phase::forward);

  // The shell that neighbours wait for first, so that it travels while the interior is computed.
  const std::optional<StageId> taker = output_of(stage).taker;
  ShellSplit split{{}, unit.desc.out};
  if (taker) split = split_shell(unit.desc.out, state(*taker).margins.gives);
  unit.forward_parts = split.shell;
  if (!split.interior.empty()) unit.forward_parts.push_back(split.interior);
  for (std::size_t part = 0; part < split.shell.size(); ++part) emit_chain_part(stage, unit, part);
  publish(static_cast<StageId>(stage));
  if (!split.interior.empty()) {
    emit_chain_part(stage, unit, split.shell.size());
    output_of(stage).covered = true;
  }
  plan_.chains.push_back(std::move(unit));
}

}  // namespace halograd
