#include "halograd/cli/output.hpp"

#include "halograd/core/durable_file.hpp"
#include "halograd/core/error.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace halograd {

void print(const Communicator& world, const std::string& text) {
  if (world.rank() != 0) return;
  if (std::fputs((text + '\n').c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    throw ResourceError("cannot write to the standard output; is the disk full?");
  }
}

void require_writable(const std::string& file) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) throw ResourceError("{}: can't be written: it is a directory", file);
  const fs::path parent = fs::path(file).has_parent_path() ? fs::path(file).parent_path() : ".";
  if (!fs::is_directory(parent, ignored)) {
    throw ResourceError("{}: can't be written: there is no directory {}", file, parent.string());
  }
  if (access(parent.c_str(), W_OK) != 0) {
    throw ResourceError("{}: can't be written: {}: {}", file, parent.string(), std::generic_category().message(errno));
  }
}

void write_text(const std::string& file, const std::string& text) {
  require_writable(file);
  std::error_code ignored;
  const bool device = std::filesystem::exists(file, ignored) && !std::filesystem::is_regular_file(file, ignored);
  if (device) {  // a pipe, a terminal: not to be replaced by a file
    write_file(file, text, file);
  } else {
    write_durably(file, text);
  }
}

std::string with_commas(std::int64_t value) {
  std::string digits = fmt::to_string(value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string format_table(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right) {
  std::vector<std::size_t> widths(right.size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string cell =
          right[i] ? fmt::format("{:>{}}", row[i], widths[i]) : fmt::format("{:<{}}", row[i], widths[i]);
      line += (i == 0 ? "" : "  ") + cell;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

}  // namespace halograd
