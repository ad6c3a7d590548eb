#include "halograd/exec/fabric.hpp"

#include "halograd/core/parallel.hpp"

namespace halograd {

Fabric::Fabric(const Communicator& world, const ProcessGrid& grid, const Device& device,
               std::int64_t largest_statistics, std::int64_t largest_bucket) {
  const TransportChoice choice = choose_transport(world, device);
  transport_ = choice.description;
  const Queue halo_queue = device.make_queue();
  const Queue gradient_queue = device.make_queue();
  const auto group = static_cast<int>(grid.place(world.rank()).group);
  const Link all(world.duplicate(), device, halo_queue, choice.transport);
  group_.emplace(world.split(group, world.rank()), device, halo_queue, choice.transport);
  world_sum_.emplace(all, largest_statistics);
  group_sum_.emplace(*group_, largest_statistics);
  gradient_sum_.emplace(Link(world.duplicate(), device, gradient_queue, choice.transport), largest_bucket);
  const LaneMode mode = all.returns_when_listed() ? LaneMode::at_once : LaneMode::threaded;
  halos_.emplace(FabricLane{halo_queue, Lane(mode)});
  gradients_.emplace(FabricLane{gradient_queue, Lane(mode)});
  if (mode == LaneMode::at_once) return;
  const std::function<void()> alone = [] { work_alone(); };
  for (FabricLane* at : {&*halos_, &*gradients_}) at->lane.wait(at->lane.start(alone));
}

}  // namespace halograd
