#include "halograd/train/config.hpp"
#include "halograd/train/config_keys.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

namespace halograd {
namespace {

const std::filesystem::path examples = HALOGRAD_EXAMPLES;

TEST(Examples, CosmoflowNamesEveryKeyWithItsDefault) {
  std::ostringstream text;
  text << std::ifstream(examples / "cosmoflow.toml").rdbuf();
  for (const ConfigKey& key : config_keys()) {
    const std::regex line("(^|\n)" + key.name + " = ");
    EXPECT_TRUE(std::regex_search(text.str(), line)) << key.full_name();
  }
  EXPECT_EQ(load_config(examples / "cosmoflow.toml"), Config{});
}

TEST(Examples, QuickstartTakesTheSmallUniverses) {
  const Config config = load_config(examples / "quickstart.toml");
  EXPECT_EQ(config.model.width, 32);
  EXPECT_EQ(config.data.path, "data/quickstart");
}

TEST(Examples, TheSmallUnetTakesSyntheticScans) {
  const Config config = load_config(examples / "learn_unet3d.toml");
  EXPECT_EQ(config.model.name, "unet3d");
  EXPECT_EQ(config.model.width, 64);
  EXPECT_EQ(config.data.path, "data/learn_unet3d/cases");
}

TEST(Examples, TheOtherUnetsLoad) {
  EXPECT_EQ(load_config(examples / "unet3d.toml").model.width, 256);
  EXPECT_EQ(load_config(examples / "ch2.toml").model.classes, 4);
}

}  // namespace
}  // namespace halograd
