#include "halograd/data/medical/label_table.hpp"

#include "halograd/core/error.hpp"

#include <charconv>
#include <numeric>
#include <sstream>

namespace halograd {
namespace {

constexpr std::int64_t largest_label = 65535;

std::int64_t number(const std::string& text, const std::string& groups) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < 0 || value > largest_label) {
    throw UsageError("groups of labels \"{}\": can't read \"{}\"; expected class:labels as in 1:1-90,95,2:91-94",
                     groups, text);
  }
  return value;
}

}  // namespace

LabelTable::LabelTable(std::int64_t classes) {
  if (classes < 1 || classes > 256) throw UsageError("{} classes; expected 1 to 256", classes);
  classes_of_.resize(static_cast<std::size_t>(classes));
  std::iota(classes_of_.begin(), classes_of_.end(), std::uint8_t{0});
}

LabelTable::LabelTable(std::int64_t classes, const std::string& groups) : LabelTable(classes) {
  if (groups.empty()) return;
  classes_of_.assign(largest_label + 1, 0);
  std::int64_t target = -1;
  std::istringstream parts(groups);
  for (std::string part; std::getline(parts, part, ',');) {
    if (const std::size_t colon = part.find(':'); colon != std::string::npos) {
      target = number(part.substr(0, colon), groups);
      part = part.substr(colon + 1);
    }
    if (target < 1 || target >= classes) {
      throw UsageError("groups of labels \"{}\": {}; expected classes from 1 to {}", groups,
                       target < 0 ? "begins without a class" : fmt::format("names class {}", target), classes - 1);
    }
    const std::size_t dash = part.find('-');
    const std::int64_t first = number(part.substr(0, dash), groups);
    const std::int64_t last = dash == std::string::npos ? first : number(part.substr(dash + 1), groups);
    add_group(target, first, last, groups);
  }
}

void LabelTable::add_group(std::int64_t target, std::int64_t first, std::int64_t last, const std::string& groups) {
  if (last < first) {
    throw UsageError("groups of labels \"{}\": {}-{} runs backwards; expected the smaller label first", groups, first,
                     last);
  }
  for (std::int64_t label = first; label <= last; ++label) {
    std::uint8_t& entry = classes_of_[static_cast<std::size_t>(label)];
    if (entry != 0) throw UsageError("groups of labels \"{}\": label {} is in two; expected one", groups, label);
    entry = static_cast<std::uint8_t>(target);
  }
}

std::string LabelTable::expected() const {
  return fmt::format("a whole number from 0 to {}", classes_of_.size() - 1);
}

}  // namespace halograd
