#include "halograd/core/error.hpp"
#include "halograd/perf/machine.hpp"
#include "support/temporary_directory.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <limits>
#include <set>

namespace halograd {
namespace {

using Json = nlohmann::ordered_json;
using test::message_of;

/// Figures that no short decimal has, and every optional one.
Machine full_machine() {
  Machine machine{.name = "cluster \"ä\"",
                  .description = {{"processor", "made up"}, {"cores", "2 × 8"}},
                  .backend = Backend::cuda,
                  .node_memory_bytes = 1'234'567'890'123,
                  .rank_memory_bytes = 98'765'432'101};
  MachineSetting one{.ranks_on_node = 1, .threads = 8, .overlap = 1.0 / 3, .baseline_bytes = 123'456'789};
  one.rates["convolution"] = {.overhead_seconds = 1e-6 / 7,
                              .flops_per_second = 1e12 / 3,
                              .bytes_per_second = 1e11 / 3,
                              .channel_tile = 16,
                              .error = 0.1 / 3};
  one.rates["default"] = {.overhead_seconds = 0, .bytes_per_second = 2e9};
  one.rates["loss"] = {.overhead_seconds = 1e-5};
  one.measured["update 17"] = {.seconds = 0.1 + 0.2, .flops = 3, .bytes = 1.0 / 3, .held_bytes = 1'000'000'007};
  one.measured["load_input"] = {};
  MachineSetting two{.ranks_on_node = 2, .threads = 4, .overlap = 0};
  two.rates["default"] = {.overhead_seconds = std::numeric_limits<double>::denorm_min(), .flops_per_second = 1};
  two.link = {{.from_bytes = 0, .latency_seconds = 1e-6 / 3, .bytes_per_second = 1e9 / 7, .error = 0.0},
              {.from_bytes = 8192.5, .latency_seconds = 0, .bytes_per_second = 1e10 / 7}};
  two.reduction = {{.from_bytes = 0, .constant = -50.0 / 3, .bytes_exponent = 0, .ranks_exponent = 2.0 / 3},
                   {.from_bytes = 1e5, .constant = -30.1, .bytes_exponent = 0.9, .ranks_exponent = -0.1, .error = 0.2}};
  machine.settings = {one, two};
  machine.network = {{.from_bytes = 0, .latency_seconds = 2e-6, .bytes_per_second = 1e10}};
  machine.network_reduction = {{.from_bytes = 0, .constant = 1, .bytes_exponent = 1, .ranks_exponent = 0}};
  return machine;
}

void expect_same(const Machine& actual, const Machine& expected) {
  EXPECT_EQ(actual.name, expected.name);
  EXPECT_EQ(actual.description, expected.description);
  EXPECT_EQ(actual.backend, expected.backend);
  EXPECT_EQ(actual.node_memory_bytes, expected.node_memory_bytes);
  EXPECT_EQ(actual.rank_memory_bytes, expected.rank_memory_bytes);
  ASSERT_EQ(actual.settings.size(), expected.settings.size());
  for (std::size_t i = 0; i < expected.settings.size(); ++i) {
    const MachineSetting& a = actual.settings[i];
    const MachineSetting& b = expected.settings[i];
    EXPECT_EQ(std::tuple(a.ranks_on_node, a.threads, a.overlap, a.baseline_bytes),
              std::tuple(b.ranks_on_node, b.threads, b.overlap, b.baseline_bytes));
    ASSERT_EQ(a.rates.size(), b.rates.size());
    for (const auto& [kind, rate] : b.rates) {
      const KernelRate& read = a.rates.at(kind);
      EXPECT_EQ(std::tuple(read.overhead_seconds, read.flops_per_second, read.bytes_per_second, read.channel_tile,
                           read.error),
                std::tuple(rate.overhead_seconds, rate.flops_per_second, rate.bytes_per_second, rate.channel_tile,
                           rate.error));
    }
    ASSERT_EQ(a.measured.size(), b.measured.size());
    for (const auto& [key, kernel] : b.measured) {
      const MeasuredKernel& read = a.measured.at(key);
      EXPECT_EQ(std::tuple(read.seconds, read.flops, read.bytes, read.held_bytes),
                std::tuple(kernel.seconds, kernel.flops, kernel.bytes, kernel.held_bytes));
    }
  }
}

void expect_same(const LinkRanges& actual, const LinkRanges& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto figures = [](const LinkRange& range) {
      return std::tuple(range.from_bytes, range.latency_seconds, range.bytes_per_second, range.error);
    };
    EXPECT_EQ(figures(actual[i]), figures(expected[i]));
  }
}

void expect_same(const ReductionFit& actual, const ReductionFit& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto figures = [](const ReductionRange& range) {
      return std::tuple(range.from_bytes, range.constant, range.bytes_exponent, range.ranks_exponent, range.error);
    };
    EXPECT_EQ(figures(actual[i]), figures(expected[i]));
  }
}

TEST(MachineFile, ReadsExactlyWhatWasWritten) {
  const test::TemporaryDirectory directory;
  const Machine machine = full_machine();
  save_machine(machine, directory / "machine.json");
  const Machine read = load_machine(directory / "machine.json");
  expect_same(read, machine);
  for (std::size_t i = 0; i < machine.settings.size(); ++i) {
    expect_same(read.settings[i].link, machine.settings[i].link);
    expect_same(read.settings[i].reduction, machine.settings[i].reduction);
  }
  expect_same(read.network, machine.network);
  expect_same(read.network_reduction, machine.network_reduction);
  // Once more gives the same bytes, over the file that is there.
  const std::string bytes = test::read_file(directory / "machine.json");
  save_machine(read, directory / "machine.json");
  EXPECT_EQ(test::read_file(directory / "machine.json"), bytes);
  EXPECT_FALSE(std::filesystem::exists(directory / "machine.json.partial"));
}

/// A figure of the file: where it is as JSON pointer and as errors name it, and its key.
struct Figure {
  std::string pointer;
  std::string path;
  std::string key;
  bool number = false;
};

void find_figures(const Json& json, const std::string& pointer, const std::string& path, std::vector<Figure>& found) {
  const auto add = [&](const Json& value, const std::string& key, const std::string& child_path) {
    const std::string child = pointer + "/" + key;
    found.push_back({child, child_path, key, value.is_number()});
    find_figures(value, child, child_path, found);
  };
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) add(value, key, path.empty() ? key : path + "." + key);
  } else if (json.is_array()) {
    for (std::size_t i = 0; i < json.size(); ++i) add(json[i], std::to_string(i), fmt::format("{}[{}]", path, i));
  }
}

