#include "halograd/comm/lane.hpp"

#include "halograd/comm/waiting.hpp"
#include "halograd/core/error.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace halograd {
namespace {

TEST(Lane, RunsJobsInOrder) {
  Lane lane;
  std::vector<int> order;
  std::vector<std::function<void()>> jobs;
  for (int i = 0; i < 3000; ++i) jobs.emplace_back([&order, i] { order.push_back(i); });
  std::uint64_t last = 0;
  for (const auto& job : jobs) last = lane.start(job);  // more than the queue holds at once
  EXPECT_GE(lane.wait(last), 0.0);
  EXPECT_EQ(order.size(), 3000U);
  for (int i = 0; i < 3000; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(Lane, SaysHowLongItWaited) {
  Lane lane;
  const std::function<void()> nap = [] { std::this_thread::sleep_for(std::chrono::milliseconds(30)); };
  EXPECT_GT(lane.wait(lane.start(nap)), 0.02);
}

TEST(Lane, RethrowsTheFirstFailureNowAndLater) {
  Lane lane;
  int later_runs = 0;
  const std::function<void()> fine = [] {};
  const std::function<void()> failing = [] { throw DataError("first"); };
  const std::function<void()> after = [&] { ++later_runs; };
  const auto before = lane.start(fine);
  const auto failed = lane.start(failing);
  const auto skipped = lane.start(after);
  EXPECT_NO_THROW(lane.wait(before));
  EXPECT_THROW(lane.wait(skipped), DataError);
  EXPECT_THROW(lane.wait(failed), DataError);
  EXPECT_NO_THROW(lane.wait(before));
  EXPECT_EQ(later_runs, 0);
}

TEST(Lane, AtOnceRunsInTheCallerAndKeepsFailuresForWait) {
  Lane lane(LaneMode::at_once);
  std::thread::id runner;
  int runs = 0;
  const std::function<void()> fine = [&] {
    runner = std::this_thread::get_id();
    ++runs;
  };
  const std::function<void()> failing = [] { throw DataError("first"); };
  const auto before = lane.start(fine);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(runner, std::this_thread::get_id());
  EXPECT_EQ(lane.wait(before), 0.0);
  std::uint64_t failed = 0;
  EXPECT_NO_THROW(failed = lane.start(failing));
  const auto skipped = lane.start(fine);
  EXPECT_EQ(runs, 1);
  EXPECT_NO_THROW(lane.wait(before));
  EXPECT_THROW(lane.wait(failed), DataError);
  EXPECT_THROW(lane.wait(skipped), DataError);
}

TEST(Lane, BeginsAnewOnceItsFailureIsForgotten) {
  for (const LaneMode mode : {LaneMode::threaded, LaneMode::at_once}) {
    Lane lane(mode);
    int runs = 0;
    const std::function<void()> fine = [&] { ++runs; };
    const std::function<void()> failing = [] { throw DataError("first"); };
    lane.start(failing);
    EXPECT_THROW(lane.wait(lane.start(fine)), DataError);
    lane.forget_failure();
    EXPECT_NO_THROW(lane.wait(lane.start(fine)));
    EXPECT_EQ(runs, 1);
    EXPECT_THROW(lane.wait(lane.start(failing)), DataError);
  }
}

TEST(Lane, FinishesWhatWasPosted) {
  int runs = 0;
  const std::function<void()> job = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ++runs;
  };
  {
    Lane lane;
    for (int i = 0; i < 10; ++i) lane.start(job);
  }
  EXPECT_EQ(runs, 10);
}

TEST(Lane, EndsWhileAnExceptionUnwindsThoughNobodyAnswers) {
  comm::SharedWord never;
  const std::function<void()> stuck = [&] { never.wait_until(1, false); };
  EXPECT_THROW(
      {
        Lane lane;
        lane.start(stuck);
        throw NumericalError("elsewhere");
      },
      NumericalError);
}

}  // namespace
}  // namespace halograd
