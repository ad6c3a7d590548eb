#include "halograd/data/hdf5_source.hpp"

#include "data/sample_files.hpp"
#include "halograd/core/error.hpp"
#include "halograd/tensor/partition.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>

namespace halograd {
namespace {

using test::expected_voxels;
using test::mentions;
using test::message_of;
using test::SampleFile;
using test::TemporaryDirectory;

const GlobalShape uneven{4, {11, 9, 12}};

/// Reads every box of several partitions of the file and demands each byte.
void expect_every_box(const std::string& file, const SampleFile& written, std::int64_t max_request_bytes = 1 << 30) {
  const Hdf5Source source({.shape = written.shape, .max_request_bytes = max_request_bytes});
  RawSample sample;
  for (const Extent parts : {Extent{1, 1, 1}, Extent{2, 1, 1}, Extent{1, 3, 1}, Extent{1, 1, 5}, Extent{3, 2, 4}}) {
    const Partition partition = Partition::even(written.shape.extent, parts);
    std::int64_t voxels = 0;
    for (Index part; part.d < parts.d; ++part.d) {
      for (part.h = 0; part.h < parts.h; ++part.h) {
        for (part.w = 0; part.w < parts.w; ++part.w) {
          const Box box = partition.box(part);
          source.read(file, box, sample);
          EXPECT_EQ(sample.layout, (SampleLayout{written.dtype, written.channels_first}));
          EXPECT_TRUE(sample.voxels == expected_voxels(written, box)) << partition.name() << " of " << file;
          voxels += box.volume();
        }
      }
    }
    EXPECT_EQ(voxels, written.shape.extent.volume());
  }
}

TEST(Hdf5Source, ReadsEveryBoxOfEveryKindOfFile) {
  const TemporaryDirectory directory;
  const std::vector<SampleFile> kinds = {
      {.shape = uneven},
      {.shape = uneven, .channels_first = true},
      {.shape = uneven, .file_type = H5T_STD_U16BE},
      {.shape = uneven, .channels_first = true, .chunk = {1, 4, 4, 4}},
      {.shape = uneven, .chunk = {4, 4, 5, 4}, .gzip = 4},
      {.shape = uneven, .file_type = H5T_STD_U16BE, .chunk = {3, 9, 7, 2}, .gzip = 1},
      {.shape = uneven, .dtype = DType::i16, .offset = -3000},
      {.shape = uneven, .dtype = DType::i16, .channels_first = true, .file_type = H5T_STD_I16BE},
      {.shape = uneven, .dtype = DType::u8},
      {.shape = uneven, .dtype = DType::f32},
      {.shape = uneven, .dtype = DType::f32, .channels_first = true, .file_type = H5T_IEEE_F32BE},
      {.shape = {1, {8, 10, 9}}},
  };
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::string file = directory.file(fmt::format("kind{}.h5", i));
    test::write_sample(file, kinds[i]);
    expect_every_box(file, kinds[i]);
  }
}

TEST(Hdf5Source, SplitsLargeRequests) {
  const TemporaryDirectory directory;
  for (const bool channels_first : {false, true}) {
    const SampleFile written{.shape = uneven, .channels_first = channels_first};
    test::write_sample(directory.file("a.h5"), written);
    for (const std::int64_t limit : {1, 100, 700, 4000}) expect_every_box(directory.file("a.h5"), written, limit);
  }
}

TEST(Hdf5Source, AShapeThatFitsBothOrdersIsChannelsLast) {
  const TemporaryDirectory directory;
  const SampleFile written{.shape = {4, Extent::cube(4)}};
  test::write_sample(directory.file("a.h5"), written);
  EXPECT_FALSE(Hdf5Source({.shape = written.shape}).check(directory.file("a.h5")).channels_first);
}

TEST(Hdf5Source, ReadsTargetsAndKeepsTheBuffer) {
  const TemporaryDirectory directory;
  const SampleFile written;
  test::write_sample(directory.file("a.h5"), written);
  SampleFile bare = written;
  bare.physical.reset();
  test::write_sample(directory.file("bare.h5"), bare);
  const Hdf5Source source({.shape = written.shape});
  RawSample sample;
  source.read(directory.file("a.h5"), Box::whole(written.shape.extent), sample);
  EXPECT_EQ(sample.targets, *written.targets);
  ASSERT_TRUE(sample.physical.has_value());
  EXPECT_EQ(*sample.physical, *written.physical);
  const std::byte* buffer = sample.voxels.data();
  source.read(directory.file("bare.h5"), Box::whole(written.shape.extent), sample);
  EXPECT_EQ(sample.voxels.data(), buffer);
  EXPECT_EQ(sample.file, directory.file("bare.h5"));
  EXPECT_FALSE(sample.physical.has_value());
  source.read(directory.file("a.h5"), Box{}, sample);
  EXPECT_TRUE(sample.voxels.empty());
  EXPECT_EQ(sample.targets, *written.targets);
}

TEST(Hdf5Source, PredictionNeedsNoTargets) {
  const TemporaryDirectory directory;
  const SampleFile written{.targets = std::nullopt};
  test::write_sample(directory.file("a.h5"), written);
  RawSample sample;
  Hdf5Source({.shape = written.shape, .targets_required = false})
      .read(directory.file("a.h5"), Box::whole(written.shape.extent), sample);
  EXPECT_TRUE(sample.voxels == expected_voxels(written, Box::whole(written.shape.extent)));
  EXPECT_EQ(sample.targets, Cosmology{});
}

TEST(Hdf5Source, RefusesABoxBeyondTheVolume) {
  const TemporaryDirectory directory;
  test::write_sample(directory.file("a.h5"), {});
  RawSample sample;
  const Hdf5Source source({.shape = SampleFile{}.shape});
  EXPECT_THROW(source.read(directory.file("a.h5"), {{0, 0, 0}, {8, 8, 9}}, sample), UsageError);
  EXPECT_THROW(source.read(directory.file("a.h5"), {{-1, 0, 0}, {8, 8, 8}}, sample), UsageError);
}

TEST(Hdf5Source, BadContentsAreDataErrorsThatNameTheFile) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("bad.h5");
  const Hdf5Source source({.shape = {4, Extent::cube(8)}});
  const auto expect_refusal = [&](const SampleFile& bad, const std::string& said) {
    test::write_sample(file, bad);
    RawSample sample;
    const std::string message = message_of<DataError>([&] { source.read(file, Box::whole(Extent::cube(8)), sample); });
    EXPECT_TRUE(mentions(message, file) && mentions(message, said)) << "expected " << said << ": " << message;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  expect_refusal({.shape = {4, {8, 8, 7}}}, "[8,8,7,4] of u16; expected `full` [8,8,8,4] or [4,8,8,8]");
  expect_refusal({.shape = {3, Extent::cube(8)}}, "[8,8,8,3]");
  expect_refusal({.file_type = H5T_STD_I32LE}, "of i32");
  expect_refusal({.file_type = H5T_STD_I64BE}, "i64 big-endian");
  expect_refusal({.voxels_written = false}, "never written");
  expect_refusal({.chunk = {4, 4, 4, 4}, .voxels_written = false}, "never written");
  expect_refusal({.targets = std::nullopt}, "has no dataset `unitPar`");
  expect_refusal({.target_dims = std::vector<hsize_t>{5}}, "`unitPar` is [5] of f32; expected [4] of f32");
  expect_refusal({.targets = Cosmology{0, 0, nan, 0}}, "`unitPar`[2] is nan");
  expect_refusal({.physical = Cosmology{nan, 0, 0, 0}}, "`physPar`[0] is nan");
  expect_refusal({.dtype = DType::f32, .not_a_number = true}, "not finite");
}

TEST(Hdf5Source, UnreadableFilesAreDataErrorsThatNameTheFile) {
  const TemporaryDirectory directory;
  const auto message_for = [&](const std::string& file) {
    RawSample sample;
    const Hdf5Source source({.shape = {4, Extent::cube(8)}});
    const std::string message = message_of<DataError>([&] { source.read(file, Box::whole(Extent::cube(8)), sample); });
    EXPECT_TRUE(mentions(message, file)) << message;
    EXPECT_EQ(message, message_of<DataError>([&] { static_cast<void>(source.check(file)); }));
    return message;
  };
  EXPECT_TRUE(mentions(message_for(directory.file("missing.h5")), "no such file"));
  EXPECT_TRUE(mentions(message_for(directory.path().string()), "not a file"));
  std::ofstream(directory.file("text.h5")) << "This is no HDF5 file, whatever its name says.\n";
  EXPECT_TRUE(mentions(message_for(directory.file("text.h5")), "not an HDF5 file"));
  std::ofstream(directory.file("empty.h5")).flush();
  EXPECT_TRUE(mentions(message_for(directory.file("empty.h5")), "not an HDF5 file"));
  test::write_sample(directory.file("cut.h5"), {});
  std::filesystem::resize_file(directory.file("cut.h5"), std::filesystem::file_size(directory.file("cut.h5")) / 2);
  EXPECT_TRUE(mentions(message_for(directory.file("cut.h5")), "truncated"));
  {
    const Hdf5Handle bare(H5Fcreate(directory.file("bare.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
                          H5Fclose);
  }
  EXPECT_TRUE(mentions(message_for(directory.file("bare.h5")), "no dataset `full`"));
}

TEST(Hdf5Source, ADamagedChunkIsADataError) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("a.h5");
  test::write_sample(file, {.chunk = {8, 8, 8, 4}, .gzip = 6});
  haddr_t chunk = 0;
  {
    const Hdf5Handle handle = open_hdf5_file(file);
    const Hdf5Handle full(H5Dopen2(handle.id(), "full", H5P_DEFAULT), H5Dclose);
    const Hdf5Handle space(H5Dget_space(full.id()), H5Sclose);
    hsize_t size = 0;
    ASSERT_GE(H5Dget_chunk_info(full.id(), space.id(), 0, nullptr, nullptr, &chunk, &size), 0);
    ASSERT_GT(size, 40U);
  }
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(static_cast<std::streamoff>(chunk) + 10);
  stream << "damage, damage, damage";
  stream.close();
  RawSample sample;
  const std::string message = message_of<DataError>([&] {
    Hdf5Source({.shape = {4, Extent::cube(8)}}).read(file, Box::whole(Extent::cube(8)), sample);
  });
  EXPECT_TRUE(mentions(message, file) && mentions(message, "cannot be read")) << message;
}

TEST(Hdf5Source, VoxelsInOtherFilesAreRefused) {
  const TemporaryDirectory directory;
  test::write_sample(directory.file("a.h5"), {});
  const std::array<hsize_t, 4> dims{8, 8, 8, 4};
  const Hdf5Handle space(H5Screate_simple(4, dims.data(), nullptr), H5Sclose);
  for (const bool is_virtual : {true, false}) {
    const std::string path = directory.file(is_virtual ? "virtual.h5" : "external.h5");
    {
      const Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
      if (is_virtual) {
        H5Pset_virtual(creation.id(), space.id(), "gone.h5", "full", space.id());
      } else {
        H5Pset_external(creation.id(), "gone.raw", 0, 8 * 8 * 8 * 4 * 2);
      }
      const Hdf5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
      const Hdf5Handle full(
          H5Dcreate2(file.id(), "full", H5T_STD_U16LE, space.id(), H5P_DEFAULT, creation.id(), H5P_DEFAULT), H5Dclose);
      ASSERT_TRUE(full.valid());
    }
    const std::string message = message_of<DataError>([&] {
      static_cast<void>(Hdf5Source({.shape = {4, Extent::cube(8)}}).check(path));
    });
    EXPECT_TRUE(mentions(message, path) && mentions(message, "other files")) << message;
  }
}

TEST(Hdf5Source, ThreadsReadSideBySide) {
  const TemporaryDirectory directory;
  const SampleFile written{.shape = uneven, .chunk = {4, 4, 4, 4}, .gzip = 1};
  test::write_sample(directory.file("a.h5"), written);
  const Hdf5Source source({.shape = uneven});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const Box box = Partition::even(uneven.extent, {3, 1, 1}).box({t, 0, 0});
      const std::vector<std::byte> expected = expected_voxels(written, box);
      RawSample sample;
      for (int i = 0; i < 20; ++i) {
        source.read(directory.file("a.h5"), box, sample);
        if (sample.voxels != expected) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace halograd
