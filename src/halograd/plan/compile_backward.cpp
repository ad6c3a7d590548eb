#include "halograd/plan/compiler_state.hpp"

#include "halograd/core/error.hpp"

namespace halograd {
namespace {

void add_tiles(std::vector<BufferId>& touches, const FaceTiles& tiles) {
  for (std::size_t i = 0; i < 3; ++i) {
    if (tiles.lo[i].buffer >= 0) touches.push_back(tiles.lo[i].buffer);
    if (tiles.hi[i].buffer >= 0) touches.push_back(tiles.hi[i].buffer);
  }
}

}  // namespace

void Compiler::emit_backward() {
  if (stages_.back().stage.kind != StageKind::loss) {
    throw UsageError("training needs a loss: end the network with one");
  }
  for (std::size_t i = stages_.size(); i-- > 0;) {
    switch (stages_[i].stage.kind) {
      case StageKind::convolution: backward_convolution(i); break;
      case StageKind::chain: backward_chain(i); break;
      case StageKind::flatten: backward_flatten(i); break;
      case StageKind::dense: backward_dense(i); break;
      case StageKind::loss: break;  // the loss step has left its gradient over the prediction
    }
    if (i > 0 || options_.input_gradient) backward_reshard(i);
    finish_parameters(i);
  }
  close_bucket();
}

void Compiler::backward_convolution(std::size_t stage) {
  const StageState& state = stages_[stage];
  if (idle()) return;
  const ConvolutionUnit& unit = plan_.convolutions[static_cast<std::size_t>(state.unit)];
  const double flops = unit.desc.forward_flops();
  int home = -1;
  if (unit.dx >= 0) {
    emit({.kind = StepKind::convolution_backward_data,
          .unit = state.unit,
          .phase = Phase::backward,
          .touches = {unit.y, unit.dx},
          .flops = flops});
    if (state.margins.anyone) {
      home = start_exchange({unit.name + " gradient return", plan_.samples.count, state.stage.in.channels,
                             return_phases(state.margins, {state.input_gradient})},
                            Phase::backward);
    }
  }
  if (state.contributes) {
    emit({.kind = StepKind::convolution_backward_weights,
          .unit = state.unit,
          .phase = Phase::backward,
          .touches = {unit.x, unit.y},
          .flops = flops});
  }
  wait_exchange(home, Phase::backward);
}

void Compiler::backward_chain(std::size_t stage) {
  const StageState& state = stages_[stage];
  ChainUnit& unit = plan_.chains[static_cast<std::size_t>(state.unit)];
  const std::int64_t samples = plan_.samples.count;
  const std::int64_t channels = unit.desc.channels;
  const double bytes = 4.0 * static_cast<double>(samples * channels * unit.desc.in.volume());
  std::vector<BufferId> touches{unit.y, unit.dout};
  if (unit.argmax >= 0) touches.push_back(unit.argmax);

  // What own outputs give to neighbours' voxels flies while the sums over the interior are taken.
  int faces = -1;
  if (unit.faces_travel && !idle()) {
    const Halo& reads = unit.desc.faces;
    const Halo& read = unit.desc.returned;
    std::vector<Tile> sources;
    Neighbourhood around;
    around.own = around.wide = unit.desc.in;
    around.receives = reads;
    around.gives = read;
    around.parts = state.place.in.parts();
    for (int i = 0; i < 3; ++i) {
      const auto index = static_cast<std::size_t>(i);
      around.wide.lo[i] -= reads.lo[i];
      around.wide.hi[i] += reads.hi[i];
      around.lo_rank[index] = state.in_site.neighbour(i, -1);
      around.hi_rank[index] = state.in_site.neighbour(i, +1);
      for (const bool high : {false, true}) {
        const Tile& face = high ? unit.faces.hi[index] : unit.faces.lo[index];
        Tile& dface = high ? unit.dfaces.hi[index] : unit.dfaces.lo[index];
        if (face.buffer >= 0) dface = tile(unit.name + ".dface", channels, face.box);
        sources.push_back(dface);
      }
      Box home = unit.desc.in;
      for (int j = 0; j < i; ++j) {
        home.lo[j] -= reads.lo[j];
        home.hi[j] += reads.hi[j];
      }
      if (read.lo[i] > 0) {
        Box slab = home;
        slab.hi[i] = slab.lo[i] + read.lo[i];
        unit.received.lo[index] = tile(unit.name + ".received", channels, slab);
      }
      if (read.hi[i] > 0) {
        Box slab = home;
        slab.lo[i] = slab.hi[i] - read.hi[i];
        unit.received.hi[index] = tile(unit.name + ".received", channels, slab);
      }
    }
    if (!reads.empty()) {
      Step step{.kind = StepKind::chain_backward_faces, .unit = state.unit, .phase = Phase::backward};
      step.touches = {unit.dout};
      if (unit.argmax >= 0) step.touches.push_back(unit.argmax);
      add_tiles(step.touches, unit.dfaces);
      emit(std::move(step));
    }
    faces =
        start_exchange({unit.name + " faces return", samples, channels, return_phases(around, sources, &unit.received)},
                       Phase::backward);
  }
  if (unit.desc.normalise) {
    touches.push_back(unit.statistics);
    const ShellSplit split = split_shell(unit.desc.in, unit.desc.returned);
    if (!split.interior.empty()) unit.sum_parts.push_back(split.interior);
    const std::size_t interior = unit.sum_parts.size();
    unit.sum_parts.insert(unit.sum_parts.end(), split.shell.begin(), split.shell.end());
    const bool counts = unit.contributes || (!unit.statistics_travel && !idle());
    const auto sums = [&](std::size_t part) {
      if (!counts) return;
      Step step{.kind = StepKind::chain_backward_sums,
                .unit = state.unit,
                .part = static_cast<int>(part),
                .phase = Phase::backward,
                .touches = touches,
                .bytes = 4.0 * static_cast<double>(samples * channels * unit.sum_parts[part].volume())};
      if (part >= interior) add_tiles(step.touches, unit.received);
      emit(std::move(step));
    };
    for (std::size_t part = 0; part < interior; ++part) sums(part);
    wait_exchange(faces, Phase::backward);
    for (std::size_t part = interior; part < unit.sum_parts.size(); ++part) sums(part);
    const int start = emit({.kind = StepKind::sums_start,
                            .unit = state.unit,
                            .phase = Phase::backward,
                            .touches = {unit.statistics},
                            .message_bytes = unit.statistics_travel ? 16 * channels : 0});
    emit({.kind = StepKind::sums_wait, .unit = state.unit, .phase = Phase::backward, .start = start});
  } else {
    wait_exchange(faces, Phase::backward);
  }
  const bool wanted = stage > 0 || options_.input_gradient;
  if (idle() || !wanted) return;
  add_tiles(touches, unit.received);
  emit({.kind = StepKind::chain_backward_data,
        .unit = state.unit,
        .phase = Phase::backward,
        .touches = std::move(touches),
        .bytes = 2 * bytes});
}

void Compiler::backward_dense(std::size_t stage) {
  const StageState& state = stages_[stage];
  if (idle()) return;
  const DenseUnit& unit = plan_.denses[static_cast<std::size_t>(state.unit)];
  const double weights = static_cast<double>(unit.desc.in_features * unit.desc.out_features);
  const double flops = 2 * weights * static_cast<double>(unit.desc.samples);
  if (unit.dx >= 0) {
    emit({.kind = StepKind::dense_backward_data,
          .unit = state.unit,
          .phase = Phase::backward,
          .touches = {unit.y, unit.dx},
          .flops = flops,
          .bytes = 4 * weights});
  }
  if (state.contributes) {
    emit({.kind = StepKind::dense_backward_weights,
          .unit = state.unit,
          .phase = Phase::backward,
          .touches = {unit.x, unit.y},
          .flops = flops,
          .bytes = 4 * weights});
  }
}

void Compiler::backward_flatten(std::size_t stage) {
  if (idle()) return;
  const FlattenUnit& unit = plan_.flattens[static_cast<std::size_t>(stages_[stage].unit)];
  emit({.kind = StepKind::flatten_backward,
        .unit = stages_[stage].unit,
        .phase = Phase::backward,
        .touches = {unit.x, unit.dy}});
}

void Compiler::backward_reshard(std::size_t stage) {
  const StageState& state = stages_[stage];
  if (!state.place.reshard_from || idle()) return;
  // Every rank that holds the coarser part has the whole of its gradient: own voxels are at hand, but for those that a
  // strided window skipped, whose gradient is zero.
  const Box region = state.staging.box.intersect(state.input_gradient.box);
  plan_.copies.push_back({state.stage.name + " reshard back", plan_.samples.count, state.stage.in.channels,
                          state.input_gradient, state.staging, region, region != state.staging.box});
  emit({.kind = StepKind::copy,
        .unit = static_cast<int>(plan_.copies.size()) - 1,
        .phase = Phase::backward,
        .touches = {state.input_gradient.buffer, state.staging.buffer}});
}

void Compiler::finish_parameters(std::size_t stage) {
  const StageState& state = stages_[stage];
  const bool shared = options_.grid.size() > 1;
  std::int64_t count = 0;
  for (const auto& node : {state.stage.node, state.stage.batch_norm}) {
    if (!node) continue;
    const int first = parameter(*node);
    for (std::size_t i = 0; first >= 0 && static_cast<std::size_t>(first) + i < plan_.parameters.size(); ++i) {
      const ParameterPlan& entry = plan_.parameters[static_cast<std::size_t>(first) + i];
      if (entry.spec.layer != network_.node(*node).name) break;
      if (entry.spec.trainable) count += entry.spec.elements();
    }
  }
  if (count == 0) return;
  const Extent parts = state.place.in.parts();
  if (open_bucket_.count > 0 && parts != open_bucket_parts_) close_bucket();
  if (open_bucket_.count == 0) {
    open_bucket_.contributes = state.contributes;
    open_bucket_parts_ = parts;
  }
  open_bucket_.count += count;
  if (shared && 4 * open_bucket_.count >= options_.bucket_bytes) close_bucket();
}

void Compiler::close_bucket() {
  if (open_bucket_.count == 0) return;
  const int unit = static_cast<int>(plan_.buckets.size());
  plan_.buckets.push_back(open_bucket_);
  bucket_starts_.push_back(-1);
  if (options_.grid.size() > 1) {
    bucket_starts_.back() = emit({.kind = StepKind::bucket_start,
                                  .unit = unit,
                                  .phase = Phase::backward,
                                  .message_bytes = 4 * open_bucket_.count});
  }
  open_bucket_ = {.offset = open_bucket_.offset + open_bucket_.count, .count = 0};
}

void Compiler::emit_updates() {
  for (std::size_t i = 0; i < plan_.buckets.size(); ++i) {
    const int unit = static_cast<int>(i);
    if (bucket_starts_[i] >= 0) {
      emit({.kind = StepKind::bucket_wait, .unit = unit, .phase = Phase::update, .start = bucket_starts_[i]});
    }
    emit({.kind = StepKind::update,
          .unit = unit,
          .phase = Phase::update,
          .bytes = 28.0 * static_cast<double>(plan_.buckets[i].count)});
  }
  for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
    if (plan_.steps[i].kind != StepKind::loss_sum_start) continue;
    emit({.kind = StepKind::loss_sum_wait,
          .unit = plan_.steps[i].unit,
          .phase = Phase::update,
          .start = static_cast<int>(i)});
  }
}

}  // namespace halograd
