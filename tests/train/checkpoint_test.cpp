#include "halograd/train/checkpoint.hpp"

#include "halograd/core/error.hpp"
#include "halograd/train/checkpoint_seal.hpp"
#include "support/temporary_directory.hpp"
#include "train/checkpoint_arrays.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>

namespace halograd {
namespace {

using test::Arrays;
using test::example_state;
using test::message_of;
using test::read_file;
using test::write_file;

class Checkpoint : public testing::Test {
protected:
  test::TemporaryDirectory directory;
  std::filesystem::path file = directory / "c.h5";
  Arrays written{Arrays::small_model()};
  Arrays read{Arrays::small_model(), 100};
};

TEST_F(Checkpoint, comes_back_bit_by_bit) {
  write_checkpoint(file, example_state(), written.named());
  EXPECT_EQ(read_checkpoint(file, read.named()), example_state());
  EXPECT_EQ(read.values(), written.values());
  EXPECT_EQ(read_checkpoint_state(file), example_state());
  EXPECT_TRUE(is_checkpoint(file));
}

TEST_F(Checkpoint, a_fresh_state_comes_back_too) {
  write_checkpoint(file, CheckpointState{}, {});
  EXPECT_EQ(read_checkpoint_state(file), CheckpointState{});
  EXPECT_TRUE(list_arrays(file).empty());
}

TEST_F(Checkpoint, lists_its_arrays) {
  write_checkpoint(file, example_state(), written.named());
  EXPECT_EQ(list_arrays(file), Arrays::small_model());
}

TEST_F(Checkpoint, equal_contents_give_equal_bytes) {
  write_checkpoint(file, example_state(), written.named());
  write_checkpoint(directory / "d.h5", example_state(), written.named());
  EXPECT_EQ(read_file(file), read_file(directory / "d.h5"));
}

TEST_F(Checkpoint, any_flipped_byte_shows) {
  write_checkpoint(file, example_state(), written.named());
  const std::string whole = read_file(file);
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](std::size_t at, char byte) {
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(byte);
    stream.flush();
  };
  for (std::size_t at = 0; at < whole.size(); at += at < 600 ? 1 : 7) {
    put(at, static_cast<char>(whole[at] ^ (1 << at % 8)));
    EXPECT_THROW(read_checkpoint(file, read.named()), DataError) << at;
    put(at, whole[at]);
  }
  EXPECT_EQ(read.values(), Arrays(Arrays::small_model(), 100).values());
}

TEST_F(Checkpoint, any_cut_shows) {
  write_checkpoint(file, example_state(), written.named());
  const std::string whole = read_file(file);
  for (std::size_t size = 0; size < whole.size(); size += size < 600 ? 25 : 333) {
    write_file(file, whole.substr(0, size));
    EXPECT_THROW(read_checkpoint_state(file), DataError) << size;
  }
  write_file(file, whole.substr(0, 1000));
  EXPECT_EQ(message_of<DataError>([&] { read_checkpoint_state(file); }),
            fmt::format("{}: a damaged checkpoint: cut short to 1000 of its {} bytes", file.string(), whole.size()));
  write_file(file, whole + "x");
  EXPECT_EQ(message_of<DataError>([&] { read_checkpoint_state(file); }),
            file.string() + ": a damaged checkpoint: its contents do not match its checksum");
}

TEST_F(Checkpoint, swapped_words_show) {
  write_checkpoint(file, example_state(), written.named());
  const std::string whole = read_file(file);
  const std::size_t at = whole.find(std::string(reinterpret_cast<const char*>(written.values()[1].data()), 128));
  ASSERT_NE(at, std::string::npos);
  for (const std::size_t apart : {8U, 32U, 64U}) {
    std::string damaged = whole;
    std::swap_ranges(damaged.begin() + static_cast<std::ptrdiff_t>(at),
                     damaged.begin() + static_cast<std::ptrdiff_t>(at + 8),
                     damaged.begin() + static_cast<std::ptrdiff_t>(at + apart));
    ASSERT_NE(damaged, whole);
    write_file(file, damaged);
    EXPECT_THROW(verify_seal(file), DataError) << apart;
  }
}

TEST_F(Checkpoint, of_another_model_names_parameter_and_shapes) {
  write_checkpoint(file, example_state(), written.named());
  const auto failure = [&](std::vector<ArrayInfo> model) {
    Arrays arrays(std::move(model), 100);
    const auto before = arrays.values();
    std::string message = message_of<DataError>([&] { read_checkpoint(file, arrays.named()); });
    EXPECT_EQ(arrays.values(), before);
    return message;
  };
  auto wider = Arrays::small_model();
  wider[1].dims[0] = 8;
  EXPECT_EQ(
      failure(wider),
      file.string() + ": a checkpoint of another model: /model/conv1/weight is [4,2,3,3,3] there and [8,2,3,3,3] here");
  auto longer = Arrays::small_model();
  longer.push_back({"/model/conv2/weight", {8, 4, 3, 3, 3}});
  EXPECT_EQ(
      failure(longer),
      file.string() + ": a checkpoint of another model: /model/conv2/weight is missing there and [8,4,3,3,3] here");
  auto plain = Arrays::small_model();
  plain.erase(plain.begin());
  EXPECT_EQ(failure(plain),
            file.string() + ": a checkpoint of another model: /model/bn1/gamma is [4] there and missing here");
  auto sgd = Arrays::small_model();
  sgd[2].path = "/optimizer/velocity/bn1/gamma";
  EXPECT_EQ(failure(sgd), file.string() +
                              ": a checkpoint of another optimizer or model: /optimizer/velocity/bn1/gamma is "
                              "missing there and [4] here");
}

TEST_F(Checkpoint, weights_alone_can_be_read) {
  write_checkpoint(file, example_state(), written.named());
  read_weights(file, read.named());
  EXPECT_EQ(read.values()[0], written.values()[0]);
  EXPECT_EQ(read.values()[1], written.values()[1]);
  EXPECT_EQ(read.values()[2], Arrays(Arrays::small_model(), 100).values()[2]);
  std::string damaged = read_file(file);
  damaged[damaged.size() - 5] ^= 1;
  write_file(file, damaged);
  EXPECT_THROW(read_weights(file, read.named()), DataError);
}

TEST_F(Checkpoint, weights_without_a_seal_are_read_but_are_no_checkpoint) {
  write_checkpoint(file, example_state(), written.named());
  write_file(file, read_file(file).replace(0, seal_bytes, seal_bytes, '\0'));
  EXPECT_FALSE(is_checkpoint(file));
  read_weights(file, read.named());
  EXPECT_EQ(read.values()[1], written.values()[1]);
  EXPECT_EQ(message_of<DataError>([&] { read_checkpoint(file, read.named()); }),
            file.string() + ": not a checkpoint of HaloGrad: it has no checksum");
}

TEST_F(Checkpoint, files_that_are_none_are_named) {
  EXPECT_TRUE(message_of<DataError>([&] { read_weights(file, {}); }).starts_with(file.string() + ": no such file"));
  write_file(file, "text");
  EXPECT_TRUE(message_of<DataError>([&] { list_arrays(file); }).starts_with(file.string() + ": not an HDF5 file"));
}

TEST_F(Checkpoint, a_full_disk_leaves_no_file) {
  Arrays large({{"/model/fc1/weight", {1024, 1024}}});
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit low{.rlim_cur = 1 << 20, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &low);
  const std::string message =
      message_of<ResourceError>([&] { write_checkpoint(file, example_state(), large.named()); });
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(message, "cannot write the checkpoint " + file.string() + ": File too large");
  EXPECT_FALSE(std::filesystem::exists(file));
  write_checkpoint(file, example_state(), large.named());  // and the library goes on working
  EXPECT_EQ(read_checkpoint_state(file), example_state());
}

TEST_F(Checkpoint, a_missing_directory_is_a_resource_error) {
  EXPECT_THROW(write_checkpoint(directory / "no/c.h5", example_state(), written.named()), ResourceError);
}

TEST_F(Checkpoint, cosmoflow_takes_well_under_a_second) {
  std::vector<ArrayInfo> model;
  for (const char* group : {"/model", "/optimizer/adam_m", "/optimizer/adam_v"}) {
    model.push_back({fmt::format("{}/conv1/weight", group), {128, 256, 12, 12}});
    model.push_back({fmt::format("{}/fc1/weight", group), {2048, 2305}});
  }
  Arrays arrays(model);
  Arrays back(model, 100);
  const auto start = std::chrono::steady_clock::now();
  write_checkpoint(file, example_state(), arrays.named());
  const auto middle = std::chrono::steady_clock::now();
  read_checkpoint(file, back.named());
  const auto end = std::chrono::steady_clock::now();
  EXPECT_EQ(back.values(), arrays.values());
  const auto seconds = [](auto from, auto to) { return std::chrono::duration<double>(to - from).count(); };
  RecordProperty("write_seconds", std::to_string(seconds(start, middle)));
  RecordProperty("read_seconds", std::to_string(seconds(middle, end)));
  EXPECT_LT(seconds(start, middle), 10) << "far beyond a slow disk";
}

}  // namespace
}  // namespace halograd
