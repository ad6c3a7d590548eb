#include "halograd/data/hdf5_image.hpp"

#include "data/sample_files.hpp"
#include "halograd/core/durable_file.hpp"
#include "halograd/core/error.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>

namespace halograd {
namespace {

using test::TemporaryDirectory;

/// Makes an array of `count` numbers, an attribute and a group.
void make_contents(hid_t file, hsize_t count) {
  std::vector<std::int32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 1);
  const Hdf5Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_obj_track_times(properties.id(), false);
  const Hdf5Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose);
  const Hdf5Handle dataset(
      H5Dcreate2(file, "numbers", H5T_STD_I32LE, space.id(), H5P_DEFAULT, properties.id(), H5P_DEFAULT), H5Dclose);
  ASSERT_GE(H5Dwrite(dataset.id(), H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers.data()), 0);
  const Hdf5Handle attribute(H5Acreate2(dataset.id(), "sizes", H5T_STD_I32LE, space.id(), H5P_DEFAULT, H5P_DEFAULT),
                             H5Aclose);
  if (attribute.valid()) H5Awrite(attribute.id(), H5T_NATIVE_INT32, numbers.data());
  const Hdf5Handle group(H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
  ASSERT_TRUE(group.valid());
}

std::string written_by_hdf5(const std::string& name, std::int64_t user_block, hsize_t count) {
  const Hdf5Lock lock;
  {
    const Hdf5Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
    H5Pset_userblock(creation.id(), static_cast<hsize_t>(user_block));
    const Hdf5Handle file(H5Fcreate(name.c_str(), H5F_ACC_TRUNC, creation.id(), H5P_DEFAULT), H5Fclose);
    make_contents(file.id(), count);
  }
  std::ifstream stream(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(Hdf5Image, HasTheBytesThatHdf5Writes) {
  const TemporaryDirectory directory;
  for (const std::int64_t user_block : {0, 512, 2048}) {
    for (const hsize_t count : {1, 1000, 12'000, 300'000}) {
      const std::string expected = written_by_hdf5(directory.file("a.h5"), user_block, count);
      const Hdf5Lock lock;
      const Hdf5Image image(directory.file("b.h5"), user_block);
      make_contents(image.id(), count);
      EXPECT_TRUE(image.bytes() == expected) << user_block << ", " << count << ": " << image.bytes().size()
                                             << " bytes, " << expected.size() << " expected";
    }
  }
  EXPECT_FALSE(std::filesystem::exists(directory.file("b.h5")));
}

TEST(Hdf5Image, GrowsAfterItsBytesWereAskedFor) {
  const TemporaryDirectory directory;
  const std::string name = directory.file("a.h5");
  const Hdf5Lock lock;
  const Hdf5Image image("in memory");
  EXPECT_LT(image.bytes().size(), 4096U);
  make_contents(image.id(), 5000);
  write_file(name, image.bytes(), name);
  const Hdf5Handle file = open_hdf5_file(name);
  const Hdf5Handle dataset(H5Dopen2(file.id(), "numbers", H5P_DEFAULT), H5Dclose);
  std::vector<std::int32_t> numbers(5000);
  ASSERT_GE(H5Dread(dataset.id(), H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers.data()), 0);
  EXPECT_EQ(numbers.front(), 1);
  EXPECT_EQ(numbers.back(), 5000);
}

TEST(Hdf5Image, RefusesAUserBlockThatHdf5HasNot) {
  try {
    const Hdf5Image image("x.h5", 500);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const ResourceError& fault) {
    EXPECT_TRUE(test::mentions(fault.what(), "cannot write x.h5: ")) << fault.what();
  }
}

}  // namespace
}  // namespace halograd
