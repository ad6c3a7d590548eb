#include "halograd/comm/communicator.hpp"
#include "halograd/core/error.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>

namespace halograd {
namespace {

TEST(Agree, DoesNothingWhereAllDoWell) {
  const auto world = Communicator::world();
  int runs = 0;
  EXPECT_NO_THROW(agree(world, [&] { ++runs; }));
  EXPECT_EQ(runs, 1);
}

template <typename E>
std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another kind: ") + error.what();
  }
  return "nothing thrown";
}

TEST(Agree, ThrowsTheLowestFailingRanksErrorOnAll) {
  const auto world = Communicator::world();
  const int first = world.size() > 1 ? 1 : 0;
  const auto work = [&] {
    if (world.rank() == first) throw DataError("file {} is cut short", first);
    if (world.rank() > first) throw UsageError("file {} is cut short", world.rank());
  };
  const std::string suffix = world.size() > 1 ? " (rank 1)" : "";
  const std::string expected = "file " + std::to_string(first) + " is cut short" + suffix;
  EXPECT_EQ(message_of<DataError>([&] { agree(world, work); }), expected);
}

TEST(Agree, NamesNoRankWhereAllFailAlike) {
  const auto world = Communicator::world();
  EXPECT_EQ(message_of<NumericalError>([&] { agree(world, [] { throw NumericalError("the loss is not finite"); }); }),
            "the loss is not finite");
}

TEST(Agree, TakesOtherExceptionsAsResourceErrors) {
  const auto world = Communicator::world();
  const int last = world.size() - 1;
  const auto work = [&] {
    if (world.rank() == last) throw std::runtime_error("disk gone");
  };
  const std::string suffix = world.size() > 1 ? " (rank " + std::to_string(last) + ")" : "";
  EXPECT_EQ(message_of<ResourceError>([&] { agree(world, work); }), "disk gone" + suffix);
  EXPECT_EQ(message_of<ResourceError>([&] { agree(world, [] { throw std::bad_alloc(); }); }), "out of memory");
}

TEST(Agree, WithPatienceARankThatFailedDoesNotWaitForRanksThatAreStuck) {
  const auto world = Communicator::world();
  const auto pair = world.duplicate();
  const int last = world.size() - 1;
  const auto start = std::chrono::steady_clock::now();
  if (world.rank() == last) {
    const auto work = [] { throw DataError("the file is gone"); };
    EXPECT_EQ(message_of<DataError>([&] { agree(pair, work, std::chrono::milliseconds(300)); }), "the file is gone");
    const auto waited = std::chrono::steady_clock::now() - start;
    EXPECT_GE(waited, std::chrono::milliseconds(world.size() > 1 ? 300 : 0));
    EXPECT_LT(waited, std::chrono::seconds(5));
  }
  world.barrier();
  // Now nothing of it is left under way.
  if (world.rank() != last) {
    EXPECT_EQ(pair.all_reduce_max(std::int64_t{0}), 1);
  }
  // Within it, all wait for all.
  const auto slow = [&] {
    if (world.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (world.rank() == last) throw DataError("cut short");
  };
  const std::string suffix = world.size() > 1 ? " (rank " + std::to_string(last) + ")" : "";
  EXPECT_EQ(message_of<DataError>([&] { agree(world, slow, std::chrono::seconds(60)); }), "cut short" + suffix);
}

}  // namespace
}  // namespace halograd
