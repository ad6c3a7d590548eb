#include "halograd/data/file_layout.hpp"

#include "data/sample_files.hpp"
#include "halograd/core/error.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace halograd {
namespace {

using test::mentions;
using test::message_of;
using test::SampleFile;
using test::TemporaryDirectory;
using test::write_sample;

const GlobalShape uneven{4, {6, 8, 10}};

/// What a contiguous [D,H,W,C] file of u16 is.
VolumeLayout plain(const GlobalShape& shape) {
  return {.shape = shape};
}

VolumeLayout changed(VolumeLayout layout, const std::function<void(VolumeLayout&)>& change) {
  change(layout);
  return layout;
}

struct Kind {
  SampleFile file;
  VolumeLayout layout;
  std::string text;
};

/// Writes each kind of file and demands every field of its layout, and every parameter.
void expect_layouts(const std::vector<Kind>& kinds, const FileExpectation& expected) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a.h5");
  for (const Kind& kind : kinds) {
    write_sample(path, kind.file);
    const FileContents found = inspect_file(path, expected);
    EXPECT_TRUE(found.layout == FileLayout{kind.layout}) << kind.text << ", not " << to_text(found.layout);
    EXPECT_EQ(to_text(found.layout), kind.text);
    const auto entries = static_cast<std::size_t>(kind.layout.entries);
    ASSERT_EQ(found.targets.size(), entries);
    ASSERT_EQ(found.physical.size(), entries);
    for (std::size_t i = 0; i < entries; ++i) {
      const auto entry = static_cast<std::int64_t>(i);
      EXPECT_EQ(found.targets[i], test::of_entry(*kind.file.targets, entry)) << kind.text;
      EXPECT_EQ(found.physical[i], test::of_entry(*kind.file.physical, entry)) << kind.text;
    }
  }
}

TEST(FileLayout, TellsTypesAndOrders) {
  const auto typed = [](DType dtype, std::int64_t bytes, bool converted, bool first = false) {
    VolumeLayout layout = plain(uneven);
    layout.layout = {dtype, first};
    layout.file_element_bytes = bytes;
    layout.converted = converted;
    return layout;
  };
  const auto file = [](DType dtype, std::optional<hid_t> type, bool first = false) {
    return SampleFile{.shape = uneven, .dtype = dtype, .channels_first = first, .modulus = 100, .file_type = type};
  };
  expect_layouts(
      {
          {file(DType::u16, {}), plain(uneven), "contiguous [D,H,W,C] u16"},
          {file(DType::u16, {}, true), typed(DType::u16, 2, false, true), "contiguous [C,D,H,W] u16"},
          {file(DType::u16, H5T_STD_U16BE), typed(DType::u16, 2, true), "contiguous [D,H,W,C] u16, converted"},
          {file(DType::i16, {}), typed(DType::i16, 2, false), "contiguous [D,H,W,C] i16"},
          {file(DType::i16, H5T_STD_I16BE), typed(DType::i16, 2, true), "contiguous [D,H,W,C] i16, converted"},
          {file(DType::u8, {}), typed(DType::u8, 1, false), "contiguous [D,H,W,C] u8"},
          {file(DType::i16, H5T_STD_I8LE), typed(DType::i16, 1, true), "contiguous [D,H,W,C] i16, converted"},
          {file(DType::f32, {}), typed(DType::f32, 4, false), "contiguous [D,H,W,C] f32"},
          {file(DType::f32, H5T_IEEE_F32BE), typed(DType::f32, 4, true), "contiguous [D,H,W,C] f32, converted"},
          {file(DType::f32, H5T_IEEE_F64LE), typed(DType::f32, 8, true), "contiguous [D,H,W,C] f32, converted"},
          {file(DType::f32, H5T_IEEE_F64BE, true), typed(DType::f32, 8, true, true),
           "contiguous [C,D,H,W] f32, converted"},
      },
      {.shape = uneven});
}

