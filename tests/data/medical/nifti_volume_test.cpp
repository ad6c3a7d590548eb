#include "halograd/data/medical/nifti_volume.hpp"

#include "data/medical/nifti_files.hpp"
#include "halograd/core/error.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

namespace halograd::test {
namespace {

class NiftiVolume : public ::testing::Test {
protected:
  std::string refusal(const std::filesystem::path& file) {
    return message_of<DataError>([&] { read_nifti_voxels(file, read_nifti_header(file)); });
  }
  std::string refusal(const RawNifti& raw) {
    raw.write(file_);
    return refusal(file_);
  }
  NiftiHeader header_of(const RawNifti& raw) {
    raw.write(file_);
    return read_nifti_header(file_);
  }

  TemporaryDirectory directory_;
  std::filesystem::path file_ = directory_ / "a.nii";
};

RawNifti small() {
  RawNifti raw;
  std::vector<std::int16_t> voxels(60);
  std::iota(voxels.begin(), voxels.end(), std::int16_t{-30});
  raw.set_voxels(voxels);
  return raw;
}

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
}

TEST_F(NiftiVolume, reads_what_is_there) {
  const NiftiHeader header = header_of(small());
  EXPECT_EQ(header.shape, (FileShape{3, 4, 5}));
  const NiftiVoxels voxels = read_nifti_voxels(file_, header);
  const auto& values = std::get<std::vector<std::int16_t>>(voxels);
  ASSERT_EQ(values.size(), 60U);
  for (std::size_t i = 0; i < 60; ++i) EXPECT_EQ(values[i], static_cast<int>(i) - 30);
}

TEST_F(NiftiVolume, reads_the_other_byte_order) {
  RawNifti raw;
  raw.big_endian = true;
  raw.datatype = 16;
  raw.bits = 32;
  std::vector<float> voxels(60);
  for (std::size_t i = 0; i < 60; ++i) voxels[i] = static_cast<float>(i) * 0.37F;
  raw.set_voxels(voxels);
  const NiftiHeader header = header_of(raw);
  EXPECT_EQ(std::get<std::vector<float>>(read_nifti_voxels(file_, header)), voxels);
}

TEST_F(NiftiVolume, the_sform_comes_before_the_qform_and_that_before_the_spacing) {
  RawNifti raw = small();
  raw.pixdim = {2, 3, 4};
  EXPECT_EQ(header_of(raw).affine_source, AffineSource::spacing);
  EXPECT_EQ(header_of(raw).affine[1][1], 3);
  EXPECT_EQ(header_of(raw).affine[1][3], 0);
  raw.qform_code = 1;
  raw.qform = {0, 0, 1, 5, 6, 7};  // half a turn about z
  EXPECT_EQ(header_of(raw).affine_source, AffineSource::qform);
  EXPECT_EQ(orientation_name(orientation_of(header_of(raw).affine)), "LPS");
  EXPECT_EQ(header_of(raw).affine[2][3], 7);
  raw.qfac = -1;
  EXPECT_EQ(orientation_name(orientation_of(header_of(raw).affine)), "LPI");
  raw.sform_code = 2;
  raw.sform = {{{0, 0, 4, 1}, {-2, 0, 0, 2}, {0, 3, 0, 3}, {0, 0, 0, 1}}};
  EXPECT_EQ(header_of(raw).affine_source, AffineSource::sform);
  EXPECT_EQ(orientation_name(orientation_of(header_of(raw).affine)), "PSR");
  raw.sform = {};
  EXPECT_EQ(header_of(raw).affine_source, AffineSource::qform) << "an sform of zeros says nothing";
}

TEST_F(NiftiVolume, a_slope_of_zero_or_not_a_number_is_no_scaling) {
  RawNifti raw = small();
  raw.intercept = -1000;
  EXPECT_EQ(header_of(raw).value(5), 5);
  raw.slope = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(header_of(raw).value(5), 5);
  raw.slope = 0.5F;
  EXPECT_EQ(header_of(raw).value(5), -997.5);
}

TEST_F(NiftiVolume, a_fourth_dimension_of_one_is_none) {
  RawNifti raw = small();
  raw.dims = {3, 4, 5, 1};
  EXPECT_EQ(header_of(raw).shape, (FileShape{3, 4, 5}));
  raw.dims = {3, 4, 5, 2};
  raw.voxels += raw.voxels;
  expect_has(refusal(raw), "a.nii: has 2 entries along dimension 4; expected one 3D volume");
  raw.dims = {3, 4, 5, 1, 2};
  expect_has(refusal(raw), "dimension 5");
}

TEST_F(NiftiVolume, what_is_no_volume_of_real_numbers_is_refused) {
  RawNifti raw = small();
  raw.datatype = 128;
  raw.bits = 24;
  raw.voxels.resize(180);
  expect_has(refusal(raw), "RGB24");
  raw.datatype = 32;
  raw.bits = 64;
  raw.voxels.resize(480);
  expect_has(refusal(raw), "COMPLEX64");
}

TEST_F(NiftiVolume, voxels_that_are_not_finite_are_refused) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    RawNifti raw;
    raw.datatype = 16;
    raw.bits = 32;
    std::vector<float> voxels(60, 1.0F);
    voxels[41] = bad;
    raw.set_voxels(voxels);
    expect_has(refusal(raw), "not a finite number");
  }
}

