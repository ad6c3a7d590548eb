#include "halograd/cli/output.hpp"

#include "halograd/core/error.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>

namespace halograd {

void print(const Communicator& world, const std::string& text) {
  if (world.rank() != 0) return;
  if (std::fputs((text + '\n').c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    throw ResourceError("cannot write to the standard output; is the disk full?");
  }
}

void write_text(const std::string& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  out.close();
  if (!out) throw ResourceError("{}: can't be written", file);
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
