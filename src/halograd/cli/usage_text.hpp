#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace halograd {

/// What is wrong with a command line that `app` could not parse and what would be right, in one line.
std::string usage_text(const CLI::App& app, const CLI::ParseError& error);

}  // namespace halograd