TEST_F(NiftiVolume, files_that_are_not_whole_are_refused) {
  const std::string whole = small().bytes();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{100}, std::size_t{351}, whole.size() - 1}) {
    write_file(file_, whole.substr(0, bytes));
    const std::string message = refusal(file_);
    EXPECT_TRUE(message.starts_with(file_.string())) << bytes << ": " << message;
  }
  write_file(file_, std::string(5000, 'x'));
  ::testing::internal::CaptureStderr();
  expect_has(refusal(file_), "not a NIfTI-1 file");
  RawNifti raw = small();
  raw.dims = {};
  expect_has(refusal(raw), "0 dimensions");
  raw.dims = {3, 0, 5};
  expect_has(refusal(raw), "has 0 voxels along dimension 2");
  raw = small();
  raw.datatype = 77;
  expect_has(refusal(raw), "type 77 (unknown); expected integers, FLOAT32 or FLOAT64");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "niftiio prints nothing of its own";
  expect_has(refusal(directory_ / "none.nii"), "no such file");
  expect_has(refusal(directory_.path()), "not a file");
}

TEST_F(NiftiVolume, compressed_files_that_are_not_whole_are_refused) {
  const FileShape shape = {20, 20, 20};
  const std::filesystem::path whole = directory_ / "whole.nii.gz";
  std::vector<std::int16_t> voxels(8000);
  for (std::size_t i = 0; i < voxels.size(); ++i) voxels[i] = static_cast<std::int16_t>(i * i % 4001);
  write_nifti(whole, make_nifti_header(shape, affine_of(ras, {20, 20, 20}, {1, 1, 1})), std::span(voxels));
  EXPECT_EQ(refusal(whole), "");
  const std::string bytes = read_file(whole);
  const std::filesystem::path cut = directory_ / "cut.nii.gz";
  ::testing::internal::CaptureStderr();
  // In the header, in the voxels, and in the checksum behind them.
  for (const std::size_t kept : {std::size_t{20}, bytes.size() / 2, bytes.size() - 6, bytes.size() - 1}) {
    write_file(cut, bytes.substr(0, kept));
    const std::string message = refusal(cut);
    EXPECT_TRUE(message.starts_with(cut.string())) << kept << ": " << message;
  }
  std::string headless = bytes;
  headless[10] = static_cast<char>(headless[10] | 6);  // a kind of block that deflate doesn't have
  write_file(cut, headless);
  expect_has(refusal(cut), "cut short or damaged; expected a whole gzip file, but its compressed data are damaged");
  for (const std::size_t at : {bytes.size() / 2, bytes.size() - 7}) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    write_file(cut, damaged);
    EXPECT_NE(refusal(cut), "") << at;
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "niftiio prints nothing of its own";
}

