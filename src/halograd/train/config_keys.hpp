#pragma once

#include "halograd/train/config.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace halograd {

/// Says what a value would have to be; empty where it is right.
template <typename T>
using ConfigCheck = std::function<std::string(const T&)>;

/// One key's place in a Config.
template <typename T>
struct ConfigField {
  std::function<T&(Config&)> at;
  ConfigCheck<T> check;
};

/// One key of the configuration: reading, checking, overriding and writing all follow from it.
struct ConfigKey {
  std::string table;
  std::string name;
  std::variant<ConfigField<bool>, ConfigField<std::int64_t>, ConfigField<double>, ConfigField<std::string>,
               ConfigField<std::array<double, 2>>, ConfigField<std::array<double, 3>>, ConfigField<std::vector<double>>>
      field;
  std::string doc;  ///< what it means, in a few words

  [[nodiscard]] std::string full_name() const { return table + "." + name; }
};

/// Every key, tables together, in the order in which to_toml writes them. A new key is one line there.
const std::vector<ConfigKey>& config_keys();

}  // namespace halograd
