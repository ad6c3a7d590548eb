#pragma once

#include <cstdint>
#include <string>

namespace halograd {

/// The most memory this process has held in RAM so far, in bytes (getrusage).
std::int64_t peak_rss_bytes();

/// Memory the node could still hand out, in bytes (MemAvailable).
std::int64_t available_memory_bytes();

/// Seconds on a clock that never goes back; only differences mean anything.
double now_seconds();

/// "1.50 GiB", "12.0 MiB": three significant digits.
std::string format_bytes(double bytes);

}  // namespace halograd
