#include "halograd/cli/bench_accuracy.hpp"

#include "halograd/cli/output.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/median.hpp"
#include "halograd/core/system.hpp"
#include "halograd/perf/accuracy_chart.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

namespace halograd {
namespace {

struct Row {
  std::string name;
  double measured = 0;
  double predicted = 0;
  double measured_bytes = 0;
  double predicted_bytes = 0;
  [[nodiscard]] double error() const { return predicted / measured - 1; }
  [[nodiscard]] double memory_error() const { return predicted_bytes / measured_bytes - 1; }
};

Row read_row(const std::string& file) {
  std::ifstream in(file);
  if (!in || std::filesystem::is_directory(file)) throw DataError("{}: no such file, or not readable", file);
  try {
    const auto report = nlohmann::json::parse(in);
    const auto& predicted = report.at("predicted");
    const auto text = [&](const char* key) { return report.at(key).get<std::string>(); };
    const auto count = [&](const char* key) { return report.at(key).get<std::int64_t>(); };
    Row row{.name = fmt::format("{} {}, batch {}, {} on {}", text("model"), count("width"), count("batch"),
                                text("grid"), count("ranks")),
            .measured = report.at("step_seconds").get<double>(),
            .predicted = predicted.at("step_seconds").get<double>(),
            .measured_bytes = report.at("peak_rss_bytes").get<double>(),
            .predicted_bytes = predicted.at("memory_bytes").get<double>()};
    for (const double figure : {row.measured, row.predicted, row.measured_bytes, row.predicted_bytes}) {
      if (!(figure > 0)) throw DataError("{}: its seconds and bytes must be above 0, and one is {}", file, figure);
    }
    return row;
  } catch (const nlohmann::json::exception& error) {
    throw DataError("{}: no report of `bench step --machine FILE --json` ({})", file, error.what());
  }
}

std::string percent(double share) {
  return fmt::format("{:+.1f} %", 100 * share);
}

template <typename Error>
std::string errors_line(const std::string& of, const std::vector<Row>& rows, Error error) {
  std::vector<double> sizes;
  for (const Row& row : rows) sizes.push_back(std::abs((row.*error)()));
  return fmt::format("{}: median error {:.1f} %, largest {:.1f} %", of, 100 * median(sizes),
                     100 * std::ranges::max(sizes));
}

}  // namespace

std::string bench_accuracy(const Communicator& world, const BenchAccuracyOptions& options) {
  if (!options.chart.empty() && world.rank() == 0) require_writable(options.chart);
  std::vector<Row> rows;
  for (const std::string& file : options.reports) rows.push_back(read_row(file));
  std::vector<std::vector<std::string>> table{
      {"configuration", "measured s", "predicted s", "error", "memory", "predicted", "error"}};
  std::vector<AccuracyPoint> points;
  for (const Row& row : rows) {
    table.push_back({row.name, fmt::format("{:.4f}", row.measured), fmt::format("{:.4f}", row.predicted),
                     percent(row.error()), format_bytes(row.measured_bytes), format_bytes(row.predicted_bytes),
                     percent(row.memory_error())});
    points.push_back({.name = row.name, .predicted_seconds = row.predicted, .measured_seconds = row.measured});
  }
  if (!options.chart.empty() && world.rank() == 0) {
    write_text(options.chart, accuracy_chart("Step time: predicted against measured", points));
  }
  return format_table(table, {false, true, true, true, true, true, true}) + "\n" +
         errors_line("step", rows, &Row::error) + "\n" + errors_line("memory", rows, &Row::memory_error);
}

}  // namespace halograd
