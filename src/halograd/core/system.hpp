#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace halograd {

/// The most memory this process has held in RAM so far, in bytes (getrusage).
std::int64_t peak_rss_bytes();

/// Memory the node could still hand out, in bytes (MemAvailable), as far as this process's control group may take it.
std::int64_t available_memory_bytes();

/// Processors of the node, hardware threads counted one by one.
int core_count();

/// Seconds on a clock that never goes back; only differences mean anything.
double now_seconds();

/// "1.50 GiB", "12.0 MiB": three significant digits.
std::string format_bytes(double bytes);

/// "8GiB", "1.5 GiB", "100KiB", "4GB" (powers of 1000), "123" (bytes); units B, K, M, G, T and P, in any case. Throws
/// UsageError for anything else, or more than 64 bits hold.
std::int64_t parse_bytes(std::string_view text);

}  // namespace halograd