TEST(FileLayout, TellsChunksByTheirMeaning) {
  const auto chunked = [](const Extent& chunk, std::int64_t channels, bool compressed, bool first) {
    VolumeLayout layout = plain(uneven);
    layout.layout.channels_first = first;
    layout.chunked = true;
    layout.compressed = compressed;
    layout.chunk = chunk;
    layout.chunk_channels = channels;
    layout.chunk_entries = 1;
    return layout;
  };
  expect_layouts(
      {{{.shape = uneven, .chunk = {2, 4, 5, 4}}, chunked({2, 4, 5}, 4, false, false), "chunked 2x4x5, [D,H,W,C] u16"},
       {{.shape = uneven, .channels_first = true, .chunk = {1, 2, 4, 5}},
        chunked({2, 4, 5}, 1, false, true),
        "chunked 2x4x5, 1 of 4 channels, [C,D,H,W] u16"},
       // Chunks that reach beyond the volume, and ones packed to another size, are all written.
       {{.shape = uneven, .chunk = {4, 5, 7, 3}, .gzip = 4},
        chunked({4, 5, 7}, 3, true, false),
        "chunked 4x5x7, 3 of 4 channels, compressed, [D,H,W,C] u16"},
       {{.shape = uneven, .channels_first = true, .chunk = {4, 5, 3, 9}},
        chunked({5, 3, 9}, 4, false, true),
        "chunked 5x3x9, [C,D,H,W] u16"}},
      {.shape = uneven});
}

TEST(FileLayout, TellsStackedFiles) {
  const VolumeLayout three = changed(plain(uneven), [](VolumeLayout& layout) {
    layout.stacked = true;
    layout.entries = 3;
  });
  const VolumeLayout chunked = changed(three, [](VolumeLayout& layout) {
    layout.layout = {DType::i16, true};
    layout.converted = layout.chunked = layout.compressed = true;
    layout.chunk = {3, 8, 6};
    layout.chunk_channels = 2;
    layout.chunk_entries = 2;
  });
  const VolumeLayout alone = changed(three, [](VolumeLayout& layout) { layout.entries = 1; });
  expect_layouts({{{.shape = uneven, .entries = 3}, three, "contiguous [S,D,H,W,C] u16"},
                  {{.shape = uneven, .entries = 1}, alone, "contiguous [S,D,H,W,C] u16"},
                  {{.shape = uneven,
                    .dtype = DType::i16,
                    .channels_first = true,
                    .entries = 3,
                    .file_type = H5T_STD_I16BE,
                    .chunk = {2, 2, 3, 8, 6},
                    .gzip = 1},
                   chunked,
                   "chunked 3x8x6, 2 of 4 channels, 2 samples, compressed, [S,C,D,H,W] i16, converted"}},
                 {.shape = uneven});
}

TEST(FileLayout, TakesMultiplesOfASampleToCut) {
  for (const Extent& times : {Extent{1, 1, 1}, Extent{2, 2, 2}, Extent{1, 2, 3}, Extent{4, 1, 1}}) {
    const GlobalShape whole{4, {6 * times.d, 8 * times.h, 10 * times.w}};
    VolumeLayout first = plain(whole);
    first.layout.channels_first = true;
    expect_layouts({{{.shape = whole}, plain(whole), "contiguous [D,H,W,C] u16"},
                    {{.shape = whole, .channels_first = true}, first, "contiguous [C,D,H,W] u16"}},
                   {.shape = uneven, .subvolumes = true});
  }
}

TEST(FileLayout, AShapeThatFitsBothOrdersIsChannelsLast) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a.h5");
  for (const std::int64_t entries : {0, 4}) {
    write_sample(path, {.shape = {4, Extent::cube(4)}, .entries = entries});
    EXPECT_FALSE(inspect_file(path, {.shape = {4, Extent::cube(4)}}).layout.image.layout.channels_first);
  }
  // [4,8,8,4] is one volume of 4 channels first, or 1x2x2 samples of 4 channels last.
  write_sample(path, {.shape = {4, {8, 8, 4}}, .channels_first = true});
  const VolumeLayout cut = inspect_file(path, {.shape = {4, {4, 4, 4}}, .subvolumes = true}).layout.image;
  EXPECT_FALSE(cut.layout.channels_first);
  EXPECT_EQ(cut.shape, (GlobalShape{4, {4, 8, 8}}));
  EXPECT_TRUE(inspect_file(path, {.shape = {4, {8, 8, 4}}}).layout.image.layout.channels_first);
}