std::vector<Figure> figures_of(const Json& json) {
  std::vector<Figure> found;
  find_figures(json, "", "", found);
  return found;
}

std::string refusal(const Json& json) {
  return message_of<UsageError>([&] { machine_from_json(json); });
}

std::string refusal_with(const std::string& pointer, const Json& value) {
  Json json = to_json(full_machine());
  json[Json::json_pointer(pointer)] = value;
  return refusal(json);
}

/// Whether the file may do without it: what belongs to a rate, a measured kernel or a description, and lists.
bool is_optional(const Figure& figure, const Json& json) {
  static const std::set<std::string> optional{
      "description",       "device", "rank_memory_bytes", "measured",   "link",  "reduction", "network",
      "network_reduction", "error",  "channel_tile",      "held_bytes", "flops", "bytes"};
  if (optional.contains(figure.key)) return true;
  const auto parent = Json::json_pointer(figure.pointer).parent_pointer();
  if (json[parent].is_array()) return true;  // a range or setting fewer
  const std::string list = parent.empty() ? "" : parent.back();
  if (list == "description" || list == "rates" || list == "measured") return true;
  const bool link = figure.path.find("link[") != std::string::npos || figure.path.starts_with("network[");
  return figure.key.ends_with("s_per_second") && !link;
}

