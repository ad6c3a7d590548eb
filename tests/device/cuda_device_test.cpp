// With CUDA in the build and without, with GPUs in the machine and without.
#include "halograd/device/cuda_device.hpp"

#include "halograd/core/error.hpp"
#include "halograd/device/cuda_version.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <numeric>
#include <vector>

namespace halograd {
namespace {

std::string refusal(int index) {
  try {
    static_cast<void>(open_cuda_device(index));
  } catch (const ResourceError& error) {
    return error.what();
  }
  return "opened";
}

TEST(CudaDevice, SaysWhyThereIsNone) {
  const auto devices = cuda_devices();
  EXPECT_EQ(devices.empty(), !why_no_cuda().empty());
  const std::string versions = cuda_versions();
  if (versions == "built without CUDA") {
    EXPECT_EQ(why_no_cuda(), "built without CUDA");
  } else if (versions.ends_with("driver none")) {
    EXPECT_EQ(why_no_cuda(), "no NVIDIA driver");
  }
  if (!devices.empty()) return;
  EXPECT_EQ(refusal(0), why_no_cuda() + ": nothing can be computed on a GPU here");
}

TEST(CudaDevice, SaysHowManyThereAre) {
  const auto count = static_cast<int>(cuda_devices().size());
  if (count == 0) GTEST_SKIP() << why_no_cuda();
  EXPECT_EQ(refusal(count), fmt::format("there is no GPU {}: this process sees {}", count, count));
  EXPECT_EQ(refusal(-1), fmt::format("there is no GPU -1: this process sees {}", count));
}

class OnGpu : public ::testing::Test {
protected:
  void SetUp() override {
    const auto devices = cuda_devices();
    if (devices.empty()) GTEST_SKIP() << why_no_cuda();
    info = devices.front();
    device = open_cuda_device(info.index);
    queue = device.make_queue();
  }

  // The first `count` floats of a device's memory.
  [[nodiscard]] std::vector<float> read(const DeviceMemory& memory, std::size_t count) const {
    std::vector<float> values(count, -1);
    queue.copy(memory.data(), values.data(), static_cast<std::int64_t>(count * sizeof(float)));
    queue.synchronize();
    return values;
  }

