#include "data/sample_files.hpp"
#include "halograd/core/error.hpp"
#include "halograd/data/loader.hpp"
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
using test::TemporaryDirectory;

const SampleFile written{.shape = {4, {9, 8, 10}}};

/// A directory made by rank 0 and known to all; it goes away when rank 0 is done with it, after a barrier.
class SharedDirectory {
public:
  explicit SharedDirectory(const Communicator& world) : world_(world) {
    if (world_.rank() == 0) owned_ = std::make_unique<TemporaryDirectory>();
    path_ = world_.all_gather(owned_ ? owned_->path().string() : std::string())[0];
  }
  ~SharedDirectory() { world_.barrier(); }
  SharedDirectory(const SharedDirectory&) = delete;
  SharedDirectory& operator=(const SharedDirectory&) = delete;

  /// Rank 0 writes `count` samples, the others wait for them.
  void fill(std::int64_t count, const SampleFile& sample = written) const {
    write([&] { test::write_samples(path_, count, sample); });
  }
  /// Rank 0 writes, the others wait.
  void write(const std::function<void()>& work) const {
    if (owned_) work();
    world_.barrier();
  }
  [[nodiscard]] std::string file(std::int64_t number) const {
    return (path_ / fmt::format("universe_{:03}.hdf5", number)).string();
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
  Communicator world_;
  std::unique_ptr<TemporaryDirectory> owned_;
  std::filesystem::path path_;
};

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
  directory.fill(11);
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
    const Index at = dataset.origin(i);
    text += fmt::format("{} {} {},{},{} {}", dataset.name(i), dataset.entry(i), at.d, at.h, at.w,
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
  directory.fill(7);
  for (std::int64_t bad = 0; bad < 7; ++bad) {
    directory.write([&] { test::write_sample(directory.file(bad), {.shape = {4, {9, 8, 11}}}); });
    expect_same_data_error(world, directory.file(bad) + ": `full` is [9,8,11,4]",
                           [&] { Dataset::open(world, {.path = directory.path(), .shape = written.shape}); });
    directory.write([&] { test::write_sample(directory.file(bad), written); });
  }
  EXPECT_EQ(Dataset::open(world, {.path = directory.path(), .shape = written.shape}).size(), 7);
}

TEST(DatasetMpi, EachRankLoadsItsOwnBox) {
  const Communicator world = Communicator::world();
  const SharedDirectory directory(world);
  directory.fill(3);
  const Dataset dataset = Dataset::open(world, {.path = directory.path(), .shape = written.shape});
  const Partition partition = Partition::even(written.shape.extent, {world.size(), 1, 1});
  const Box box = partition.box({world.rank(), 0, 0});
  Loader loader(dataset, box);
  for (std::int64_t i = 0; i < 3; ++i) loader.request({i});
  for (std::int64_t i = 0; i < 3; ++i) {
    SampleFile expected = written;
    expected.offset = 100 * i;
    agree(world, [&] { EXPECT_TRUE(loader.take().samples.at(0).voxels == test::expected_voxels(expected, box)); });
  }
}

TEST(DatasetMpi, AFailureOfOneRankIsEveryRanksError) {
  const Communicator world = Communicator::world();
  const SharedDirectory directory(world);
  const SharedDirectory other(world);
  directory.fill(5);
  other.fill(4);
  const int odd = world.size() - 1;  // the rank that fares worse; rank 0 itself when alone
  const auto open = [&](const std::filesystem::path& odd_path) {
    return Dataset::open(world, {.path = world.rank() == odd ? odd_path : directory.path(), .shape = written.shape});
  };
  expect_same_data_error(world, "nowhere", [&] { open(directory.path() / "nowhere"); });
  if (world.size() > 1) expect_same_data_error(world, "sees 4 files", [&] { open(other.path()); });
}

TEST(DatasetMpi, AFileOneRankCannotReadIsEveryRanksErrorAtTheNextAgreement) {
  const Communicator world = Communicator::world();
  const SharedDirectory directory(world);
  const SharedDirectory damaged(world);
  directory.fill(3);
  damaged.fill(3);
  const int odd = world.size() - 1;
  const std::filesystem::path path = world.rank() == odd ? damaged.path() : directory.path();
  const Dataset dataset = Dataset::open(world, {.path = path, .shape = written.shape});
  world.barrier();
  if (world.rank() == odd) std::filesystem::remove(damaged.path() / "universe_001.hdf5");
  Loader loader(dataset, Box::whole(written.shape.extent));
  for (const std::int64_t sample : {0, 1, 2}) loader.request({sample});
  agree(world, [&] { loader.take(); });
  expect_same_data_error(world, (damaged.path() / "universe_001.hdf5").string(),
                         [&] { agree(world, [&] { loader.take(); }); });
  agree(world, [&] { loader.take(); });
}

}  // namespace
}  // namespace halograd