TEST(MachineFile, RefusesWhereAFigureIsMissing) {
  const Json whole = to_json(full_machine());
  int refused = 0;
  for (const Figure& figure : figures_of(whole)) {
    if (is_optional(figure, whole)) continue;
    Json json = whole;
    json[Json::json_pointer(figure.pointer).parent_pointer()].erase(figure.key);
    EXPECT_EQ(refusal(json), figure.path + " is missing");
    ++refused;
  }
  EXPECT_EQ(refused, 42);
}

TEST(MachineFile, RefusesAWrongType) {
  const Json whole = to_json(full_machine());
  for (const Figure& figure : figures_of(whole)) {
    const Json value = whole[Json::json_pointer(figure.pointer)];
    const Json wrong = value.is_string() ? Json(1) : Json("1");
    const std::string message = refusal_with(figure.pointer, wrong);
    EXPECT_TRUE(message.starts_with(figure.path + " must be ")) << figure.path << ": " << message;
    EXPECT_NE(refusal_with(figure.pointer, nullptr), "") << figure.path;
  }
}

TEST(MachineFile, RefusesNegativeAndNonFiniteFigures) {
  const Json whole = to_json(full_machine());
  int numbers = 0;
  for (const Figure& figure : figures_of(whole)) {
    if (!figure.number) continue;
    ++numbers;
    const bool whole_number = figure.key == "version" || figure.key.ends_with("_memory_bytes") ||
                              figure.key == "ranks_on_node" || figure.key == "threads" ||
                              figure.key == "baseline_bytes" || figure.key == "channel_tile" ||
                              figure.key == "held_bytes";
    if (whole_number) {
      EXPECT_EQ(refusal_with(figure.pointer, 1.5), figure.path + " must be a whole number");
    }
    if (figure.key != "constant" && figure.key != "ranks_exponent") {
      const std::string message = refusal_with(figure.pointer, -1);
      EXPECT_TRUE(message.starts_with(figure.path + " is -1; it must be at least ")) << figure.path << ": " << message;
    }
    for (const double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity()}) {
      const std::string message = refusal_with(figure.pointer, value);
      EXPECT_TRUE(message.starts_with(figure.path + " ")) << figure.path << ": " << message;
    }
  }
  EXPECT_EQ(numbers, 49);
}

TEST(MachineFile, RefusesZeroWhereSomethingIsDividedByIt) {
  EXPECT_EQ(refusal_with("/settings/1/link/1/bytes_per_second", 0),
            "settings[1].link[1].bytes_per_second is 0; it must be above");
  EXPECT_EQ(refusal_with("/network/0/bytes_per_second", 0), "network[0].bytes_per_second is 0; it must be above");
  EXPECT_EQ(refusal_with("/settings/0/rates/convolution/flops_per_second", 0),
            "settings[0].rates.convolution.flops_per_second is 0; it must be above");
  EXPECT_EQ(refusal_with("/settings/0/rates/convolution/channel_tile", 0),
            "settings[0].rates.convolution.channel_tile is 0; it must be at least 1");
  EXPECT_EQ(refusal_with("/settings/0/ranks_on_node", 0), "settings[0].ranks_on_node is 0; it must be at least 1");
  EXPECT_EQ(refusal_with("/settings/0/threads", 0), "settings[0].threads is 0; it must be at least 1");
  EXPECT_EQ(refusal_with("/node_memory_bytes", 0), "node_memory_bytes is 0; it must be at least 1");
  EXPECT_EQ(refusal_with("/settings/0/rates/loss/overhead_seconds", 0),
            "settings[0].rates.loss needs overhead_seconds above 0, flops_per_second or bytes_per_second");
  EXPECT_EQ(refusal_with("/settings/0/overlap", 1.5), "settings[0].overlap is 1.5; it must be 0 to 1");
}

TEST(MachineFile, RefusesAMisspeltKey) {
  const Json whole = to_json(full_machine());
  for (const Figure& figure : figures_of(whole)) {
    const auto parent = Json::json_pointer(figure.pointer).parent_pointer();
    const std::string list = parent.empty() ? "" : parent.back();
    if (whole[parent].is_array() || list == "description" || list == "rates" || list == "measured") continue;
    Json json = whole;
    Json& holder = json[parent];
    holder[figure.key + "x"] = holder[figure.key];
    holder.erase(figure.key);
    EXPECT_EQ(refusal(json), figure.path + "x is no known key");
  }
}

