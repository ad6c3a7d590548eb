#include "halograd/plan/placement.hpp"

#include <algorithm>

namespace halograd {
namespace {

bool has_margins(StageKind kind) {
  return kind == StageKind::convolution || kind == StageKind::upsample;
}

/// Half as many parts (or, of an odd count, the largest proper divisor) in the dimension that has most.
Partition coarser(const Partition& partition) {
  Extent parts = partition.parts();
  int widest = 0;
  for (int i = 1; i < 3; ++i) {
    if (parts[i] > parts[widest]) widest = i;
  }
  std::int64_t fewer = parts[widest] - 1;
  while (parts[widest] % fewer != 0) --fewer;
  parts[widest] = fewer;
  return partition.coarsen(parts);
}

Partition derived(const Stage& stage, const Partition& in) {
  const bool whole = stage.kind == StageKind::flatten || stage.kind == StageKind::dense;
  return whole ? Partition::whole(stage.out.extent) : in.derive(stage.window);
}

/// Whether `visit` holds for every part of a partition.
template <typename Visit>
bool all_parts(const Partition& partition, const Visit& visit) {
  const Extent parts = partition.parts();
  for (Index part; part.d < parts.d; ++part.d) {
    for (part.h = 0; part.h < parts.h; ++part.h) {
      for (part.w = 0; part.w < parts.w; ++part.w) {
        if (!visit(part)) return false;
      }
    }
  }
  return true;
}

class Placer {
public:
  Placer(const Network& network, const std::vector<Stage>& stages, const Partition& input)
      : network_(network), fused_(stages), readers_(stages), result_{input, false, {}} {}

  Placement run() {
    for (std::size_t i = 0; i < fused_.size(); ++i) place_stage(i);
    return std::move(result_);
  }

private:
  /// Whether stage i, and the chain that follows a convolution, can run on `partition` with nearest-neighbour halos.
  bool fits(std::size_t i, const Partition& partition) const {
    const Stage& stage = fused_[i];
    const Partition out = partition.derive(stage.window);
    if (!halos_fit(partition, out, stage.window)) return false;
    if (stage.kind != StageKind::convolution) return true;
    return std::ranges::all_of(readers_.of(static_cast<StageId>(i)), [&](const Reader& reader) {
      const Stage& next = fused_[static_cast<std::size_t>(reader.stage)];
      return next.kind != StageKind::chain || halos_fit(out, out.derive(next.window), next.window);
    });
  }

  Partition wanted(std::size_t i) const {
    const Stage& stage = fused_[i];
    const auto partition_of = [&](StageId input) -> const Partition& { return result_.partition_of(placed(input)); };
    Partition in = partition_of(stage.inputs.front());
    switch (stage.kind) {
      case StageKind::flatten:
      case StageKind::dense: return Partition::whole(stage.in.extent);
      case StageKind::convolution:
      case StageKind::chain:
      case StageKind::upsample:
        while (in.parts().volume() > 1 && !fits(i, in)) in = coarser(in);
        return in;
      case StageKind::concatenation:
      case StageKind::sum: {
        // The tensor made first comes from nearer the input: of equals, a skip keeps its place.
        std::vector<StageId> inputs = stage.inputs;
        std::ranges::sort(inputs);
        const auto parts = [&](StageId input) { return partition_of(input).parts().volume(); };
        return partition_of(*std::ranges::max_element(inputs, {}, parts));
      }
      case StageKind::loss:
        return std::holds_alternative<SegmentationLoss>(network_.node(*stage.node).layer) ? result_.input : in;
      case StageKind::copy: break;  // not the network's
    }
    return in;
  }

  StageId placed(StageId fused) const {
    return fused == network_input ? network_input : placed_[static_cast<std::size_t>(fused)];
  }

  void place_stage(std::size_t i) {
    PlacedStage next{fused_[i], wanted(i), result_.input};
    next.out = derived(next.stage, next.in);
    for (std::size_t slot = 0; slot < next.stage.inputs.size(); ++slot) {
      const StageId value = fused_[i].inputs[slot];
      StageId& input = next.stage.inputs[slot];
      input = placed(value);
      const bool last =
          readers_.of(value).back().stage == static_cast<StageId>(i) && readers_.of(value).back().slot == slot;
      if (result_.partition_of(input) != next.in) {
        input = add_copy(next, input, next.stage.name + " reshard");
      } else if (needs_copy(next, value, last)) {
        input = add_copy(next, input, next.stage.name + " copy");
      }
      if (takes_own_buffer(next.stage.kind)) joins(input) = true;
    }
    result_.stages.push_back(std::move(next));
    placed_.push_back(static_cast<StageId>(result_.stages.size()) - 1);
  }

  bool& joins(StageId value) {
    return value == network_input ? result_.input_joins : result_.stages[static_cast<std::size_t>(value)].joins;
  }

  /// Whether `next` can't have a tensor where the others have it.
  bool needs_copy(const PlacedStage& next, StageId value, bool last) const {
    const bool shared = readers_.of(value).size() > 1;
    const StageKind to = next.stage.kind;
    if (to == StageKind::flatten || to == StageKind::loss) return shared;  // they work in place
    if (!takes_own_buffer(to)) return false;
    if (!last || !writes_into(value, to)) return true;
    const bool joined =
        value != network_input && fused_[static_cast<std::size_t>(value)].kind == StageKind::concatenation;
    return (shared || joined) && !covers(next);
  }

  /// Whether the stage that makes a tensor can write it into a buffer that a stage of kind `to` takes.
  bool writes_into(StageId value, StageKind to) const {
    if (value == network_input) return to != StageKind::concatenation;
    switch (fused_[static_cast<std::size_t>(value)].kind) {
      case StageKind::convolution: return false;
      case StageKind::flatten:
      case StageKind::dense: return to == StageKind::dense;
      default: return true;
    }
  }

  /// Whether the buffer that a stage takes holds all of its rank's own voxels: strided windows may skip the last.
  static bool covers(const PlacedStage& next) {
    return all_parts(next.in, [&](const Index& part) { return needed_by(next, part).contains(next.in.box(part)); });
  }

  StageId add_copy(const PlacedStage& next, StageId from, std::string name) {
    const GlobalShape shape =
        from == network_input ? network_.input() : result_.stages[static_cast<std::size_t>(from)].stage.out;
    Stage copy{
        .kind = StageKind::copy, .name = std::move(name), .inputs = {from}, .in = shape, .out = shape, .window = {}};
    result_.stages.push_back({std::move(copy), result_.partition_of(from), next.in});
    return static_cast<StageId>(result_.stages.size()) - 1;
  }

  const Network& network_;
  const std::vector<Stage>& fused_;
  Readers readers_;
  Placement result_;
  std::vector<StageId> placed_;  // by fused stage
};

}  // namespace

bool takes_own_buffer(StageKind kind) {
  return has_margins(kind) || kind == StageKind::concatenation || kind == StageKind::dense;
}

Placement place(const Network& network, const std::vector<Stage>& stages, const Partition& input) {
  return Placer(network, stages, input).run();
}

Box needed_by(const PlacedStage& placed, const Index& part) {
  if (!has_margins(placed.stage.kind)) return placed.in.box(part);
  return placed.stage.window.input_needed(placed.out.box(part), placed.stage.in.extent);
}

}  // namespace halograd
