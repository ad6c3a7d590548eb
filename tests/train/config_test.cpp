#include "halograd/train/config.hpp"

#include "halograd/core/error.hpp"
#include "halograd/train/config_keys.hpp"
#include "halograd/train/spelling.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace halograd {
namespace {

using test::message_of;

Config parse(std::string_view text, const std::vector<std::string>& overrides = {}) {
  return parse_config(text, "run.toml", overrides);
}

std::string parse_error(std::string_view text, const std::vector<std::string>& overrides = {}) {
  return message_of<UsageError>([&] { parse(text, overrides); });
}

TEST(Config, an_empty_file_is_the_documented_defaults) {
  const Config config = parse("");
  EXPECT_EQ(config, Config{});
  EXPECT_EQ(config.model.width, 128);
  EXPECT_EQ(config.train.learning_rate, 1e-3);
  EXPECT_EQ(config.train.momentum, 0.9);
  EXPECT_EQ(config.data.split, (std::array{0.8, 0.1, 0.1}));
  EXPECT_EQ(config.parallel.device, "auto");
  EXPECT_NO_THROW(validate(config));
}

TEST(Config, reads_every_kind_of_value) {
  const Config config = parse(
      "[model]\nwidth = 48\nbatch_norm = false\npool = \"max\"\n[data]\npath = \"a b\"\nsplit = [1, 0, 0]\n"
      "[train]\nlearning_rate = 1\nepochs = 7\n[parallel]\ngrid = \"3x2x1\"\n");
  EXPECT_EQ(config.model.width, 48);
  EXPECT_FALSE(config.model.batch_norm);
  EXPECT_EQ(config.model.pool, "max");
  EXPECT_EQ(config.data.path, "a b");
  EXPECT_EQ(config.data.split, (std::array{1.0, 0.0, 0.0}));
  EXPECT_EQ(config.train.learning_rate, 1.0);
  EXPECT_EQ(config.train.epochs, 7);
  EXPECT_EQ(config.parallel.grid, "3x2x1");
}

TEST(Config, comes_back_from_its_toml_unchanged) {
  Config config;
  config.model = {"unet3d",
                  96,
                  false,
                  1.0 / 3,
                  "max",
                  2,
                  0.1 + 0.2,
                  "group",
                  2,
                  4,
                  24,
                  "cross_entropy+dice",
                  {0.1, 1.0 / 3, 1e-3, 2}};
  config.model.ignore_label = 255;
  config.data = {"C:\\data \"x\"\t\x01/é",
                 "lits",
                 "none",
                 {-1.5, 0.1},
                 "hw",
                 0.3,
                 1e-3,
                 {0.7, 0.2, 0.1},
                 std::numeric_limits<std::int64_t>::max()};
  config.train.learning_rate = 1e-300;
  config.train.lr_final = 1;
  config.train.optimizer = "sgd";
  config.train.initial_checkpoint = "runs/a/checkpoints/best.h5";
  config.train.log_samples = true;
  config.parallel = {"2x2x1", "spatial", "reference"};
  const std::string toml = to_toml(config);
  EXPECT_EQ(parse(toml), config) << toml;
  EXPECT_EQ(to_toml(parse(toml)), toml);
}

TEST(Config, its_toml_holds_every_key) {
  const std::string toml = to_toml(Config{});
  EXPECT_EQ(config_keys().size(), 47U);
  for (const ConfigKey& key : config_keys())
    EXPECT_NE(toml.find("\n" + key.name + " = "), std::string::npos) << key.name;
  EXPECT_TRUE(toml.starts_with("[model]\nname = \"cosmoflow\""));
}

TEST(Config, a_subvolume_must_be_what_the_model_takes) {
  EXPECT_EQ(parse("[model]\nwidth = 64\n[data]\nsubvolume = 64\n").data.subvolume, 64);
  EXPECT_EQ(parse_error("[model]\nwidth = 64\n[data]\nsubvolume = 32\n"),
            "data.subvolume = 32: must be model.width, 64 (or 0: files are not cut)");
}

TEST(Config, labelled_volumes_are_not_for_cosmoflow) {
  EXPECT_EQ(parse_error("[data]\nformat = \"lits\"\n"),
            "data.format = \"lits\": must be \"cosmoflow\" for model.name = \"cosmoflow\", which learns no labels");
}

TEST(Config, the_unet_learns_labels) {
  const std::string unet = "[model]\nname = \"unet3d\"\n";
  const std::string labelled = unet + "[data]\nformat = \"lits\"\n";
  EXPECT_EQ(parse_error(unet),
            "data.format = \"cosmoflow\": must be \"lits\" for model.name = \"unet3d\", which learns labels");
  const ModelConfig model = parse(labelled).model;
  EXPECT_EQ(model.norm, "batch");
  EXPECT_EQ(model.channels, 1);
  EXPECT_EQ(model.classes, 3);
  EXPECT_EQ(model.base_channels, 32);
  EXPECT_EQ(model.loss, "cross_entropy");
  EXPECT_EQ(model.class_weights, std::vector<double>{});
  EXPECT_EQ(model.ignore_label, -1);
  for (const std::string loss : {"cross_entropy", "dice", "cross_entropy+dice"}) {
    EXPECT_EQ(parse(labelled, {"model.loss=" + loss}).model.loss, loss);
  }
  EXPECT_EQ(
      parse_error(labelled, {"model.loss=focal"}),
      "--set model.loss=focal: model.loss = \"focal\" must be \"cross_entropy\" or \"dice\" or \"cross_entropy+dice\"");
  for (const char* wrong :
       {"model.norm=layer", "model.channels=0", "model.classes=1", "model.classes=256", "model.base_channels=0",
        "model.base_channels=65537", "model.ignore_label=-2", "model.ignore_label=256", "model.class_weights=[1,-1,1]",
        "model.class_weights=[1,nan,1]", "model.class_weights=[0,0,0]", "model.class_weights=[1,1e39,1]",
        "model.class_weights=[1,1.1e6,1]", "model.class_weights=[1,9e-7,1]"}) {
    EXPECT_NE(parse_error(labelled, {wrong}).find(" must be "), std::string::npos) << wrong;
  }
  EXPECT_EQ(parse_error(labelled, {"model.class_weights=[1,2,3]", "model.loss=dice"}),
            "model.class_weights: must be [] for model.loss = \"dice\", which weights all classes alike");
}

TEST(Config, widths_are_what_the_network_can_halve) {
  const std::string unet = "[model]\nname = \"unet3d\"\n[data]\nformat = \"lits\"\n";
  EXPECT_EQ(parse(unet, {"model.width=24"}).model.width, 24);
  EXPECT_NE(parse_error(unet, {"model.width=20"}), "");
  for (const std::string width : {"16", "40"}) {
    EXPECT_EQ(parse_error("", {"model.width=" + width}),
              "model.width = " + width + ": must be a multiple of 16 from 32 up for model.name = \"cosmoflow\"");
  }
}

TEST(Config, weights_are_one_a_class) {
  const std::string unet = "[model]\nname = \"unet3d\"\n[data]\nformat = \"lits\"\n";
  EXPECT_EQ(parse(unet, {"model.class_weights=[1, 2.5, 0]"}).model.class_weights, (std::vector<double>{1, 2.5, 0}));
  EXPECT_EQ(parse(unet, {"model.class_weights=[1e-6, 1e6, 0]"}).model.class_weights,
            (std::vector<double>{1e-6, 1e6, 0}));
  EXPECT_TRUE(parse_error(unet, {"model.class_weights=[1e-7, 1, 1]"})
                  .ends_with("must be numbers from 1e-6 to 1e6, or 0, not all of them 0"));
  EXPECT_EQ(parse(unet, {"model.base_channels=65536"}).model.base_channels, 65536);
  EXPECT_EQ(parse(unet, {"model.class_weights=[1, 2]", "model.classes=2"}).model.classes, 2);
  EXPECT_EQ(parse_error(unet, {"model.class_weights=[1, 2]"}),
            "model.class_weights holds 2 numbers: must be model.classes, 3 (or none: all 1)");
  EXPECT_EQ(parse_error(unet, {"model.class_weights=2"}),
            "--set model.class_weights=2: model.class_weights: expected an array of numbers, got an integer 2");
  EXPECT_TRUE(parse_error(unet, {"model.class_weights=[1, \"a\", 2]"})
                  .starts_with("--set model.class_weights=[1, \"a\", 2]: model.class_weights: expected an array of "
                               "numbers, got an array "));
}

TEST(Config, windows_and_augmentation_have_their_ranges) {
  const Config config = parse(
      "[data]\ntransform = \"window\"\nintensity_window = [-160, 240.5]\naugment_flip = \"dw\"\n"
      "augment_scale = 0.1\naugment_shift = 2\n");
  EXPECT_EQ(config.data.intensity_window, (std::array{-160.0, 240.5}));
  EXPECT_EQ(config.data.augment_flip, "dw");
  EXPECT_EQ(parse(to_toml(config)), config);
  EXPECT_EQ(
      parse_error("[data]\nintensity_window = [300, -200]\n"),
      "run.toml:2: data.intensity_window = [300.0, -200.0] must be two numbers, the lower one first, as [-200, 300]");
  EXPECT_EQ(parse_error("[data]\nintensity_window = [1, 2, 3]\n"),
            "run.toml:2: data.intensity_window: expected an array of 2 numbers, got an array [ 1, 2, 3 ]");
  EXPECT_EQ(parse_error("[data]\naugment_flip = \"xy\"\n"),
            "run.toml:2: data.augment_flip = \"xy\" must be letters of \"dhw\", each once at most; empty: no flips");
  for (const char* wrong : {"data.augment_flip=dd", "data.augment_scale=1", "data.augment_shift=-0.1"}) {
    EXPECT_NE(parse_error("", {wrong}).find(" must be "), std::string::npos) << wrong;
  }
}

TEST(Config, a_store_budget_is_a_size) {
  EXPECT_EQ(parse("[data]\nstore_budget = \"1.5 GiB\"\n").data.store_budget, "1.5 GiB");
  EXPECT_NE(parse_error("[data]\nstore_budget = \"8G\"\n").find("\"8GiB\""), std::string::npos);
  EXPECT_NE(parse_error("[data]\nstore_budget = \"0\"\n").find("\"8GiB\""), std::string::npos);
}

TEST(Config, unknown_names_get_the_nearest_known_one) {
  EXPECT_EQ(parse_error("[train]\n\nepoch = 3\n"), "run.toml:3: unknown key train.epoch; did you mean train.epochs?");
  EXPECT_EQ(parse_error("[train]\nwidth = 64\n"), "run.toml:2: unknown key train.width; did you mean model.width?");
  EXPECT_EQ(parse_error("wdith = 64\n"), "run.toml:1: unknown key wdith; did you mean model.width?");
  EXPECT_EQ(
      parse_error("[trian]\nepochs = 3\n"),
      "run.toml:1: unknown table [trian]; did you mean [train]? (there are [model], [data], [train], [parallel])");
  EXPECT_EQ(parse_error("", {"modle.width=64"}).substr(0, 66),
            "--set modle.width=64: unknown table [modle]; did you mean [model]?");
  EXPECT_EQ(parse_error("", {"train.sed=1"}), "--set train.sed=1: unknown key train.sed; did you mean train.seed?");
}

TEST(Config, wrong_types_say_what_was_expected_and_what_was_got) {
  EXPECT_EQ(parse_error("[model]\nwidth = \"128\"\n"),
            "run.toml:2: model.width: expected an integer, got a string \"128\"");
  EXPECT_EQ(parse_error("[model]\nwidth = 128.0\n"),
            "run.toml:2: model.width: expected an integer, got a number 128.0");
  EXPECT_EQ(parse_error("[model]\nbatch_norm = 1\n"),
            "run.toml:2: model.batch_norm: expected true or false, got an integer 1");
  EXPECT_EQ(parse_error("[model]\nname = 3\n"), "run.toml:2: model.name: expected a string, got an integer 3");
  EXPECT_EQ(parse_error("[data]\nsplit = [0.5, 0.5]\n"),
            "run.toml:2: data.split: expected an array of 3 numbers, got an array [ 0.5, 0.5 ]");
  EXPECT_EQ(parse_error("model = 3\n"), "run.toml:1: model: expected a table [model], got an integer 3");
  EXPECT_EQ(parse_error("[train.seed]\nx = 3\n").substr(0, 56),
            "run.toml:1: train.seed: expected an integer, got a table");
}

TEST(Config, values_out_of_range_say_what_would_be_right) {
  EXPECT_EQ(parse_error("[model]\nwidth = 100\n"), "run.toml:2: model.width = 100 must be a multiple of 8 (to 65536)");
  EXPECT_EQ(parse_error("[train]\nprecision = \"fp16\"\n"),
            "run.toml:2: train.precision = \"fp16\" must be \"f32\" or \"tf32\" or \"bf16\"");
  EXPECT_EQ(parse_error("[model]\nname = \"unet\"\n"),
            "run.toml:2: model.name = \"unet\" must be \"cosmoflow\" or \"unet3d\"");
  EXPECT_EQ(parse_error("[model]\npool = \"avg\"\n"),
            "run.toml:2: model.pool = \"avg\" must be \"average\" or \"max\"");
  EXPECT_EQ(parse_error("[train]\nlearning_rate = nan\n"),
            "run.toml:2: train.learning_rate = nan must be a number above 0");
  EXPECT_EQ(
      parse_error("[data]\nsplit = [0.8, 0.1, 0.2]\n"),
      "run.toml:2: data.split = [0.8, 0.1, 0.2] must be the fractions of train (above 0), validation and test, adding "
      "up to 1");
  EXPECT_EQ(parse_error("[parallel]\ngrid = \"2x2\"\n"),
            "run.toml:2: parallel.grid = \"2x2\" must be DEPTHxHEIGHTxWIDTH, as \"2x1x1\"");
  for (const char* wrong :
       {"train.epochs=0", "train.batch_size=-1", "model.dropout_keep=0", "model.dropout_keep=1.1",
        "model.batch_norm_decay=1", "train.seed=-1", "train.lr_final=2", "train.optimizer=adamw",
        "train.checkpoints_kept=0", "parallel.grid=0x1x1", "parallel.grid=1x1x1x1", "data.format=lits",
        "data.transform=log", "parallel.device=gpu", "data.path=", "train.momentum=1"}) {
    EXPECT_NE(parse_error("", {wrong}).find(" must be "), std::string::npos) << wrong;
  }
  Config config;
  config.train.batch_size = 0;
  EXPECT_EQ(message_of<UsageError>([&] { validate(config); }), "train.batch_size = 0 must be an integer of at least 1");
}

TEST(Config, overrides_come_last_in_order_and_take_bare_words) {
  const Config config = parse("[model]\nwidth = 64\n",
                              {"model.width=96", "model.width=160", "model.batch_norm=false", "model.pool=max",
                               "train.optimizer=\"sgd\"", "train.learning_rate=2", "data.path=runs/2024-01-01",
                               "data.split=[0.5, 0.25, 0.25]", "parallel.grid=2x1x1", "train.initial_checkpoint=7"});
  EXPECT_EQ(config.model.width, 160);
  EXPECT_FALSE(config.model.batch_norm);
  EXPECT_EQ(config.model.pool, "max");
  EXPECT_EQ(config.train.optimizer, "sgd");
  EXPECT_EQ(config.train.learning_rate, 2.0);
  EXPECT_EQ(config.data.path, "runs/2024-01-01");
  EXPECT_EQ(config.data.split, (std::array{0.5, 0.25, 0.25}));
  EXPECT_EQ(config.parallel.grid, "2x1x1");
  EXPECT_EQ(config.train.initial_checkpoint, "7");
  EXPECT_EQ(parse_error("", {"model.width=wide"}),
            "--set model.width=wide: model.width: expected an integer, got a string \"wide\"");
  EXPECT_EQ(parse_error("", {"epochs=3"}), "--set epochs=3: must be table.key=value, as train.epochs=10");
  EXPECT_EQ(parse_error("", {"train.epochs"}), "--set train.epochs: must be table.key=value, as train.epochs=10");
  EXPECT_NE(parse_error("", {"data.path=a\xff"}), "");
}

TEST(Config, files_that_cannot_be_read_are_named) {
  const test::TemporaryDirectory directory;
  const auto file = directory / "c.toml";
  EXPECT_EQ(message_of<UsageError>([&] { load_config(file); }),
            "cannot read the configuration " + file.string() + ": No such file or directory");
  EXPECT_NE(message_of<UsageError>([&] { load_config(directory.path()); }).find("it is a directory"),
            std::string::npos);
  test::write_file(file, "[model]\nwidth = = 3\n");
  EXPECT_TRUE(message_of<UsageError>([&] { load_config(file); }).starts_with(file.string() + ":2:9: not TOML: "));
  test::write_file(file, "[model]\nwidth = 64\nwidth = 32\n");
  EXPECT_TRUE(message_of<UsageError>([&] { load_config(file); }).starts_with(file.string() + ":3:"));
  test::write_file(file, "[model]\nwidth = 64\n");
  EXPECT_EQ(load_config(file, std::vector<std::string>{"train.seed=3"}).train.seed, 3);
}

TEST(Config, differences_name_key_and_both_values) {
  Config after;
  after.train.epochs = 200;
  after.model.pool = "max";
  const auto differences = config_differences(Config{}, after);
  ASSERT_EQ(differences.size(), 2U);
  EXPECT_EQ(differences[0].text(), "model.pool: \"average\" -> \"max\"");
  EXPECT_EQ(differences[1].text(), "train.epochs: 100 -> 200");
  EXPECT_EQ(differences[1].key, "train.epochs");
  EXPECT_TRUE(config_differences(after, after).empty());
}

TEST(Spelling, distance_counts_edits_and_swaps) {
  EXPECT_EQ(edit_distance("width", "width"), 0);
  EXPECT_EQ(edit_distance("width", "wdith"), 1);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(nearest_name("traim", std::vector<std::string>{"model", "train"}), "train");
}

}  // namespace
}  // namespace halograd