TEST(MachineFile, RefusesRangesOutOfOrder) {
  EXPECT_EQ(refusal_with("/settings/1/link/0/from_bytes", 1),
            "settings[1].link[0].from_bytes must be 0 in the first range");
  EXPECT_EQ(refusal_with("/settings/1/link/1/from_bytes", 0),
            "settings[1].link[1].from_bytes is not above that of the range before");
  EXPECT_EQ(refusal_with("/settings/1/reduction/1/from_bytes", 0),
            "settings[1].reduction[1].from_bytes is not above that of the range before");
  EXPECT_EQ(refusal_with("/network_reduction/0/from_bytes", 256),
            "network_reduction[0].from_bytes must be 0 in the first range");
}

TEST(MachineFile, RefusesAnotherFormat) {
  EXPECT_EQ(refusal_with("/format", "halograd-plan"), "format must be \"halograd-machine\"");
  EXPECT_EQ(refusal_with("/version", 2), "version must be 1");
  EXPECT_EQ(refusal_with("/settings", Json::array()), "settings is empty; there must be one");
  EXPECT_EQ(refusal(Json::array()), "the file must be an object");
}

TEST(MachineFile, SettingsAreSortedAndUnique) {
  Json json = to_json(full_machine());
  Json third = json["settings"][0];
  third["threads"] = 2;
  json["settings"].insert(json["settings"].begin(), json["settings"][1]);
  json["settings"][2] = third;
  json["settings"].push_back(to_json(full_machine())["settings"][0]);  // (2, 4), (1, 8), (1, 2), (1, 8)
  EXPECT_EQ(refusal(json), "settings[3] has 1 ranks on a node of 8 threads, as one before; there may be one such");
  json["settings"].erase(3);
  std::vector<std::pair<std::int64_t, std::int64_t>> order;
  for (const MachineSetting& setting : machine_from_json(json).settings) {
    order.emplace_back(setting.ranks_on_node, setting.threads);
  }
  EXPECT_EQ(order, (std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 2}, {1, 8}, {2, 4}}));
}

TEST(MachineFile, ErrorsNameTheFile) {
  const test::TemporaryDirectory directory;
  const std::string file = directory.file("machine.json");
  const auto refused = [&] { return message_of<UsageError>([&] { load_machine(file); }); };
  EXPECT_EQ(refused(), file + ": no such machine file, or not readable: `halograd calibrate --out` makes one");
  for (const char* const text : {"", "{\"format\": ", "{} {}", "{\"version\": 1e999}", "\"\xff\""}) {
    test::write_file(file, text);
    EXPECT_TRUE(refused().starts_with(file + ": no JSON (")) << text << ": " << refused();
  }
  Json json = to_json(full_machine());
  json["settings"][1]["link"][1]["bytes_per_second"] = -2;
  test::write_file(file, json.dump());
  EXPECT_EQ(refused(), file + ": settings[1].link[1].bytes_per_second is -2; it must be at least 0");
}

TEST(MachineFile, LeavesNothingBehindWhereItCannotBeWritten) {
  const test::TemporaryDirectory directory;
  const std::filesystem::path missing = directory / "missing";
  const std::string message =
      message_of<ResourceError>([&] { save_machine(full_machine(), missing / "machine.json"); });
  EXPECT_NE(message.find((missing / "machine.json").string()), std::string::npos) << message;
  EXPECT_FALSE(std::filesystem::exists(missing));
  // In place of the file, a directory.
  std::filesystem::create_directories(directory / "machine.json" / "inside");
  EXPECT_THROW(save_machine(full_machine(), directory / "machine.json"), ResourceError);
  EXPECT_FALSE(std::filesystem::exists(directory / "machine.json.partial"));
  EXPECT_TRUE(std::filesystem::is_directory(directory / "machine.json" / "inside"));
}

}  // namespace
}  // namespace halograd
