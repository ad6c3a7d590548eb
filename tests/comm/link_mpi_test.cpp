#include "halograd/comm/link.hpp"

#include "comm/paths.hpp"
#include "halograd/comm/nccl_version.hpp"
#include "halograd/comm/reduction.hpp"
#include "halograd/core/error.hpp"
#include "support/recording_device.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cstdlib>

namespace halograd {
namespace {

Transport chosen_by(const std::string& id) {
  return choose_transport(Communicator::world(), testing::RecordingDevice({.id = id}).device()).transport;
}

TEST(Link, OfTheProcessorIsTheHosts) {
  const auto world = Communicator::world();
  const Link link(world, Backend::cpu, Queue(), Transport::staged);
  EXPECT_EQ(link.transport, Transport::host);
  EXPECT_EQ(link.returns_when_listed(), world.size() == 1);
  EXPECT_EQ(choose_transport(world, Device()).transport, Transport::host);
  const std::string& alone = choose_transport(Communicator::self(), Device()).description;
  EXPECT_EQ(alone, "none: one rank");
  for (const char* path : {"shared", "mpi"}) {
    if (world.size() == 1) break;
    const Communicator ranks = testing::over(path);
    const char* const expected = ranks.uses_shared_memory() ? "shared memory" : "MPI";
    if (ranks.on_one_node()) {
      EXPECT_EQ(choose_transport(ranks, Device()).description, expected);
    }
  }
}

TEST(Link, TransportIsChosenByWhatAllRanksHave) {
  const auto world = Communicator::world();
  const Transport apart = nccl_available() && world.size() > 1 ? Transport::nccl : Transport::staged;
  EXPECT_EQ(chosen_by(fmt::format("GPU {}", world.rank())), apart);
  EXPECT_EQ(chosen_by("one for all"), Transport::staged);
  // The last two share one: all know.
  EXPECT_EQ(chosen_by(fmt::format("GPU {}", std::min(world.rank(), world.size() - 2))), Transport::staged);
  // Switched off on one rank: off on all.
  if (world.rank() == world.size() - 1) setenv("HALOGRAD_NCCL", "0", 1);
  EXPECT_EQ(chosen_by(fmt::format("GPU {}", world.rank())), Transport::staged);
  unsetenv("HALOGRAD_NCCL");
}

TEST(Link, NcclReturnsWhenListedAndStagedDoesNot) {
  const testing::RecordingDevice stand_in;
  const Device device = stand_in.device();
  const auto world = Communicator::world();
  const Link by_nccl(world, device, device.make_queue(), Transport::nccl, stand_in.nccl());
  EXPECT_TRUE(by_nccl.returns_when_listed());
  EXPECT_EQ(by_nccl.nccl != nullptr, world.size() > 1);
  const Link staged(world, device, device.make_queue(), Transport::staged, stand_in.nccl());
  EXPECT_EQ(staged.returns_when_listed(), world.size() == 1);
  EXPECT_EQ(staged.nccl, nullptr);
}

// Real NCCL is asked for a device that is no GPU.
TEST(Link, NcclRefusesWhatIsNoGpuOnAllRanks) {
  const testing::RecordingDevice stand_in;
  EXPECT_THROW(static_cast<void>(make_nccl_communicator(Communicator::world(), stand_in.device())), Error);
  EXPECT_EQ(nccl_available(), comm::nccl_version() != "built without CUDA");
}

// A rank of the processor and ranks of devices understand each other.
TEST(Link, AMixOfProcessorAndDeviceSums) {
  const testing::RecordingDevice stand_in;
  const auto world = Communicator::world();
  const Device device = world.rank() == 0 ? Device() : stand_in.device();
  SumReduction<double> reduction(Link(world, device, device.make_queue(), Transport::staged), 4);
  const DeviceMemory memory = device.allocate(5 * 8);
  auto* values = reinterpret_cast<double*>(memory.data());
  std::fill_n(values, 5, 1.0 + world.rank());
  reduction.run(values, 5, true);
  EXPECT_EQ(values[4], world.size() * (world.size() + 1) / 2.0);
}

}  // namespace
}  // namespace halograd
