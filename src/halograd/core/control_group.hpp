#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace halograd {

/// Bytes that this process's control group (a batch system's job, a container) may still take before the kernel ends
/// it: the least of its limit and its ancestors', less what they use and could not give back. Nothing where none has a
/// limit. Versions 1 and 2. `membership` and `mount` are where Linux tells of them.
std::optional<std::int64_t> control_group_room(const std::filesystem::path& membership = "/proc/self/cgroup",
                                               const std::filesystem::path& mount = "/sys/fs/cgroup");

}  // namespace halograd
