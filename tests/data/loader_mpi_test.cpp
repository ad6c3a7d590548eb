#include "halograd/data/loader.hpp"

#include "data/sample_files.hpp"
#include "data/shared_directory.hpp"
#include "data/voxel_files.hpp"
#include "halograd/core/error.hpp"
#include "halograd/data/sampler.hpp"
#include "halograd/tensor/partition.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

namespace halograd {
namespace {

using test::mentions;
using test::message_of;
using test::SampleFile;
using test::SharedDirectory;

constexpr std::int64_t sample_count = 7;

struct Setting {
  ProcessGrid grid;
  SampleFile file;
  std::vector<SampleFile> others{};  ///< sample i is written as the i-th of these and `file`, in turn
  StoreOptions store{.kind = StoreKind::memory, .memory_budget = 1 << 20};
  ReadOptions read;
};

/// A loader over `sample_count` samples whose voxels are their own global index plus 100 times the sample's number.
class Harness {
public:
  Harness(const Communicator& world, const Setting& setting)
      : world_(world), directory_(world), file_(setting.file), grid_(setting.grid) {
    directory_.write([&] { write(setting); });
    dataset_.emplace(Dataset::open(world, {.path = directory_.path(), .shape = file_.shape, .split = {1, 0, 0}}));
    const Partition partition = Partition::even(file_.shape.extent, grid_.spatial());
    slots_.own = partition.box(grid_.place(world.rank()).place);
    // Margins of one voxel on every side that the volume has room for.
    slots_.tile = slots_.own;
    for (int i = 0; i < 3; ++i) {
      slots_.tile.lo[i] = std::max<std::int64_t>(0, slots_.own.lo[i] - 1);
      slots_.tile.hi[i] = std::min(file_.shape.extent[i], slots_.own.hi[i] + 1);
    }
    const std::int64_t elements = sample_count * slots_.tile.volume() * file_.shape.channels;
    for (std::size_t slot = 0; slot < 2; ++slot) {
      memory_[slot].assign(static_cast<std::size_t>(elements), -1.0F);
      slots_.data[slot] = reinterpret_cast<std::byte*>(memory_[slot].data());
    }
    Sampler first(dataset_->samples(Split::train), {.batch = batch, .shuffle = true, .seed = 5});
    std::vector<std::vector<std::int64_t>> kept;
    for (std::int64_t i = 0; i < first.batches_per_epoch(); ++i) kept.push_back(first.mini_batch(0, i));
    loader_.emplace(world, *dataset_, slots_,
                    LoaderOptions{.grid = grid_, .read = setting.read, .store = setting.store}, kept);
  }

  /// Runs `epochs` epochs, checking every voxel; the bytes read from files in each, over all ranks.
  std::vector<double> run(std::int64_t epochs) {
    Sampler sampler(dataset_->samples(Split::train), {.batch = batch, .shuffle = true, .seed = 5});
    std::vector<double> bytes;
    std::vector<std::vector<std::int64_t>> all;
    for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
      for (std::int64_t i = 0; i < sampler.batches_per_epoch(); ++i) all.push_back(sampler.mini_batch(epoch, i));
    }
    loader_->request({.samples = all[0]});
    double read = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i + 1 < all.size()) loader_->request({.samples = all[i + 1]});
      read += check(loader_->take(), all[i]);
      if ((static_cast<std::int64_t>(i) + 1) % sampler.batches_per_epoch() != 0) continue;
      world_.all_reduce_sum(&read, 1);
      bytes.push_back(read);
      read = 0;
    }
    return bytes;
  }

  [[nodiscard]] Loader& loader() { return *loader_; }
  [[nodiscard]] const Dataset& dataset() const { return *dataset_; }
  [[nodiscard]] double set_bytes() const {
    return static_cast<double>(sample_count * file_.shape.extent.volume() * file_.shape.channels *
                               dtype_size(file_.dtype));
  }

  [[nodiscard]] double memory_bytes() const {
    double bytes = 0;
    for (std::int64_t i = 0; i < sample_count; ++i) {
      bytes += static_cast<double>(dataset_->bytes(i, Box::whole(file_.shape.extent)));
    }
    return bytes;
  }

  static constexpr std::int64_t batch = 3;

