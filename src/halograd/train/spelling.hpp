#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace halograd {

/// The least number of characters put in, left out, replaced or swapped with the next that turns `a` into `b`
/// (optimal string alignment distance).
std::int64_t edit_distance(std::string_view a, std::string_view b);

/// The name among `known` nearest to `name`; the first of equals; empty where `known` is.
std::string nearest_name(std::string_view name, std::span<const std::string> known);

}  // namespace halograd
