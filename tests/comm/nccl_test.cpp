// NCCL itself, as far as one GPU shows it: a rank that talks to itself.
#include "halograd/comm/nccl_communicator.hpp"

#include "halograd/device/cuda_device.hpp"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <vector>

namespace halograd {
namespace {

class Nccl : public ::testing::Test {
protected:
  static constexpr std::size_t count = 1000;
  static constexpr std::int64_t bytes = count * sizeof(float);

  void SetUp() override {
    if (!nccl_available()) GTEST_SKIP() << "built without NCCL";
    const auto gpus = cuda_devices();
    if (gpus.empty()) GTEST_SKIP() << why_no_cuda();
    device = open_cuda_device(gpus.front().index);
    queue = device.make_queue(Priority::high);
    nccl = make_nccl_communicator(Communicator::self(), device);
    for (DeviceMemory* memory : {&first, &second, &third, &fourth}) *memory = device.allocate(bytes);
    values.resize(count);
    std::iota(values.begin(), values.end(), 1.0F);
    queue.copy(values.data(), first.data(), bytes);
    queue.copy(values.data(), second.data(), bytes / 2);
    queue.synchronize();
  }

  // Two messages of unlike size to itself: the first sent is the first received.
  void exchange() const {
    const std::array<DeviceMessage, 2> sends{{{0, first.data(), bytes}, {0, second.data(), bytes / 2}}};
    const std::array<DeviceMessage, 2> receives{{{0, third.data(), bytes}, {0, fourth.data(), bytes / 2}}};
    nccl->exchange(sends, receives, queue);
  }

  [[nodiscard]] std::vector<float> read(const DeviceMemory& memory) const {
    std::vector<float> read_values(count);
    queue.copy(memory.data(), read_values.data(), bytes);
    queue.synchronize();
    return read_values;
  }

  Device device;
  Queue queue;
  DeviceMemory first, second, third, fourth;
  std::vector<float> values;
  std::shared_ptr<NcclCommunicator> nccl;
};

TEST_F(Nccl, ARanksOwnMessagesArriveInOrder) {
  exchange();
  EXPECT_EQ(read(third), values);
  std::vector<float> half = values;
  std::fill(half.begin() + count / 2, half.end(), 0.0F);
  EXPECT_EQ(read(fourth), half);
}

TEST_F(Nccl, TheSumOfOneIsItself) {
  nccl->sum(first.floats(), count, queue);
  EXPECT_EQ(read(first), values);
  nccl->sum(reinterpret_cast<double*>(second.data()), count / 2, queue);
  EXPECT_EQ(read(second)[count / 2 - 1], values[count / 2 - 1]);
}

TEST_F(Nccl, IsRecorded) {
  exchange();  // connects, which a recording can't
  queue.clear(third.data(), bytes);
  queue.begin_recording();
  exchange();
  nccl->sum(third.floats(), count, queue);
  const Graph graph = queue.end_recording();
  EXPECT_EQ(read(third), std::vector<float>(count, 0));
  queue.launch(graph);
  EXPECT_EQ(read(third), values);
}

}  // namespace
}  // namespace halograd
