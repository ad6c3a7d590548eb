#include "halograd/exec/fabric.hpp"

#include "halograd/core/parallel.hpp"

namespace halograd {

Fabric::Fabric(const Communicator& world, const ProcessGrid& grid, std::int64_t largest_statistics,
               std::int64_t largest_bucket)
    : world_(world.duplicate()), group_(world.split(static_cast<int>(grid.place(world.rank()).group), world.rank())) {
  world_sum_.emplace(world_, largest_statistics);
  group_sum_.emplace(group_, largest_statistics);
  gradient_sum_.emplace(world.duplicate(), largest_bucket);
  const std::function<void()> alone = [] { work_alone(); };
  for (std::optional<Lane>* lane : {&halo_lane_, &gradient_lane_}) {
    lane->emplace();
    (*lane)->wait((*lane)->start(alone));
  }
}

}  // namespace halograd
