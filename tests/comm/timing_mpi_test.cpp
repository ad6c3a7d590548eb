#include "comm/paths.hpp"
#include "halograd/comm/exchange.hpp"
#include "halograd/comm/reduction.hpp"
#include "halograd/core/system.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

namespace halograd {
namespace {

// Prints what communication costs here; asserts only that it did its work, as times depend on who shares the machine.
using TimingPaths = testing::BothPaths;

struct Times {
  double best;
  double median;
};

Times times_of(int turns, const std::function<void()>& action) {
  action();
  std::vector<double> seconds;
  for (int turn = 0; turn < turns; ++turn) {
    const double begin = now_seconds();
    action();
    seconds.push_back(now_seconds() - begin);
  }
  std::ranges::sort(seconds);
  return {seconds.front(), seconds[seconds.size() / 2]};
}

void report(const Communicator& comm, const std::string& what, const char* path, Times times) {
  if (comm.rank() != 0) return;
  std::printf("%-28s %-6s %d ranks: best %9.1f us, median %9.1f us\n", what.c_str(), path, comm.size(),
              times.best * 1e6, times.median * 1e6);
  std::fflush(stdout);
}

// Filled and read like a halo, as the shared path moves nothing itself.
TEST_P(TimingPaths, Exchanges) {
  const auto comm = world();
  for (const std::int64_t bytes : {std::int64_t{4} << 10, std::int64_t{1} << 20, std::int64_t{4} << 20}) {
    const int above = (comm.rank() + 1) % comm.size();
    const int below = (comm.rank() + comm.size() - 1) % comm.size();
    Exchange exchange(comm, {{below, bytes, bytes}, {above, bytes, bytes}});
    const std::vector<std::byte> source(static_cast<std::size_t>(bytes), std::byte{1});
    std::vector<std::byte> target(static_cast<std::size_t>(bytes));
    const auto times = times_of(bytes < 100'000 ? 300 : 30, [&] {
      for (std::size_t side : {0, 1}) std::ranges::copy(source, exchange.send_buffer(side));
      exchange.run();
      for (std::size_t side : {0, 1}) std::copy_n(exchange.receive_buffer(side), bytes, target.begin());
      exchange.release();
    });
    EXPECT_EQ(target, source);
    report(comm, std::to_string(bytes >> 10) + " KB with 2 neighbours", GetParam(), times);
  }
}

TEST_P(TimingPaths, CopyForComparison) {
  const auto comm = world();
  const std::vector<float> source(9'437'636, 1.0F);
  std::vector<float> target(source.size());
  report(comm, "copy of 9437636 floats", GetParam(), times_of(8, [&] { std::ranges::copy(source, target.begin()); }));
  EXPECT_EQ(target.back(), 1.0F);
}

TEST_P(TimingPaths, Sums) {
  const auto comm = world();
  for (const std::int64_t count : {std::int64_t{64}, std::int64_t{9'437'636}}) {
    SumReduction<float> reduction(comm, count);
    std::vector<float> values(static_cast<std::size_t>(count), 0.0F);
    const auto times = times_of(count < 1000 ? 300 : 8, [&] { reduction.run(values.data(), count); });
    EXPECT_EQ(values.back(), 0.0F);
    report(comm, "sum of " + std::to_string(count) + " floats", GetParam(), times);
  }
}

TEST_P(TimingPaths, Barriers) {
  const auto comm = world();
  report(comm, "barrier", GetParam(), times_of(200, [&] { comm.barrier(); }));
  EXPECT_GE(comm.size(), 1);
}

INSTANTIATE_TEST_SUITE_P(Comm, TimingPaths, testing::both_paths, testing::path_name);

}  // namespace
}  // namespace halograd