private:
  void write(const Setting& setting) const {
    std::vector<SampleFile> kinds = setting.others;
    kinds.push_back(setting.file);
    for (std::int64_t i = 0; i < sample_count; ++i) {
      SampleFile kind = kinds[static_cast<std::size_t>(i) % kinds.size()];
      kind.offset = 100 * i;
      test::write_sample(directory_.file(fmt::format("universe_{:03}.hdf5", i)), kind);
    }
  }

  double check(const LoadedBatch& loaded, const std::vector<std::int64_t>& mini_batch) {
    const SampleRange share =
        group_samples(static_cast<std::int64_t>(mini_batch.size()), grid_.data, grid_.place(world_.rank()).group);
    const std::vector<std::int64_t> mine(mini_batch.begin() + share.first,
                                         mini_batch.begin() + share.first + share.count);
    EXPECT_EQ(loaded.samples, mine);
    const std::vector<float>& slot = memory_[static_cast<std::size_t>(loaded.slot)];
    std::int64_t wrong = 0;
    for (std::size_t n = 0; n < mine.size(); ++n) {
      for (Index at = slots_.tile.lo; at.d < slots_.tile.hi.d; ++at.d) {
        for (at.h = slots_.tile.lo.h; at.h < slots_.tile.hi.h; ++at.h) {
          for (at.w = slots_.tile.lo.w; at.w < slots_.tile.hi.w; ++at.w) {
            for (std::int64_t c = 0; c < file_.shape.channels; ++c) {
              const Extent e = slots_.tile.extent();
              const Index i{at.d - slots_.tile.lo.d, at.h - slots_.tile.lo.h, at.w - slots_.tile.lo.w};
              const std::int64_t place =
                  ((static_cast<std::int64_t>(n) * e.d + i.d) * e.h + i.h) * e.w * file_.shape.channels +
                  i.w * file_.shape.channels + c;
              const float right = slots_.own.contains(at)
                                      ? static_cast<float>(test::voxel_value(file_.shape, at, c) + 100 * mine[n])
                                      : -1.0F;  // margins are somebody else's
              if (slot[static_cast<std::size_t>(place)] != right) ++wrong;
            }
          }
        }
      }
    }
    EXPECT_EQ(wrong, 0) << "voxels";
    return static_cast<double>(loaded.file_bytes);
  }

  Communicator world_;
  SharedDirectory directory_;
  SampleFile file_;
  ProcessGrid grid_;
  std::optional<Dataset> dataset_;
  InputSlots slots_;
  std::array<std::vector<float>, 2> memory_;
  std::optional<Loader> loader_;
};

/// Every way to lay out the ranks: groups × depth × height × width.
std::vector<ProcessGrid> grids(std::int64_t ranks) {
  std::vector<ProcessGrid> all;
  for (std::int64_t n = 1; n <= ranks; ++n) {
    for (std::int64_t d = 1; n * d <= ranks; ++d) {
      for (std::int64_t h = 1; n * d * h <= ranks; ++h) {
        if (ranks % (n * d * h) == 0) all.push_back({n, d, h, ranks / (n * d * h)});
      }
    }
  }
  return all;
}

const SampleFile uneven{.shape = {2, {9, 8, 11}}};

TEST(LoaderMpi, every_voxel_lands_in_the_right_place_epoch_after_epoch) {
  const Communicator world = Communicator::world();
  for (const ProcessGrid& grid : grids(world.size())) {
    for (const bool channels_first : {false, true}) {
      Setting setting{.grid = grid, .file = uneven};
      setting.file.channels_first = channels_first;
      Harness harness(world, setting);
      const std::vector<double> bytes = harness.run(3);
      EXPECT_EQ(bytes[0], harness.set_bytes()) << grid.data << " groups of " << grid.spatial_name();
      EXPECT_EQ(bytes[1], 0.0);
      EXPECT_EQ(bytes[2], 0.0);
    }
  }
}

TEST(LoaderMpi, a_store_on_disk_or_half_of_it_gives_the_same) {
  const Communicator world = Communicator::world();
  const SharedDirectory disk(world);
  for (const ProcessGrid& grid : grids(world.size())) {
    for (const std::int64_t budget : {0, 3000}) {
      Setting setting{.grid = grid, .file = uneven};
      setting.store = {
          .kind = budget == 0 ? StoreKind::disk : StoreKind::memory, .memory_budget = budget, .directory = disk.path()};
      Harness harness(world, setting);
      const std::vector<double> bytes = harness.run(2);
      EXPECT_EQ(bytes[0], harness.set_bytes());
      EXPECT_EQ(bytes[1], 0.0);
    }
  }
}

TEST(LoaderMpi, without_a_store_every_epoch_reads_once) {
  const Communicator world = Communicator::world();
  for (const bool whole_samples : {false, true}) {
    Setting setting{.grid = grids(world.size()).front(), .file = uneven};
    setting.store.kind = StoreKind::off;
    setting.read.whole_samples = whole_samples;
    Harness harness(world, setting);
    EXPECT_EQ(harness.run(2), (std::vector<double>{harness.set_bytes(), harness.set_bytes()}));
  }
}

