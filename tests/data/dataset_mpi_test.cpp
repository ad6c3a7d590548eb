#include "data/sample_files.hpp"
#include "data/shared_directory.hpp"
#include "halograd/core/error.hpp"
#include "halograd/data/dataset.hpp"
#include "halograd/data/sampler.hpp"
#include "halograd/tensor/partition.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>

namespace halograd {
namespace {

using test::mentions;
using test::message_of;
using test::SampleFile;
using test::SharedDirectory;
using test::TemporaryDirectory;

const SampleFile written{.shape = {4, {9, 8, 10}}};

std::string file_name(std::int64_t number) {
  return fmt::format("universe_{:03}.hdf5", number);
}

/// The message of the DataError that all ranks must throw alike.
template <typename Work>
void expect_same_data_error(const Communicator& world, const std::string& part, const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  const std::string message = message_of<DataError>(work);
  EXPECT_TRUE(mentions(message, part)) << "rank " << world.rank() << ": " << message;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  for (const std::string& other : world.all_gather(message)) EXPECT_EQ(other, message);
}

TEST(DatasetMpi, AllRanksSeeTheSameListSplitsAndOrder) {
  const Communicator world = Communicator::world();
  const SharedDirectory directory(world);
  directory.fill(11, written);
  const Dataset dataset = Dataset::open(world, {.path = directory.path(), .shape = written.shape});
  Sampler sampler(dataset.samples(Split::train), {.batch = 4, .seed = 2});
  std::string seen;
  for (std::int64_t i = 0; i < dataset.size(); ++i) seen += dataset.name(i) + '\n';
  for (const std::int64_t sample : dataset.samples(Split::test)) seen += fmt::format("{} ", sample);
  for (std::int64_t i = 0; i < sampler.batches_per_epoch(); ++i) {
    for (const std::int64_t sample : sampler.mini_batch(3, i)) seen += fmt::format("{} ", sample);
  }
  EXPECT_EQ(dataset.size(), 11);
  for (const std::string& other : world.all_gather(seen)) EXPECT_EQ(other, seen);
}

/// All that a data set knows of its samples.
std::string everything(const Dataset& dataset) {
  std::string text = fmt::format("{} of {}\n", dataset.size(), dataset.universes());
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    const Index at = dataset.place(i).origin;
    text += fmt::format("{} {} {},{},{} {}", dataset.name(i), dataset.place(i).entry, at.d, at.h, at.w,
                        to_text(dataset.layout(i)));
    for (const float value : dataset.targets(i)) text += fmt::format(" {}", value);
    if (dataset.physical(i)) text += fmt::format(" {}", dataset.physical(i)->at(0));
    text += '\n';
  }
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    for (const std::int64_t sample : dataset.samples(split)) text += fmt::format("{} ", sample);
    text += '\n';
  }
  return text;
}

const GlobalShape part{4, {4, 4, 6}};

/// Files of several kinds: alone and stacked, cut and whole, of several layouts, with and without `physPar`.
void write_mixture(const std::filesystem::path& directory, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    SampleFile sample{.shape = {4, {8, 4, 6}}, .entries = i % 3, .offset = 10 * i};
    if (i % 2 == 1) sample.shape.extent = {4, 4, 12};
    sample.channels_first = i % 7 == 4;
    if (i % 4 == 2) sample.chunk = {4, 4, 4, 4};
    if (i % 4 == 2 && sample.entries > 0) sample.chunk = {1, 4, 4, 4, 4};
    if (i % 5 == 3) sample.physical.reset();
    sample.targets = Cosmology{static_cast<float>(i) / 100.0F, 0.5F, -0.5F, 0.125F};
    test::write_sample((directory / fmt::format("universe_{:03}.hdf5", i)).string(), sample);
  }
}

TEST(DatasetMpi, AllRanksKnowAllSamplesAlike) {
  const Communicator world = Communicator::world();
  const SharedDirectory directory(world);
  directory.write([&] { write_mixture(directory.path(), 23); });
  const DatasetOptions options{.path = directory.path(), .shape = part, .subvolumes = true};
  const Dataset dataset = Dataset::open(world, options);
  const std::string own = everything(dataset);
  for (const std::string& other : world.all_gather(own)) EXPECT_EQ(other, own);
  EXPECT_EQ(own, everything(Dataset::open(Communicator::self(), options)));
  // File 4 of the mixture: a stack of one, channels first, in two parts.
  EXPECT_TRUE(mentions(own, "universe_004.hdf5[0,4:8,0:4,0:6] 0 4,0,0 contiguous [S,C,D,H,W] u16 0.04 0.5 -0.5 0.125"));
}

/// Each rank has a directory of its own, in which only the files of its share are whole: none looks into another's.
TEST(DatasetMpi, EachFileIsLookedIntoByOneRank) {
  const Communicator world = Communicator::world();
  const TemporaryDirectory own;
  constexpr std::int64_t files = 11;
  write_mixture(own.path(), files);
  const TemporaryDirectory whole;
  write_mixture(whole.path(), files);
  for (std::int64_t i = 0; i < files; ++i) {
    if (i % world.size() == world.rank()) continue;
    test::write_file(own / fmt::format("universe_{:03}.hdf5", i), "damaged");
  }
  std::string found;
  EXPECT_NO_THROW(found = everything(Dataset::open(world, {.path = own.path(), .shape = part, .subvolumes = true})));
  EXPECT_EQ(found,
            everything(Dataset::open(Communicator::self(), {.path = whole.path(), .shape = part, .subvolumes = true})));
}

TEST(DatasetMpi, ABadFileIsNamedOnAllRanksWhoeverLookedIntoIt) {
  const Communicator world = Communicator::world();
  const SharedDirectory directory(world);
  directory.fill(7, written);
  for (std::int64_t bad = 0; bad < 7; ++bad) {
    directory.write([&] { test::write_sample(directory.file(file_name(bad)), {.shape = {4, {9, 8, 11}}}); });
    expect_same_data_error(world, directory.file(file_name(bad)) + ": `full` is [9,8,11,4]",
                           [&] { Dataset::open(world, {.path = directory.path(), .shape = written.shape}); });
    directory.write([&] { test::write_sample(directory.file(file_name(bad)), written); });
  }
  EXPECT_EQ(Dataset::open(world, {.path = directory.path(), .shape = written.shape}).size(), 7);
}

TEST(DatasetMpi, AFailureOfOneRankIsEveryRanksError) {
  const Communicator world = Communicator::world();
  const SharedDirectory directory(world);
  const SharedDirectory other(world);
  directory.fill(5, written);
  other.fill(4, written);
  const int odd = world.size() - 1;  // the rank that fares worse; rank 0 itself when alone
  const auto open = [&](const std::filesystem::path& odd_path) {
    return Dataset::open(world, {.path = world.rank() == odd ? odd_path : directory.path(), .shape = written.shape});
  };
  expect_same_data_error(world, "nowhere", [&] { open(directory.path() / "nowhere"); });
  if (world.size() > 1) expect_same_data_error(world, "sees 4 files", [&] { open(other.path()); });
}

}  // namespace
}  // namespace halograd
