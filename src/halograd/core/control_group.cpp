#include "halograd/core/control_group.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace halograd {
namespace {

/// A limit this high is none: version 1 writes the largest multiple of a page.
constexpr std::int64_t unlimited = std::int64_t{1} << 60;

struct Names {
  const char* limit;
  const char* usage;
  const char* reclaimable;  ///< a line of memory.stat: cached pages that nobody has touched lately
};
constexpr Names version_1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr Names version_2{"memory.max", "memory.current", "inactive_file"};

/// "max", which stands for no limit, is no number.
std::optional<std::int64_t> number_in(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::int64_t value = 0;
  return stream >> value ? std::optional(value) : std::nullopt;
}

std::int64_t statistic(const std::filesystem::path& file, const std::string& name) {
  std::ifstream stream(file);
  std::string key;
  std::int64_t value = 0;
  while (stream >> key >> value) {
    if (key == name) return value;
  }
  return 0;
}

std::optional<std::int64_t> room_of(const std::filesystem::path& group, const Names& names) {
  const std::optional<std::int64_t> limit = number_in(group / names.limit);
  const std::optional<std::int64_t> usage = number_in(group / names.usage);
  if (!limit || !usage || *limit >= unlimited) return std::nullopt;
  return std::max<std::int64_t>(0, *limit - *usage + statistic(group / "memory.stat", names.reclaimable));
}

}  // namespace

std::optional<std::int64_t> control_group_room(const std::filesystem::path& membership,
                                               const std::filesystem::path& mount) {
  std::optional<std::int64_t> least;
  std::ifstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // "4:memory:/path" or "0::/path"
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && controllers != "memory") continue;
    const Names& names = controllers.empty() ? version_2 : version_1;
    const std::filesystem::path root = controllers.empty() ? mount : mount / "memory";
    // Inside a container the path may be the host's: then the mount itself is the container's group.
    for (std::filesystem::path path = line.substr(second + 1);; path = path.parent_path()) {
      const std::optional<std::int64_t> room = room_of(root / path.relative_path(), names);
      if (room) least = std::min(least.value_or(std::numeric_limits<std::int64_t>::max()), *room);
      if (path == path.parent_path()) break;
    }
  }
  return least;
}

}  // namespace halograd
