#include "halograd/plan/compiler_state.hpp"
#include "halograd/plan/convolution_parts.hpp"

namespace halograd {
namespace {

double bytes_of(const Tile& tile, std::int64_t samples, std::int64_t channels) {
  return static_cast<double>(dtype_size(tile.type) * samples * channels * tile.box.volume());
}

}  // namespace

void Compiler::emit_forward() {
  emit_input();
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    if (stages_[i].stage().kind != StageKind::convolution) await(i);  // those may begin with what is there
    switch (stages_[i].stage().kind) {
      case StageKind::convolution: emit_convolution(i); break;
      case StageKind::chain: emit_chain(i); break;
      case StageKind::upsample: emit_upsample(i); break;
      case StageKind::concatenation: break;  // its inputs were written side by side
      case StageKind::sum: emit_sum(i); break;
      case StageKind::copy: emit_copy(i); break;
      case StageKind::flatten: emit_flatten(i); break;
      case StageKind::dense: emit_dense(i); break;
      case StageKind::loss: emit_loss(i); break;
    }
  }
}

void Compiler::emit_input() {
  if (!idle()) {
    const std::int64_t numbers = plan_.samples.count * plan_.input.shape.channels * plan_.input.own.volume();
    emit({.kind = StepKind::load_input,
          .touches = {plan_.input.tile.buffer},
          .bytes = static_cast<double>((2 + dtype_size(plan_.input.tile.type)) * numbers)});  // of 16 bits each
  }
  publish(network_input);
}

void Compiler::publish(StageId id) {
  Tensor& at = tensor(id);
  if (idle() || !at.taker) return;
  const StageState& taker = state(*at.taker);
  if (!taker.margins.anyone) return;
  const bool alone = at.shape.channels == taker.stage().in.channels;
  const std::string name = taker.stage().name + " halo" + (alone ? "" : " of " + at.name);
  at.arrival = start_exchange(
      {name, plan_.samples.count, at.shape.channels, fill_phases(taker.margins, at.home), at.type}, Phase::forward);
}

