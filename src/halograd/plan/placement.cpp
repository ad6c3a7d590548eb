#include "halograd/plan/placement.hpp"

namespace halograd {
namespace {

/// Whether stage i, and the chain that follows a convolution, can run on `partition` with nearest-neighbour halos.
bool fits(const std::vector<Stage>& stages, std::size_t i, const Partition& partition) {
  const Partition out = partition.derive(stages[i].window);
  if (!halos_fit(partition, out, stages[i].window)) return false;
  const bool pool_follows =
      i + 1 < stages.size() && stages[i].kind == StageKind::convolution && stages[i + 1].kind == StageKind::chain;
  return !pool_follows || halos_fit(out, out.derive(stages[i + 1].window), stages[i + 1].window);
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

bool needs_whole(const Stage& stage) {
  return stage.kind == StageKind::flatten || stage.kind == StageKind::dense;
}

}  // namespace

std::vector<StagePlacement> place(const std::vector<Stage>& stages, const Partition& input) {
  std::vector<StagePlacement> placements;
  Partition current = input;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const Stage& stage = stages[i];
    Partition in = current;
    if (needs_whole(stage)) {
      in = Partition::whole(stage.in.extent);
    } else if (stage.kind == StageKind::convolution || stage.kind == StageKind::chain) {
      while (in.parts().volume() > 1 && !fits(stages, i, in)) in = coarser(in);
    }
    std::optional<Partition> from;
    if (!(in == current)) from = current;
    current = stage.kind == StageKind::flatten || stage.kind == StageKind::dense ? Partition::whole(stage.out.extent)
                                                                                 : in.derive(stage.window);
    placements.push_back({std::move(from), std::move(in), current});
  }
  return placements;
}

}  // namespace halograd
