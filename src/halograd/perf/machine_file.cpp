#include "halograd/perf/machine.hpp"

#include "halograd/core/durable_file.hpp"
#include "halograd/core/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <initializer_list>
#include <string_view>
#include <tuple>

namespace halograd {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* format_name = "halograd-machine";
constexpr std::int64_t format_version = 1;
constexpr std::uint64_t most_counted = std::uint64_t{1} << 56;  // so that sums of bytes don't overflow

/// A value of the file and its path there, for errors: "settings[0].link[1].latency_seconds".
class Reader {
public:
  Reader(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  [[nodiscard]] bool has(const char* key) const { return json_.is_object() && json_.contains(key); }
  [[nodiscard]] Reader at(const char* key) const {
    if (!json_.contains(key)) throw UsageError("{} is missing", join(key));
    return {json_.at(key), join(key)};
  }
  [[nodiscard]] double number(double least) const {
    if (!json_.is_number()) throw UsageError("{} must be a number", path_);
    const auto value = json_.get<double>();
    if (!std::isfinite(value) || value < least)
      throw UsageError("{} is {}; it must be at least {}", path_, value, least);
    return value;
  }
  /// A rate or a count of something that there must be.
  [[nodiscard]] double positive() const {
    const double value = number(0);
    if (value == 0) throw UsageError("{} is 0; it must be above", path_);
    return value;
  }
  [[nodiscard]] std::int64_t integer(std::int64_t least) const {
    if (!json_.is_number_integer()) throw UsageError("{} must be a whole number", path_);
    const bool too_large = json_.is_number_unsigned() && json_.get<std::uint64_t>() > most_counted;
    if (too_large) throw UsageError("{} is {}; it must be at most {}", path_, json_.dump(), most_counted);
    const auto value = json_.get<std::int64_t>();
    if (value < least) throw UsageError("{} is {}; it must be at least {}", path_, value, least);
    return value;
  }
  [[nodiscard]] std::string text() const {
    if (!json_.is_string()) throw UsageError("{} must be a text", path_);
    return json_.get<std::string>();
  }
  [[nodiscard]] std::optional<double> error() const {
    if (!has("error")) return std::nullopt;
    return at("error").number(0);
  }
  template <typename Visit>
  void each_entry(Visit&& visit) const {
    if (!json_.is_object()) throw UsageError("{} must be an object", path_.empty() ? "the file" : path_);
    for (const auto& [key, value] : json_.items()) visit(key, Reader(value, join(key)));
  }
  template <typename Visit>
  void each_element(Visit&& visit) const {
    if (!json_.is_array()) throw UsageError("{} must be a list", path_);
    for (std::size_t i = 0; i < json_.size(); ++i) visit(Reader(json_[i], fmt::format("{}[{}]", path_, i)));
  }
  void allow(std::initializer_list<std::string_view> known) const {
    each_entry([&](const std::string& key, const Reader& value) {
      if (std::find(known.begin(), known.end(), key) == known.end())
        throw UsageError("{} is no known key", value.path_);
    });
  }
  [[nodiscard]] const std::string& path() const { return path_; }

private:
  [[nodiscard]] std::string join(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }

  const Json& json_;
  std::string path_;
};

/// Ranges ascend, the first from 0.
template <typename Range>
void add_range(std::vector<Range>& ranges, const Range& range, const Reader& json) {
  if (ranges.empty() && range.from_bytes != 0)
    throw UsageError("{}.from_bytes must be 0 in the first range", json.path());
  if (!ranges.empty() && range.from_bytes <= ranges.back().from_bytes) {
    throw UsageError("{}.from_bytes is not above that of the range before", json.path());
  }
  ranges.push_back(range);
}

LinkRanges read_link(const Reader& json) {
  LinkRanges link;
  json.each_element([&](const Reader& range) {
    range.allow({"from_bytes", "latency_seconds", "bytes_per_second", "error"});
    add_range(link,
              LinkRange{.from_bytes = range.at("from_bytes").number(0),
                        .latency_seconds = range.at("latency_seconds").number(0),
                        .bytes_per_second = range.at("bytes_per_second").positive(),
                        .error = range.error()},
              range);
  });
  return link;
}

ReductionFit read_reduction(const Reader& json) {
  constexpr double any = -1e6;
  ReductionFit fit;
  json.each_element([&](const Reader& range) {
    range.allow({"from_bytes", "constant", "bytes_exponent", "ranks_exponent", "error"});
    add_range(fit,
              ReductionRange{.from_bytes = range.at("from_bytes").number(0),
                             .constant = range.at("constant").number(any),
                             .bytes_exponent = range.at("bytes_exponent").number(0),
                             .ranks_exponent = range.at("ranks_exponent").number(any),
                             .error = range.error()},
              range);
  });
  return fit;
}

KernelRate read_rate(const Reader& json) {
  json.allow({"overhead_seconds", "flops_per_second", "bytes_per_second", "channel_tile", "error"});
  KernelRate rate{.overhead_seconds = json.at("overhead_seconds").number(0),
                  .flops_per_second = json.has("flops_per_second") ? json.at("flops_per_second").positive() : 0,
                  .bytes_per_second = json.has("bytes_per_second") ? json.at("bytes_per_second").positive() : 0,
                  .channel_tile = json.has("channel_tile") ? json.at("channel_tile").integer(1) : 1,
                  .error = json.error()};
  if (rate.overhead_seconds == 0 && rate.flops_per_second == 0 && rate.bytes_per_second == 0) {
    throw UsageError("{} needs overhead_seconds above 0, flops_per_second or bytes_per_second", json.path());
  }
  return rate;
}

MachineSetting read_setting(const Reader& json) {
  json.allow({"ranks_on_node", "threads", "overlap", "baseline_bytes", "rates", "measured", "link", "reduction"});
  MachineSetting setting{.ranks_on_node = json.at("ranks_on_node").integer(1),
                         .threads = json.at("threads").integer(1),
                         .overlap = json.at("overlap").number(0),
                         .baseline_bytes = json.at("baseline_bytes").integer(0)};
  if (setting.overlap > 1) throw UsageError("{}.overlap is {}; it must be 0 to 1", json.path(), setting.overlap);
  json.at("rates").each_entry(
      [&](const std::string& kind, const Reader& rate) { setting.rates[kind] = read_rate(rate); });
  if (json.has("measured")) {
    json.at("measured").each_entry([&](const std::string& key, const Reader& entry) {
      entry.allow({"seconds", "flops", "bytes", "held_bytes"});
      setting.measured[key] = {.seconds = entry.at("seconds").number(0),
                               .flops = entry.has("flops") ? entry.at("flops").number(0) : 0,
                               .bytes = entry.has("bytes") ? entry.at("bytes").number(0) : 0,
                               .held_bytes = entry.has("held_bytes") ? entry.at("held_bytes").integer(0) : 0};
    });
  }
  if (json.has("link")) setting.link = read_link(json.at("link"));
  if (json.has("reduction")) setting.reduction = read_reduction(json.at("reduction"));
  return setting;
}

/// Which setting is meant depends on these two figures alone.
auto order(const MachineSetting& setting) {
  return std::tuple(setting.ranks_on_node, setting.threads);
}

std::vector<MachineSetting> read_settings(const Reader& json) {
  std::vector<MachineSetting> settings;
  json.each_element([&](const Reader& element) {
    MachineSetting setting = read_setting(element);
    if (std::ranges::any_of(settings, [&](const MachineSetting& other) { return order(other) == order(setting); })) {
      throw UsageError("{} has {} ranks on a node of {} threads, as one before; there may be one such", element.path(),
                       setting.ranks_on_node, setting.threads);
    }
    settings.push_back(std::move(setting));
  });
  if (settings.empty()) throw UsageError("{} is empty; there must be one", json.path());
  std::ranges::sort(settings, {}, order);
  return settings;
}

void add_error(Json& json, const std::optional<double>& error) {
  if (error) json["error"] = *error;
}

Json to_json(const LinkRanges& link) {
  Json list = Json::array();
  for (const LinkRange& range : link) {
    list.push_back({{"from_bytes", range.from_bytes},
                    {"latency_seconds", range.latency_seconds},
                    {"bytes_per_second", range.bytes_per_second}});
    add_error(list.back(), range.error);
  }
  return list;
}

Json to_json(const ReductionFit& fit) {
  Json list = Json::array();
  for (const ReductionRange& range : fit) {
    list.push_back({{"from_bytes", range.from_bytes},
                    {"constant", range.constant},
                    {"bytes_exponent", range.bytes_exponent},
                    {"ranks_exponent", range.ranks_exponent}});
    add_error(list.back(), range.error);
  }
  return list;
}

Json to_json(const KernelRate& rate) {
  Json json{{"overhead_seconds", rate.overhead_seconds}};
  if (rate.flops_per_second > 0) json["flops_per_second"] = rate.flops_per_second;
  if (rate.bytes_per_second > 0) json["bytes_per_second"] = rate.bytes_per_second;
  if (rate.channel_tile > 1) json["channel_tile"] = rate.channel_tile;
  add_error(json, rate.error);
  return json;
}

Json to_json(const MachineSetting& setting) {
  Json json{{"ranks_on_node", setting.ranks_on_node},
            {"threads", setting.threads},
            {"overlap", setting.overlap},
            {"baseline_bytes", setting.baseline_bytes},
            {"rates", Json::object()}};
  for (const auto& [kind, rate] : setting.rates) json["rates"][kind] = to_json(rate);
  if (!setting.link.empty()) json["link"] = to_json(setting.link);
  if (!setting.reduction.empty()) json["reduction"] = to_json(setting.reduction);
  if (!setting.measured.empty()) json["measured"] = Json::object();
  for (const auto& [key, kernel] : setting.measured) {
    Json& entry = json["measured"][key];
    entry["seconds"] = kernel.seconds;
    if (kernel.flops > 0) entry["flops"] = kernel.flops;
    if (kernel.bytes > 0) entry["bytes"] = kernel.bytes;
    if (kernel.held_bytes > 0) entry["held_bytes"] = kernel.held_bytes;
  }
  return json;
}

Backend read_backend(const Reader& value) {
  const std::string name = value.text();
  for (const Backend backend : {Backend::cpu, Backend::cuda}) {
    if (name == backend_name(backend)) return backend;
  }
  throw UsageError("device is \"{}\"; it must be \"cpu\" or \"cuda\"", name);
}

}  // namespace

Machine machine_from_json(const Json& json) {
  const Reader file(json, "");
  file.allow({"format", "version", "name", "description", "device", "node_memory_bytes", "rank_memory_bytes",
              "settings", "network", "network_reduction"});
  if (file.at("format").text() != format_name) throw UsageError("format must be \"{}\"", format_name);
  if (file.at("version").integer(1) != format_version) throw UsageError("version must be {}", format_version);
  Machine machine{.name = file.at("name").text(), .node_memory_bytes = file.at("node_memory_bytes").integer(1)};
  if (file.has("device")) machine.backend = read_backend(file.at("device"));
  if (file.has("rank_memory_bytes")) machine.rank_memory_bytes = file.at("rank_memory_bytes").integer(1);
  if (file.has("description")) {
    file.at("description").each_entry([&](const std::string& key, const Reader& value) {
      machine.description[key] = value.text();
    });
  }
  machine.settings = read_settings(file.at("settings"));
  if (file.has("network")) machine.network = read_link(file.at("network"));
  if (file.has("network_reduction")) machine.network_reduction = read_reduction(file.at("network_reduction"));
  return machine;
}

Json to_json(const Machine& machine) {
  Json json{{"format", format_name}, {"version", format_version}, {"name", machine.name}};
  json["description"] = Json::object();
  for (const auto& [key, value] : machine.description) json["description"][key] = value;
  if (machine.backend != Backend::cpu) json["device"] = backend_name(machine.backend);
  json["node_memory_bytes"] = machine.node_memory_bytes;
  if (machine.rank_memory_bytes > 0) json["rank_memory_bytes"] = machine.rank_memory_bytes;
  json["settings"] = Json::array();
  for (const MachineSetting& setting : machine.settings) json["settings"].push_back(to_json(setting));
  if (!machine.network.empty()) json["network"] = to_json(machine.network);
  if (!machine.network_reduction.empty()) json["network_reduction"] = to_json(machine.network_reduction);
  return json;
}

namespace {

void change(Json& json, const std::string& text) {
  const std::size_t equals = text.find('=');
  const auto refuse = [&](const std::string& why) {
    throw UsageError("\"{}\" {}: it must be /path/to/figure=number, the path one of the file's", text, why);
  };
  if (equals == std::string::npos) refuse("has no =");
  try {
    Json& figure = json.at(Json::json_pointer(text.substr(0, equals)));
    if (!figure.is_number()) refuse("names no number");
    const Json value = Json::parse(text.substr(equals + 1));
    if (!value.is_number()) refuse("gives no number");
    figure = value;
  } catch (const nlohmann::json::exception&) {
    refuse("names no figure, or gives no number");
  }
}

}  // namespace

Machine load_machine(const std::filesystem::path& file, const std::vector<std::string>& changes) {
  std::ifstream in(file);
  if (!in || std::filesystem::is_directory(file)) {
    throw UsageError("{}: no such machine file, or not readable: `halograd calibrate --out` makes one", file.string());
  }
  try {
    Json json = Json::parse(in);
    for (const std::string& each : changes) change(json, each);
    return machine_from_json(json);
  } catch (const nlohmann::json::exception& error) {
    throw UsageError("{}: no JSON ({})", file.string(), error.what());
  } catch (const UsageError& error) {
    throw UsageError("{}: {}", file.string(), error.what());
  }
}

void save_machine(const Machine& machine, const std::filesystem::path& file) {
  write_durably(file, to_json(machine).dump(1) + "\n");
}

}  // namespace halograd
