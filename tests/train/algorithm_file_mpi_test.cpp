#include "data/shared_directory.hpp"
#include "halograd/core/error.hpp"
#include "halograd/device/algorithm_record.hpp"
#include "halograd/train/algorithm_file.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace halograd {
namespace {

/// Each rank gets back what it chose itself, and for shapes that only another has met, that one's choice.
TEST(AlgorithmFile, EveryRankFindsItsOwnChoicesAgain) {
  const Communicator world = Communicator::world();
  const test::SharedDirectory directory(world);
  const std::filesystem::path file = directory.path() / "algorithms.txt";
  AlgorithmRecord none;
  load_algorithms(world, file, none);  // there is no file yet
  save_algorithms(world, file, none);
  EXPECT_EQ(none.size(), 0U);
  EXPECT_FALSE(std::filesystem::exists(file));

  AlgorithmRecord chosen;
  chosen.set("shared shape", {.engine = 10 + world.rank()});
  chosen.set(fmt::format("shape of {}", world.rank()), {.engine = 20 + world.rank()});
  save_algorithms(world, file, chosen);
  AlgorithmRecord found;
  load_algorithms(world, file, found);
  EXPECT_EQ(found.size(), 1U + static_cast<std::size_t>(world.size()));
  EXPECT_EQ(found.find("shared shape")->engine, 10 + world.rank());
  for (int rank = 0; rank < world.size(); ++rank) {
    EXPECT_EQ(found.find(fmt::format("shape of {}", rank))->engine, 20 + rank);
  }
}

TEST(AlgorithmFile, RefusesWhatItDoesNotUnderstand) {
  const Communicator world = Communicator::world();
  const test::SharedDirectory directory(world);
  const std::filesystem::path file = directory.path() / "algorithms.txt";
  for (const char* contents : {"engine 3\n", "--- rank 0 ---\nnonsense\n"}) {
    if (world.rank() == 0) std::ofstream(file) << contents;
    world.barrier();
    AlgorithmRecord record;
    EXPECT_THROW(load_algorithms(world, file, record), DataError) << contents;
    world.barrier();
  }
}

}  // namespace
}  // namespace halograd