/// The tensor itself, or those that lie side by side in it.
std::vector<StageId> Compiler::tensors_in(StageId id) const {
  if (id == network_input || state(id).stage().kind != StageKind::concatenation) return {id};
  std::vector<StageId> all;
  for (const StageId joined : state(id).stage().inputs) {
    const std::vector<StageId> more = tensors_in(joined);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

/// Waits for what stage i reads: margins where it takes them, own voxels only where they come from elsewhere.
void Compiler::await(std::size_t i) {
  for (const StageId input : stages_[i].stage().inputs) {
    const bool margins = tensor(input).taker == static_cast<StageId>(i);
    for (const StageId id : tensors_in(input)) {
      Tensor& at = tensor(id);
      if (at.arrival < 0 || (!margins && !at.arrives_whole)) continue;
      wait_exchange(at.arrival, Phase::forward);
      at.arrival = -1;
    }
  }
}

/// Whether the backend computes some of a convolution's outputs by themselves.
bool Compiler::takes_boxes(std::size_t convolution) const {
  const Stage& layer = stages_[convolution].stage();
  const std::int64_t alignment = options_.traits.box_alignment;
  const std::int64_t size = dtype_size(activation_type(options_.precision));
  return alignment > 0 && !layer.window.transposed && layer.in.channels * size % alignment == 0 &&
         layer.out.channels * size % alignment == 0;
}

/// Whether a convolution waits for margins only, own voxels being there, and nothing else is computed meanwhile.
bool Compiler::awaits_margins_only(std::size_t convolution) const {
  bool awaits = false;
  for (const StageId id : tensors_in(stages_[convolution].stage().inputs.front())) {
    const Tensor& at = tensor(id);
    if (at.arrival >= 0 && at.arrives_whole) return false;
    awaits = awaits || (at.arrival >= 0 && !at.covered);
  }
  return awaits;
}

void Compiler::copy_region(const std::string& name, std::int64_t channels, const Tile& from, const Tile& to,
                           const Box& region, bool add, bool clear, Phase phase) {
  if (idle() || (region.empty() && !clear)) return;
  plan_.copies.push_back({name, plan_.samples.count, channels, from, to, region, add, clear});
  emit({.kind = StepKind::copy,
        .unit = static_cast<int>(plan_.copies.size()) - 1,
        .phase = phase,
        .touches = {from.buffer, to.buffer},
        .bytes = static_cast<double>(2 * dtype_size(from.type) * plan_.samples.count * channels * region.volume())});
}

void Compiler::emit_convolution(std::size_t stage) {
  StageState& at = stages_[stage];
  const Stage& layer = at.stage();
  const Tensor& out = output_of(stage);
  const Window& window = layer.window;
  ConvolutionUnit unit{.name = layer.name, .desc = {}, .weight = parameter(*layer.node)};
  const auto describe = [&](auto desc) {
    desc.samples = plan_.samples.count;
    desc.in_channels = layer.in.channels;
    desc.out_channels = layer.out.channels;
    desc.in = at.input.box.extent();
    desc.out = out.home.box.extent();
    desc.kernel = window.kernel;
    desc.stride = window.stride;
    desc.input_gradient = at.input_gradient.buffer >= 0;
    desc.training = training();
    desc.precision = options_.precision;
    desc.direct = options_.direct_convolutions;
    for (int i = 0; i < 3; ++i) {
      const std::int64_t x = at.input.box.lo[i];
      const std::int64_t y = out.home.box.lo[i];
      desc.pad_lo[i] = window.transposed ? y + window.padding[i] - x * window.stride[i]
                                         : x - (y * window.stride[i] - window.padding[i]);
    }
    unit.forward_flops = desc.forward_flops();
    unit.desc = desc;
  };
  window.transposed ? describe(Deconv3dDesc()) : describe(Conv3dDesc());
  std::vector<Box> parts;
  if (takes_boxes(stage) && awaits_margins_only(stage)) {
    parts = convolution_parts(window, out.home.box, own_box(at.placed.in), layer.in.extent);
  }
  for (const Box& part : parts) {
    std::get<Conv3dDesc>(unit.desc).forward_parts.push_back(part.relative_to(out.home.box.lo));
  }
  unit.x = at.input;
  unit.y = out.home;
  unit.dx = at.input_gradient;
  unit.dy = out.gradient;
  unit.bytes =
      bytes_of(at.input, plan_.samples.count, layer.in.channels) +
      bytes_of(out.home, plan_.samples.count, layer.out.channels) +
      static_cast<double>(dtype_size(at.input.type) * layer.in.channels * layer.out.channels * window.kernel.volume());
  at.unit = static_cast<int>(plan_.convolutions.size());
  plan_.convolutions.push_back(unit);
  const auto emit_part = [&](std::size_t part, double share) {
    if (idle()) return;
    emit({.kind = StepKind::convolution_forward,
          .unit = at.unit,
          .part = static_cast<int>(part),
          .touches = {unit.x.buffer, unit.y.buffer},
          .flops = share * unit.forward_flops,
          .bytes = share * unit.bytes});
  };
  const auto share = [&](std::size_t part) {
    return static_cast<double>(parts[part].volume()) / static_cast<double>(out.home.box.volume());
  };
  // The margins fly while the interior is computed.
  if (!parts.empty()) emit_part(0, share(0));
  await(stage);
  for (std::size_t part = 1; part < parts.size(); ++part) emit_part(part, share(part));
  if (parts.empty()) emit_part(0, 1);
}

void Compiler::emit_upsample(std::size_t stage) {
  StageState& at = stages_[stage];
  const auto& layer = std::get<Upsample>(network_.node(*at.stage().node).layer);
  const Tensor& out = output_of(stage);
  UpsampleUnit unit{.name = at.stage().name,
                    .desc = {.samples = plan_.samples.count,
                             .channels = at.stage().in.channels,
                             .kind = layer.kind,
                             .factor = layer.factor,
                             .in_extent = at.stage().in.extent,
                             .src = at.input.layout(),
                             .out = own_box(at.placed.out).intersect(out.home.box),
                             .dst = out.home.layout(),
                             .type = out.type},
                    .x = at.input.buffer,
                    .y = out.home,
                    .dx = at.input_gradient.buffer,
                    .dy = out.gradient};
  at.unit = static_cast<int>(plan_.upsamples.size());
  plan_.upsamples.push_back(unit);
  if (!idle()) {
    emit({.kind = StepKind::upsample_forward,
          .unit = at.unit,
          .touches = {unit.x, unit.y.buffer},
          .bytes = bytes_of(at.input, plan_.samples.count, unit.desc.channels) +
                   bytes_of(out.home, plan_.samples.count, unit.desc.channels)});
  }
  publish(static_cast<StageId>(stage));
}

void Compiler::emit_sum(std::size_t stage) {
  const Stage& layer = stages_[stage].stage();
  const Tensor& out = output_of(stage);
  const Box region = own_box(out.partition).intersect(out.home.box);
  for (std::size_t slot = 0; slot < layer.inputs.size(); ++slot) {
    copy_region(layer.name, layer.out.channels, input_of(stage, slot).home, out.home, region, slot > 0, false,
                Phase::forward);
  }
  publish(static_cast<StageId>(stage));
}

void Compiler::emit_copy(std::size_t stage) {
  const StageState& at = stages_[stage];
  const Stage& layer = at.stage();
  const Tensor& from = input_of(stage);
  Tensor& out = output_of(stage);
  if (at.placed.in == at.placed.out) {
    const Box region = own_box(out.partition).intersect(out.home.box);
    copy_region(layer.name, layer.out.channels, from.home, out.home, region, false, false, Phase::forward);
    return publish(static_cast<StageId>(stage));
  }
  if (idle()) return;
  // Straight into the margins too: whoever takes the tensor needs no further exchange.
  const auto wanted = [&](const Index& part) {
    return out.taker ? needed_by(state(*out.taker).placed, part) : at.placed.out.box(part);
  };
  const auto held = [&](const Index& part) { return at.placed.in.box(part); };
  Box local;
  auto phases = reshard_phases({at.placed.in, at.placed.out, held, wanted}, options_.grid.spatial(), place_, from.home,
                               out.home, false, &local);
  out.arrival = start_exchange({layer.name, plan_.samples.count, layer.out.channels, std::move(phases), out.type},
                               Phase::forward);
  out.arrives_whole = true;
  copy_region(layer.name, layer.out.channels, from.home, out.home, local, false, false, Phase::forward);
}

void Compiler::emit_dense(std::size_t stage) {
  StageState& at = stages_[stage];
  const Stage& layer = at.stage();
  DenseUnit unit{.name = layer.name,
                 .desc = {.samples = plan_.samples.count,
                          .in_features = layer.in.channels,
                          .out_features = layer.out.channels,
                          .training = training(),
                          .precision = options_.precision == Precision::tf32 ? Precision::tf32 : Precision::f32},
                 .weight = parameter(*layer.node),
                 .x = at.input.buffer,
                 .y = output_of(stage).home.buffer,
                 .dx = at.input_gradient.buffer,
                 .dy = output_of(stage).gradient.buffer};
  at.unit = static_cast<int>(plan_.denses.size());
  plan_.denses.push_back(unit);
  if (idle()) return;
  const double weights = static_cast<double>(unit.desc.in_features * unit.desc.out_features);
  emit({.kind = StepKind::dense_forward,
        .unit = at.unit,
        .touches = {unit.x, unit.y},
        .flops = 2 * weights * static_cast<double>(unit.desc.samples),
        .bytes = 4 * weights});
}

void Compiler::emit_flatten(std::size_t stage) {
  StageState& at = stages_[stage];
  const Stage& layer = at.stage();
  FlattenUnit unit{.name = layer.name,
                   .shape = {plan_.samples.count, layer.in.channels, layer.in.extent},
                   .type = input_of(stage).type,
                   .x = input_of(stage).home.buffer,
                   .y = output_of(stage).home.buffer,
                   .dy = output_of(stage).gradient.buffer};
  at.unit = static_cast<int>(plan_.flattens.size());
  plan_.flattens.push_back(unit);
  if (idle()) return;
  emit({.kind = StepKind::flatten_forward,
        .unit = at.unit,
        .touches = {unit.x, unit.y},
        .bytes = static_cast<double>((4 + dtype_size(unit.type)) * unit.shape.elements())});
}

void Compiler::emit_loss(std::size_t stage) {
  StageState& at = stages_[stage];
  if (options_.mode == Mode::predict) return;
  const Layer& layer = network_.node(*at.stage().node).layer;
  if (const auto* loss = std::get_if<SegmentationLoss>(&layer)) return emit_segmentation(stage, *loss);
  const Tile& prediction = input_of(stage).home;
  const std::int64_t elements = plan_.samples.count * at.stage().in.channels * prediction.box.volume();
  LossUnit unit{.name = at.stage().name,
                .type = prediction.type,
                .prediction = prediction.buffer,
                .target = buffer("target", 4 * elements),
                .elements = elements,
                .global_elements = static_cast<double>(plan_.batch * at.stage().in.elements()),
                .contributes = at.contributes};
  pinned_.push_back(unit.target);
  at.unit = static_cast<int>(plan_.losses.size());
  plan_.losses.push_back(unit);
  if (!idle()) {
    emit({.kind = StepKind::loss,
          .unit = at.unit,
          .touches = {unit.prediction, unit.target},
          .bytes = static_cast<double>((4 + dtype_size(unit.type)) * elements)});
  }
  const int start = emit({.kind = StepKind::loss_sum_start, .unit = at.unit, .message_bytes = 8});
  if (!training()) emit({.kind = StepKind::loss_sum_wait, .unit = at.unit, .start = start});
}

/// Its gradient depends on sums over all voxels, so that nothing overlaps with them.
void Compiler::emit_segmentation(std::size_t stage, const SegmentationLoss& loss) {
  StageState& at = stages_[stage];
  const Tile& prediction = input_of(stage).home;
  SegmentationUnit unit{.name = at.stage().name,
                        .desc = {.type = prediction.type,
                                 .samples = plan_.samples.count,
                                 .voxels = prediction.box.volume(),
                                 .classes = at.stage().in.channels,
                                 .class_weights = loss.class_weights,
                                 .ignore_label = loss.ignore_label,
                                 .cross_entropy = loss.cross_entropy,
                                 .dice = loss.dice},
                        .prediction = prediction.buffer,
                        .contributes = at.contributes};
  plan_.input.labels = buffer("labels", plan_.samples.count * unit.desc.voxels);
  plan_.buffers[static_cast<std::size_t>(plan_.input.labels)].external = true;
  const std::vector<BufferId> touches{unit.prediction, plan_.input.labels};
  const std::int64_t sums = 8 * segmentation_sum_count(unit.desc, plan_.batch);
  at.unit = static_cast<int>(plan_.segmentations.size());
  plan_.segmentations.push_back(std::move(unit));
  const double logits = static_cast<double>(dtype_size(prediction.type) * plan_.samples.count *
                                            prediction.box.volume() * at.stage().in.channels);
  if (!idle()) emit({.kind = StepKind::segmentation_sums, .unit = at.unit, .touches = touches, .bytes = logits});
  const int start = emit({.kind = StepKind::segmentation_start, .unit = at.unit, .message_bytes = sums});
  emit({.kind = StepKind::segmentation_wait, .unit = at.unit, .start = start});
  if (idle() || !training()) return;
  emit({.kind = StepKind::segmentation_gradient, .unit = at.unit, .touches = touches, .bytes = 2 * logits});
}

}  // namespace halograd
