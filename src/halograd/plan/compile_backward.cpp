#include "halograd/plan/compiler_state.hpp"

#include "halograd/core/error.hpp"

namespace halograd {
namespace {

/// Of `values` of y (read, and with `passes` 2 written), and their share of the output's gradient.
double chain_bytes(const ChainDesc& desc, std::int64_t values, int passes) {
  const double outputs =
      desc.in.empty() ? 0 : static_cast<double>(desc.out.volume()) / static_cast<double>(desc.in.volume());
  return static_cast<double>(dtype_size(desc.type) * values) * (passes + outputs);
}

void add_tiles(std::vector<BufferId>& touches, const FaceTiles& tiles) {
  for (const Tile& tile : tiles.present()) touches.push_back(tile.buffer);
}

}  // namespace

void Compiler::emit_backward() {
  if (stages_.back().stage().kind != StageKind::loss) {
    throw UsageError("training needs a loss: end the network with one");
  }
  for (std::size_t i = stages_.size(); i-- > 0;) {
    if (!output_of(i).wants_gradient) continue;
    switch (stages_[i].stage().kind) {
      case StageKind::convolution: backward_convolution(i); break;
      case StageKind::chain: backward_chain(i); break;
      case StageKind::upsample: backward_upsample(i); break;
      case StageKind::concatenation: break;  // its inputs' gradients stand side by side
      case StageKind::sum: backward_sum(i); break;
      case StageKind::copy: backward_copy(i); break;
      case StageKind::flatten: backward_flatten(i); break;
      case StageKind::dense: backward_dense(i); break;
      case StageKind::loss: break;  // the loss step has left its gradient over the prediction
    }
    finish_parameters(i);
  }
  close_bucket();
}

/// What backward wrote into the margins of an input's gradient belongs to neighbours: sends it home.
int Compiler::return_margins(std::size_t stage) {
  const StageState& at = stages_[stage];
  if (!at.margins.anyone) return -1;
  return start_exchange({at.stage().name + " gradient return", plan_.samples.count, at.stage().in.channels,
                         return_phases(at.margins, {at.input_gradient}), at.input_gradient.type},
                        Phase::backward);
}

void Compiler::backward_convolution(std::size_t stage) {
  const StageState& at = stages_[stage];
  if (idle()) return;
  const ConvolutionUnit& unit = plan_.convolutions[static_cast<std::size_t>(at.unit)];
  int home = -1;
  if (unit.dx.buffer >= 0) {
    emit({.kind = StepKind::convolution_backward_data,
          .unit = at.unit,
          .phase = Phase::backward,
          .touches = {unit.dy.buffer, unit.dx.buffer},
          .flops = unit.forward_flops,
          .bytes = unit.bytes});
    home = return_margins(stage);
  }
  if (at.contributes) {
    emit({.kind = StepKind::convolution_backward_weights,
          .unit = at.unit,
          .phase = Phase::backward,
          .touches = {unit.x.buffer, unit.dy.buffer},
          .flops = unit.forward_flops,
          .bytes = unit.bytes});
  }
  wait_exchange(home, Phase::backward);
}

void Compiler::backward_upsample(std::size_t stage) {
  const StageState& at = stages_[stage];
  const UpsampleUnit& unit = plan_.upsamples[static_cast<std::size_t>(at.unit)];
  if (idle() || unit.dx < 0) return;
  emit({.kind = StepKind::upsample_backward,
        .unit = at.unit,
        .phase = Phase::backward,
        .touches = {unit.dy.buffer, unit.dx},
        .bytes = static_cast<double>(dtype_size(unit.desc.type) * unit.desc.samples * unit.desc.channels *
                                     (unit.desc.src.box.volume() + unit.desc.out.volume()))});
  wait_exchange(return_margins(stage), Phase::backward);
}

/// Each of the tensors added gets the sum's gradient; of one added twice, the last reader comes first.
void Compiler::backward_sum(std::size_t stage) {
  const Stage& layer = stages_[stage].stage();
  const Tile& gradient = output_of(stage).gradient;
  for (std::size_t slot = layer.inputs.size(); slot-- > 0;) {
    const Tensor& summand = input_of(stage, slot);
    if (!summand.wants_gradient) continue;
    const bool add = summand.adds(static_cast<StageId>(stage), slot);
    const Box own = own_box(summand.partition).intersect(summand.gradient.box);
    const Box region = own.intersect(gradient.box);
    copy_region(layer.name + " gradient", layer.out.channels, gradient, summand.gradient, region, add,
                !add && region != own, Phase::backward);
  }
}

/// The gradient goes back as the tensor came. Voxels that a strided window behind the copy skips have none.
void Compiler::backward_copy(std::size_t stage) {
  const StageState& at = stages_[stage];
  const Tensor& source = input_of(stage);
  const Tensor& out = output_of(stage);
  const std::string name = at.stage().name + " back";
  const bool add = source.adds(static_cast<StageId>(stage));
  const Box own = own_box(source.partition);
  const auto held = [&](const Index& part) {
    const Box box = at.placed.out.box(part);
    return out.taker ? box.intersect(needed_by(state(*out.taker).placed, part)) : box;
  };
  if (idle()) return;
  Box local;
  auto phases =
      reshard_phases({at.placed.out, at.placed.in, held, [&](const Index& part) { return at.placed.in.box(part); }},
                     options_.grid.spatial(), place_, out.gradient, source.gradient, add, &local);
  // First the copy: it may clear what the exchange then fills.
  copy_region(name, source.shape.channels, out.gradient, source.gradient, local, add, !add && local != own,
              Phase::backward);
  if (at.placed.in == at.placed.out) return;
  const int start = start_exchange({name, plan_.samples.count, source.shape.channels, std::move(phases), source.type},
                                   Phase::backward);
  wait_exchange(start, Phase::backward);
}

/// Starts sending what own outputs give to neighbours' voxels; it flies while the sums over the interior are taken.
int Compiler::return_faces(std::size_t stage, ChainUnit& unit) {
  const StageState& at = stages_[stage];
  if (!at.faces.anyone || idle()) return -1;
  unit.dfaces = face_tiles(unit.name + ".dface", unit.desc, at.faces, false);
  unit.received = face_tiles(unit.name + ".received", unit.desc, at.faces, true);
  if (!unit.desc.faces.empty()) {
    Step step{.kind = StepKind::chain_backward_faces, .unit = at.unit, .phase = Phase::backward};
    step.touches = {unit.dout.buffer};
    if (unit.argmax >= 0) step.touches.push_back(unit.argmax);
    add_tiles(step.touches, unit.dfaces);
    for (const Tile& face : unit.dfaces.present()) {
      step.bytes += static_cast<double>(2 * dtype_size(unit.desc.type) * plan_.samples.count * unit.desc.channels *
                                        face.box.volume());
    }
    emit(std::move(step));
  }
  return start_exchange({unit.name + " faces return", plan_.samples.count, unit.desc.channels,
                         return_phases(at.faces, unit.dfaces.present(), &unit.received), unit.desc.type},
                        Phase::backward);
}

/// The sums over what shares the statistics: the interior's while the faces fly, then the rest, then over ranks.
void Compiler::emit_sums(std::size_t stage, ChainUnit& unit, int faces_return) {
  const int index = stages_[stage].unit;
  const ShellSplit split = split_shell(unit.desc.in, unit.desc.returned);
  if (!split.interior.empty()) unit.sum_parts.push_back(split.interior);
  const std::size_t interior = unit.sum_parts.size();
  unit.sum_parts.insert(unit.sum_parts.end(), split.shell.begin(), split.shell.end());
  const bool counts = unit.contributes || (!unit.statistics_travel && !idle());
  for (std::size_t part = 0; part < unit.sum_parts.size(); ++part) {
    if (part == interior) wait_exchange(faces_return, Phase::backward);
    if (!counts) continue;
    const std::int64_t values = plan_.samples.count * unit.desc.channels * unit.sum_parts[part].volume();
    Step step{.kind = StepKind::chain_backward_sums,
              .unit = index,
              .part = static_cast<int>(part),
              .phase = Phase::backward,
              .touches = {unit.y.buffer, unit.dout.buffer, unit.statistics},
              .bytes = chain_bytes(unit.desc, values, 1)};
    if (unit.argmax >= 0) step.touches.push_back(unit.argmax);
    if (part >= interior) add_tiles(step.touches, unit.received);
    emit(std::move(step));
  }
  if (interior == unit.sum_parts.size()) wait_exchange(faces_return, Phase::backward);
  const int start =
      emit({.kind = StepKind::sums_start,
            .unit = index,
            .phase = Phase::backward,
            .touches = {unit.statistics},
            .message_bytes = unit.statistics_travel ? 16 * unit.statistics_sets() * unit.desc.channels : 0});
  emit({.kind = StepKind::sums_wait, .unit = index, .phase = Phase::backward, .start = start});
}

void Compiler::backward_chain(std::size_t stage) {
  ChainUnit& unit = plan_.chains[static_cast<std::size_t>(stages_[stage].unit)];
  const int faces_return = return_faces(stage, unit);
  if (unit.desc.normalise) {
    emit_sums(stage, unit, faces_return);
  } else {
    wait_exchange(faces_return, Phase::backward);
  }
  if (idle() || unit.dy.buffer < 0) return;
  const std::int64_t values = plan_.samples.count * unit.desc.channels * unit.desc.in.volume();
  Step step{.kind = StepKind::chain_backward_data,
            .unit = stages_[stage].unit,
            .phase = Phase::backward,
            .touches = {unit.dy.buffer, unit.dout.buffer},
            .bytes = chain_bytes(unit.desc, values, 2)};
  if (unit.desc.normalise || unit.desc.negative_slope != 1) step.touches.push_back(unit.y.buffer);
  if (unit.desc.normalise) step.touches.push_back(unit.statistics);
  if (unit.argmax >= 0) step.touches.push_back(unit.argmax);
  add_tiles(step.touches, unit.received);
  emit(std::move(step));
}

void Compiler::backward_dense(std::size_t stage) {
  const StageState& at = stages_[stage];
  if (idle()) return;
  const DenseUnit& unit = plan_.denses[static_cast<std::size_t>(at.unit)];
  const double weights = static_cast<double>(unit.desc.in_features * unit.desc.out_features);
  const double flops = 2 * weights * static_cast<double>(unit.desc.samples);
  if (unit.dx >= 0) {
    emit({.kind = StepKind::dense_backward_data,
          .unit = at.unit,
          .phase = Phase::backward,
          .touches = {unit.dy, unit.dx},
          .flops = flops,
          .bytes = 4 * weights});
  }
  if (at.contributes) {
    emit({.kind = StepKind::dense_backward_weights,
          .unit = at.unit,
          .phase = Phase::backward,
          .touches = {unit.x, unit.dy},
          .flops = flops,
          .bytes = 4 * weights});
  }
}

void Compiler::backward_flatten(std::size_t stage) {
  if (idle() || !input_of(stage).wants_gradient) return;
  const FlattenUnit& unit = plan_.flattens[static_cast<std::size_t>(stages_[stage].unit)];
  emit({.kind = StepKind::flatten_backward,
        .unit = stages_[stage].unit,
        .phase = Phase::backward,
        .touches = {unit.x, unit.dy},
        .bytes = static_cast<double>((4 + dtype_size(unit.type)) * unit.shape.elements())});
}

void Compiler::finish_parameters(std::size_t stage) {
  const StageState& at = stages_[stage];
  const bool shared = options_.grid.size() > 1;
  std::int64_t count = 0;
  for (const auto& node : {at.stage().node, at.stage().norm}) {
    if (!node) continue;
    const int first = parameter(*node);
    for (std::size_t i = 0; first >= 0 && static_cast<std::size_t>(first) + i < plan_.parameters.size(); ++i) {
      const ParameterPlan& entry = plan_.parameters[static_cast<std::size_t>(first) + i];
      if (entry.spec.layer != network_.node(*node).name) break;
      if (entry.spec.trainable) count += entry.spec.elements();
    }
  }
  if (count == 0) return;
  const Extent parts = at.placed.in.parts();
  if (open_bucket_.count > 0 && parts != open_bucket_parts_) close_bucket();
  if (open_bucket_.count == 0) {
    open_bucket_.contributes = at.contributes;
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
