#include "data/shared_directory.hpp"
#include "data/voxel_files.hpp"
#include "halograd/core/error.hpp"
#include "halograd/data/group_reader.hpp"
#include "halograd/data/hdf5_access.hpp"
#include "halograd/tensor/partition.hpp"
#include "halograd/tensor/process_grid.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <set>

namespace halograd {
namespace {

using test::chunked;
using test::contiguous;
using test::expected_voxels;
using test::mentions;
using test::message_of;
using test::same_bytes;
using test::SharedDirectory;
using test::VoxelFile;
using test::write_voxels;

constexpr std::array all_shapes{ReadShape::boxes, ReadShape::blocks, ReadShape::sample};

/// The MPI drivers only where there is MPI: one rank alone may run without.
std::vector<ReadDriver> all_drivers() {
  if (!mpi_drivers_available()) return {ReadDriver::posix};
  return {ReadDriver::posix, ReadDriver::mpi_independent, ReadDriver::mpi_collective};
}

/// Every grid of the spatial groups that these ranks can form.
std::vector<ProcessGrid> all_grids(std::int64_t ranks) {
  std::vector<ProcessGrid> grids;
  for (std::int64_t d = 1; d <= ranks; ++d) {
    for (std::int64_t h = 1; d * h <= ranks; ++h) {
      for (std::int64_t w = 1; d * h * w <= ranks; ++w) {
        if (ranks % (d * h * w) == 0) grids.push_back({ranks / (d * h * w), d, h, w});
      }
    }
  }
  return grids;
}

/// A file, and the part of it that is the sample of a group.
struct Case {
  const char* name;
  VoxelFile file;
  Extent sample;
  std::int64_t entry = 0;
  Index origin{};
};

std::vector<Case> all_cases() {
  const Extent odd{13, 10, 8};
  const Extent even{16, 12, 9};
  VoxelFile first{.layout = contiguous(odd)};
  first.layout.layout.channels_first = true;
  VoxelFile big{.layout = contiguous(even), .big_endian = true};
  big.layout.converted = true;
  VoxelFile packed{.layout = chunked(odd, {4, 5, 3})};
  packed.layout.compressed = true;
  VoxelFile packed_first{.layout = chunked(even, {5, 4, 9})};
  packed_first.layout.compressed = true;
  packed_first.layout.layout = {DType::i16, true};
  VoxelFile stacked{.layout = chunked(odd, {8, 8, 8}, 2)};
  stacked.layout.stacked = true;
  stacked.layout.entries = 3;
  stacked.layout.chunk_entries = 2;
  stacked.layout.layout.dtype = DType::f32;
  stacked.layout.file_element_bytes = 4;
  VoxelFile stacked_first{.layout = contiguous({8, 8, 9}, 3)};
  stacked_first.layout.stacked = true;
  stacked_first.layout.entries = 4;
  stacked_first.layout.layout = {DType::u8, true};
  stacked_first.layout.file_element_bytes = 1;
  return {
      {"contiguous", {.layout = contiguous(odd)}, odd},
      {"contiguous, channels first", first, odd},
      {"big-endian", big, even},
      {"chunks that divide the volume", {.layout = chunked(even, {4, 4, 3})}, even},
      {"chunks that do not", {.layout = chunked(odd, {4, 4, 5})}, odd},
      {"one chunk", {.layout = chunked(even, {16, 12, 9})}, even},
      {"gzip", packed, odd},
      {"gzip, channels first", packed_first, even},
      {"sub-volume of a contiguous file", {.layout = contiguous({20, 18, 17})}, {10, 9, 8}, 0, {10, 9, 9}},
      {"sub-volume that begins inside a chunk",
       {.layout = chunked({20, 18, 17}, {6, 5, 7})},
       {10, 9, 8},
       0,
       {10, 9, 9}},
      {"entry of a stacked file", stacked, odd, 1},
      {"entry of a stacked file, channels first", stacked_first, {8, 8, 9}, 3},
  };
}

/// Readers for one grid of all ranks, each group reading for itself.
struct Groups {
  Groups(const Communicator& world, const ProcessGrid& grid, const Extent& sample, std::int64_t channels)
      : group(world.split(static_cast<int>(grid.place(world.rank()).group), world.rank())) {
    const Partition partition = Partition::even(sample, grid.spatial());
    std::vector<Box> owned;
    for (std::int64_t r = 0; r < grid.spatial_size(); ++r) owned.push_back(partition.box(grid.place(r).place));
    reader = std::make_unique<GroupReader>(group, GlobalShape{channels, sample}, std::move(owned));
  }
  /// What the group's ranks have read together.
  [[nodiscard]] std::int64_t bytes_read() const {
    auto bytes = static_cast<double>(reader->bytes_read());
    group.all_reduce_sum(&bytes, 1);
    return static_cast<std::int64_t>(bytes);
  }
  Communicator group;
  std::unique_ptr<GroupReader> reader;
};

std::int64_t bytes_of_the_sample(const Case& c) {
  return bytes_taken(c.file.layout, c.entry, c.origin, Box::whole(c.sample));
}

/// Reads `c` in one way; the voxels must be right and come from the file once.
void expect_right(const Case& c, const std::string& path, const ProcessGrid& grid, const Groups& groups,
                  const ReadPlan& plan) {
  GroupReader& reader = *groups.reader;
  const auto expected = expected_voxels(c.file, c.entry, c.origin, reader.own());
  std::vector<std::byte> voxels(expected.size(), std::byte{0xAB});
  const std::int64_t before = groups.bytes_read();
  reader.read({path, {c.file.layout}, c.entry, c.origin}, plan, voxels.data());
  const std::string where = fmt::format("{}, {} groups of {}, {}, {}", c.name, grid.data, grid.spatial_name(),
                                        driver_name(plan.driver), shape_name(plan.shape));
  EXPECT_TRUE(same_bytes(voxels, expected)) << where;
  const std::int64_t taken = groups.bytes_read() - before;
  if (plan.shape != ReadShape::boxes || !c.file.layout.chunked) {
    EXPECT_EQ(taken, bytes_of_the_sample(c)) << where;
  } else {
    EXPECT_GE(taken, bytes_of_the_sample(c)) << where;
  }
}

/// Every grid and every case, and of their pairs as many as take a few seconds: all up to 4 ranks.
bool dealt(std::size_t grid, std::size_t file, int ranks) {
  const std::size_t every = ranks <= 4 ? 1 : 4;
  return (grid + file) % every == 0;
}

TEST(ReadingMpi, EveryWayGivesEveryVoxelOnEveryGrid) {
  const Communicator world = Communicator::world();
  const SharedDirectory directory(world);
  const auto cases = all_cases();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (world.rank() == 0) write_voxels(directory.file(cases[i].name), cases[i].file);
  }
  world.barrier();
  const auto grids = all_grids(world.size());
  std::size_t read = 0;
  for (std::size_t g = 0; g < grids.size(); ++g) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (!dealt(g, i, world.size())) continue;
      const Case& c = cases[i];
      const Groups groups(world, grids[g], c.sample, c.file.layout.shape.channels);
      for (const ReadDriver driver : all_drivers()) {
        for (const ReadShape shape : all_shapes) {
          expect_right(c, directory.file(c.name), grids[g], groups, {driver, shape});
          ++read;
        }
      }
    }
  }
  EXPECT_GE(read, 2 * cases.size() * all_drivers().size());
}

