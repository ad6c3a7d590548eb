#include "halograd/data/synthetic/cosmoflow_synthesis.hpp"

#include "halograd/core/error.hpp"
#include "halograd/data/hdf5_handle.hpp"
#include "halograd/data/synthetic/universe_file.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <set>
#include <string>

namespace halograd {
namespace {

namespace fs = std::filesystem;

using test::message_of;
using test::read_file;
using test::TemporaryDirectory;

std::set<std::string> names_in(const fs::path& directory) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.insert(entry.path().filename().string());
  return names;
}

struct Dataset {
  std::vector<hsize_t> shape;
  bool right_type = false;
  bool contiguous = false;
};

/// Reads dataset `name` into `values`, which must have room for it.
Dataset read(const Hdf5Handle& file, const char* name, hid_t file_type, hid_t memory_type, void* values) {
  const Hdf5Lock lock;
  const Hdf5Handle dataset(H5Dopen2(file.id(), name, H5P_DEFAULT), H5Dclose);
  EXPECT_TRUE(dataset.valid()) << name;
  const Hdf5Handle space(H5Dget_space(dataset.id()), H5Sclose);
  const Hdf5Handle type(H5Dget_type(dataset.id()), H5Tclose);
  const Hdf5Handle properties(H5Dget_create_plist(dataset.id()), H5Pclose);
  EXPECT_GE(H5Dread(dataset.id(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0) << name;
  return {hdf5_dims(space.id()), H5Tequal(type.id(), file_type) > 0, H5Pget_layout(properties.id()) == H5D_CONTIGUOUS};
}

CosmoflowSynthesis small_set(const fs::path& directory, std::int64_t count) {
  return {.directory = directory, .count = count, .universe = {.width = 12, .seed = 21}};
}

TEST(CosmoflowSynthesis, FilesHaveTheRealLayout) {
  const TemporaryDirectory scratch;
  synthesize_cosmoflow(small_set(scratch / "a" / "b", 2));
  EXPECT_EQ(names_in(scratch / "a" / "b"), (std::set<std::string>{"universe_00000.hdf5", "universe_00001.hdf5"}));
  const Hdf5Handle file = open_hdf5_file((scratch / "a" / "b" / "universe_00001.hdf5").string());

  std::vector<std::uint16_t> counts(12 * 12 * 12 * 4);
  const Dataset full = read(file, "full", H5T_STD_U16LE, H5T_NATIVE_UINT16, counts.data());
  EXPECT_EQ(full.shape, (std::vector<hsize_t>{12, 12, 12, 4}));
  EXPECT_TRUE(full.right_type);
  EXPECT_TRUE(full.contiguous);
  EXPECT_EQ(counts, make_universe({.width = 12, .seed = 21}, 1).counts);
  for (std::size_t channel = 0; channel < 4; ++channel) {
    std::int64_t sum = 0;
    for (std::size_t x = channel; x < counts.size(); x += 4) sum += counts[x];
    EXPECT_EQ(sum, 8 * 12 * 12 * 12);
  }

  std::array<std::array<float, 4>, 3> numbers{};
  const std::array<const char*, 3> names = {"unitPar", "physPar", "redshifts"};
  for (std::size_t i = 0; i < 3; ++i) {
    const Dataset dataset = read(file, names[i], H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, numbers[i].data());
    EXPECT_EQ(dataset.shape, (std::vector<hsize_t>{4})) << names[i];
    EXPECT_TRUE(dataset.right_type) << names[i];
  }
  const std::array<double, 4> centres = {0.3089, 0.8159, 0.9667, 67.74};
  for (std::size_t p = 0; p < 4; ++p) {
    EXPECT_LE(std::abs(numbers[0][p]), 1.0F);
    EXPECT_NEAR(numbers[1][p] / centres[p], 1.0 + 0.3 * numbers[0][p], 1e-6);
  }
  EXPECT_EQ(numbers[2], (std::array<float, 4>{3.0F, 1.5F, 0.5F, 0.0F}));

  std::array<std::array<char, 8>, 4> text{};
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.id(), 8);
  H5Tset_strpad(type.id(), H5T_STR_NULLPAD);
  EXPECT_EQ(read(file, "namePar", type.id(), type.id(), text.data()).shape, (std::vector<hsize_t>{4}));
  const std::array<std::string, 4> expected = {"Omega_m", "sigma_8", "N_spec", "H_0"};
  for (std::size_t p = 0; p < 4; ++p) EXPECT_EQ(std::string(text[p].data()), expected[p]);
}

TEST(CosmoflowSynthesis, TheSameSeedGivesTheSameBytesHoweverTheWorkIsShared) {
  const TemporaryDirectory scratch;
  synthesize_cosmoflow(small_set(scratch / "alone", 5));
  CosmoflowSynthesis shared = small_set(scratch / "shared", 3);
  shared.ranks = 2;
  for (shared.rank = 0; shared.rank < 2; ++shared.rank) synthesize_cosmoflow(shared);
  CosmoflowSynthesis rest = small_set(scratch / "shared", 2);
  rest.first = 3;
  synthesize_cosmoflow(rest);
  // Once more over files that are there: replaced by the same.
  synthesize_cosmoflow(rest);
  ASSERT_EQ(names_in(scratch / "alone"), names_in(scratch / "shared"));
  std::set<std::string> distinct;
  for (const std::string& name : names_in(scratch / "alone")) {
    const std::string bytes = read_file(scratch / "alone" / name);
    EXPECT_TRUE(bytes == read_file(scratch / "shared" / name)) << name;
    distinct.insert(bytes);
  }
  EXPECT_EQ(distinct.size(), 5U);
}

TEST(CosmoflowSynthesis, ReportsProgressOfThisRanksShare) {
  const TemporaryDirectory scratch;
  CosmoflowSynthesis synthesis = small_set(scratch.path(), 5);
  synthesis.rank = 1;
  synthesis.ranks = 2;
  std::vector<std::array<std::int64_t, 3>> seen;
  synthesize_cosmoflow(synthesis, [&](const SynthesisProgress& progress) {
    EXPECT_TRUE(fs::exists(progress.file));
    seen.push_back({progress.index, progress.done, progress.total});
  });
  EXPECT_EQ(seen, (std::vector<std::array<std::int64_t, 3>>{{1, 1, 2}, {3, 2, 2}}));
}

TEST(CosmoflowSynthesis, RefusesADirectoryItCannotWrite) {
  const TemporaryDirectory scratch;
  const fs::path file = scratch / "a_file";
  test::write_file(file, "in the way");
  for (const fs::path& bad : {file, file / "below"}) {
    const std::string message = message_of<DataError>([&] { synthesize_cosmoflow(small_set(bad, 1)); });
    EXPECT_NE(message.find(bad.string()), std::string::npos) << message;
  }
  // A directory that goes, or was never there, by the time a file is written.
  const fs::path gone = scratch / "gone" / "universe.hdf5";
  const std::string message = message_of<DataError>([&] { write_universe(make_universe({.width = 8}, 0), gone); });
  EXPECT_NE(message.find(gone.string()), std::string::npos) << message;
  // A directory with the file's name: nothing is left behind.
  fs::create_directories(scratch / "full" / "universe.hdf5" / "inside");
  EXPECT_THROW(write_universe(make_universe({.width = 8}, 0), scratch / "full" / "universe.hdf5"), DataError);
  EXPECT_EQ(names_in(scratch / "full"), (std::set<std::string>{"universe.hdf5"}));
}

TEST(CosmoflowSynthesis, AFullDiskIsAResourceErrorAndLeavesNothing) {
  const TemporaryDirectory scratch;
  const Universe universe = make_universe({.width = 16}, 0);
  // A limit on the size of files stands in for a full disk.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{.rlim_cur = 8192, .rlim_max = before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const fs::path file = scratch / "universe.hdf5";
  EXPECT_THROW(write_universe(universe, file), ResourceError);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(names_in(scratch.path()).empty());
  write_universe(universe, file);
  EXPECT_EQ(names_in(scratch.path()), (std::set<std::string>{"universe.hdf5"}));
}

TEST(CosmoflowSynthesis, RefusesOptionsThatMakeNoSenseBeforeWriting) {
  const TemporaryDirectory scratch;
  const auto refused = [&](auto change) {
    CosmoflowSynthesis synthesis = small_set(scratch / "new", 1);
    change(synthesis);
    return !message_of<UsageError>([&] { synthesize_cosmoflow(synthesis); }).empty();
  };
  EXPECT_TRUE(refused([](CosmoflowSynthesis& s) { s.count = 0; }));
  EXPECT_TRUE(refused([](CosmoflowSynthesis& s) { s.universe.width = -3; }));
  EXPECT_TRUE(refused([](CosmoflowSynthesis& s) { s.universe.width = 100000; }));
  EXPECT_TRUE(refused([](CosmoflowSynthesis& s) { s.universe.box = -1.0; }));
  EXPECT_TRUE(refused([](CosmoflowSynthesis& s) { s.first = -1; }));
  EXPECT_TRUE(refused([](CosmoflowSynthesis& s) { s.rank = 1; }));
  EXPECT_TRUE(refused([](CosmoflowSynthesis& s) { s.directory.clear(); }));
  EXPECT_FALSE(fs::exists(scratch / "new"));
}

}  // namespace
}  // namespace halograd
