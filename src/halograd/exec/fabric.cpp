#include "halograd/exec/fabric.hpp"

#include "halograd/core/parallel.hpp"

namespace halograd {

Fabric::Fabric(const Communicator& world, const ProcessGrid& grid, const Device& device,
               const std::optional<FabricTransport>& transport, std::int64_t largest_statistics,
               std::int64_t largest_bucket) {
  const TransportChoice choice =
      transport ? TransportChoice{transport->how, "as asked for"} : choose_transport(world, device);
  const NcclFactory make_nccl = transport ? transport->make_nccl : make_nccl_communicator;
  transport_ = choice.description;
  const Queue halo_queue = device.make_queue(Priority::high);
  const Queue gradient_queue = device.make_queue(Priority::high);
  const auto link = [&](const Communicator& ranks, const Queue& queue) {
    return Link(ranks, device, queue, choice.transport, make_nccl);
  };
  const auto group = static_cast<int>(grid.place(world.rank()).group);
  const Link all = link(world.duplicate(), halo_queue);
  world_.emplace(all.communicator);
  group_.emplace(link(world.split(group, world.rank()), halo_queue));
  world_sum_.emplace(all, largest_statistics);
  group_sum_.emplace(*group_, largest_statistics);
  gradient_sum_.emplace(link(world.duplicate(), gradient_queue), largest_bucket);
  const LaneMode mode = all.returns_when_listed() ? LaneMode::at_once : LaneMode::threaded;
  halos_.emplace(FabricLane{halo_queue, Lane(mode)});
  gradients_.emplace(FabricLane{gradient_queue, Lane(mode)});
  if (mode == LaneMode::at_once) return;
  const std::function<void()> alone = [] { work_alone(); };
  for (FabricLane* at : {&*halos_, &*gradients_}) at->lane.wait(at->lane.start(alone));
}

}  // namespace halograd