  CudaDeviceInfo info;
  Device device;
  Queue queue;
};

std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

TEST_F(OnGpu, IsNamedAndMeasured) {
  EXPECT_EQ(device.backend(), Backend::cuda);
  EXPECT_EQ(device.name(), fmt::format("cuda {}: {}", info.index, info.name));
  EXPECT_EQ(device.id(), info.id);
  EXPECT_FALSE(device.id().empty());
  EXPECT_GT(device.total_bytes(), device.available_bytes());
  EXPECT_FALSE(queue.works_at_once());
}

TEST_F(OnGpu, MemoryBeginsAsZeroAndIsCopied) {
  constexpr std::size_t count = 100'000;
  const DeviceMemory memory = device.allocate(count * sizeof(float));
  EXPECT_EQ(read(memory, count), std::vector<float>(count, 0));
  const auto values = counting(count);
  queue.copy(values.data(), memory.data(), count * sizeof(float));
  EXPECT_EQ(read(memory, count), values);
  queue.clear(memory.data(), 4);
  EXPECT_EQ(read(memory, 2), (std::vector<float>{0, 2}));
  EXPECT_EQ(device.allocate(0).data(), nullptr);
}

TEST_F(OnGpu, ReservedMemoryGrowsInItsPlace) {
  constexpr std::int64_t step = 5'000'000;
  const DeviceMemory memory = device.reserve(device.total_bytes());
  const std::byte* const place = memory.data();
  memory.commit(step);
  const auto values = counting(1000);
  queue.copy(values.data(), memory.data(), 4000);
  queue.synchronize();
  memory.commit(4 * step);
  EXPECT_EQ(memory.data(), place);
  EXPECT_EQ(read(memory, 1000), values);
  std::vector<float> last(1000, -1);
  queue.copy(memory.data() + 4 * step - 4000, last.data(), 4000);
  queue.synchronize();
  EXPECT_EQ(last, std::vector<float>(1000, 0));
  EXPECT_THROW(memory.commit(device.total_bytes()), ResourceError);
  EXPECT_EQ(read(memory, 1000), values);
}

TEST_F(OnGpu, PinnedMemoryIsTheHosts) {
  const DeviceMemory pinned = device.allocate_host(4000);
  EXPECT_EQ(pinned.floats()[999], 0.0F);
  pinned.floats()[999] = 7;
  const DeviceMemory memory = device.allocate(4000);
  queue.copy(pinned.data(), memory.data(), 4000);
  EXPECT_EQ(read(memory, 1000).back(), 7.0F);
}

TEST_F(OnGpu, OneQueueWaitsForAnother) {
  constexpr std::int64_t bytes = 256 << 20;
  const DeviceMemory large = device.allocate(bytes);
  const DeviceMemory copy = device.allocate(bytes);
  const DeviceMemory ones = device.allocate_host(bytes);
  std::fill_n(ones.floats(), bytes / 4, 1.0F);
  const Queue other = device.make_queue(Priority::high);
  const Event filled = queue.make_event();
  queue.copy(ones.data(), large.data(), bytes);
  queue.record(filled);
  other.wait(filled);
  other.copy(large.data(), copy.data(), bytes);
  float last = 0;
  other.copy(copy.data() + bytes - 4, &last, 4);
  other.synchronize();
  EXPECT_EQ(last, 1.0F);
}

TEST_F(OnGpu, RecordedWorkIsDoneWhenLaunched) {
  const DeviceMemory memory = device.allocate(4000);
  const DeviceMemory copy = device.allocate(4000);
  const DeviceMemory pinned = device.allocate_host(4000);
  std::fill_n(pinned.floats(), 1000, 3.0F);
  const Queue other = device.make_queue();
  const Event begun = queue.make_event();
  const Event done = queue.make_event();
  ASSERT_TRUE(queue.can_record());
  queue.begin_recording();
  queue.copy(pinned.data(), memory.data(), 4000);
  queue.record(begun);
  other.wait(begun);
  other.copy(memory.data(), copy.data(), 4000);
  other.record(done);
  queue.wait(done);
  const Graph graph = queue.end_recording();
  ASSERT_TRUE(graph);
  EXPECT_EQ(read(copy, 1000).back(), 0.0F);
  queue.launch(graph);
  EXPECT_EQ(read(copy, 1000).back(), 3.0F);
  pinned.floats()[999] = 4;
  queue.launch(graph);
  EXPECT_EQ(read(copy, 1000).back(), 4.0F);
}

TEST_F(OnGpu, AFailedRecordingLeavesTheQueueUsable) {
  const DeviceMemory memory = device.allocate(4000);
  const Queue other = device.make_queue();
  const Event begun = queue.make_event();
  queue.begin_recording();
  queue.record(begun);
  other.wait(begun);
  other.clear(memory.data(), 4000);
  // Nobody waits for `other`.
  EXPECT_THROW(static_cast<void>(queue.end_recording()), ResourceError);
  const auto values = counting(1000);
  queue.copy(values.data(), memory.data(), 4000);
  EXPECT_EQ(read(memory, 1000), values);
  // So is the other, and an event that was recorded on the way.
  queue.record(begun);
  other.wait(begun);
  other.clear(memory.data(), 4000);
  other.synchronize();
  EXPECT_EQ(read(memory, 1000), std::vector<float>(1000));
}

TEST_F(OnGpu, WhatARecordingRefusesEndsIt) {
  const DeviceMemory memory = device.allocate(4000);
  const auto values = counting(1000);
  queue.begin_recording();
  queue.clear(memory.data(), 4000);
  EXPECT_THROW(queue.synchronize(), ResourceError);
  EXPECT_THROW(static_cast<void>(queue.end_recording()), ResourceError);
  queue.copy(values.data(), memory.data(), 4000);
  EXPECT_EQ(read(memory, 1000), values);
  queue.begin_recording();
  queue.clear(memory.data(), 4000);
  queue.launch(queue.end_recording());
  EXPECT_EQ(read(memory, 1000), std::vector<float>(1000));
}

}  // namespace
}  // namespace halograd
