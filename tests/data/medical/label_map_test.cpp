#include "halograd/data/medical/label_map.hpp"

#include "data/medical/nifti_files.hpp"
#include "halograd/core/error.hpp"
#include "halograd/data/medical/conversion.hpp"
#include "halograd/data/medical/nifti_volume.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace halograd::test {
namespace {

constexpr Extent extent{5, 7, 9};

/// No two neighbours alike, nor any two of a mirrored pair.
std::uint8_t label_at(const Index& at) {
  return static_cast<std::uint8_t>(((at.d * 7 + at.h) * 9 + at.w) * 37 % 251);
}

TEST(LabelMap, every_label_comes_back_to_its_own_voxel) {
  const TemporaryDirectory directory;
  const CasePair pair{"0", directory / "volume-0.nii", directory / "segmentation-0.nii", ""};
  for (const Orientation& orientation : all_orientations()) {
    oriented<std::int16_t>(orientation, extent, 4, [](const Index&) { return std::int16_t{1}; }).write(pair.volume);
    const RawNifti labels = oriented<std::uint8_t>(orientation, extent, 2, label_at);
    labels.write(pair.segmentation);
    const NiftiHeader original = read_nifti_header(pair.volume);
    for (const std::int64_t width : {9, 16}) {
      std::string warning;
      const MedicalCase loaded = load_case(pair, {.width = width, .classes = 251}, warning);
      const std::vector<std::uint8_t> back = restore_labels(loaded.segmentation, width, original);
      EXPECT_EQ(std::string(back.begin(), back.end()), labels.voxels) << orientation_name(orientation) << " " << width;
      if (width == 16) continue;  // each file waits for the disk
      const std::filesystem::path out = directory / "back.nii";
      write_label_map(out, loaded.segmentation, width, original);
      EXPECT_EQ(read_file(out).substr(352), labels.voxels) << orientation_name(orientation);
      EXPECT_EQ(read_nifti_header(out).affine, original.affine);
    }
  }
}

TEST(LabelMap, the_headers_geometry_is_kept_as_it_is) {
  const TemporaryDirectory directory;
  RawNifti raw = oriented<float>(ras, extent, 16, [](const Index&) { return 1.0F; });
  raw.dims.push_back(1);
  raw.qform_code = 3;
  raw.qform = {0.1F, 0.2F, 0.3F, 4, 5, 6};
  raw.slope = 2;
  raw.intercept = 7;
  raw.write(directory / "a.nii");
  const std::vector<std::uint8_t> labels(8 * 8 * 8, 2);
  write_label_map(directory / "b.nii.gz", labels, 8, read_nifti_header(directory / "a.nii"));
  const NiftiHeader there = read_nifti_header(directory / "b.nii.gz");
  const std::string bytes(reinterpret_cast<const char*>(there.bytes.data()), there.bytes.size());
  EXPECT_EQ(bytes.substr(76, 16), raw.bytes().substr(76, 16)) << "spacing";
  EXPECT_EQ(bytes.substr(252, 76), raw.bytes().substr(252, 76)) << "qform and sform with their codes";
  EXPECT_EQ(bytes[123], 2) << "units";
  EXPECT_EQ(there.value(2), 2) << "labels aren't scaled";
  EXPECT_EQ(std::get<std::vector<std::uint8_t>>(read_nifti_voxels(directory / "b.nii.gz", there)),
            std::vector<std::uint8_t>(315, 2));
}

TEST(LabelMap, nothing_is_left_where_it_can_not_be_written) {
  const TemporaryDirectory directory;
  const NiftiHeader header = make_nifti_header({2, 2, 2}, affine_of(ras, {2, 2, 2}, {1, 1, 1}));
  const std::vector<std::uint8_t> labels(8);
  EXPECT_THROW(write_label_map(directory / "a.png", labels, 2, header), UsageError);
  EXPECT_THROW(write_label_map(directory / "none" / "a.nii", labels, 2, header), ResourceError);
  std::filesystem::create_directory(directory / "a.nii");
  EXPECT_THROW(write_label_map(directory / "a.nii", labels, 2, header), ResourceError);
  EXPECT_FALSE(std::filesystem::exists(directory / ".a.nii.partial"));
}

}  // namespace
}  // namespace halograd::test
