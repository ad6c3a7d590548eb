#include "halograd/core/system.hpp"

#include "halograd/core/control_group.hpp"
#include "halograd/core/error.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>

namespace halograd {

namespace {

// Bytes in one of `unit`, written in any case.
std::optional<std::int64_t> unit_bytes(std::string_view unit) {
  static constexpr std::string_view prefixes = "kmgtp";
  std::string name(unit);
  std::ranges::transform(name, name.begin(),
                         [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
  if (name.empty() || name == "b") return 1;
  const std::size_t power = prefixes.find(name.front());
  const bool binary = name.size() == 3 && name[1] == 'i';
  if (power == std::string_view::npos || name.back() != 'b' || (name.size() != 2 && !binary)) return std::nullopt;
  std::int64_t bytes = 1;
  for (std::size_t i = 0; i <= power; ++i) bytes *= binary ? 1024 : 1000;
  return bytes;
}

}  // namespace

int core_count() {
  return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

std::int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

std::int64_t available_memory_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  std::int64_t kibibytes = 0;
  while (meminfo >> key >> kibibytes) {
    if (key == "MemAvailable:") {
      return std::min(kibibytes * 1024, control_group_room().value_or(std::numeric_limits<std::int64_t>::max()));
    }
    meminfo.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string format_bytes(double bytes) {
  static constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  const int decimals = unit == 0 ? 0 : (bytes < 10 ? 2 : (bytes < 100 ? 1 : 0));
  return fmt::format("{:.{}f} {}", bytes, decimals, units[unit]);
}

std::int64_t parse_bytes(std::string_view text) {
  static constexpr std::string_view digits = "0123456789";
  const auto wrong = [&](std::string_view why) {
    return UsageError("'{}' is no number of bytes ({}): expected something like 8GiB, 1.5 GiB, 512MiB, 4GB or 123",
                      text, why);
  };
  // The digits before and behind the point apart, so that whole numbers stay exact.
  const std::string_view whole = text.substr(0, text.find_first_not_of(digits));
  if (whole.empty()) throw wrong(text.starts_with('-') ? "negative" : "it begins with no digit");
  std::string_view rest = text.substr(whole.size());
  std::string_view fraction;
  if (rest.starts_with('.')) {
    fraction = rest.substr(0, rest.find_first_not_of(digits, 1));
    if (fraction.size() < 2) throw wrong("no digit behind the point");
    rest.remove_prefix(fraction.size());
  }
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const std::optional<std::int64_t> unit = unit_bytes(rest);
  if (!unit) throw wrong("unknown unit");
  if (*unit == 1 && !fraction.empty()) throw wrong("part of a byte");

  std::int64_t count = 0;
  double part = 0;
  const auto converted = std::from_chars(whole.data(), whole.data() + whole.size(), count);
  if (!fraction.empty()) std::from_chars(fraction.data(), fraction.data() + fraction.size(), part);
  std::int64_t bytes = 0;
  if (converted.ec != std::errc{} || __builtin_mul_overflow(count, *unit, &bytes) ||
      __builtin_add_overflow(bytes, std::llround(part * static_cast<double>(*unit)), &bytes)) {
    throw wrong("more than 64 bits hold");
  }
  return bytes;
}

}  // namespace halograd
