#include "halograd/train/checkpoint_store.hpp"

#include "halograd/core/error.hpp"
#include "halograd/core/log.hpp"
#include "support/temporary_directory.hpp"
#include "train/checkpoint_arrays.hpp"

#include <gtest/gtest.h>

#include <set>

namespace halograd {
namespace {

using test::Arrays;
using test::example_state;
using test::message_of;
namespace fs = std::filesystem;

class Store : public testing::Test {
protected:
  fs::path write(std::int64_t step, bool best = false) {
    Arrays arrays(Arrays::small_model(), static_cast<float>(step));
    return store.write(example_state(step), arrays.named(), best);
  }

  static void damage(const fs::path& file) {
    std::string contents = test::read_file(file);
    contents[contents.size() / 2] ^= 4;
    test::write_file(file, contents);
  }

  static std::int64_t step_in(const fs::path& file) { return read_checkpoint_state(file).step; }

  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory.path())) names.insert(entry.path().filename().string());
    return names;
  }

  test::TemporaryDirectory directory;
  CheckpointStore store{directory.path(), 2};
};

TEST_F(Store, an_empty_one_has_no_newest) {
  EXPECT_EQ(store.newest_good(), std::nullopt);
  EXPECT_EQ(CheckpointStore(directory / "none", 1).newest_good(), std::nullopt);
}

TEST_F(Store, the_newest_is_found_by_its_step) {
  EXPECT_EQ(write(0), directory / "checkpoint_00000000.h5");
  write(9);
  write(10);
  EXPECT_EQ(store.newest_good(), directory / "checkpoint_00000010.h5");
}

TEST_F(Store, keeps_the_first_the_best_and_the_last) {
  write(0);
  for (const std::int64_t step : {10, 20, 30, 40, 50}) write(step, step == 20);
  EXPECT_EQ(names(), (std::set<std::string>{"best.h5", "checkpoint_00000000.h5", "checkpoint_00000040.h5",
                                            "checkpoint_00000050.h5"}));
  EXPECT_EQ(step_in(store.best_file()), 20);
  write(60, true);
  EXPECT_EQ(step_in(store.best_file()), 60);
  EXPECT_EQ(store.steps(), (std::vector<std::int64_t>{0, 50, 60}));
}

TEST_F(Store, a_damaged_newest_gives_way_to_the_one_before_with_a_warning) {
  write(0);
  write(10);
  write(20);
  log::add_file(directory / "log.txt");
  damage(store.file_of(20));
  EXPECT_EQ(store.newest_good(), store.file_of(10));
  fs::resize_file(store.file_of(10), 700);
  EXPECT_EQ(store.newest_good(), store.file_of(0));
  const std::string log = test::read_file(directory / "log.txt");
  EXPECT_NE(log.find(store.file_of(20).string() + ": a damaged checkpoint: its contents do not match its checksum"),
            std::string::npos);
  EXPECT_NE(log.find(store.file_of(10).string() + ": a damaged checkpoint: cut short to 700 of its "),
            std::string::npos);
}

TEST_F(Store, the_best_one_serves_where_its_twin_is_gone) {
  write(0);
  write(10, true);
  write(20);
  fs::remove(store.file_of(10));
  damage(store.file_of(20));
  EXPECT_EQ(store.newest_good(), store.best_file());
}

TEST_F(Store, all_damaged_is_an_error_and_no_fresh_start) {
  write(0);
  damage(store.file_of(0));
  EXPECT_EQ(message_of<DataError>([&] { static_cast<void>(store.newest_good()); }),
            directory.path().string() + ": none of its 1 checkpoints can be read");
}

TEST_F(Store, what_a_killed_writer_left_is_never_counted) {
  write(0);
  test::write_file(directory / "checkpoint_00000010.h5.partial", test::read_file(store.file_of(0)).substr(0, 2000));
  EXPECT_EQ(store.steps(), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(store.newest_good(), store.file_of(0));
  write(10);
  EXPECT_EQ(names(), (std::set<std::string>{"checkpoint_00000000.h5", "checkpoint_00000010.h5"}));
  EXPECT_EQ(step_in(*store.newest_good()), 10);
}

TEST_F(Store, damaged_ones_passed_over_do_not_displace_good_ones) {
  write(0);
  for (const std::int64_t step : {10, 20, 30}) write(step, step == 30);
  damage(store.file_of(30));  // and with it its hard link best.h5
  EXPECT_EQ(store.newest_good(), store.file_of(20));
  write(25);
  EXPECT_EQ(store.newest_good(), store.file_of(25));
  EXPECT_EQ(store.steps(), (std::vector<std::int64_t>{0, 20, 25}));
  EXPECT_TRUE(fs::exists(directory / "checkpoint_00000030.h5.damaged"));
  write(30, true);
  EXPECT_EQ(store.newest_good(), store.file_of(30));
  EXPECT_EQ(step_in(store.best_file()), 30);
}

TEST_F(Store, the_same_step_can_be_written_again) {
  write(10);
  write(10);
  EXPECT_EQ(store.steps(), (std::vector<std::int64_t>{10}));
  EXPECT_EQ(step_in(store.file_of(10)), 10);
}

TEST_F(Store, a_failed_write_leaves_the_earlier_ones) {
  write(0);
  fs::create_directory(directory / "checkpoint_00000010.h5");  // in the way
  EXPECT_THROW(write(10), ResourceError);
  EXPECT_EQ(step_in(store.file_of(0)), 0);
}

}  // namespace
}  // namespace halograd