TEST(FileLayout, TakesParametersOfAnyFloatAndIgnoresTheRest) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a.h5");
  const SampleFile bare{.entries = 2, .physical = std::nullopt, .target_type = H5T_IEEE_F64BE, .extras = true};
  write_sample(path, bare);
  const FileContents found = inspect_file(path, {.shape = bare.shape});
  EXPECT_EQ(found.targets, (std::vector<Cosmology>{*bare.targets, test::of_entry(*bare.targets, 1)}));
  EXPECT_EQ(found.physical, std::vector<std::optional<Cosmology>>(2));
  EXPECT_EQ(found.layout.image.shape, bare.shape);
}

TEST(FileLayout, PredictionNeedsNoTargets) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a.h5");
  write_sample(path, {.entries = 2, .targets = std::nullopt});
  const FileContents found = inspect_file(path, {.shape = SampleFile{}.shape, .prediction = true});
  EXPECT_EQ(found.targets, (std::vector<Cosmology>{Cosmology{}, Cosmology{}}));
  ASSERT_TRUE(found.physical.at(1).has_value());
  EXPECT_EQ(found.physical[1], test::of_entry(*SampleFile{}.physical, 1));
}

// --- What is refused ----------------------------------------------------------------------------------------------

/// Expects the DataError of a file to name it and to hold `said`.
void expect_refusal(const std::string& path, const FileExpectation& expected, const std::string& said) {
  const std::string message = message_of<DataError>([&] { inspect_file(path, expected); });
  EXPECT_TRUE(message.starts_with(path + ": ")) << message;
  EXPECT_TRUE(mentions(message, said)) << "expected " << said << ": " << message;
  EXPECT_FALSE(mentions(message, "\n")) << message;
}

void expect_refusal(const SampleFile& bad, const FileExpectation& expected, const std::string& said) {
  const TemporaryDirectory directory;
  write_sample(directory.file("bad.h5"), bad);
  expect_refusal(directory.file("bad.h5"), expected, said);
}

void expect_refusal(const SampleFile& bad, const std::string& said) {
  expect_refusal(bad, {.shape = {4, Extent::cube(8)}}, said);
}

TEST(FileRefusal, NamesShapeAndTypeAndWhatWouldBeRight) {
  const std::string right =
      "; expected `full` [8,8,8,4] or [4,8,8,8], or [S,…] of either, of 16-bit integers (i8, u8, f32 and f64 are read "
      "too)";
  expect_refusal({.shape = {4, {8, 8, 7}}}, "`full` is [8,8,7,4] of u16" + right);
  expect_refusal({.shape = {3, Extent::cube(8)}}, "`full` is [8,8,8,3] of u16" + right);
  expect_refusal({.shape = {4, {8, 7, 8}}, .channels_first = true, .entries = 2},
                 "`full` is [2,4,8,7,8] of u16" + right);
  expect_refusal({.file_type = H5T_STD_I32LE}, "`full` is [8,8,8,4] of i32" + right);
  expect_refusal({.file_type = H5T_STD_U64BE}, "of u64 big-endian");
  // A multiple, but cutting would not help.
  expect_refusal({.shape = {4, Extent::cube(16)}, .file_type = H5T_STD_I32LE}, "of i32" + right);
}

TEST(FileRefusal, SaysWhenCuttingWouldHelp) {
  expect_refusal({.shape = {4, {8, 16, 24}}}, "are read too); `data.subvolume` would cut it into 1x2x3 of them");
  expect_refusal({.shape = {4, Extent::cube(16)}, .channels_first = true, .entries = 2}, "into 2x2x2 of them");
  const FileExpectation cut{.shape = {4, {8, 4, 2}}, .subvolumes = true};
  const std::string right =
      "expected `full` [D,H,W,4] or [4,D,H,W], or [S,…] of either, D, H and W multiples of 8, 4 "
      "and 2, of 16-bit integers";
  expect_refusal({.shape = {4, {8, 8, 7}}}, cut, "`full` is [8,8,7,4] of u16; " + right);
  expect_refusal({.shape = {4, {4, 4, 2}}}, cut, right);
  expect_refusal({.shape = {2, Extent::cube(8)}}, cut, "`full` is [8,8,8,2] of u16; " + right);
  expect_refusal({.file_type = H5T_STD_I32LE}, cut, "of i32; " + right);
}

