#include "halograd/cli/usage_text.hpp"

#include "halograd/train/spelling.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace halograd {
namespace {

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// The nearest known name where it is near enough to have been meant.
std::string suggestion(const std::string& given, const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(given, known);
  const auto limit = static_cast<std::int64_t>(std::max<std::size_t>(2, given.size() / 3));
  return nearest.empty() || edit_distance(given, nearest) > limit ? "" : fmt::format("; did you mean {}?", nearest);
}

std::string unexpected(const CLI::App& command, const std::string& title, const std::string& given) {
  if (given.starts_with('-')) {
    const std::string name = given.substr(0, given.find('='));
    return fmt::format("{}: unknown option {}{}", title, name, suggestion(name, option_names(command)));
  }
  const auto names = subcommand_names(command);
  if (names.empty()) return fmt::format("{}: unexpected argument {}", title, given);
  return fmt::format("{}: unknown command {}{} (there are {})", title, given, suggestion(given, names),
                     fmt::join(names, ", "));
}

}  // namespace

std::string usage_text(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string title = app.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    title += " " + command->get_name();
  }
  const std::string advice = fmt::format("; see {} --help", title);
  const auto left = command->remaining();
  if (!left.empty()) return unexpected(*command, title, left.front()) + advice;
  const auto names = subcommand_names(*command);
  if (!names.empty() && error.get_name() == "RequiredError") {
    return fmt::format("{} needs a command: {}{}", title, fmt::join(names, ", "), advice);
  }
  return fmt::format("{}: {}{}", title, error.what(), advice);
}

}  // namespace halograd