/// All ranks as one group, each with a slab in width.
std::vector<Box> slabs_in_width(const Extent& sample, int ranks) {
  const Partition partition = Partition::even(sample, {1, 1, ranks});
  std::vector<Box> owned;
  for (std::int64_t r = 0; r < ranks; ++r) owned.push_back(partition.box({0, 0, r}));
  return owned;
}

// Ranks with many requests and ranks with few or none read together.
TEST(ReadingMpi, SmallRequestsGiveTheSameVoxelsThroughEveryDriver) {
  const Communicator world = Communicator::world();
  const SharedDirectory directory(world);
  VolumeLayout packed = chunked({13, 10, 8}, {4, 5, 3});
  packed.compressed = true;
  int number = 0;
  for (const VolumeLayout& layout : {contiguous({13, 10, 8}), chunked({13, 10, 8}, {4, 5, 3}), packed}) {
    const VoxelFile file{.layout = layout};
    const std::string path = directory.file(fmt::format("{}", number++));
    if (world.rank() == 0) write_voxels(path, file);
    world.barrier();
    // Rank r reads 13 - 3r planes, and from the fifth on none.
    const Box box{{std::min(3 * world.rank(), 13), 0, 1}, {13, 10, 8}};
    const auto expected = expected_voxels(file, 0, {}, box);
    for (const ReadDriver driver : all_drivers()) {
      for (const std::int64_t limit : {500, 1500}) {
        HyperslabReader reader(world, driver, limit);
        std::vector<std::byte> voxels(expected.size());
        reader.read({path, {layout}, 0, {}}, box, voxels.data());
        EXPECT_TRUE(same_bytes(voxels, expected)) << driver_name(driver) << ", " << limit;
        if (!layout.chunked) {
          EXPECT_EQ(reader.bytes_read(), static_cast<std::int64_t>(expected.size()));
        }
      }
    }
  }
}

