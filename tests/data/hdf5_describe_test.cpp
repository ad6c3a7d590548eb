#include "halograd/data/hdf5_describe.hpp"

#include "data/sample_files.hpp"
#include "halograd/core/error.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace halograd {
namespace {

using test::mentions;
using test::message_of;
using test::TemporaryDirectory;

const Hdf5Item& find(const std::vector<Hdf5Item>& items, const std::string& path) {
  for (const Hdf5Item& item : items) {
    if (item.path == path) return item;
  }
  throw std::runtime_error("no item " + path);
}

TEST(DescribeHdf5, TellsWhatASampleHolds) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("a.h5");
  test::write_sample(file, {.file_type = H5T_STD_U16BE, .chunk = {4, 4, 8, 4}, .gzip = 5});
  const std::vector<Hdf5Item> items = describe_hdf5(file);
  ASSERT_EQ(items.size(), 4U);
  EXPECT_EQ(items[0].path, "/");
  EXPECT_EQ(items[0].kind, "group");
  const Hdf5Item& full = find(items, "/full");
  EXPECT_EQ(full.kind, "dataset");
  EXPECT_EQ(full.shape, (std::vector<std::int64_t>{8, 8, 8, 4}));
  EXPECT_EQ(full.type, "u16 big-endian");
  EXPECT_EQ(full.storage, "chunked [4,4,8,4], gzip 5");
  EXPECT_GT(full.stored_bytes, 0);
  EXPECT_EQ(full.value, "");
  EXPECT_EQ(find(items, "/unitPar").value, "[0.25, -0.5, 0.75, -1]");
  EXPECT_EQ(find(items, "/physPar").value, "[0.3089, 0.8159, 0.9667, 67.74]");
  EXPECT_EQ(find(items, "/unitPar").storage, "contiguous");
  EXPECT_TRUE(mentions(to_text(full), "/full  [8,8,8,4] u16 big-endian, chunked [4,4,8,4], gzip 5"));
}

TEST(DescribeHdf5, FollowsGroupsAndReadsAttributes) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a.h5");
  {
    const Hdf5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
    const Hdf5Handle model(H5Gcreate2(file.id(), "model", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
    const Hdf5Handle layer(H5Gcreate2(model.id(), "conv1", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
    const Cosmology weights{1, 2, 3, 4};
    test::write_dataset(layer.id(), "weight", {4}, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, weights.data());
    H5Lcreate_soft("/nowhere", file.id(), "gone", H5P_DEFAULT, H5P_DEFAULT);
    const Hdf5Handle scalar(H5Screate(H5S_SCALAR), H5Sclose);
    const Hdf5Handle text(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(text.id(), H5T_VARIABLE);
    const Hdf5Handle version(H5Acreate2(file.id(), "version", text.id(), scalar.id(), H5P_DEFAULT, H5P_DEFAULT),
                             H5Aclose);
    const char* words = "0.1.0";
    H5Awrite(version.id(), text.id(), &words);
    const Hdf5Handle step(H5Acreate2(model.id(), "step", H5T_STD_I64LE, scalar.id(), H5P_DEFAULT, H5P_DEFAULT),
                          H5Aclose);
    const long long number = 9007199254740993;
    H5Awrite(step.id(), H5T_NATIVE_LLONG, &number);
    const hsize_t two = 2;
    const Hdf5Handle pair(H5Screate_simple(1, &two, nullptr), H5Sclose);
    const Hdf5Handle fixed(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(fixed.id(), 3);
    const Hdf5Handle names(H5Dcreate2(file.id(), "names", fixed.id(), pair.id(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                           H5Dclose);
    H5Dwrite(names.id(), fixed.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, "H0\0n_s");
  }
  const std::vector<Hdf5Item> items = describe_hdf5(path);
  std::vector<std::string> paths;
  for (const Hdf5Item& item : items) paths.push_back(item.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"/", "/gone", "/model", "/model/conv1", "/model/conv1/weight", "/names"}));
  using Attributes = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(items[0].attributes, (Attributes{{"version", "\"0.1.0\""}}));
  EXPECT_EQ(items[1].kind, "link");
  EXPECT_EQ(items[2].attributes, (Attributes{{"step", "9007199254740993"}}));
  EXPECT_EQ(items[4].value, "[1, 2, 3, 4]");
  EXPECT_EQ(items[5].value, "[\"H0\", \"n_s\"]");
  EXPECT_EQ(to_text(items[2]), "/model  group\n    @step = 9007199254740993");
}

TEST(DescribeHdf5, ACircleOfLinksEnds) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a.h5");
  {
    const Hdf5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
    const Hdf5Handle group(H5Gcreate2(file.id(), "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
    H5Lcreate_hard(file.id(), "group", group.id(), "itself", H5P_DEFAULT, H5P_DEFAULT);
  }
  EXPECT_TRUE(mentions(message_of<DataError>([&] { describe_hdf5(path); }), path));
}

TEST(DescribeHdf5, AnythingElseIsADataErrorThatNamesTheFile) {
  const TemporaryDirectory directory;
  std::ofstream(directory.file("text.h5")) << "no HDF5";
  for (const std::string name : {"text.h5", "missing.h5"}) {
    EXPECT_TRUE(mentions(message_of<DataError>([&] { describe_hdf5(directory.file(name)); }), directory.file(name)));
  }
}

}  // namespace
}  // namespace halograd
