#include "halograd/perf/communication_benchmark.hpp"

#include "halograd/core/parallel.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <set>
#include <utility>

namespace halograd {
namespace {

/// One measurement (it takes seconds) for all tests.
struct Measured {
  CommunicationSamples samples;
  std::vector<std::pair<int, int>> progress;
  std::set<int> threads_during;
  int threads_after = 0;
  int ranks = 1;
};

const Measured& measured() {
  static const Measured once = [] {
    Measured result;
    const Communicator world = Communicator::world();
    result.ranks = world.size();
    omp_set_num_threads(2);
    result.samples = measure_communication(world, [&](int done, int of) {
      result.progress.emplace_back(done, of);
      result.threads_during.insert(thread_count());
    });
    result.threads_after = thread_count();
    return result;
  }();
  return once;
}

void expect_sizes(std::vector<MessageSample> samples, std::int64_t ranks, double smallest, double largest) {
  std::erase_if(samples, [&](const MessageSample& sample) { return sample.ranks != ranks; });
  ASSERT_FALSE(samples.empty()) << ranks;
  EXPECT_EQ(samples.front().bytes, smallest);
  EXPECT_EQ(samples.back().bytes, largest);
  for (std::size_t i = 1; i < samples.size(); ++i) EXPECT_EQ(samples[i].bytes, 2 * samples[i - 1].bytes);
  for (const MessageSample& sample : samples) {
    EXPECT_TRUE(std::isfinite(sample.seconds)) << sample.bytes;
    EXPECT_GT(sample.seconds, 0) << sample.bytes;
    EXPECT_LT(sample.seconds, 60) << sample.bytes;
  }
  EXPECT_GT(samples.back().seconds, samples.front().seconds) << ranks;
}

TEST(CommunicationBenchmark, OneRankHasNothingToMeasure) {
  const CommunicationSamples alone = measure_communication(Communicator::self(), [](int, int) { FAIL(); });
  EXPECT_TRUE(alone.messages.empty());
  EXPECT_TRUE(alone.sums.empty());
  if (measured().ranks == 1) {
    EXPECT_TRUE(measured().samples.messages.empty());
    EXPECT_TRUE(measured().samples.sums.empty());
  }
}

TEST(CommunicationBenchmark, MessagesOfAllSizes) {
  if (measured().ranks == 1) return;
  EXPECT_EQ(measured().samples.messages.size(), 17U);
  expect_sizes(measured().samples.messages, 2, 256, 16 << 20);
}

TEST(CommunicationBenchmark, SumsOfAllSizesAndGroups) {
  if (measured().ranks == 1) return;
  std::set<std::int64_t> groups;
  for (const MessageSample& sample : measured().samples.sums) groups.insert(sample.ranks);
  std::set<std::int64_t> expected{measured().ranks};
  for (std::int64_t ranks = 2; ranks < measured().ranks; ranks *= 2) expected.insert(ranks);
  EXPECT_EQ(groups, expected);
  EXPECT_EQ(measured().samples.sums.size(), 19 * expected.size());
  for (const std::int64_t ranks : expected) expect_sizes(measured().samples.sums, ranks, 256, 64 << 20);
}

TEST(CommunicationBenchmark, EveryRankHasTheSameSamples) {
  const Communicator world = Communicator::world();
  std::string text;
  for (const auto* samples : {&measured().samples.messages, &measured().samples.sums}) {
    for (const MessageSample& sample : *samples) {
      text += fmt::format("{} {} {}\n", sample.bytes, sample.ranks, sample.seconds);
    }
  }
  for (const std::string& other : world.all_gather(text)) EXPECT_EQ(other, text);
}

TEST(CommunicationBenchmark, ProgressAfterEachSize) {
  const auto& samples = measured().samples;
  const auto total = static_cast<int>(samples.messages.size() + samples.sums.size());
  ASSERT_EQ(measured().progress.size(), static_cast<std::size_t>(total));
  for (int i = 0; i < total; ++i) {
    EXPECT_EQ(measured().progress[static_cast<std::size_t>(i)], std::pair(i + 1, total));
  }
}

// As the lanes of a step do; afterwards loops have their threads again.
TEST(CommunicationBenchmark, PacksByOneThread) {
  if (measured().ranks > 1) {
    EXPECT_EQ(measured().threads_during, std::set<int>{1});
  }
  EXPECT_EQ(measured().threads_after, 2);
}

TEST(CommunicationBenchmark, ARankWithoutNeighbourTakesPart) {
  const Communicator world = Communicator::world();
  if (world.size() < 4) return;
  const Communicator some = world.split(world.rank() < 3 ? 0 : 1, world.rank());
  if (world.rank() < 3) {
    const CommunicationSamples samples = measure_communication(some);
    EXPECT_EQ(samples.messages.size(), 17U);
    expect_sizes(samples.messages, 2, 256, 16 << 20);
    expect_sizes(samples.sums, 2, 256, 64 << 20);
    expect_sizes(samples.sums, 3, 256, 64 << 20);
  }
  world.barrier();
}

}  // namespace
}  // namespace halograd
