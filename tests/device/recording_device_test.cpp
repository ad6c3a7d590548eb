// The stand-in for a device that other tests order work with, and what they conclude from it.
#include "support/recording_device.hpp"

#include "halograd/core/error.hpp"
#include "support/call_order.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace halograd::testing {
namespace {

TEST(RecordingDevice, DoesAndWritesDownWhatItIsAskedFor) {
  const RecordingDevice stand_in({.can_record = true});
  const Device device = stand_in.device();
  const Queue first = device.make_queue();
  const Queue second = device.make_queue();
  EXPECT_EQ(first.backend(), Backend::cpu);
  EXPECT_FALSE(first.works_at_once());
  const DeviceMemory memory = device.allocate(16);
  const DeviceMemory pinned = device.allocate_host(16);
  pinned.floats()[3] = 5;
  first.label("copying");
  first.copy(pinned.data(), memory.data(), 16);
  EXPECT_EQ(memory.floats()[3], 5.0F);
  second.clear(memory.data(), 8);
  first.begin_recording();
  second.launch(first.end_recording());

  const auto calls = stand_in.calls();
  std::vector<std::string> names;
  names.reserve(calls.size());
  for (const auto& call : calls) names.emplace_back(name_of(call.kind));
  EXPECT_EQ(names, (std::vector<std::string>{"label", "copy", "clear", "begin_recording", "end_recording", "launch"}));
  EXPECT_EQ(calls[1].label, "copying");
  EXPECT_EQ(calls[1].queue, 0);
  EXPECT_EQ(calls[1].bytes, 16);
  EXPECT_EQ(calls[1].to, memory.data());
  EXPECT_EQ(calls[2].label, "");
  EXPECT_EQ(calls[2].queue, 1);
  EXPECT_EQ(calls[5].graph, calls[4].graph);
  EXPECT_EQ(stand_in.kind_of(memory.data() + 15), MemoryKind::device);
  EXPECT_EQ(stand_in.kind_of(pinned.data()), MemoryKind::pinned);
  EXPECT_EQ(stand_in.kind_of(&names), MemoryKind::other);
  stand_in.forget_calls();
  EXPECT_TRUE(stand_in.calls().empty());
}

TEST(RecordingDevice, RefusesWhatItIsToldToWhileAQueueRecords) {
  const RecordingDevice stand_in({.can_record = true, .refused_in_recordings = CallKind::clear});
  const Queue queue = stand_in.device().make_queue();
  float value = 1;
  queue.clear(&value, 4);
  queue.begin_recording();
  EXPECT_THROW(queue.clear(&value, 4), ResourceError);
  EXPECT_TRUE(queue.end_recording());
  EXPECT_NO_THROW(queue.clear(&value, 4));
}

TEST(CallOrder, QueuesAreOrderedByEventsAlone) {
  const RecordingDevice stand_in;
  const Device device = stand_in.device();
  const Queue a = device.make_queue();
  const Queue b = device.make_queue();
  const Event event = a.make_event();
  std::byte place{};
  a.clear(&place, 1);  // 0
  b.clear(&place, 1);  // 1
  a.record(event);     // 2
  a.clear(&place, 1);  // 3
  b.wait(event);       // 4
  b.clear(&place, 1);  // 5
  const CallOrder order(stand_in.calls());
  EXPECT_TRUE(order.before(0, 3));
  EXPECT_FALSE(order.before(3, 0));
  EXPECT_FALSE(order.before(0, 1));
  EXPECT_FALSE(order.before(1, 3));
  EXPECT_TRUE(order.before(0, 5));
  EXPECT_TRUE(order.before(1, 5));
  EXPECT_FALSE(order.before(3, 5));  // listed behind the event
  EXPECT_TRUE(order.empty_waits().empty());
}

TEST(CallOrder, WaitsForWhatNothingRecordedHoldNothingUp) {
  const RecordingDevice stand_in;
  const Device device = stand_in.device();
  const Queue a = device.make_queue();
  const Queue b = device.make_queue();
  const Event event = a.make_event();
  std::byte place{};
  a.clear(&place, 1);  // 0
  b.wait(event);       // 1
  a.record(event);     // 2
  b.clear(&place, 1);  // 3
  const CallOrder order(stand_in.calls());
  EXPECT_EQ(order.empty_waits(), std::vector<std::size_t>{1});
  EXPECT_FALSE(order.before(0, 3));
}

TEST(CallOrder, AThreadThatSynchronizedListsWhatComesLater) {
  const RecordingDevice stand_in;
  const Device device = stand_in.device();
  const Queue a = device.make_queue();
  const Queue b = device.make_queue();
  std::byte place{};
  a.clear(&place, 1);                               // 0
  a.synchronize();                                  // 1
  std::thread([&] { b.clear(&place, 1); }).join();  // 2, by a thread that waited for nothing
  b.clear(&place, 1);                               // 3
  const CallOrder order(stand_in.calls());
  EXPECT_FALSE(order.before(0, 2));
  EXPECT_TRUE(order.before(0, 3));
}

}  // namespace
}  // namespace halograd::testing
