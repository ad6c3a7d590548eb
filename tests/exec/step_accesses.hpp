#pragma once

#include "halograd/plan/plan.hpp"

#include <vector>

namespace halograd::test {

/// Voxels, or bytes, that a step reads or writes.
struct Access {
  BufferId buffer = no_buffer;  ///< or one of the flat arrays below
  Box region;                   ///< in global indices; of a flat array, elements along the width
  std::int64_t first_channel = 0;
  std::int64_t channels = 0;
  bool whole = false;  ///< all of the buffer, whatever the region says
  bool write = false;
};

constexpr BufferId gradient_array = -2;
constexpr BufferId value_array = -3;

namespace detail {

class Accesses {
public:
  explicit Accesses(const Plan& plan) : plan_(plan) {}

  void whole(BufferId buffer, bool write) {
    if (buffer >= 0) list_.push_back({.buffer = buffer, .whole = true, .write = write});
  }
  void reads(BufferId buffer) { whole(buffer, false); }
  void writes(BufferId buffer) { whole(buffer, true); }
  void part(const Tile& tile, const Box& region, std::int64_t channels, bool write) {
    if (tile.buffer < 0 || region.empty()) return;
    list_.push_back({tile.buffer, region, tile.offset, channels, false, write});
  }
  void tiles(const FaceTiles& faces, bool write) {
    for (const Tile& tile : faces.present()) whole(tile.buffer, write);
  }
  void flat(BufferId array, std::int64_t first, std::int64_t count, bool write) {
    list_.push_back({array, {{0, 0, first}, {1, 1, first + count}}, 0, 1, false, write});
  }
  void parameter(BufferId array, int index, bool write) {
    if (index < 0) return;
    const ParameterPlan& entry = plan_.parameters[static_cast<std::size_t>(index)];
    flat(array, entry.offset, entry.spec.elements(), write);
  }