TEST(LoaderMpi, compressed_chunks_are_unpacked_once) {
  const Communicator world = Communicator::world();
  for (const ProcessGrid& grid : grids(world.size())) {
    Setting setting{.grid = grid, .file = {.shape = {2, {8, 12, 8}}}};
    setting.file.chunk = {4, 6, 8, 2};
    setting.file.gzip = 1;
    Harness harness(world, setting);
    const std::vector<double> bytes = harness.run(2);
    EXPECT_EQ(bytes[0], harness.set_bytes()) << grid.data << " groups of " << grid.spatial_name();
    EXPECT_EQ(bytes[1], 0.0);
  }
}

TEST(LoaderMpi, a_file_that_vanishes_is_one_ranks_failure_and_nobody_waits) {
  const Communicator world = Communicator::world();
  for (const ProcessGrid& grid : grids(world.size())) {
    Setting setting{.grid = grid, .file = uneven};
    setting.store.kind = StoreKind::off;
    Harness harness(world, setting);
    world.barrier();
    if (world.rank() == 0) std::filesystem::remove(harness.dataset().file(2));
    world.barrier();
    harness.loader().request({.samples = {0, 1}});
    harness.loader().request({.samples = {2}});
    harness.loader().request({.samples = {3}});
    harness.loader().take();
    const std::string message = message_of<DataError>([&] { agree(world, [&] { harness.loader().take(); }); });
    EXPECT_TRUE(mentions(message, "universe_002.hdf5: no such file")) << message;
    agree(world, [&] { harness.loader().take(); });
  }
}

TEST(LoaderMpi, files_of_all_kinds_make_one_set) {
  const Communicator world = Communicator::world();
  const SharedDirectory disk(world);
  for (const ProcessGrid& grid : grids(world.size())) {
    Setting setting{.grid = grid, .file = {.shape = {2, {8, 12, 8}}}};
    SampleFile first = setting.file;
    first.channels_first = true;
    first.dtype = DType::i16;
    SampleFile wide = setting.file;
    wide.dtype = DType::f32;
    wide.chunk = {4, 6, 8, 2};
    SampleFile foreign = setting.file;
    foreign.file_type = H5T_STD_U16BE;
    foreign.chunk = {8, 12, 8, 2};  // all of it
    foreign.gzip = 1;
    setting.others = {first, wide, foreign};
    // Some of them in memory, the rest on disk.
    setting.store = {.kind = StoreKind::memory, .memory_budget = 9000, .directory = disk.path()};
    Harness harness(world, setting);
    const std::vector<double> bytes = harness.run(3);
    EXPECT_EQ(bytes[0], harness.memory_bytes()) << grid.data << " groups of " << grid.spatial_name();
    EXPECT_EQ(bytes[1], 0.0);
    EXPECT_EQ(bytes[2], 0.0);
  }
}

TEST(LoaderMpi, a_chunk_that_one_rank_cannot_unpack_stops_all_and_nobody_waits) {
  const Communicator world = Communicator::world();
  const SharedDirectory disk(world);
  for (const ProcessGrid& grid : grids(world.size())) {
    Setting setting{.grid = grid, .file = {.shape = {2, {8, 8, 8}}}};
    setting.file.chunk = {4, 8, 8, 2};
    setting.file.gzip = 1;
    setting.store = {.kind = StoreKind::disk, .directory = disk.path()};
    Harness harness(world, setting);
    world.barrier();
    if (world.rank() == 0) test::damage_last_chunk(harness.dataset().file(0));
    world.barrier();
    // The damaged one comes first: every group has more to read behind it.
    harness.loader().request({.samples = {0, 1, 2}});
    harness.loader().request({.samples = {3, 4, 5}});
    const std::string message = message_of<DataError>([&] { agree(world, [&] { harness.loader().take(); }); });
    EXPECT_TRUE(mentions(message, "universe_000.hdf5: `full` cannot be read")) << message;
    agree(world, [&] { harness.loader().take(); });
  }
}

TEST(LoaderMpi, refuses_what_is_not_there) {
  const Communicator world = Communicator::world();
  Harness harness(world, {.grid = grids(world.size()).front(), .file = uneven});
  EXPECT_THROW(harness.loader().take(), UsageError);
  EXPECT_THROW(harness.loader().request({.samples = {0, sample_count}}), UsageError);
  EXPECT_THROW(harness.loader().request({.samples = {-1}}), UsageError);
  harness.run(1);
}

TEST(LoaderMpi, a_set_that_fits_nowhere_is_refused_beforehand) {
  const Communicator world = Communicator::world();
  Setting setting{.grid = grids(world.size()).front(), .file = uneven};
  setting.store = {.kind = StoreKind::disk, .directory = "/nowhere/at/all"};
  const std::string message = message_of<ResourceError>([&] { Harness(world, setting); });
  EXPECT_TRUE(mentions(message, "/nowhere/at/all")) << message;
}

}  // namespace
}  // namespace halograd
