#include "comm/device_links.hpp"
#include "comm/ring.hpp"
#include "halograd/comm/exchange.hpp"
#include "halograd/core/error.hpp"
#include "support/call_order.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace halograd {
namespace {

using testing::CallKind;
using testing::DeviceLinks;
using testing::MemoryKind;
using testing::QueueCall;
using testing::Ring;

TEST_P(DeviceLinks, RingOfUnevenMessagesThatChange) {
  const auto over = link();
  if (!over) GTEST_SKIP() << skipped;
  for (const std::int64_t unit : {1, 117, 40'000}) {
    const Ring ring(*over, unit);
    Exchange exchange(*over, ring.peers());
    EXPECT_EQ(exchange.peers(), 2U);
    std::int64_t wrong = 0;
    for (int turn = 0; turn < 50; ++turn) wrong += ring.turn(exchange, turn);
    EXPECT_EQ(wrong, 0) << unit;
  }
}

// Three messages between each two ranks: the first of one side is the last of the other.
TEST_P(DeviceLinks, SeveralMessagesOfAPairAsBetweenHosts) {
  const auto over = link();
  if (!over) GTEST_SKIP() << skipped;
  const Communicator& ranks = over->communicator;
  std::vector<ExchangePeer> peers;
  for (int other = 0; other < ranks.size(); ++other) {
    if (other == ranks.rank()) continue;
    for (int m = 0; m < 3; ++m) peers.push_back({other, 100 * (ranks.rank() + 1) + m, 100 * (other + 1) + 2 - m});
  }
  Exchange on_device(*over, peers);
  Exchange on_host(ranks, peers);
  for (int turn = 0; turn < 3; ++turn) {
    for (std::size_t i = 0; i < peers.size(); ++i) {
      const auto bytes = peers[i].send_bytes;
      testing::fill(on_host.send_buffer(i), bytes, ranks.rank(), static_cast<int>(i), turn);
      over->queue.copy(on_host.send_buffer(i), on_device.send_buffer(i), bytes);
    }
    over->queue.synchronize();
    on_device.run();
    on_host.run();
    for (std::size_t i = 0; i < peers.size(); ++i) {
      std::vector<std::byte> received(static_cast<std::size_t>(peers[i].receive_bytes));
      over->queue.copy(on_device.receive_buffer(i), received.data(), peers[i].receive_bytes);
      over->queue.synchronize();
      EXPECT_EQ(std::memcmp(received.data(), on_host.receive_buffer(i), received.size()), 0) << "message " << i;
    }
    on_device.release();
    on_host.release();
  }
}

TEST_P(DeviceLinks, OneWayMessages) {
  const auto over = link();
  if (!over) GTEST_SKIP() << skipped;
  const int ranks = over->communicator.size();
  const int rank = over->communicator.rank();
  // Rank 0 sends to each other rank and gets nothing back.
  std::vector<ExchangePeer> peers;
  if (rank != 0) peers.push_back({0, 0, 10 * rank});
  for (int r = 1; rank == 0 && r < ranks; ++r) peers.push_back({r, 10 * r, 0});
  Exchange exchange(*over, peers);
  for (int turn = 0; turn < 10; ++turn) {
    for (std::size_t i = 0; rank == 0 && i < peers.size(); ++i) {
      std::vector<std::byte> message(static_cast<std::size_t>(peers[i].send_bytes));
      testing::fill(message.data(), peers[i].send_bytes, 0, peers[i].rank, turn);
      over->queue.copy(message.data(), exchange.send_buffer(i), peers[i].send_bytes);
      over->queue.synchronize();
    }
    exchange.run();
    if (rank != 0) {
      std::vector<std::byte> message(static_cast<std::size_t>(10 * rank));
      over->queue.copy(exchange.receive_buffer(0), message.data(), 10 * rank);
      over->queue.synchronize();
      EXPECT_EQ(testing::wrong_bytes(message.data(), 10 * rank, 0, rank, turn), 0);
    }
    exchange.release();
  }
}

TEST_P(DeviceLinks, RefusesSidesThatDisagreeAndRunsBeforeRelease) {
  const auto over = link();
  if (!over) GTEST_SKIP() << skipped;
  const int ranks = over->communicator.size();
  EXPECT_THROW(Exchange(*over, {{ranks, 4, 4}}), UsageError);
  EXPECT_THROW(Exchange(*over, {{over->communicator.rank(), 8, 16}}), UsageError);
  Exchange exchange(*over, {});
  exchange.run();
  EXPECT_THROW(exchange.run(), UsageError);
  exchange.release();
  EXPECT_NO_THROW(exchange.run());
}

INSTANTIATE_TEST_SUITE_P(Comm, DeviceLinks, testing::device_links, testing::link_name);

TEST(StagedExchange, CopiesOutThenWaitsThenCopiesIn) {
  const testing::RecordingDevice stand_in;
  const Device device = stand_in.device();
  const Link link(Communicator::world(), device, device.make_queue(), Transport::staged);
  const Ring ring(link, 1000);
  Exchange exchange(link, ring.peers());
  stand_in.forget_calls();
  exchange.run();
  const auto calls = stand_in.calls();
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls[0].kind, CallKind::copy);
  EXPECT_EQ(calls[0].from, exchange.send_buffer(0));
  EXPECT_EQ(stand_in.kind_of(calls[0].from), MemoryKind::device);
  EXPECT_EQ(stand_in.kind_of(calls[0].to), MemoryKind::pinned);
  EXPECT_EQ(calls[1].kind, CallKind::synchronize);
  EXPECT_EQ(calls[2].kind, CallKind::copy);
  EXPECT_EQ(stand_in.kind_of(calls[2].from), MemoryKind::pinned);
  EXPECT_EQ(calls[2].to, exchange.receive_buffer(0));
  EXPECT_EQ(stand_in.kind_of(calls[2].to), MemoryKind::device);
  // All messages in one copy each way; each begins at a multiple of 256 bytes.
  const auto rounded = [](std::int64_t bytes) { return (bytes + 255) / 256 * 256; };
  EXPECT_EQ(calls[0].bytes, rounded(ring.bytes(ring.rank, 0)) + rounded(ring.bytes(ring.rank, 1)));
  EXPECT_EQ(calls[2].bytes, rounded(ring.bytes(ring.below(), 1)) + rounded(ring.bytes(ring.above(), 0)));
  EXPECT_TRUE(testing::CallOrder(calls).before(0, 2));
}

TEST(StagedExchange, WithoutMessagesNothingIsAskedOfTheQueue) {
  const testing::RecordingDevice stand_in;
  const Device device = stand_in.device();
  Exchange exchange(Link(Communicator::world(), device, device.make_queue(), Transport::staged), {});
  exchange.run();
  EXPECT_TRUE(stand_in.calls().empty());
}

TEST(NcclExchange, ListsOneGroupAndNeverWaits) {
  const testing::RecordingDevice stand_in;
  const Device device = stand_in.device();
  const Link link(Communicator::world(), device, device.make_queue(), Transport::nccl, stand_in.nccl());
  const Ring ring(link, 1000);
  Exchange exchange(link, ring.peers());
  exchange.run();
  const auto calls = stand_in.calls();
  if (link.communicator.size() == 1) {
    EXPECT_TRUE(calls.empty());  // read where it was written
    return;
  }
  ASSERT_EQ(calls.size(), 1U);
  const QueueCall& call = calls.front();
  ASSERT_EQ(call.kind, CallKind::exchange);
  ASSERT_EQ(call.sends.size(), 2U);
  ASSERT_EQ(call.receives.size(), 2U);
  EXPECT_EQ(call.sends[0].rank, ring.below());
  EXPECT_EQ(call.sends[0].bytes, ring.bytes(ring.rank, 0));
  EXPECT_EQ(call.sends[1].rank, ring.above());
  EXPECT_EQ(call.sends[1].bytes, ring.bytes(ring.rank, 1));
  // In the order in which each peer sends: of two ranks, what the peer sends below comes first.
  for (const DeviceMessage& message : call.receives) {
    EXPECT_EQ(stand_in.kind_of(message.data), MemoryKind::device);
  }
  if (ring.ranks == 2) {
    EXPECT_EQ(call.receives[0].bytes, ring.bytes(ring.above(), 0));
    EXPECT_EQ(call.receives[1].bytes, ring.bytes(ring.below(), 1));
  }
}

}  // namespace
}  // namespace halograd
