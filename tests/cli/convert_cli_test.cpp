#include "cli/program.hpp"

#include "halograd/data/hdf5_describe.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace halograd::test {
namespace {

class ConvertCli : public ::testing::Test {
protected:
  ConvertCli() {
    const ProgramRun made = run_halograd(fmt::format("synth lits --count 3 --width 16 --out {}", scans()));
    EXPECT_EQ(made.exit_code, 0) << made.err;
  }

  [[nodiscard]] std::string scans() const { return work_.file("scans"); }
  [[nodiscard]] std::string out() const { return work_.file("cases"); }
  [[nodiscard]] std::string command(const std::string& more = "") const {
    return fmt::format("convert lits --volumes {} --out {} --width 16 {}", scans(), out(), more);
  }
  [[nodiscard]] std::size_t files() const {
    if (!std::filesystem::exists(out())) return 0;
    const std::filesystem::directory_iterator entries(out());
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
  }
  void cut(const std::string& name) const {
    const std::filesystem::path file = work_ / ("scans/" + name);
    std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  }

  TemporaryDirectory work_;
};

TEST_F(ConvertCli, pairs_become_hdf5_files_once) {
  const ProgramRun run = run_on(2, command());
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(files(), 3U);
  for (int i = 0; i < 3; ++i) {
    const std::vector<Hdf5Item> items = describe_hdf5(fmt::format("{}/case-{}.hdf5", out(), i));
    ASSERT_EQ(items.size(), 3U);
    EXPECT_EQ(items[1].path + items[1].type, "/segmentationu8");
    EXPECT_EQ(items[2].path + items[2].type, "/volumei16");
    EXPECT_EQ(items[2].shape, (std::vector<std::int64_t>{16, 16, 16}));
  }
  const ProgramRun again = run_halograd(command());
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.err.find("3 were there before"), std::string::npos) << again.err;
  expect_failure(run_halograd(command("--classes 4")), 3, {"case-", "expected width 16, 4 classes"});
}

TEST_F(ConvertCli, a_bad_file_is_named_and_nothing_half_written) {
  cut("volume-1.nii.gz");
  expect_failure(run_halograd(command()), 3, {"volume-1.nii.gz: cut short or damaged"});
  const ProgramRun run = run_on(2, command("--keep-going"));
  expect_failure(run, 3, {"1 of 3 cases could not be converted: 1", "volume-1.nii.gz: cut short"});
  EXPECT_EQ(files(), 2U);
}

TEST_F(ConvertCli, what_is_missing_or_makes_no_sense_is_refused) {
  expect_failure(run_halograd(command("--classes 2")), 3, {"a label is 2", "from 0 to 1"});
  expect_failure(run_halograd(command("--classes 0")), 2, {"--classes is 0; expected 2 to 256"});
  expect_failure(run_halograd(command("--classes 257")), 2, {"--classes is 257"});
  expect_failure(run_halograd(command("--group 1:1,3:2")), 2, {"names class 3"});
  expect_failure(run_halograd("convert other --volumes a --out b"), 2, {"unknown kind of data other"});
  expect_failure(run_halograd("convert lits --volumes /nowhere --out " + out()), 3, {"/nowhere: no such directory"});
  std::filesystem::remove(work_ / "scans/segmentation-2.nii.gz");
  expect_failure(run_halograd(command()), 3, {"volume-2.nii.gz: has no partner", "segmentation-2.nii"});
  EXPECT_EQ(files(), 0U);
  expect_failure(run_halograd(fmt::format("synth lits --count 1 --width 16 --box 3 --out {}", out())), 2, {"--box"});
}

TEST_F(ConvertCli, labels_can_be_grouped) {
  const ProgramRun run = run_halograd(command("--classes 2 --group 1:1-2"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(files(), 3U);
}

}  // namespace
}  // namespace halograd::test
