#include "halograd/data/medical/conversion.hpp"

#include "data/medical/case_sets.hpp"
#include "data/shared_directory.hpp"
#include "halograd/core/error.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace halograd::test {
namespace {

class ConversionOnRanks : public ::testing::Test {
protected:
  Conversion conversion(bool keep_going = false) const {
    return {.volumes = in_.path(), .out = out_.path(), .settings = {.width = 8}, .keep_going = keep_going};
  }
  void write_pairs(int count) {
    in_.write([&] {
      for (int i = 0; i < count; ++i) write_pair(in_.path(), std::to_string(i), 4 + i);
    });
  }
  /// The files in the out directory, after all ranks are done and before any goes on.
  std::vector<std::string> files() const {
    world_.barrier();
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(out_.path())) {
      names.push_back(entry.path().filename().string());
    }
    std::ranges::sort(names);
    world_.barrier();
    return names;
  }

  Communicator world_ = Communicator::world();
  SharedDirectory in_{world_};
  SharedDirectory out_{world_};
};

TEST_F(ConversionOnRanks, cases_are_shared_and_done_ones_skipped) {
  write_pairs(5);
  std::int64_t last = 0;
  const ConversionResult result =
      convert_cases(world_, conversion(), [&](const ConversionProgress& now) { last = now.done; });
  EXPECT_EQ(result.converted, 5);
  EXPECT_EQ(last, world_.rank() == 0 ? 5 : 0);
  EXPECT_EQ(files(),
            (std::vector<std::string>{"case-0.hdf5", "case-1.hdf5", "case-2.hdf5", "case-3.hdf5", "case-4.hdf5"}));
  out_.write([&] { std::filesystem::remove(out_.path() / "case-3.hdf5"); });
  const ConversionResult again = convert_cases(world_, conversion());
  EXPECT_EQ(again.converted, 1);
  EXPECT_EQ(again.skipped, 4);
  EXPECT_EQ(files().size(), 5U);
}

TEST_F(ConversionOnRanks, a_case_that_fails_stops_all) {
  write_pairs(5);
  in_.write([&] { write_file(in_.path() / "volume-2.nii", "garbage"); });
  EXPECT_NE(
      message_of<DataError>([&] { convert_cases(world_, conversion()); }).find("volume-2.nii: cut short or damaged"),
      std::string::npos);
  for (const std::string& name : files()) EXPECT_TRUE(name.starts_with("case-")) << name;
}

TEST_F(ConversionOnRanks, or_is_passed_over) {
  write_pairs(5);
  in_.write([&] {
    write_file(in_.path() / "volume-2.nii", "garbage");
    std::filesystem::remove(in_.path() / "segmentation-4.nii");
  });
  EXPECT_NE(message_of<DataError>([&] { convert_cases(world_, conversion()); }).find("has no partner"),
            std::string::npos);
  EXPECT_EQ(files().size(), 0U) << "missing files are found before anything is written";
  ConversionResult result = convert_cases(world_, conversion(true));
  std::ranges::sort(result.failed);
  EXPECT_EQ(result.failed, (std::vector<std::string>{"2", "4"}));
  EXPECT_EQ(result.converted, 3);
  EXPECT_EQ(files(), (std::vector<std::string>{"case-0.hdf5", "case-1.hdf5", "case-3.hdf5"}));
}

TEST_F(ConversionOnRanks, files_of_other_settings_are_not_replaced) {
  write_pairs(1);
  convert_cases(world_, conversion());
  Conversion other = conversion();
  other.settings.classes = 5;
  EXPECT_NE(message_of<DataError>([&] { convert_cases(world_, other); }).find("was converted with width 8, 3 classes"),
            std::string::npos);
}

TEST_F(ConversionOnRanks, nor_files_made_of_other_scans) {
  write_pairs(1);
  convert_cases(world_, conversion());
  const auto refusal = [&] { return message_of<DataError>([&] { convert_cases(world_, conversion()); }); };
  EXPECT_EQ(refusal(), "");
  in_.write([&] { write_pair(in_.path(), "0", 5); });
  EXPECT_NE(refusal().find("case-0.hdf5: was made of volume-0.nii (592 bytes, of "), std::string::npos) << refusal();
  EXPECT_NE(refusal().find("; expected volume-0.nii (652 bytes, of "), std::string::npos) << refusal();
  in_.write([&] {
    write_pair(in_.path(), "0", 4);
    const std::filesystem::path volume = in_.path() / "volume-0.nii";
    std::filesystem::last_write_time(volume, std::filesystem::last_write_time(volume) - std::chrono::hours(1));
  });
  EXPECT_NE(refusal().find("was made of volume-0.nii (592 bytes"), std::string::npos) << "of an hour ago";
}

}  // namespace
}  // namespace halograd::test