TEST(FileRefusal, NamesOtherRanks) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a.h5");
  for (const std::vector<hsize_t>& dims : {std::vector<hsize_t>{8, 8, 8}, {2, 2, 8, 8, 8, 4}, {0, 8, 8, 8, 4}, {}}) {
    {
      const Hdf5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
      test::write_dataset(file.id(), "full", dims, H5T_STD_U16LE, H5T_NATIVE_UINT16, nullptr);
    }
    for (const bool cut : {false, true}) {
      expect_refusal(path, {.shape = {4, Extent::cube(8)}, .subvolumes = cut},
                     "`full` is " + hdf5_shape_text(dims) + " of u16; expected");
    }
  }
}

TEST(FileRefusal, NamesParameters) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<hsize_t> four{4};
  expect_refusal({.targets = std::nullopt}, "has no dataset `unitPar`; expected the targets [4] of f32");
  expect_refusal({.entries = 3, .targets = std::nullopt},
                 "has no dataset `unitPar`; expected the targets [3,4] of f32");
  expect_refusal({.target_dims = std::vector<hsize_t>{5}}, "`unitPar` is [5] of f32; expected [4] of f32");
  expect_refusal({.target_dims = std::vector<hsize_t>{1, 4}}, "`unitPar` is [1,4] of f32; expected [4] of f32");
  expect_refusal({.entries = 3, .target_dims = four}, "`unitPar` is [4] of f32; expected [3,4] of f32");
  expect_refusal({.entries = 3, .target_dims = std::vector<hsize_t>{2, 4}},
                 "`unitPar` is [2,4] of f32; expected [3,4]");
  expect_refusal({.target_type = H5T_STD_I32LE}, "`unitPar` is [4] of i32; expected [4] of f32");
  expect_refusal({.targets = Cosmology{0, 0, nan, 0}}, "`unitPar`[2] is nan; expected a number");
  expect_refusal({.physical = Cosmology{nan, 0, 0, 0}}, "`physPar`[0] is nan; expected a number");
  expect_refusal({.entries = 2, .targets = Cosmology{0, 0, 0, nan}}, "`unitPar`[0,3] is nan");
  expect_refusal({.parameters_written = false}, "`unitPar` was never written");
  expect_refusal({.targets = std::nullopt, .target_type = H5T_STD_I32LE},
                 {.shape = {4, Extent::cube(8)}, .prediction = true}, "`physPar` is [4] of i32; expected [4]");
  expect_refusal({.targets = std::nullopt, .parameters_written = false},
                 {.shape = {4, Extent::cube(8)}, .prediction = true}, "`physPar` was never written");
}

TEST(FileRefusal, NamesVoxelsNeverWritten) {
  expect_refusal({.voxels_written = false}, "`full` was never written; expected its values");
  expect_refusal({.chunk = {4, 4, 4, 4}, .voxels_written = false}, "`full` was never written; expected its values");
  expect_refusal({.chunk = {4, 4, 4, 4}, .gzip = 1, .voxels_written = false}, "`full` was never written");
}

/// Opens an unwritten file's `full` and writes the first `box` of it.
void write_corner(const std::string& path, const std::vector<hsize_t>& box) {
  const Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
  const Hdf5Handle full(H5Dopen2(file.id(), "full", H5P_DEFAULT), H5Dclose);
  const Hdf5Handle space(H5Dget_space(full.id()), H5Sclose);
  const Hdf5Handle memory(H5Screate_simple(4, box.data(), nullptr), H5Sclose);
  const std::vector<hsize_t> start(4, 0);
  H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, start.data(), nullptr, box.data(), nullptr);
  const std::vector<std::uint16_t> values(box[0] * box[1] * box[2] * box[3], 7);
  ASSERT_GE(H5Dwrite(full.id(), H5T_NATIVE_UINT16, memory.id(), space.id(), H5P_DEFAULT, values.data()), 0);
}