TEST_F(NiftiVolume, a_damaged_header_asks_for_no_memory) {
  RawNifti raw = small();
  raw.dims = {30000, 30000, 30000};
  expect_has(refusal(raw), "cannot hold the voxels");
}

TEST_F(NiftiVolume, what_does_not_fit_the_memory_is_named_with_its_size) {
  RawNifti raw = small();
  raw.datatype = 2;
  raw.bits = 8;
  raw.dims = {20000, 20000, 20000};
  const NiftiHeader header = header_of(raw);
  std::error_code failure;
  std::filesystem::resize_file(file_, std::uintmax_t{352} + 8'000'000'000'000U, failure);
  if (failure) GTEST_SKIP() << "no file of 8 TB, even an empty one: " << failure.message();
  expect_has(message_of<ResourceError>([&] { read_nifti_voxels(file_, header); }),
             "a.nii: needs 7.28 TiB for its voxels");
  expect_has(message_of<ResourceError>([&] { read_nifti_labels(file_, header, LabelTable(3)); }),
             "a.nii: needs 7.28 TiB for its voxels; expected");
}

TEST_F(NiftiVolume, labels_are_looked_up_whatever_their_type) {
  RawNifti raw;
  raw.datatype = 64;
  raw.bits = 64;
  std::vector<double> voxels(60);
  for (std::size_t i = 0; i < 60; ++i) voxels[i] = static_cast<double>(i % 3);
  raw.set_voxels(voxels);
  const auto labels = [&](const LabelTable& table) { return read_nifti_labels(file_, header_of(raw), table); };
  const std::vector<std::uint8_t> read = labels(LabelTable(3));
  for (std::size_t i = 0; i < 60; ++i) EXPECT_EQ(read[i], i % 3);
  const auto refused = [&](double value) {
    voxels[7] = value;
    raw.set_voxels(voxels);
    return message_of<DataError>([&] { labels(LabelTable(3)); });
  };
  expect_has(refused(3), "a label is 3; expected a whole number from 0 to 2");
  expect_has(refused(-1), "a label is -1");
  expect_has(refused(0.5), "a label is 0.5");
  expect_has(refused(300), "a label is 300");
}

TEST_F(NiftiVolume, what_is_written_is_read_back) {
  const std::vector<Orientation> orientations = all_orientations();
  for (std::size_t i = 0; i < orientations.size(); i += 5) {
    const Orientation& orientation = orientations[i];
    const Extent extent{2, 3, 4};
    const NiftiHeader header =
        make_nifti_header(shape_of(orientation, extent), affine_of(orientation, extent, {2, 1.5, 1}));
    const std::vector<std::int16_t> voxels = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                              12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, -32768};
    const std::filesystem::path file = directory_ / "b.nii.gz";
    write_nifti(file, header, std::span(voxels));
    NiftiHeader there = read_nifti_header(file);
    EXPECT_EQ(there.shape, header.shape);
    EXPECT_EQ(there.affine, header.affine);
    EXPECT_EQ(std::get<std::vector<std::int16_t>>(read_nifti_voxels(file, there)), voxels);
    // The qform says the same: without the sform the affine stays.
    there.bytes[254] = std::byte{0};
    there.bytes[255] = std::byte{0};
    const NiftiHeader by_qform = parse_nifti_header(there.bytes, "b");
    EXPECT_EQ(by_qform.affine_source, AffineSource::qform);
    EXPECT_TRUE(same_place(by_qform.affine, header.affine, header.shape));
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ / ".b.nii.gz.partial"));
}

}  // namespace
}  // namespace halograd::test
