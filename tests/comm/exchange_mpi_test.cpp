#include "halograd/comm/exchange.hpp"

#include "comm/paths.hpp"
#include "comm/ring.hpp"
#include "halograd/comm/lane.hpp"
#include "halograd/core/error.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace halograd {
namespace {

using ExchangePaths = testing::BothPaths;
using testing::fill;
using testing::Ring;
using testing::wrong_bytes;

TEST_P(ExchangePaths, RingOfUnevenMessagesThatChange) {
  const auto comm = world();
  const Ring ring(comm, 117);
  Exchange exchange(comm, ring.peers());
  EXPECT_EQ(exchange.peers(), 2U);
  std::int64_t wrong = 0;
  for (int turn = 0; turn < 1000; ++turn) wrong += ring.turn(exchange, turn);
  EXPECT_EQ(wrong, 0);
}

TEST_P(ExchangePaths, MessagesOfManyPieces) {
  const auto comm = world();
  const Ring ring(comm, 2'100'000 / comm.size());
  Exchange exchange(comm, ring.peers());
  std::int64_t wrong = 0;
  for (int turn = 0; turn < 5; ++turn) wrong += ring.turn(exchange, turn);
  EXPECT_EQ(wrong, 0);
}

TEST_P(ExchangePaths, PeersAreNotTooFastForEachOther) {
  const auto comm = world();
  const Ring ring(comm, 1000);
  Exchange exchange(comm, ring.peers());
  std::int64_t wrong = 0;
  for (int turn = 0; turn < 20; ++turn) {
    // One rank lags behind: the others must not overwrite what it has yet to read.
    if (turn % comm.size() == comm.rank()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    wrong += ring.turn(exchange, turn);
  }
  EXPECT_EQ(wrong, 0);
}

TEST_P(ExchangePaths, OneWayEmptyAndNoPeers) {
  const auto comm = world();
  // Rank 0 sends to each other rank and gets nothing back; rank 1 has an empty pair besides; with one rank no peers.
  std::vector<ExchangePeer> peers;
  if (comm.rank() == 0) {
    for (int r = 1; r < comm.size(); ++r) peers.push_back({r, 10 * r, 0});
  } else {
    peers.push_back({0, 0, 10 * comm.rank()});
  }
  Exchange exchange(comm, peers);
  Exchange none(comm, {});
  std::int64_t wrong = 0;
  for (int turn = 0; turn < 50; ++turn) {
    for (std::size_t i = 0; i < peers.size(); ++i) {
      fill(exchange.send_buffer(i), peers[i].send_bytes, 0, peers[i].rank, turn);
    }
    exchange.run();
    none.run();
    if (comm.rank() != 0) {
      wrong += wrong_bytes(exchange.receive_buffer(0), 10 * comm.rank(), 0, comm.rank(), turn);
    }
    none.release();
    exchange.release();
  }
  EXPECT_EQ(wrong, 0);
}

TEST_P(ExchangePaths, TwoInFlightInTwoLanes) {
  const auto comm = world();
  const Ring rings[2] = {Ring(comm, 500), Ring(comm, 5000)};
  Exchange exchanges[2] = {Exchange(comm, rings[0].peers()), Exchange(comm, rings[1].peers())};
  Lane lanes[2];
  std::int64_t wrong[2] = {0, 0};
  int turn = 0;
  const std::function<void()> jobs[2] = {[&] { wrong[0] += rings[0].turn(exchanges[0], turn); },
                                         [&] { wrong[1] += rings[1].turn(exchanges[1], turn + 1); }};
  for (turn = 0; turn < 100; ++turn) {
    // Ranks start their lanes in unlike order, as nothing orders one against the other.
    const std::size_t first = static_cast<std::size_t>(comm.rank() + turn) % 2;
    const auto ticket = lanes[first].start(jobs[first]);
    lanes[1 - first].wait(lanes[1 - first].start(jobs[1 - first]));
    lanes[first].wait(ticket);
  }
  EXPECT_EQ(wrong[0], 0);
  EXPECT_EQ(wrong[1], 0);
}

TEST_P(ExchangePaths, RefusesSidesThatDisagree) {
  const auto comm = world();
  const std::int64_t mine = comm.rank() == 0 ? 8 : 16;
  if (comm.size() == 1) {
    EXPECT_THROW(Exchange(comm, {{0, 8, 16}}), UsageError);
  } else {
    std::vector<ExchangePeer> peers;
    if (comm.rank() < 2) peers.push_back({1 - comm.rank(), mine, mine});
    EXPECT_THROW(Exchange(comm, peers), UsageError);
    std::vector<ExchangePeer> lonely;
    if (comm.rank() == 1) lonely.push_back({0, 4, 4});
    EXPECT_THROW(Exchange(comm, lonely), UsageError);
  }
  EXPECT_THROW(Exchange(comm, {{comm.size(), 4, 4}}), UsageError);
}

TEST_P(ExchangePaths, RefusesToRunBeforeRelease) {
  const auto comm = world();
  Exchange exchange(comm, {});
  exchange.run();
  EXPECT_THROW(exchange.run(), UsageError);
  exchange.release();
  EXPECT_NO_THROW(exchange.run());
}

INSTANTIATE_TEST_SUITE_P(Comm, ExchangePaths, testing::both_paths, testing::path_name);

}  // namespace
}  // namespace halograd
