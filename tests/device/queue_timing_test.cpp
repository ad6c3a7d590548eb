#include "halograd/device/queue_timing.hpp"

#include "halograd/core/error.hpp"
#include "support/recording_device.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace halograd::testing {
namespace {

TEST(QueueTiming, ListsShortWorkOftenAndLongWorkOnce) {
  EXPECT_EQ(calls_between_synchronizations(0), 20);
  EXPECT_EQ(calls_between_synchronizations(1e-6), 20);
  EXPECT_EQ(calls_between_synchronizations(0.6e-3), 8);
  EXPECT_EQ(calls_between_synchronizations(2.4e-3), 2);
  EXPECT_EQ(calls_between_synchronizations(4.9e-3), 1);
  EXPECT_EQ(calls_between_synchronizations(100), 1);
}

TEST(QueueTiming, GivesTheTimeOfOneCall) {
  const auto nap = [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
  const double seconds = best_seconds(Queue(), nap, 10);
  EXPECT_GE(seconds, 1e-3);
  EXPECT_LT(seconds, 2.5e-3);  // three or more of them would take longer
}

TEST(QueueTiming, GivesTheBestTime) {
  int calls = 0;
  const auto mostly_slow = [&] { std::this_thread::sleep_for(std::chrono::milliseconds(++calls == 4 ? 6 : 40)); };
  const double seconds = best_seconds(Queue(), mostly_slow, 3);
  EXPECT_EQ(calls, 2 + 3);
  EXPECT_GE(seconds, 6e-3);
  EXPECT_LT(seconds, 30e-3);
}

TEST(QueueTiming, SynchronizesAroundEachRepetition) {
  const RecordingDevice device;
  const Queue queue = device.device().make_queue();
  int bytes = 0;
  best_seconds(
      queue, [&] { queue.copy(&bytes, &bytes, sizeof bytes); }, 2);
  std::string calls;
  for (const QueueCall& call : device.calls()) calls += call.kind == CallKind::copy ? 'c' : 's';
  const std::string batch = std::string(20, 'c') + 's';
  EXPECT_EQ(calls, "cscs" + batch + batch);
}

TEST(QueueTiming, LaunchesARecordingWhereTheQueueCanRecord) {
  const RecordingDevice device({.can_record = true});
  const Queue queue = device.device().make_queue();
  int bytes = 0;
  best_seconds(
      queue, [&] { queue.copy(&bytes, &bytes, sizeof bytes); }, 2);
  std::vector<CallKind> kinds;
  for (const QueueCall& call : device.calls()) kinds.push_back(call.kind);
  std::vector<CallKind> expected{CallKind::copy, CallKind::synchronize, CallKind::copy, CallKind::synchronize,
                                 CallKind::begin_recording};
  expected.insert(expected.end(), 20, CallKind::copy);
  expected.push_back(CallKind::end_recording);
  for (int launch = 0; launch < 3; ++launch) {
    expected.push_back(CallKind::launch);
    expected.push_back(CallKind::synchronize);
  }
  EXPECT_EQ(kinds, expected);
}

TEST(QueueTiming, ThrowsWhatTheWorkThrows) {
  EXPECT_THROW(best_seconds(
                   Queue(), [] { throw ResourceError("no memory"); }, 1),
               ResourceError);
}

}  // namespace
}  // namespace halograd::testing
