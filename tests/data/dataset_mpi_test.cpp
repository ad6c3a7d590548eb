#include "data/sample_files.hpp"
#include "halograd/core/error.hpp"
#include "halograd/data/loader.hpp"
#include "halograd/data/sampler.hpp"
#include "halograd/tensor/partition.hpp"

#include <gtest/gtest.h>

#include <chrono>
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
  void fill(std::int64_t count) const {
    if (owned_) test::write_samples(path_, count, written);
    world_.barrier();
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
