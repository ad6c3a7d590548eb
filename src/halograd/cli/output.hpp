#pragma once

#include "halograd/comm/communicator.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace halograd {

/// Writes `text` and a line end to stdout, on rank 0 alone. Throws ResourceError where it can't be written (a full
/// disk).
void print(const Communicator& world, const std::string& text);

/// Throws ResourceError where `file` could not be written: to be asked before long work whose result goes there.
void require_writable(const std::string& file);

/// Writes a file whole: on failure what was there stays. Throws ResourceError where it can't be written.
void write_text(const std::string& file, const std::string& text);

/// "9,437,636".
std::string with_commas(std::int64_t value);

/// Rows of cells as lines of columns, two blanks apart; `right` says which columns stand flush right.
std::string format_table(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right);

}  // namespace halograd
