#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>

namespace halograd::log {

/// Whether this process writes to the terminal: rank 0 does, the others keep quiet. Call once at start-up.
void set_terminal(bool enabled);

/// Writes every later line to `file` too (appended). Throws ResourceError where it can't be opened.
void add_file(const std::filesystem::path& file);

void info(const std::string& line);
void warn(const std::string& line);

template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  info(fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  warn(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace halograd::log