// Half of a width cut of planes is another rank's: what travels is known exactly.
TEST(ReadingMpi, PassesOnWhatOthersOwnAndNothingElse) {
  const Communicator world = Communicator::world();
  const SharedDirectory directory(world);
  const std::int64_t ranks = world.size();
  const VoxelFile file{.layout = contiguous({8, 4, 8})};
  const std::string path = directory.file("file");
  if (world.rank() == 0) write_voxels(path, file);
  world.barrier();
  GroupReader reader(world, file.layout.shape, slabs_in_width({8, 4, 8}, world.size()));
  std::vector<std::byte> voxels(static_cast<std::size_t>(8 * 4 * 8 / ranks * 8));
  const SamplePlace place{path, {file.layout}, 0, {}};
  const std::int64_t bytes = 8 * 4 * 8 * 4 * 2;
  reader.read(place, {ReadDriver::posix, ReadShape::boxes}, voxels.data());
  EXPECT_EQ(reader.bytes_passed_on(), 0);
  EXPECT_EQ(reader.bytes_read(), bytes / ranks);
  reader.read(place, {ReadDriver::posix, ReadShape::blocks}, voxels.data());
  EXPECT_EQ(reader.bytes_passed_on(), bytes / ranks / ranks * (ranks - 1));
  EXPECT_EQ(reader.bytes_read(), 2 * bytes / ranks);
  const std::int64_t before = reader.bytes_passed_on();
  reader.read(place, {ReadDriver::posix, ReadShape::sample}, voxels.data());
  EXPECT_EQ(reader.bytes_passed_on() - before, world.rank() == 0 ? bytes / ranks * (ranks - 1) : 0);
  EXPECT_EQ(reader.bytes_read(), 2 * bytes / ranks + (world.rank() == 0 ? bytes : 0));
}

/// Files that one rank finds where the others find a right one, and what that rank must say.
struct Fault {
  const char* file;
  const char* message;
};
constexpr std::array faults{Fault{"missing", "missing: no such file; expected an HDF5 file"},
                            Fault{"garbage", "garbage: not an HDF5 file"},
                            Fault{"short", "short: damaged, open in another program, or cut short ("},
                            Fault{"other", "other: `full` is [8,4,4,4] of u16; it was [8,4,8,4] of u16 when"}};