TEST(FileRefusal, CountsChunksNeverWritten) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a.h5");
  const FileExpectation expected{.shape = {4, Extent::cube(8)}};
  for (const int gzip : {0, 1}) {
    write_sample(path, {.chunk = {4, 4, 4, 4}, .gzip = gzip, .voxels_written = false});
    write_corner(path, {8, 5, 4, 4});
    expect_refusal(path, expected, "`full` was never written in part (4 of its 8 chunks are missing)");
    write_corner(path, {8, 5, 5, 4});  // touches every chunk
    EXPECT_EQ(inspect_file(path, expected).layout.image.chunk, Extent::cube(4));
  }
  // Chunks of a size that does not divide the volume's: more bytes are stored than the volume has.
  write_sample(path, {.chunk = {5, 8, 8, 4}, .voxels_written = false});
  write_corner(path, {5, 8, 8, 4});
  expect_refusal(path, expected, "(1 of its 2 chunks are missing)");
  // As the newest file format indexes chunks.
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_libver_bounds(access.id(), H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  {
    const Hdf5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.id()), H5Fclose);
    const Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    const std::array<hsize_t, 4> chunk{2, 8, 8, 4};
    H5Pset_chunk(creation.id(), 4, chunk.data());
    test::write_dataset(file.id(), "full", {8, 8, 8, 4}, H5T_STD_U16LE, H5T_NATIVE_UINT16, nullptr, creation.id());
  }
  write_corner(path, {3, 8, 8, 4});
  expect_refusal(path, expected, "(2 of its 4 chunks are missing)");
}

TEST(FileRefusal, NamesVoxelsInOtherFiles) {
  const TemporaryDirectory directory;
  const std::vector<hsize_t> dims{8, 8, 8, 4};
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
      test::write_dataset(file.id(), "full", dims, H5T_STD_U16LE, H5T_NATIVE_UINT16, nullptr, creation.id());
    }
    expect_refusal(path, {.shape = {4, Extent::cube(8)}}, "`full` lies in other files (virtual or external)");
  }
}

/// A filter that a file asks for and nobody has: HDF5 writes its chunks as they are where it may.
TEST(FileRefusal, NamesAFilterThatIsNotThere) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a.h5");
  constexpr H5Z_filter_t lzf = 32000;
  const H5Z_class2_t stand_in{
      H5Z_CLASS_T_VERS,
      lzf,
      1,
      1,
      "lzf",
      nullptr,
      nullptr,
      [](unsigned, std::size_t, const unsigned*, std::size_t bytes, std::size_t*, void**) { return bytes; }};
  ASSERT_GE(H5Zregister(&stand_in), 0);
  {
    const Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    const std::array<hsize_t, 4> chunk{4, 4, 4, 4};
    H5Pset_chunk(creation.id(), 4, chunk.data());
    H5Pset_filter(creation.id(), lzf, 0, 0, nullptr);
    const std::vector<std::uint16_t> values(8 * 8 * 8 * 4, 1);
    const Hdf5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
    test::write_dataset(file.id(), "full", {8, 8, 8, 4}, H5T_STD_U16LE, H5T_NATIVE_UINT16, values.data(),
                        creation.id());
  }
  ASSERT_GE(H5Zunregister(lzf), 0);
  expect_refusal(path, {.shape = {4, Extent::cube(8)}},
                 "`full` is packed by a filter that this HDF5 lacks (32000 lzf); expected gzip or none");
}

TEST(FileRefusal, NamesFilesThatAreNone) {
  const TemporaryDirectory directory;
  const FileExpectation expected{.shape = {4, Extent::cube(8)}};
  expect_refusal(directory.file("missing.h5"), expected, "no such file");
  expect_refusal(directory.path().string(), expected, "not a file");
  test::write_file(directory / "text.h5", "This is no HDF5 file, whatever its name says.\n");
  expect_refusal(directory.file("text.h5"), expected, "not an HDF5 file");
  test::write_file(directory / "empty.h5", "");
  expect_refusal(directory.file("empty.h5"), expected, "not an HDF5 file");
  write_sample(directory.file("cut.h5"), {});
  std::filesystem::resize_file(directory / "cut.h5", std::filesystem::file_size(directory / "cut.h5") / 2);
  expect_refusal(directory.file("cut.h5"), expected, "cut short");
  {
    const Hdf5Handle bare(H5Fcreate(directory.file("bare.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
                          H5Fclose);
    const Hdf5Handle group(H5Gcreate2(bare.id(), "unitPar", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
  }
  expect_refusal(directory.file("bare.h5"), expected, "has no dataset `full`; expected `full` [8,8,8,4] or [4,8,8,8]");
  write_sample(directory.file("group.h5"), {.targets = std::nullopt});
  {
    const Hdf5Handle file(H5Fopen(directory.file("group.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    const Hdf5Handle group(H5Gcreate2(file.id(), "unitPar", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
  }
  expect_refusal(directory.file("group.h5"), expected, "`unitPar` cannot be opened; expected [4] of f32");
}

}  // namespace
}  // namespace halograd