  std::vector<Access> take() { return std::move(list_); }

private:
  const Plan& plan_;
  std::vector<Access> list_;
};

/// What some of a convolution's outputs read of its input, both in global indices.
inline Box inputs_of(const ConvolutionUnit& unit, const Conv3dDesc& desc, const Box& outputs) {
  Box box;
  for (int i = 0; i < 3; ++i) {
    const std::int64_t first = unit.x.box.lo[i] - desc.pad_lo[i];  // of the window of the first output in y
    box.lo[i] = first + (outputs.lo[i] - unit.y.box.lo[i]) * desc.stride[i];
    box.hi[i] = first + (outputs.hi[i] - 1 - unit.y.box.lo[i]) * desc.stride[i] + desc.kernel[i];
  }
  return box.intersect(unit.x.box);
}

inline void convolution(const ConvolutionUnit& unit, const Step& step, Accesses& of) {
  const StepKind kind = step.kind;
  const auto* desc = std::get_if<Conv3dDesc>(&unit.desc);
  if (kind == StepKind::convolution_forward) {
    of.parameter(value_array, unit.weight, false);
    if (desc != nullptr && !desc->forward_parts.empty()) {
      const Index& origin = unit.y.box.lo;
      const Box outputs =
          desc->forward_parts[static_cast<std::size_t>(step.part)].relative_to({-origin.d, -origin.h, -origin.w});
      of.part(unit.x, inputs_of(unit, *desc, outputs), desc->in_channels, false);
      of.part(unit.y, outputs, desc->out_channels, true);
      return;
    }
    of.reads(unit.x.buffer);
    of.writes(unit.y.buffer);
  } else if (kind == StepKind::convolution_backward_data) {
    of.reads(unit.dy.buffer);
    of.writes(unit.dx.buffer);
  } else {
    of.reads(unit.x.buffer);
    of.reads(unit.dy.buffer);
    of.parameter(gradient_array, unit.weight, true);
  }
}

inline void chain(const ChainUnit& unit, const Step& step, Accesses& of) {
  const std::int64_t channels = unit.desc.channels;
  const auto part = static_cast<std::size_t>(step.part);
  const auto reads_gradient = [&] {
    of.part(unit.dout, unit.desc.out, channels, false);
    of.reads(unit.argmax);
  };
  switch (step.kind) {
    case StepKind::chain_moments:
      of.part(unit.y, unit.desc.in, channels, false);
      of.writes(unit.statistics);
      break;
    case StepKind::running_statistics: of.writes(unit.statistics); break;
    case StepKind::chain_forward:
      of.part(unit.y, unit.desc.in, channels, false);
      of.tiles(unit.faces, false);
      of.reads(unit.statistics);
      of.part(unit.dst, unit.forward_parts[part].intersect(unit.dst.box), channels, true);
      of.writes(unit.argmax);
      break;
    case StepKind::chain_backward_faces:
      reads_gradient();
      of.tiles(unit.dfaces, true);
      break;
    case StepKind::chain_backward_sums:
      of.part(unit.y, unit.desc.in, channels, false);
      reads_gradient();
      // The interior needs none of what comes from neighbours.
      if (split_shell(unit.desc.in, unit.desc.returned).interior != unit.sum_parts[part])
        of.tiles(unit.received, false);
      of.writes(unit.statistics);
      break;
    default:
      of.part(unit.y, unit.desc.in, channels, false);
      reads_gradient();
      of.tiles(unit.received, false);
      of.reads(unit.statistics);
      of.part(unit.dy, unit.desc.in, channels, true);
  }
}

inline void statistics(const ChainUnit& unit, StepKind kind, Accesses& of) {
  of.writes(unit.statistics);
  if (kind != StepKind::sums_start) return;
  of.parameter(gradient_array, unit.gamma, true);
  of.parameter(gradient_array, unit.gamma + 1, true);
}

inline void exchange(const ExchangePlan& plan, Accesses& of) {
  for (const auto& phase : plan.phases) {
    for (const Transfer& transfer : phase) {
      for (const Piece& piece : transfer.send) of.part(piece.tile, piece.region, plan.channels, false);
      for (const Piece& piece : transfer.receive) of.part(piece.tile, piece.region, plan.channels, true);
    }
  }
}

inline void copy(const CopyUnit& unit, Accesses& of) {
  of.part(unit.from, unit.region, unit.channels, false);
  if (unit.clear) return of.writes(unit.to.buffer);
  of.part(unit.to, unit.region, unit.channels, true);
}

inline void upsample(const UpsampleUnit& unit, StepKind kind, Accesses& of) {
  const bool forward = kind == StepKind::upsample_forward;
  of.whole(forward ? unit.x : unit.dx, !forward);
  of.part(forward ? unit.y : unit.dy, unit.desc.out, unit.desc.channels, forward);
}

inline void dense(const DenseUnit& unit, StepKind kind, Accesses& of) {
  if (kind == StepKind::dense_forward) {
    of.reads(unit.x);
    of.parameter(value_array, unit.weight, false);
    of.parameter(value_array, unit.weight + 1, false);
    of.writes(unit.y);
  } else if (kind == StepKind::dense_backward_data) {
    of.reads(unit.dy);
    of.parameter(value_array, unit.weight, false);
    of.writes(unit.dx);
  } else {
    of.reads(unit.x);
    of.reads(unit.dy);
    of.parameter(gradient_array, unit.weight, true);
    of.parameter(gradient_array, unit.weight + 1, true);
  }
}

inline void bucket(const BucketUnit& unit, StepKind kind, Accesses& of) {
  of.flat(gradient_array, unit.offset, unit.count, kind == StepKind::bucket_start);
  if (kind == StepKind::update) of.flat(value_array, unit.offset, unit.count, true);
}

}  // namespace detail

/// What a step of a plan touches, by the meaning of its kind.
inline std::vector<Access> accesses(const Plan& plan, const Step& step) {
  detail::Accesses of(plan);
  const auto unit = static_cast<std::size_t>(step.unit);
  switch (step.kind) {
    case StepKind::load_input: of.part(plan.input.tile, plan.input.own, plan.input.shape.channels, true); break;
    case StepKind::convolution_forward:
    case StepKind::convolution_backward_data:
    case StepKind::convolution_backward_weights: detail::convolution(plan.convolutions[unit], step, of); break;
    case StepKind::chain_moments:
    case StepKind::running_statistics:
    case StepKind::chain_forward:
    case StepKind::chain_backward_faces:
    case StepKind::chain_backward_sums:
    case StepKind::chain_backward_data: detail::chain(plan.chains[unit], step, of); break;
    case StepKind::statistics_start:
    case StepKind::sums_start: detail::statistics(plan.chains[unit], step.kind, of); break;
    case StepKind::exchange_start: detail::exchange(plan.exchanges[unit], of); break;
    case StepKind::copy: detail::copy(plan.copies[unit], of); break;
    case StepKind::upsample_forward:
    case StepKind::upsample_backward: detail::upsample(plan.upsamples[unit], step.kind, of); break;
    case StepKind::flatten_forward:
      of.reads(plan.flattens[unit].x);
      of.writes(plan.flattens[unit].y);
      break;
    case StepKind::flatten_backward:
      of.reads(plan.flattens[unit].dy);
      of.writes(plan.flattens[unit].x);
      break;
    case StepKind::dense_forward:
    case StepKind::dense_backward_data:
    case StepKind::dense_backward_weights: detail::dense(plan.denses[unit], step.kind, of); break;
    case StepKind::loss:
      of.writes(plan.losses[unit].prediction);
      of.reads(plan.losses[unit].target);
      break;
    case StepKind::segmentation_sums: of.reads(plan.segmentations[unit].prediction); break;
    case StepKind::segmentation_gradient: of.writes(plan.segmentations[unit].prediction); break;
    case StepKind::bucket_start:
    case StepKind::update: detail::bucket(plan.buckets[unit], step.kind, of); break;
    default: break;  // waits, and sums of numbers that are in no buffer
  }
  return of.take();
}

/// Whether two accesses must not happen at once: to the same place, one of them a write, or to different buffers whose
/// bytes in the arena overlap.
inline bool collide(const Plan& plan, const Access& a, const Access& b) {
  if (!a.write && !b.write) return false;
  if (a.buffer == b.buffer) {
    if (a.whole || b.whole) return true;
    const bool channels =
        a.first_channel < b.first_channel + b.channels && b.first_channel < a.first_channel + a.channels;
    return channels && !a.region.intersect(b.region).empty();
  }
  if (a.buffer < 0 || b.buffer < 0) return false;
  const BufferPlan& first = plan.buffers[static_cast<std::size_t>(a.buffer)];
  const BufferPlan& second = plan.buffers[static_cast<std::size_t>(b.buffer)];
  if (first.external || second.external) return false;
  return first.offset < second.offset + second.bytes && second.offset < first.offset + first.bytes;
}

}  // namespace halograd::test