void write_faulty_files(const SharedDirectory& directory, const VoxelFile& right) {
  write_voxels(directory.file("right"), right);
  std::ofstream(directory.file("garbage")) << "not HDF5";
  write_voxels(directory.file("short"), right);
  std::filesystem::resize_file(directory.file("short"), std::filesystem::file_size(directory.file("short")) / 2);
  write_voxels(directory.file("other"), {.layout = contiguous({8, 4, 4})});
}

// Each driver, each fault, on the first and on the last rank: an error there, nowhere a hang, and all goes on after.
TEST(ReadingMpi, OneRanksUnreadableFileIsThatRanksErrorAndHoldsUpNobody) {
  const Communicator world = Communicator::world();
  const SharedDirectory directory(world);
  const VoxelFile right{.layout = contiguous({8, 4, 8})};
  if (world.rank() == 0) write_faulty_files(directory, right);
  world.barrier();
  const std::set<int> failing{0, world.size() - 1};
  const auto start = std::chrono::steady_clock::now();
  for (const ReadDriver driver : all_drivers()) {
    for (const ReadShape shape : {ReadShape::boxes, ReadShape::blocks}) {
      GroupReader reader(world, right.layout.shape, slabs_in_width({8, 4, 8}, world.size()));
      const auto expected = expected_voxels(right, 0, {}, reader.own());
      std::vector<std::byte> voxels(expected.size());
      for (const Fault& fault : faults) {
        for (const int rank : failing) {
          const bool mine = world.rank() == rank;
          const SamplePlace place{directory.file(mine ? fault.file : "right"), {right.layout}, 0, {}};
          std::ranges::fill(voxels, std::byte{0xAB});
          const std::string message = message_of<DataError>([&] {
            reader.read(place, {driver, shape}, voxels.data());
          });
          EXPECT_EQ(message.empty(), !mine) << fault.file << ", " << driver_name(driver) << ": " << message;
          if (mine) {
            EXPECT_TRUE(mentions(message, directory.file(fault.message))) << message;
          }
          if (driver == ReadDriver::mpi_collective && shape == ReadShape::boxes) {
            EXPECT_TRUE(same_bytes(voxels, std::vector(voxels.size(), std::byte{0xAB}))) << "touched after a failure";
          }
          reader.read({directory.file("right"), {right.layout}, 0, {}}, {driver, shape}, voxels.data());
          EXPECT_TRUE(same_bytes(voxels, expected));
        }
      }
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

// A chunk that cannot be unpacked fails the rank that reads it, in the midst of a read in which all take part.
TEST(ReadingMpi, ADamagedChunkIsTheErrorOfTheRankThatReadsIt) {
  const Communicator world = Communicator::world();
  const SharedDirectory directory(world);
  VoxelFile file{.layout = chunked({4, 4, 8}, {4, 4, 1})};
  file.layout.compressed = true;
  const std::string path = directory.file("damaged");
  if (world.rank() == 0) {
    write_voxels(path, file);
    test::damage_last_chunk(path);
  }
  world.barrier();
  for (const ReadDriver driver : all_drivers()) {
    // Several requests each, so that the last rank goes on after its failure.
    HyperslabReader reader(world, driver, 4 * 4 * 4 * 2);
    const Box box = slabs_in_width({4, 4, 8}, world.size())[static_cast<std::size_t>(world.rank())];
    const auto expected = expected_voxels(file, 0, {}, box);
    std::vector<std::byte> voxels(expected.size());
    const std::string message = message_of<DataError>([&] {
      reader.read({path, {file.layout}, 0, {}}, box, voxels.data());
    });
    if (world.rank() == world.size() - 1) {
      EXPECT_TRUE(mentions(message, path + ": `full` cannot be read (")) << driver_name(driver) << ": " << message;
    } else {
      EXPECT_EQ(message, "") << driver_name(driver);
      EXPECT_TRUE(same_bytes(voxels, expected)) << driver_name(driver);
    }
  }
}

}  // namespace
}  // namespace halograd
