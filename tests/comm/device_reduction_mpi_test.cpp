#include "comm/device_links.hpp"
#include "halograd/comm/reduction.hpp"
#include "halograd/core/random.hpp"
#include "support/call_order.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace halograd {
namespace {

using testing::CallKind;
using testing::DeviceLinks;
using testing::MemoryKind;

class DeviceSums : public DeviceLinks {};

const std::vector<std::int64_t> counts = {1, 7, 1000, 4099, 70'001};
constexpr std::int64_t usual_count = 30'000;  // less than the largest

template <typename T>
std::vector<T> rough_values(int rank, std::int64_t count) {
  const auto stream = random_stream(3, RandomPurpose::synthetic, static_cast<std::uint32_t>(rank));
  std::vector<T> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    values[static_cast<std::size_t>(i)] =
        static_cast<T>((stream.uniform53(static_cast<std::uint64_t>(i)) - 0.5) * (i % 3 == 0 ? 1e6 : 1e-3));
  }
  return values;
}

// The sum of `values` by a reduction in the memory of the link's device.
template <typename T>
std::vector<T> summed_on_device(SumReduction<T>& reduction, const Link& link, std::vector<T> values, bool contributes) {
  const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(T));
  const DeviceMemory memory = link.device.allocate(bytes);
  link.queue.copy(values.data(), memory.data(), bytes);
  link.queue.synchronize();
  reduction.run(reinterpret_cast<T*>(memory.data()), static_cast<std::int64_t>(values.size()), contributes);
  link.queue.copy(memory.data(), values.data(), bytes);
  link.queue.synchronize();
  return values;
}

// How many elements differ from what the processors' sum makes of the same values.
template <typename T>
std::int64_t unlike_host(const Link& link, const std::function<bool(int)>& counts_in) {
  SumReduction<T> on_device(link, usual_count);
  SumReduction<T> on_host(link.communicator, usual_count);
  const int rank = link.communicator.rank();
  std::int64_t wrong = 0;
  for (const std::int64_t count : counts) {
    auto expected = rough_values<T>(rank, count);
    const auto actual = summed_on_device(on_device, link, expected, counts_in(rank));
    on_host.run(expected.data(), count, counts_in(rank));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      // NCCL adds in an order of its own, of values up to 1e6 a rank.
      const bool near = std::abs(actual[i] - expected[i]) <= 1e6 * 8 * std::numeric_limits<T>::epsilon();
      wrong += link.transport == Transport::nccl ? !near : actual[i] != expected[i];
    }
  }
  return wrong;
}

TEST_P(DeviceSums, WhatTheProcessorsMakeOfIt) {
  const auto over = link();
  if (!over) GTEST_SKIP() << skipped;
  const int last = over->communicator.size() - 1;
  // Who counts: all, even ranks, the last one, nobody.
  const std::function<bool(int)> rules[] = {[](int) { return true; }, [](int r) { return r % 2 == 0; },
                                            [last](int r) { return r == last; }, [](int) { return false; }};
  for (const auto& rule : rules) {
    EXPECT_EQ(unlike_host<float>(*over, rule), 0);
    EXPECT_EQ(unlike_host<double>(*over, rule), 0);
  }
}

TEST_P(DeviceSums, ExactIntegers) {
  const auto over = link();
  if (!over) GTEST_SKIP() << skipped;
  const Communicator& ranks = over->communicator;
  SumReduction<float> reduction(*over, 100);
  for (const std::int64_t count : counts) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>((ranks.rank() + 1) * static_cast<int>(i % 1000));
    }
    values = summed_on_device(reduction, *over, values, true);
    std::int64_t wrong = 0;
    const int factor = ranks.size() * (ranks.size() + 1) / 2;
    for (std::size_t i = 0; i < values.size(); ++i) {
      wrong += values[i] != static_cast<float>(factor * static_cast<int>(i % 1000));
    }
    EXPECT_EQ(wrong, 0) << count;
  }
}

INSTANTIATE_TEST_SUITE_P(Comm, DeviceSums, testing::device_links, testing::link_name);

