#include "halograd/train/spelling.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace halograd {

std::int64_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t columns = b.size() + 1;
  std::vector<std::int64_t> table((a.size() + 1) * columns);
  const auto at = [&](std::size_t i, std::size_t j) -> std::int64_t& { return table[i * columns + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = static_cast<std::int64_t>(i);
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = static_cast<std::int64_t>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::int64_t replaced = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
      }
    }
  }
  return at(a.size(), b.size());
}

std::string nearest_name(std::string_view name, std::span<const std::string> known) {
  if (known.empty()) return "";
  return *std::ranges::min_element(known, {}, [&](const std::string& one) { return edit_distance(name, one); });
}

}  // namespace halograd
