#include "data/case_files.hpp"
#include "halograd/core/error.hpp"
#include "halograd/data/dataset.hpp"
#include "halograd/data/file_layout.hpp"
#include "halograd/data/label_counts.hpp"

#include <gtest/gtest.h>

namespace halograd {
namespace {

using test::CaseFile;
using test::mentions;
using test::message_of;
using test::TemporaryDirectory;
using test::write_case;

const Extent uneven{6, 8, 10};

FileExpectation expecting(std::int64_t channels = 1) {
  return {.shape = {channels, uneven}, .format = FileFormat::lits};
}

/// What a file is taken for, in words.
std::string text_of(const CaseFile& file, const FileExpectation& expected) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a.hdf5");
  write_case(path, file);
  return to_text(inspect_file(path, expected).layout);
}

TEST(CaseFile, TellsTypesOrdersAndChunksOfBoth) {
  CaseFile file{.shape = {1, uneven}};
  EXPECT_EQ(text_of(file, expecting()), "contiguous [D,H,W] i16, labels contiguous [D,H,W] u8");
  file.dtype = DType::f32;
  file.file_type = H5T_IEEE_F64LE;
  file.channel_axis = true;
  EXPECT_EQ(text_of(file, expecting()), "contiguous [D,H,W,C] f32, converted, labels contiguous [D,H,W] u8");
  file = {.shape = {1, uneven}, .dtype = DType::u8, .channel_axis = true, .channels_first = true};
  EXPECT_EQ(text_of(file, expecting()), "contiguous [C,D,H,W] u8, labels contiguous [D,H,W] u8");
  file = {.shape = {2, uneven}, .channel_axis = true, .channels_first = true, .chunk = {2, 6, 4, 5}};
  file.label_chunk = {3, 8, 2};
  file.gzip = 1;
  EXPECT_EQ(text_of(file, expecting(2)),
            "chunked 6x4x5, compressed, [C,D,H,W] i16, labels chunked 3x8x2, compressed, [D,H,W] u8");
  file = {.shape = {2, uneven}, .channel_axis = true};
  EXPECT_EQ(text_of(file, expecting(2)), "contiguous [D,H,W,C] i16, labels contiguous [D,H,W] u8");
}

TEST(CaseFile, TakesScaleAndOffset) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a.hdf5");
  CaseFile file{.shape = {1, uneven}};
  write_case(path, file);
  EXPECT_EQ(inspect_file(path, expecting()).scale, (ValueScale{1, 0}));
  file.attributes = {{"scale", 0.25}, {"offset", -1024}};
  write_case(path, file);
  EXPECT_EQ(inspect_file(path, expecting()).scale, (ValueScale{0.25, -1024}));
}

TEST(CaseFile, PredictionDoesWithoutLabels) {
  FileExpectation expected = expecting();
  expected.prediction = true;
  EXPECT_EQ(text_of({.shape = {1, uneven}, .labels = false}, expected), "contiguous [D,H,W] i16");
  EXPECT_EQ(text_of({.shape = {1, uneven}, .label_type = H5T_STD_I32LE}, expected), "contiguous [D,H,W] i16");
}

/// Expects the DataError of a file to name it and to go on as `said`.
void expect_refusal(const CaseFile& file, const FileExpectation& expected, const std::string& said) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("bad.hdf5");
  write_case(path, file);
  EXPECT_EQ(message_of<DataError>([&] { inspect_file(path, expected); }), path + ": " + said);
}

