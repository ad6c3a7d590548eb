#include "halograd/train/config.hpp"

#include "halograd/core/error.hpp"
#include "halograd/train/config_keys.hpp"
#include "halograd/train/spelling.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <variant>

namespace halograd {
namespace {

// --- Text ---------------------------------------------------------------------------------------------------------

std::string quote(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += fmt::format("\\{}", c);
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      result += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string text_of(bool value) {
  return value ? "true" : "false";
}
std::string text_of(std::int64_t value) {
  return fmt::to_string(value);
}
std::string text_of(const std::string& value) {
  return quote(value);
}
std::string text_of(double value) {
  const std::string digits = fmt::format("{}", value);  // the shortest that reads back as the same double
  return digits.find_first_of(".en") == std::string::npos ? digits + ".0" : digits;
}
std::string text_of(const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(text_of(value));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}
template <std::size_t count>
std::string text_of(const std::array<double, count>& values) {
  return text_of(std::vector<double>(values.begin(), values.end()));
}

std::string value_text(const ConfigKey& key, const Config& config) {
  Config copy = config;
  return std::visit([&](const auto& field) { return text_of(field.at(copy)); }, key.field);
}

// --- Names --------------------------------------------------------------------------------------------------------

const ConfigKey* find_key(std::string_view table, std::string_view name) {
  const auto& keys = config_keys();
  const auto found =
      std::ranges::find_if(keys, [&](const ConfigKey& key) { return key.table == table && key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

std::vector<std::string> table_names() {
  std::vector<std::string> names;
  for (const ConfigKey& key : config_keys()) {
    if (names.empty() || names.back() != key.table) names.push_back(key.table);
  }
  return names;
}

bool is_table(std::string_view name) {
  return std::ranges::any_of(config_keys(), [&](const ConfigKey& key) { return key.table == name; });
}

/// The known key nearest to `name`; a key of another table counts as one edit further away.
std::string nearest_key(std::string_view table, std::string_view name) {
  const auto distance = [&](const ConfigKey& key) {
    return 2 * edit_distance(name, key.name) + (key.table == table ? 0 : 1);
  };
  return std::ranges::min_element(config_keys(), {}, distance)->full_name();
}

[[noreturn]] void throw_unknown_key(std::string_view where, std::string_view table, std::string_view name) {
  const std::string full = table.empty() ? std::string(name) : fmt::format("{}.{}", table, name);
  throw UsageError("{}: unknown key {}; did you mean {}?", where, full, nearest_key(table, name));
}

[[noreturn]] void throw_unknown_table(std::string_view where, std::string_view table) {
  const auto names = table_names();
  throw UsageError("{}: unknown table [{}]; did you mean [{}]? (there are [{}])", where, table,
                   nearest_name(table, names), fmt::join(names, "], ["));
}

// --- Values -------------------------------------------------------------------------------------------------------

std::string what_is(const toml::node& node) {
  std::ostringstream value;
  node.visit([&](const auto& element) { value << element; });
  switch (node.type()) {
    case toml::node_type::table: return "a table";
    case toml::node_type::array: return "an array " + value.str();
    case toml::node_type::string: return "a string " + quote(node.ref<std::string>());
    case toml::node_type::integer: return "an integer " + value.str();
    case toml::node_type::floating_point: return "a number " + value.str();
    case toml::node_type::boolean: return "a boolean " + value.str();
    default: return "a date or time " + value.str();
  }
}

std::string kind_of(const bool&) {
  return "true or false";
}
std::string kind_of(const std::int64_t&) {
  return "an integer";
}
std::string kind_of(const double&) {
  return "a number";
}
std::string kind_of(const std::string&) {
  return "a string";
}
template <std::size_t count>
std::string kind_of(const std::array<double, count>&) {
  return fmt::format("an array of {} numbers", count);
}

std::string kind_of(const std::vector<double>&) {
  return "an array of numbers";
}

bool read(const toml::node& node, bool& value) {
  const auto given = node.value_exact<bool>();
  if (given) value = *given;
  return given.has_value();
}

bool read(const toml::node& node, std::int64_t& value) {
  const auto given = node.value_exact<std::int64_t>();
  if (given) value = *given;
  return given.has_value();
}

bool read(const toml::node& node, double& value) {
  if (!node.is_number()) return false;
  value = node.is_integer() ? static_cast<double>(node.ref<std::int64_t>()) : node.ref<double>();
  return true;
}

bool read(const toml::node& node, std::string& value) {
  const auto given = node.value_exact<std::string>();
  if (given) value = *given;
  return given.has_value();
}

template <std::size_t count>
bool read(const toml::node& node, std::array<double, count>& values) {
  const toml::array* array = node.as_array();
  if (array == nullptr || array->size() != values.size()) return false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!read(*array->get(i), values[i])) return false;
  }
  return true;
}

bool read(const toml::node& node, std::vector<double>& values) {
  const toml::array* array = node.as_array();
  if (array == nullptr) return false;
  values.assign(array->size(), 0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!read(*array->get(i), values[i])) return false;
  }
  return true;
}

void check(std::string_view where, const ConfigKey& key, Config& config) {
  const auto visit = [&](const auto& field) {
    const std::string right = field.check ? field.check(field.at(config)) : "";
    if (right.empty()) return;
    const std::string in = where.empty() ? "" : fmt::format("{}: ", where);
    throw UsageError("{}{} = {} must be {}", in, key.full_name(), text_of(field.at(config)), right);
  };
  std::visit(visit, key.field);
}

void assign(std::string_view where, const ConfigKey& key, const toml::node& node, Config& config) {
  const auto visit = [&](const auto& field) {
    auto& value = field.at(config);
    if (!read(node, value)) {
      throw UsageError("{}: {}: expected {}, got {}", where, key.full_name(), kind_of(value), what_is(node));
    }
  };
  std::visit(visit, key.field);
  check(where, key, config);
}

// --- Files and overrides ------------------------------------------------------------------------------------------

std::string read_text(const std::filesystem::path& file) {
  if (std::filesystem::is_directory(file)) {
    throw UsageError("cannot read the configuration {}: it is a directory, not a TOML file", file.string());
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    throw UsageError("cannot read the configuration {}: {}", file.string(), std::generic_category().message(errno));
  }
  return {std::istreambuf_iterator<char>(stream), {}};
}

void read_table(std::string_view source, std::string_view name, const toml::table& table, Config& config) {
  for (const auto& [key_name, node] : table) {
    const std::string where = fmt::format("{}:{}", source, key_name.source().begin.line);
    const ConfigKey* const key = find_key(name, key_name.str());
    if (key == nullptr) throw_unknown_key(where, name, key_name.str());
    assign(where, *key, node, config);
  }
}

/// The value of an override: TOML where it is that, else the text itself as a string.
toml::table override_value(std::string_view value, bool wants_string) {
  try {
    toml::table parsed = toml::parse(fmt::format("value = {}", value));
    if (parsed.size() == 1 && (!wants_string || parsed.get("value")->is_string())) return parsed;
  } catch (const toml::parse_error&) {
  }
  return toml::parse(fmt::format("value = {}", quote(value)));
}

/// What no key shows alone.
void check_together(const Config& config) {
  const ModelConfig& model = config.model;
  const bool unet = model.name == "unet3d";
  const std::string format = unet ? "lits" : "cosmoflow";
  if (config.data.format != format) {
    throw UsageError("data.format = \"{}\": must be \"{}\" for model.name = \"{}\", which learns {}",
                     config.data.format, format, model.name, unet ? "labels" : "no labels");
  }
  if (!unet && (model.width < 32 || model.width % 16 != 0)) {
    throw UsageError("model.width = {}: must be a multiple of 16 from 32 up for model.name = \"{}\"", model.width,
                     model.name);
  }
  if (!model.class_weights.empty() && static_cast<std::int64_t>(model.class_weights.size()) != model.classes) {
    throw UsageError("model.class_weights holds {} numbers: must be model.classes, {} (or none: all 1)",
                     model.class_weights.size(), model.classes);
  }
  if (!model.class_weights.empty() && model.loss == "dice") {
    throw UsageError("model.class_weights: must be [] for model.loss = \"dice\", which weights all classes alike");
  }
  if (config.data.subvolume != 0 && config.data.subvolume != config.model.width) {
    throw UsageError("data.subvolume = {}: must be model.width, {} (or 0: files are not cut)", config.data.subvolume,
                     config.model.width);
  }
}

}  // namespace

void apply_override(Config& config, std::string_view override_text) {
  const std::string where = fmt::format("--set {}", override_text);
  const std::size_t equals = override_text.find('=');
  const std::string_view full = override_text.substr(0, equals);
  const std::size_t dot = full.find('.');
  if (equals == std::string_view::npos || dot == std::string_view::npos) {
    throw UsageError("{}: must be table.key=value, as train.epochs=10", where);
  }
  const std::string_view table = full.substr(0, dot);
  const std::string_view name = full.substr(dot + 1);
  if (!is_table(table)) throw_unknown_table(where, table);
  const ConfigKey* const key = find_key(table, name);
  if (key == nullptr) throw_unknown_key(where, table, name);
  try {
    const bool wants_string = std::holds_alternative<ConfigField<std::string>>(key->field);
    const toml::table value = override_value(override_text.substr(equals + 1), wants_string);
    assign(where, *key, *value.get("value"), config);
  } catch (const toml::parse_error& failure) {
    throw UsageError("{}: {}", where, failure.description());
  }
}

Config parse_config(std::string_view text, std::string_view source, std::span<const std::string> overrides) {
  Config config;
  try {
    const toml::table root = toml::parse(text, source);
    for (const auto& [name, node] : root) {
      const std::string where = fmt::format("{}:{}", source, name.source().begin.line);
      if (is_table(name.str())) {
        if (!node.is_table()) {
          throw UsageError("{}: {}: expected a table [{}], got {}", where, name.str(), name.str(), what_is(node));
        }
        read_table(source, name.str(), *node.as_table(), config);
      } else if (node.is_table()) {
        throw_unknown_table(where, name.str());
      } else {
        throw_unknown_key(where, "", name.str());
      }
    }
  } catch (const toml::parse_error& failure) {
    const auto& at = failure.source().begin;
    throw UsageError("{}:{}:{}: not TOML: {}", source, at.line, at.column, failure.description());
  }
  for (const std::string& one : overrides) apply_override(config, one);
  check_together(config);
  return config;
}

Config load_config(const std::filesystem::path& file, std::span<const std::string> overrides) {
  return parse_config(read_text(file), file.string(), overrides);
}

void validate(const Config& config) {
  Config copy = config;
  for (const ConfigKey& key : config_keys()) check("", key, copy);
  check_together(config);
}

std::string to_toml(const Config& config) {
  std::string text;
  std::string table;
  for (const ConfigKey& key : config_keys()) {
    if (key.table != table) text += fmt::format("{}[{}]\n", table.empty() ? "" : "\n", key.table);
    table = key.table;
    text += fmt::format("{:<36}# {}\n", fmt::format("{} = {}", key.name, value_text(key, config)) + " ", key.doc);
  }
  return text;
}

std::vector<ConfigDifference> config_differences(const Config& before, const Config& after) {
  std::vector<ConfigDifference> differences;
  for (const ConfigKey& key : config_keys()) {
    ConfigDifference difference{key.full_name(), value_text(key, before), value_text(key, after)};
    if (difference.before != difference.after) differences.push_back(std::move(difference));
  }
  return differences;
}

}  // namespace halograd
