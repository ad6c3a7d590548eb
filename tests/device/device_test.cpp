#include "halograd/device/device.hpp"

#include "halograd/core/error.hpp"

#include <gtest/gtest.h>

#include <array>

namespace halograd {
namespace {

TEST(Device, TheProcessorWorksAtOnce) {
  const Device processor;
  EXPECT_EQ(processor.backend(), Backend::cpu);
  EXPECT_EQ(processor.name(), "cpu");
  EXPECT_EQ(Device(Backend::reference).name(), "reference");
  EXPECT_EQ(processor.id(), "");
  const Queue queue = processor.make_queue(Priority::high);
  EXPECT_TRUE(queue.works_at_once());
  std::array<int, 3> from{1, 2, 3};
  std::array<int, 3> to{};
  queue.copy(from.data(), to.data(), sizeof(from));
  EXPECT_EQ(to, from);
  queue.clear(to.data(), 2 * sizeof(int));
  EXPECT_EQ(to, (std::array<int, 3>{0, 0, 3}));
  const Event event = queue.make_event();
  queue.record(event);
  queue.wait(event);
  queue.synchronize();
  queue.label("nothing");
}

TEST(Device, TheProcessorRecordsNothing) {
  const Queue queue;
  EXPECT_FALSE(queue.can_record());
  EXPECT_THROW(queue.begin_recording(), UsageError);
  EXPECT_THROW(static_cast<void>(queue.end_recording()), UsageError);
  EXPECT_THROW(queue.launch(Graph()), UsageError);
  EXPECT_FALSE(Graph());
}

TEST(Device, TheProcessorsMemoryIsZeroAndStays) {
  const Device processor;
  for (const DeviceMemory& memory :
       {processor.reserve(1 << 20), processor.allocate(1 << 20), processor.allocate_host(1 << 20)}) {
    EXPECT_EQ(memory.capacity(), 1 << 20);
    EXPECT_EQ(memory.floats()[1000], 0.0F);
    memory.floats()[1000] = 2;
    const std::byte* const place = memory.data();
    memory.commit(1 << 20);
    EXPECT_EQ(memory.data(), place);
    EXPECT_EQ(memory.floats()[1000], 2.0F);
  }
  EXPECT_EQ(DeviceMemory().data(), nullptr);
  EXPECT_EQ(processor.allocate(0).data(), nullptr);
  EXPECT_GT(processor.total_bytes(), processor.available_bytes());
  EXPECT_GT(processor.available_bytes(), 0);
}

}  // namespace
}  // namespace halograd
