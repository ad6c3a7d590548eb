#include "halograd/core/log.hpp"

#include "halograd/core/error.hpp"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace halograd::log {
namespace {

spdlog::logger& logger() {
  static const auto instance = [] {
    auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    sink->set_pattern("%v");
    auto made = std::make_shared<spdlog::logger>("halograd", sink);
    made->flush_on(spdlog::level::info);
    return made;
  }();
  return *instance;
}

}  // namespace

void set_terminal(bool enabled) {
  logger().sinks().front()->set_level(enabled ? spdlog::level::info : spdlog::level::off);
}

void add_file(const std::filesystem::path& file) {
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.string());
    sink->set_pattern("%Y-%m-%d %H:%M:%S %l %v");
    logger().sinks().push_back(sink);
  } catch (const spdlog::spdlog_ex& failure) {
    throw ResourceError("cannot write the log {}: {}", file.string(), failure.what());
  }
}

void info(const std::string& line) {
  logger().info("{}", line);
}
void warn(const std::string& line) {
  logger().warn("warning: {}", line);
}

}  // namespace halograd::log
