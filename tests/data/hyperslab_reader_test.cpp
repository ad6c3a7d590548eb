#include "halograd/data/hyperslab_reader.hpp"

#include "data/voxel_files.hpp"
#include "halograd/core/error.hpp"
#include "halograd/data/hdf5_voxels.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace halograd {
namespace {

using test::chunked;
using test::contiguous;
using test::expected_voxels;
using test::mentions;
using test::message_of;
using test::same_bytes;
using test::TemporaryDirectory;
using test::VoxelFile;
using test::write_voxels;

class HyperslabReaderTest : public testing::Test {
protected:
  /// Of a file that write() has made.
  [[nodiscard]] SamplePlace place(const VolumeLayout& layout, std::int64_t entry = 0, const Index& origin = {}) const {
    return {.file = path, .layout = {layout}, .entry = entry, .origin = origin};
  }
  std::vector<std::byte> read(const SamplePlace& from, const Box& box) {
    std::vector<std::byte> voxels(
        static_cast<std::size_t>(hyperslab_bytes(from.layout.sample(), from.layout.image.shape.channels, box)));
    reader.read(from, box, voxels.data());
    return voxels;
  }
  std::string error(const SamplePlace& from) {
    return message_of<DataError>([&] { read(from, Box::whole(from.layout.image.shape.extent)); });
  }