std::vector<testing::QueueCall> calls_of_a_sum(const testing::RecordingDevice& stand_in, Transport transport,
                                               bool contributes) {
  const Device device = stand_in.device();
  const Link link(Communicator::world(), device, device.make_queue(), transport, stand_in.nccl());
  SumReduction<float> reduction(link, 10);
  const DeviceMemory values = device.allocate(25 * 4);
  stand_in.forget_calls();
  reduction.run(values.floats(), 25, contributes);
  auto calls = stand_in.calls();
  for (const auto& call : calls) {
    if (call.kind == CallKind::copy) {
      const bool out = stand_in.kind_of(call.from) == MemoryKind::device;
      EXPECT_EQ(stand_in.kind_of(out ? call.to : call.from), MemoryKind::pinned);
      EXPECT_EQ(stand_in.kind_of(out ? call.from : call.to), MemoryKind::device);
    }
  }
  return calls;
}

std::vector<CallKind> kinds_of(const std::vector<testing::QueueCall>& calls) {
  std::vector<CallKind> kinds;
  kinds.reserve(calls.size());
  for (const auto& call : calls) kinds.push_back(call.kind);
  return kinds;
}

TEST(StagedSum, CopiesOutThenWaitsThenCopiesInEachPiece) {
  if (Communicator::world().size() == 1) GTEST_SKIP() << "nothing to sum";
  const testing::RecordingDevice stand_in;
  const auto calls = calls_of_a_sum(stand_in, Transport::staged, true);
  ASSERT_EQ(calls.size(), 9U);
  const std::int64_t bytes[] = {40, 40, 20};
  for (std::size_t piece = 0; piece < 3; ++piece) {
    const std::size_t at = 3 * piece;
    EXPECT_EQ(calls[at].kind, CallKind::copy);
    EXPECT_EQ(calls[at].bytes, bytes[piece]);
    EXPECT_EQ(calls[at + 1].kind, CallKind::synchronize);
    EXPECT_EQ(calls[at + 2].kind, CallKind::copy);
    EXPECT_EQ(calls[at + 2].bytes, bytes[piece]);
    EXPECT_EQ(calls[at].from, calls[at + 2].to);
    EXPECT_EQ(calls[at].to, calls[at + 2].from);
  }
}

TEST(StagedSum, WhoDoesNotContributeCopiesInOnly) {
  if (Communicator::world().size() == 1) GTEST_SKIP() << "nothing to sum";
  const testing::RecordingDevice stand_in;
  using enum CallKind;
  EXPECT_EQ(kinds_of(calls_of_a_sum(stand_in, Transport::staged, false)),
            (std::vector{synchronize, copy, synchronize, copy, synchronize, copy}));
}

TEST(NcclSum, IsOneCallAndNeverWaits) {
  using enum CallKind;
  const testing::RecordingDevice stand_in;
  const bool alone = Communicator::world().size() == 1;
  EXPECT_EQ(kinds_of(calls_of_a_sum(stand_in, Transport::nccl, true)),
            (alone ? std::vector<CallKind>{} : std::vector{sum}));
  EXPECT_EQ(kinds_of(calls_of_a_sum(stand_in, Transport::nccl, false)),
            (alone ? std::vector{clear} : std::vector{clear, sum}));
}

TEST(StagedSum, OneRankAloneNeedsNoHost) {
  using enum CallKind;
  const testing::RecordingDevice stand_in;
  const Device device = stand_in.device();
  SumReduction<double> reduction(Link(Communicator::self(), device, device.make_queue(), Transport::staged), 10);
  const DeviceMemory memory = device.allocate(3 * 8);
  auto* values = reinterpret_cast<double*>(memory.data());
  std::fill_n(values, 3, 2.5);
  reduction.run(values, 3, true);
  EXPECT_EQ(values[2], 2.5);
  reduction.run(values, 3, false);
  EXPECT_EQ(values[2], 0.0);
  EXPECT_EQ(kinds_of(stand_in.calls()), (std::vector{clear}));
}

}  // namespace
}  // namespace halograd