TEST(CaseFile, BadFilesAreRefusedWithWhatWouldBeRight) {
  const GlobalShape shape{1, uneven};
  expect_refusal({.shape = shape, .labels = false}, expecting(),
                 "has no dataset `segmentation`; expected the labels [6,8,10] of u8 (predicting does without)");
  expect_refusal({.shape = shape, .label_extent = Extent{6, 8, 9}}, expecting(),
                 "`segmentation` is [6,8,9] of u8; expected [6,8,10] of u8, a label for each voxel of `volume`");
  expect_refusal({.shape = shape, .label_type = H5T_STD_I16LE}, expecting(),
                 "`segmentation` is [6,8,10] of i16; expected [6,8,10] of u8, a label for each voxel of `volume`");
  const std::string right = "; expected `volume` [6,8,10] of 16-bit integers (i8, u8, f32 and f64 are read too)";
  expect_refusal({.shape = shape, .volume = false}, expecting(), "has no dataset `volume`" + right);
  expect_refusal({.shape = shape, .file_type = H5T_STD_I32LE}, expecting(), "`volume` is [6,8,10] of i32" + right);
  expect_refusal({.shape = {1, {6, 8, 9}}}, expecting(), "`volume` is [6,8,9] of i16" + right);
  expect_refusal({.shape = {1, {12, 8, 10}}}, expecting(),
                 "`volume` is [12,8,10] of i16" + right + "; `data.subvolume` would cut it into 2x1x1 of them");
  expect_refusal({.shape = shape}, expecting(2),
                 "`volume` is [6,8,10] of i16; expected `volume` [6,8,10,2] or [2,6,8,10] of 16-bit integers (i8, u8, "
                 "f32 and f64 are read too)");
  expect_refusal({.shape = shape, .attributes = {{"scale", 0}}}, expecting(),
                 "the attribute `scale` of `volume` is 0; expected another number");
  expect_refusal({.shape = shape, .attributes = {{"offset", std::numeric_limits<double>::quiet_NaN()}}}, expecting(),
                 "the attribute `offset` of `volume` is not a number; expected one (f64)");
}

TEST(CaseFile, MakesADataSet) {
  const TemporaryDirectory directory;
  for (const std::int64_t number : {0, 1, 2}) {
    CaseFile file{.shape = {1, {12, 8, 10}}, .offset = 100 * number};
    if (number == 1) file.attributes = {{"scale", 2}};
    write_case(directory.file(fmt::format("case_{}.hdf5", number)), file);
  }
  const Dataset set = Dataset::open(
      Communicator::self(), {.path = directory.path(), .format = "lits", .shape = {1, uneven}, .subvolumes = true});
  EXPECT_TRUE(set.labelled());
  EXPECT_EQ(set.size(), 6);
  EXPECT_EQ(&set.layout(0), &set.layout(2)) << "scales make no layouts";
  EXPECT_EQ(set.scale(1).scale, 1);
  EXPECT_EQ(set.scale(3).scale, 2);
  EXPECT_EQ(set.place(3).origin, (Index{6, 0, 0}));
  EXPECT_EQ(set.bytes(0, {{0, 0, 0}, {2, 3, 4}}), 24 * (2 + 1));
  EXPECT_EQ(set.targets(0), Cosmology{});
  const std::string message = message_of<UsageError>([&] {
    Dataset::open(Communicator::self(), {.path = directory.path(), .format = "nifti", .shape = {1, uneven}});
  });
  EXPECT_EQ(message, "data.format = \"nifti\": expected \"cosmoflow\" or \"lits\"");
}

TEST(LabelCounts, AreOfAllVoxels) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a.hdf5");
  CaseFile file{.shape = {1, {160, 320, 350}}, .label_chunk = {7, 320, 350}};
  file.volume = false;
  file.last_label = 200;
  write_case(path, file);  // two readings
  LabelCounts expected{};
  test::for_each_index(file.shape.extent, [&](const Index& at) { ++expected[file.label(at)]; });
  --expected[file.label({159, 319, 349})];
  ++expected[200];
  EXPECT_EQ(count_labels(path), expected);
  write_case(path, {.labels = false});
  EXPECT_EQ(count_labels(path), std::nullopt);
}

TEST(LabelCounts, AreTold) {
  LabelCounts counts{};
  counts[0] = 750;
  counts[2] = 250;
  EXPECT_EQ(to_text(counts), "labels: 0 in 75 % of the voxels (750), 2 in 25 % (250)");
}

}  // namespace
}  // namespace halograd
