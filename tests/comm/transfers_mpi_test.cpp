#include "halograd/comm/transfers.hpp"

#include "halograd/comm/waiting.hpp"
#include "halograd/core/error.hpp"

#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <list>
#include <thread>

namespace halograd {
namespace {

using test::message_of;

// Empty, a byte, one piece but for a little, several pieces and a rest.
constexpr std::int64_t sizes[] = {0, 1, 255 * 1024 + 3, 1024 * 1024 + 7, 256 * 1024};
constexpr int messages = 5;

std::byte content(int from, int to, std::int64_t index, std::int64_t i) {
  return static_cast<std::byte>(31 * from + 101 * to + 7 * index + i + (i >> 8) + 3 * (i >> 16));
}

std::vector<std::byte> message(int from, int to, std::int64_t index, std::int64_t bytes) {
  std::vector<std::byte> made(static_cast<std::size_t>(bytes));
  for (std::int64_t i = 0; i < bytes; ++i) made[static_cast<std::size_t>(i)] = content(from, to, index, i);
  return made;
}

/// Messages posted on some Transfers, with the buffers they need and what has to arrive.
class Traffic {
public:
  explicit Traffic(Transfers& transfers) : transfers_(transfers), rank_(transfers.communicator().rank()) {}

  void send(int to, std::int64_t index, std::int64_t bytes) {
    const auto& sent = buffers_.emplace_back(message(rank_, to, index, bytes));
    transfers_.send(to, sent.data(), bytes);
  }
  void receive(int from, std::int64_t index, std::int64_t bytes) {
    auto& arriving = buffers_.emplace_back(static_cast<std::size_t>(bytes), std::byte{0xEE});
    transfers_.receive(from, arriving.data(), bytes);
    received_.push_back({&arriving, message(from, rank_, index, bytes)});
  }
  /// How many of the messages did not arrive exactly.
  [[nodiscard]] std::int64_t wrong() const {
    std::int64_t count = 0;
    for (const auto& [arrived, expected] : received_) count += *arrived != expected;
    return count;
  }

private:
  struct Received {
    const std::vector<std::byte>* arrived;
    std::vector<std::byte> expected;
  };
  Transfers& transfers_;
  int rank_;
  std::list<std::vector<std::byte>> buffers_;
  std::vector<Received> received_;
};

TEST(Transfers, EveryRankSendsEveryOtherMessagesOfAllSizes) {
  const auto world = Communicator::world();
  Transfers transfers(world);
  Traffic traffic(transfers);
  std::int64_t bytes = 0;
  for (std::int64_t index = 0; index < messages; ++index) {
    for (int peer = 0; peer < world.size(); ++peer) {
      if (peer == world.rank()) continue;
      traffic.receive(peer, index, sizes[index]);
      traffic.send(peer, index, sizes[index]);
      bytes += sizes[index];
    }
  }
  EXPECT_EQ(transfers.pending(), world.size() > 1);
  transfers.wait();
  EXPECT_FALSE(transfers.pending());
  EXPECT_EQ(traffic.wrong(), 0);
  EXPECT_EQ(transfers.bytes_sent(), bytes);
  EXPECT_EQ(transfers.bytes_sent(), (world.size() - 1) * (0 + 1 + 261'123 + 1'048'583 + 262'144));
}

// In round r each rank sends to the one r + 1 places on, as many messages as say rank and round, and receives
// accordingly; nobody waits for the others between rounds.
TEST(Transfers, PatternsMayChangeFromRoundToRound) {
  const auto world = Communicator::world();
  const int ranks = world.size();
  Transfers transfers(world);
  const auto count = [](int sender, int round) { return (sender + round) % 3; };
  const auto bytes = [](int sender, int round, int i) { return std::int64_t{50'021} * (sender + 1) + 97 * round + i; };
  std::int64_t wrong = 0;
  for (int round = 0; round < 3 * ranks; ++round) {
    const int step = round % ranks;  // nobody sends where it is 0
    Traffic traffic(transfers);
    const int to = (world.rank() + step) % ranks;
    const int from = (world.rank() + ranks - step) % ranks;
    for (int i = 0; step > 0 && i < count(world.rank(), round); ++i) {
      traffic.send(to, 10 * round + i, bytes(world.rank(), round, i));
    }
    for (int i = 0; step > 0 && i < count(from, round); ++i) {
      traffic.receive(from, 10 * round + i, bytes(from, round, i));
    }
    transfers.wait();
    wrong += traffic.wrong();
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Transfers, RanksWithoutTrafficReturnAtOnce) {
  const auto world = Communicator::world();
  Transfers transfers(world);
  Traffic traffic(transfers);
  const int last = world.size() - 1;
  if (last > 0 && world.rank() == 0) traffic.send(last, 0, 700'001);
  if (last > 0 && world.rank() == last) traffic.receive(0, 0, 700'001);
  transfers.wait();
  transfers.wait();
  EXPECT_EQ(traffic.wrong(), 0);
  EXPECT_EQ(transfers.bytes_sent(), last > 0 && world.rank() == 0 ? 700'001 : 0);
}

TEST(Transfers, TwoOnOneCommunicatorKeepApart) {
  const auto world = Communicator::world();
  const int above = (world.rank() + 1) % world.size();
  const int below = (world.rank() + world.size() - 1) % world.size();
  Transfers first(world);
  Transfers second(world);
  Traffic of_first(first);
  Traffic of_second(second);
  if (world.size() > 1) {
    // Sent in one order, received in the other.
    of_first.send(above, 1, 300'001);
    of_second.send(above, 2, 300'001);
    of_second.receive(below, 2, 300'001);
    of_first.receive(below, 1, 300'001);
  }
  second.wait();
  first.wait();
  EXPECT_EQ(of_first.wrong() + of_second.wrong(), 0);
}

TEST(Transfers, RunsInAThreadWhileOthersMeetInBarriers) {
  const auto world = Communicator::world();
  const auto own = world.duplicate();
  Transfers transfers(own);
  std::atomic<std::int64_t> wrong{0};
  std::thread thread([&] {
    for (int round = 0; round < 20; ++round) {
      Traffic traffic(transfers);
      for (int peer = 0; peer < own.size(); ++peer) {
        if (peer == own.rank()) continue;
        traffic.send(peer, round, 100'003 + round);
        traffic.receive(peer, round, 100'003 + round);
      }
      transfers.wait();
      wrong += traffic.wrong();
    }
  });
  for (int i = 0; i < 100; ++i) world.barrier();
  thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Transfers, ACancelledWaitLeavesTheMessagesToAnotherWait) {
  const auto world = Communicator::world();
  Transfers transfers(world);
  Traffic traffic(transfers);
  const bool receives = world.rank() == 1;
  if (receives) {
    traffic.receive(0, 4, 600'001);
    std::atomic<bool> cancelled{false};
    std::string failure;
    std::thread thread([&] {
      comm::set_cancellation(&cancelled);
      failure = message_of<ResourceError>([&] { transfers.wait(); });
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cancelled = true;
    thread.join();
    EXPECT_EQ(failure, "communication given up, because this rank failed");
    EXPECT_TRUE(transfers.pending());
    EXPECT_EQ(traffic.wrong(), 1);
  }
  world.barrier();
  if (world.rank() == 0 && world.size() > 1) traffic.send(1, 4, 600'001);
  transfers.wait();
  EXPECT_FALSE(transfers.pending());
  EXPECT_EQ(traffic.wrong(), 0);
}

TEST(Transfers, SidesThatDisagreeAreAnError) {
  const auto world = Communicator::world();
  const auto exchange = [&](std::int64_t sent, std::int64_t expected) {
    Transfers transfers(world);
    static std::list<Traffic> kept;  // what a wait that threw leaves behind
    Traffic& traffic = kept.emplace_back(transfers);
    if (world.size() > 1 && world.rank() == 0) traffic.send(1, 0, sent);
    if (world.rank() == 1) traffic.receive(0, 0, expected);
    return message_of<ResourceError>([&] { transfers.wait(); });
  };
  const std::string fewer = exchange(100, 150);
  const std::string more = exchange(150, 100);
  if (world.rank() == 1) {
    EXPECT_EQ(fewer, "communication failed: 100 bytes came from rank 0 where 150 were expected");
    EXPECT_EQ(more.substr(0, 34), "communication failed in MPI_Test: ");
  } else {
    EXPECT_EQ(fewer + more, "");
  }
}

TEST(Transfers, RefusesWhatIsNoOtherRankAndNoSize) {
  const auto world = Communicator::world();
  std::byte buffer{};
  for (const auto& communicator : {world, Communicator::self()}) {
    Transfers transfers(communicator);
    for (const int peer : {-1, communicator.rank(), communicator.size()}) {
      EXPECT_THROW(transfers.send(peer, &buffer, 1), UsageError) << peer;
      EXPECT_THROW(transfers.receive(peer, &buffer, 1), UsageError) << peer;
      EXPECT_THROW(transfers.send(peer, &buffer, 0), UsageError) << peer;
    }
    EXPECT_NO_THROW(transfers.wait());
    EXPECT_EQ(transfers.bytes_sent(), 0);
    EXPECT_EQ(transfers.communicator().size(), communicator.size());
  }
  if (world.size() > 1) {
    Transfers transfers(world);
    EXPECT_THROW(transfers.send((world.rank() + 1) % world.size(), &buffer, -1), UsageError);
    EXPECT_FALSE(transfers.pending());
  }
}

// What the session sets is there before MPI starts, whatever the environment said (comm/session.cpp).
TEST(Session, OpenMpiReadsWithoutDataSieving) {
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) GTEST_SKIP() << "not started by Open MPI's mpirun";
  const char* value = std::getenv("OMPI_MCA_fbtl_posix_read_datasieving");
  EXPECT_STREQ(value, "0");
}

}  // namespace
}  // namespace halograd
