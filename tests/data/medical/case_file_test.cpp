#include "halograd/data/medical/case_file.hpp"

#include "data/medical/nifti_files.hpp"
#include "halograd/core/error.hpp"
#include "halograd/data/hdf5_describe.hpp"
#include "halograd/data/hdf5_handle.hpp"

#include <gtest/gtest.h>

namespace halograd::test {
namespace {

const Orientation lps{{2, 1, 0}, {false, true, true}};

MedicalCase small_case(const TemporaryDirectory& directory) {
  const Extent extent{4, 6, 8};
  RawNifti raw = oriented<std::int16_t>(
      lps, extent, 4, [](const Index& at) { return static_cast<std::int16_t>(at.d * 100 + at.h * 10 + at.w); });
  raw.slope = 0.5F;
  raw.write(directory / "volume-3.nii");
  MedicalCase made{.name = "3",
                   .sources = {{"volume-3.nii", 736, 1'700'000'000}, {"segmentation-3.nii.gz", 99, 1'700'000'001}},
                   .settings = {.width = 4, .classes = 2, .groups = "1:5-7"},
                   .image = load_canonical_image(directory / "volume-3.nii", 4)};
  for (int i = 0; i < 64; ++i) made.segmentation.push_back(static_cast<std::uint8_t>(i % 2));
  return made;
}

template <typename T>
std::vector<T> read_dataset(const std::filesystem::path& file, const char* name, hid_t type) {
  const Hdf5Lock lock;
  const Hdf5Handle handle = open_hdf5_file(file.string());
  const Hdf5Handle dataset(H5Dopen2(handle.id(), name, H5P_DEFAULT), H5Dclose);
  std::vector<T> values(64);
  EXPECT_GE(H5Dread(dataset.id(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  return values;
}

std::string attribute(const Hdf5Item& item, const std::string& name) {
  for (const auto& [key, value] : item.attributes) {
    if (key == name) return value;
  }
  return "none";
}

TEST(CaseFile, has_the_documented_layout) {
  const TemporaryDirectory directory;
  const MedicalCase made = small_case(directory);
  const std::filesystem::path file = directory / "case-3.hdf5";
  write_case_file(made, file);
  EXPECT_EQ(read_dataset<std::int16_t>(file, "volume", H5T_NATIVE_INT16), made.image.voxels);
  EXPECT_EQ(read_dataset<std::uint8_t>(file, "segmentation", H5T_NATIVE_UINT8), made.segmentation);
  const std::vector<Hdf5Item> items = describe_hdf5(file.string());
  ASSERT_EQ(items.size(), 3U);
  EXPECT_EQ(items[1].path, "/segmentation");
  EXPECT_EQ(items[1].type, "u8");
  EXPECT_EQ(items[2].type, "i16");
  EXPECT_EQ(items[2].shape, (std::vector<std::int64_t>{4, 4, 4}));
  EXPECT_EQ(items[2].storage, "contiguous");
  EXPECT_EQ(attribute(items[2], "scale"), fmt::format("{:.15g}", made.image.encoding.scale));
  EXPECT_NE(attribute(items[2], "offset"), "none");
  EXPECT_EQ(attribute(items[0], "spacing"), "[2, 2.25, 2]");
  EXPECT_EQ(attribute(items[0], "original_shape"), "[8, 6, 4]");
  EXPECT_EQ(attribute(items[0], "original_orientation"), "\"LPS\"");
  EXPECT_EQ(attribute(items[0], "case"), "\"3\"");
}

TEST(CaseFile, geometry_and_settings_are_read_back) {
  const TemporaryDirectory directory;
  const MedicalCase made = small_case(directory);
  const std::filesystem::path file = directory / "case-3.hdf5";
  write_case_file(made, file);
  const CaseGeometry geometry = read_case_geometry(file);
  EXPECT_EQ(geometry.width, 4);
  EXPECT_EQ(geometry.original.bytes, made.image.original.bytes);
  EXPECT_EQ(geometry.original.shape, made.image.original.shape);
  EXPECT_EQ(geometry.original.affine, made.image.original.affine);
  EXPECT_EQ(geometry.affine, made.image.affine());
  EXPECT_EQ(geometry.spacing, made.image.spacing());
  EXPECT_EQ(read_case_settings(file), made.settings);
  EXPECT_EQ(read_case_sources(file), made.sources);
}

TEST(CaseFile, the_same_case_gives_the_same_bytes) {
  const TemporaryDirectory directory;
  const MedicalCase made = small_case(directory);
  write_case_file(made, directory / "a.hdf5");
  write_case_file(made, directory / "b.hdf5");
  EXPECT_EQ(read_file(directory / "a.hdf5"), read_file(directory / "b.hdf5"));
  EXPECT_GT(read_file(directory / "a.hdf5").size(), 64U * 3);
}

TEST(CaseFile, other_files_are_refused) {
  const TemporaryDirectory directory;
  const std::filesystem::path file = directory / "other.hdf5";
  {
    const Hdf5Lock lock;
    const Hdf5Handle made(H5Fcreate(file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
  }
  EXPECT_NE(message_of<DataError>([&] { read_case_geometry(file); }).find("has no dataset `volume`"),
            std::string::npos);
  EXPECT_THROW(read_case_settings(directory / "none.hdf5"), DataError);
}

}  // namespace
}  // namespace halograd::test
