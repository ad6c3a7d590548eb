#include "halograd/data/medical/conversion.hpp"

#include "data/medical/case_sets.hpp"
#include "halograd/core/error.hpp"

#include <gtest/gtest.h>

namespace halograd::test {
namespace {

class LoadCase : public ::testing::Test {
protected:
  LoadCase() {
    write_pair(directory_.path(), "1");
    labels_ = oriented<std::uint8_t>(ras, {4, 5, 6}, 2, [](const Index&) { return std::uint8_t{1}; });
  }

  std::string refusal() {
    labels_.write(pair_.segmentation);
    return message_of<DataError>([&] { load_case(pair_, {.width = 8}, warning_); });
  }

  TemporaryDirectory directory_;
  CasePair pair_{"1", directory_ / "volume-1.nii", directory_ / "segmentation-1.nii", ""};
  RawNifti labels_;
  std::string warning_;
};

TEST_F(LoadCase, the_geometry_of_labels_must_be_the_images) {
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(warning_, "");
  labels_.sform[0][3] += 1;
  EXPECT_NE(refusal().find("segmentation-1.nii: its affine differs from that of volume-1.nii"), std::string::npos);
  labels_.dims = {5, 6, 4};
  EXPECT_NE(refusal().find("is 5x6x4 voxels, volume-1.nii is 6x5x4; expected the same"), std::string::npos);
}

TEST_F(LoadCase, labels_that_know_of_no_geometry_take_the_images) {
  labels_.sform = {{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}}};
  EXPECT_EQ(refusal(), "");
  EXPECT_NE(warning_.find("an affine that says nothing"), std::string::npos);
  labels_.sform_code = 0;
  labels_.pixdim = {3, 3, 3};
  EXPECT_EQ(refusal(), "");
  EXPECT_NE(warning_.find("says nothing of where it lies"), std::string::npos);
}

TEST_F(LoadCase, labels_take_the_images_orientation) {
  // The image runs from head to feet; its labels, which say nothing, are flipped with it.
  const Orientation las{{2, 1, 0}, {true, false, false}};
  const auto value = [](const Index& at) { return static_cast<std::uint8_t>(at.d % 3); };
  oriented<std::int16_t>(las, Extent::cube(4), 4, [](const Index& at) {
    return static_cast<std::int16_t>(at.d);
  }).write(pair_.volume);
  labels_ = oriented<std::uint8_t>(las, Extent::cube(4), 2, value);
  labels_.sform_code = 0;
  labels_.write(pair_.segmentation);
  const MedicalCase loaded = load_case(pair_, {.width = 4}, warning_);
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(loaded.image.voxels[i], static_cast<int>(i / 16));
    EXPECT_EQ(loaded.segmentation[i], i / 16 % 3);
  }
}

TEST(CasePairs, are_found_in_numeric_order) {
  const TemporaryDirectory directory;
  for (const char* name : {"10", "2", "x"}) write_pair(directory.path(), name);
  write_file(directory / "notes.txt", "");
  write_file(directory / "volume-.nii", "");
  const std::vector<CasePair> pairs = find_case_pairs(directory.path());
  ASSERT_EQ(pairs.size(), 3U);
  EXPECT_EQ(pairs[0].name, "2");
  EXPECT_EQ(pairs[1].name, "10");
  EXPECT_EQ(pairs[2].volume.filename(), "volume-x.nii");
  for (const CasePair& pair : pairs) EXPECT_EQ(pair.fault, "");
}

TEST(CasePairs, faults_are_named) {
  const TemporaryDirectory directory;
  EXPECT_NE(message_of<DataError>([&] { find_case_pairs(directory.path()); }).find("has no cases"), std::string::npos);
  EXPECT_NE(message_of<DataError>([&] { find_case_pairs(directory / "none"); }).find("no such directory"),
            std::string::npos);
  write_pair(directory.path(), "1");
  write_file(directory / "volume-1.nii.gz", "");
  write_file(directory / "volume-2.nii.gz", "");
  write_file(directory / "segmentation-3.nii", "");
  const std::vector<CasePair> pairs = find_case_pairs(directory.path());
  ASSERT_EQ(pairs.size(), 3U);
  EXPECT_NE(pairs[0].fault.find("volume-1.nii.gz: volume-1.nii is there too"), std::string::npos);
  EXPECT_NE(pairs[1].fault.find("volume-2.nii.gz: has no partner; expected segmentation-2.nii or"), std::string::npos);
  EXPECT_NE(pairs[2].fault.find("segmentation-3.nii: has no partner; expected volume-3.nii or"), std::string::npos);
}

}  // namespace
}  // namespace halograd::test