  TemporaryDirectory directory;
  std::string path = directory.file("universe.hdf5");
  HyperslabReader reader{Communicator::self(), ReadDriver::posix};
};

TEST_F(HyperslabReaderTest, EveryTypeOrderAndByteOrderExactly) {
  struct Type {
    DType dtype;
    std::int64_t bytes_in_file;
    bool big_endian;
  };
  const std::vector<Type> types{{DType::u16, 2, false}, {DType::u16, 2, true},  {DType::i16, 2, false},
                                {DType::i16, 2, true},  {DType::u8, 1, false},  {DType::f32, 4, false},
                                {DType::f32, 4, true},  {DType::f32, 8, false}, {DType::f32, 8, true}};
  const std::vector<Box> boxes{Box::whole({5, 4, 6}), {{1, 1, 2}, {4, 3, 5}}, {{4, 3, 5}, {5, 4, 6}}};
  for (const Type& type : types) {
    for (const bool channels_first : {false, true}) {
      for (VolumeLayout layout : {contiguous({5, 4, 6}), chunked({5, 4, 6}, {2, 3, 4})}) {
        layout.layout = {type.dtype, channels_first};
        layout.file_element_bytes = type.bytes_in_file;
        layout.converted = type.big_endian || type.bytes_in_file != dtype_size(type.dtype);
        const VoxelFile file{.layout = layout, .big_endian = type.big_endian};
        write_voxels(path, file);
        EXPECT_EQ(inspect_file(path, {.shape = layout.shape, .prediction = true}).layout.image, layout);
        for (const Box& box : boxes) {
          EXPECT_TRUE(same_bytes(read(place(layout), box), expected_voxels(file, 0, {}, box)));
        }
      }
    }
  }
}

TEST_F(HyperslabReaderTest, SignedBytesAreReadAsWiderIntegers) {
  VoxelFile file{.layout = contiguous({2, 3, 4}, 1)};
  file.layout.layout.dtype = DType::i16;
  file.layout.file_element_bytes = 1;
  file.layout.converted = true;
  file.offset = -12;  // -12 … 11
  write_voxels(path, file);
  const Box whole = Box::whole({2, 3, 4});
  EXPECT_TRUE(same_bytes(read(place(file.layout), whole), expected_voxels(file, 0, {}, whole)));
  EXPECT_EQ(reader.bytes_read(), 24);
}

TEST_F(HyperslabReaderTest, SubvolumesAndStackedEntriesLieWhereTheyShould) {
  for (const bool channels_first : {false, true}) {
    VoxelFile file{.layout = chunked({6, 8, 10}, {4, 3, 5}, 2)};
    file.layout.layout.channels_first = channels_first;
    file.layout.stacked = true;
    file.layout.entries = 3;
    file.layout.chunk_entries = 2;
    write_voxels(path, file);
    for (std::int64_t entry = 0; entry < 3; ++entry) {
      const Index origin{3, 4, 5};
      const Box box{{0, 1, 2}, {3, 4, 5}};
      EXPECT_TRUE(same_bytes(read(place(file.layout, entry, origin), box), expected_voxels(file, entry, origin, box)));
    }
  }
}

TEST_F(HyperslabReaderTest, SmallRequestsGiveTheSameVoxels) {
  for (const VolumeLayout& layout : {contiguous({9, 8, 7}), chunked({9, 8, 7}, {4, 4, 4})}) {
    const VoxelFile file{.layout = layout};
    write_voxels(path, file);
    const Box box{{1, 0, 2}, {9, 8, 7}};
    for (const std::int64_t limit : {8, 200, 1000}) {
      HyperslabReader in_pieces(Communicator::self(), ReadDriver::posix, limit);
      std::vector<std::byte> voxels(static_cast<std::size_t>(hyperslab_bytes(layout.layout, 4, box)));
      in_pieces.read(place(layout), box, voxels.data());
      EXPECT_TRUE(same_bytes(voxels, expected_voxels(file, 0, {}, box)));
    }
  }
}

TEST_F(HyperslabReaderTest, CountsBytesInTheFilesOwnTypeAndWholeChunks) {
  VoxelFile file{.layout = contiguous({6, 6, 6})};
  file.layout.layout.dtype = DType::f32;
  file.layout.file_element_bytes = 8;
  file.layout.converted = true;
  write_voxels(path, file);
  read(place(file.layout), {{0, 0, 0}, {2, 3, 4}});
  EXPECT_EQ(reader.bytes_read(), 2 * 3 * 4 * 4 * 8);
  read(place(file.layout), {{2, 2, 2}, {2, 2, 2}});  // nothing
  EXPECT_EQ(reader.bytes_read(), 2 * 3 * 4 * 4 * 8);

  const VolumeLayout layout = chunked({6, 6, 6}, {4, 4, 4});
  write_voxels(path, {.layout = layout});
  const std::int64_t before = reader.bytes_read();
  read(place(layout), {{3, 0, 4}, {5, 1, 5}});  // both chunks in depth: 6 planes, 4 rows, 2 wide
  EXPECT_EQ(reader.bytes_read() - before, 6 * 4 * 2 * 4 * 2);
}

/// Bytes this process has read so far.
std::int64_t bytes_by_the_system() {
  std::ifstream io("/proc/self/io");
  std::string name;
  std::int64_t bytes = 0;
  io >> name >> bytes;
  return bytes;
}

// A chunk, packed or larger than HDF5's own cache, is taken from the file once and not row by row.
TEST_F(HyperslabReaderTest, TakesEachChunkFromTheFileOnce) {
  for (const bool compressed : {false, true}) {
    VolumeLayout layout = chunked({64, 64, 96}, {64, 64, 48});  // chunks of 1.5 MiB
    layout.compressed = compressed;
    write_voxels(path, {.layout = layout});
    const auto on_disk = static_cast<std::int64_t>(std::filesystem::file_size(path));
    const std::int64_t counted = reader.bytes_read();
    const std::int64_t before = bytes_by_the_system();
    read(place(layout), {{0, 0, 10}, {64, 64, 90}});
    const std::int64_t taken = bytes_by_the_system() - before;
    EXPECT_EQ(reader.bytes_read() - counted, 64 * 64 * 96 * 4 * 2);
    EXPECT_LT(taken, on_disk + 100000);
    EXPECT_GT(taken, on_disk / 2);
  }
}

TEST_F(HyperslabReaderTest, MpiDriversNeedMpi) {
  for (const ReadDriver driver : {ReadDriver::mpi_independent, ReadDriver::mpi_collective}) {
    const std::string message = message_of<UsageError>([&] { HyperslabReader(Communicator::self(), driver); });
    EXPECT_EQ(message,
              fmt::format("the driver {} needs MPI: start the job with mpirun, or take posix", driver_name(driver)));
  }
}

TEST_F(HyperslabReaderTest, FilesThatAreNotAsTheyWereAreNamedWithBoth) {
  const VolumeLayout layout = contiguous({16, 16, 16});
  const auto changed = [&](const VoxelFile& now) {
    write_voxels(path, now);
    return error(place(layout));
  };
  EXPECT_EQ(changed({.layout = contiguous({8, 16, 16})}),
            path +
                ": `full` is [8,16,16,4] of u16; it was [16,16,16,4] of u16 when the data set was opened: expected "
                "files that do not change during a run");
  VoxelFile other{.layout = layout};
  other.layout.layout.dtype = DType::i16;
  EXPECT_TRUE(mentions(changed(other), "is [16,16,16,4] of i16; it was [16,16,16,4] of u16 when"));
  EXPECT_TRUE(mentions(changed({.layout = layout, .big_endian = true}),
                       "is [16,16,16,4] of u16 in another byte order; it was [16,16,16,4] of u16 when"));
  EXPECT_TRUE(mentions(changed({.layout = chunked({16, 16, 16}, {8, 8, 8})}),
                       "is [16,16,16,4] of u16, chunks [8,8,8,4]; it was [16,16,16,4] of u16 when"));
  EXPECT_EQ(changed({.layout = layout}), "") << "unchanged after all";
  {
    const Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    H5Lmove(file.id(), "full", H5L_SAME_LOC, "half", H5P_DEFAULT, H5P_DEFAULT);
  }
  EXPECT_TRUE(mentions(error(place(layout)), "`full` is missing; it was [16,16,16,4] of u16 when"));
}

TEST_F(HyperslabReaderTest, FilesThatCannotBeReadAreNamedWithTheReason) {
  const VolumeLayout layout = contiguous({16, 16, 16});
  EXPECT_EQ(error(place(layout)), path + ": no such file; expected an HDF5 file");
  std::ofstream(path) << "not HDF5";
  EXPECT_EQ(error(place(layout)), path + ": not an HDF5 file (or its start is damaged)");
  write_voxels(path, {.layout = layout});
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  EXPECT_TRUE(mentions(error(place(layout)), path + ": damaged, open in another program, or cut short ("))
      << error(place(layout));
}

// HDF5 looks at the length when it opens a file, and gives zeros for what is missing later.
TEST_F(HyperslabReaderTest, AFileCutShortWhileItIsOpenIsNoticed) {
  const VolumeLayout layout = contiguous({16, 16, 16});
  write_voxels(path, {.layout = layout});
  const auto length = std::filesystem::file_size(path);
  const Hdf5Lock lock;
  const Hdf5Access access(Communicator::self(), ReadDriver::posix);
  const Hdf5Voxels voxels(place(layout), access);
  EXPECT_NO_THROW(voxels.check_length());
  std::filesystem::resize_file(path, length - 1000);
  const Box last{{15, 0, 0}, {16, 16, 16}};
  std::vector<std::byte> plane(static_cast<std::size_t>(hyperslab_bytes(layout.layout, 4, last)), std::byte{1});
  voxels.read(access, 0, last, last, plane.data());
  EXPECT_EQ(plane.back(), std::byte{0}) << "HDF5 has become careful: the check may go";
  EXPECT_EQ(
      message_of<DataError>([&] { voxels.check_length(); }),
      fmt::format("{}: cut short while it was read, from {} bytes to {}; expected files that do not change during "
                  "a run",
                  path, length, length - 1000));
}

TEST_F(HyperslabReaderTest, ADamagedChunkIsAnErrorAndSparesTheOthers) {
  VoxelFile file{.layout = chunked({8, 8, 16}, {8, 8, 8})};
  file.layout.compressed = true;
  write_voxels(path, file);
  test::damage_last_chunk(path);
  const Box first{{0, 0, 0}, {8, 8, 8}};
  EXPECT_TRUE(same_bytes(read(place(file.layout), first), expected_voxels(file, 0, {}, first)));
  EXPECT_TRUE(mentions(error(place(file.layout)), path + ": `full` cannot be read ("));
}

TEST_F(HyperslabReaderTest, VoxelsBeyondTheFileAreRefused) {
  VolumeLayout layout = contiguous({8, 8, 8});
  write_voxels(path, {.layout = layout});
  std::vector<std::byte> voxels(8 * 8 * 8 * 8);
  EXPECT_THROW(reader.read(place(layout, 0, {1, 0, 0}), Box::whole({8, 8, 8}), voxels.data()), UsageError);
  EXPECT_THROW(reader.read(place(layout, 1), Box::whole({1, 1, 1}), voxels.data()), UsageError);
}

}  // namespace
}  // namespace halograd
