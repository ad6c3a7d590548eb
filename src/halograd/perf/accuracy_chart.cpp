#include "halograd/perf/accuracy_chart.hpp"

#include "halograd/core/error.hpp"
#include "halograd/core/median.hpp"
#include "halograd/perf/svg.hpp"

#include <algorithm>
#include <cmath>

namespace halograd {
namespace {

constexpr double margin = 16;
constexpr double row_height = 20;
constexpr double bar_height = 11;
constexpr double plot_width = 360;
constexpr double axis_percent = 55;  // the axis' end, to both sides
constexpr double cut_percent = 50;   // longer bars are cut off here
constexpr double column_width = 66;  // of figures
constexpr double line_height = 20;

constexpr TextStyle title_style{.size = 15, .bold = true};
constexpr TextStyle summary_style{.size = 11, .name = "summary"};
constexpr TextStyle name_style{.size = 10, .anchor = TextAnchor::end, .name = "name"};
constexpr TextStyle figure_style{.size = 10, .anchor = TextAnchor::end, .name = "figure"};
constexpr TextStyle head_style{.size = 10, .anchor = TextAnchor::end, .colour = "#666666"};
constexpr TextStyle axis_style{.size = 9, .anchor = TextAnchor::middle};

double error_percent(const AccuracyPoint& point) {
  return 100 * (point.predicted_seconds - point.measured_seconds) / point.measured_seconds;
}

/// "+4.2 %", with a minus sign as wide as the plus.
std::string percent(double value, int decimals) {
  const std::string figure = fmt::format("{:.{}f} %", std::abs(value), decimals);
  if (figure.find_first_of("123456789") == std::string::npos) return decimals == 0 ? "0" : figure;
  return (value < 0 ? "−" : "+") + figure;
}

void check(const std::vector<AccuracyPoint>& points) {
  if (points.empty()) throw UsageError("an accuracy chart needs at least one point");
  for (const AccuracyPoint& point : points) {
    for (const double seconds : {point.predicted_seconds, point.measured_seconds}) {
      if (!std::isfinite(seconds) || seconds <= 0) {
        throw UsageError("accuracy chart: {} has a time of {} s; it must be above 0 and finite", point.name, seconds);
      }
    }
  }
}

std::string summary(const std::vector<AccuracyPoint>& points) {
  std::vector<double> errors;
  errors.reserve(points.size());
  for (const AccuracyPoint& point : points) errors.push_back(std::abs(error_percent(point)));
  const double largest = std::ranges::max(errors);
  const auto within = [&](double limit) {
    return std::count_if(errors.begin(), errors.end(), [&](double error) { return error <= limit; });
  };
  return fmt::format("median of errors {:.1f} %, largest {:.{}f} %; within ±8 %: {} of {}, within ±20 %: {}",
                     median(errors), largest, largest < 100 ? 1 : 0, within(8), errors.size(), within(20));
}

std::string_view colour_of(double error) {
  if (std::abs(error) <= 8) return okabe_ito::green;
  return std::abs(error) <= 20 ? okabe_ito::orange : okabe_ito::vermilion;
}

/// The plot's place: x of an error, and the rows' y.
struct Layout {
  double left = 0;
  double top = 0;
  double bottom = 0;
  [[nodiscard]] double x(double error) const { return left + plot_width * (error + axis_percent) / (2 * axis_percent); }
  [[nodiscard]] double right() const { return left + plot_width; }
};

void draw_axis(SvgWriter& svg, const Layout& at) {
  for (const double error : {-20.0, -8.0, 8.0, 20.0}) {
    const bool narrow = std::abs(error) < 10;
    svg.line({at.x(error), at.top}, {at.x(error), at.bottom},
             {.colour = narrow ? "#666666" : "#999999", .dashes = narrow ? "5 3" : "2 3", .name = "limit"});
  }
  svg.line({at.x(0), at.top}, {at.x(0), at.bottom}, {.name = "zero"});
  for (const double error : {-50.0, -20.0, -8.0, 0.0, 8.0, 20.0, 50.0}) {
    svg.line({at.x(error), at.bottom}, {at.x(error), at.bottom + 4});
    svg.text(at.x(error), at.bottom + 15, percent(error, 0), axis_style);
  }
  svg.line({at.left, at.bottom}, {at.right(), at.bottom});
  svg.text(at.x(0), at.bottom + 32, "(predicted − measured) / measured", axis_style);
  const char* heads[] = {"predicted", "measured", "error"};
  for (int i = 0; i < 3; ++i) svg.text(at.right() + (i + 1) * column_width, at.top - 5, heads[i], head_style);
}

void draw_row(SvgWriter& svg, const Layout& at, double middle, const AccuracyPoint& point) {
  const double error = error_percent(point);
  const double shown = std::clamp(error, -cut_percent, cut_percent);
  const FillStyle style{.colour = colour_of(error), .name = "error"};
  svg.rect(std::min(at.x(0), at.x(shown)), middle - bar_height / 2, std::abs(at.x(shown) - at.x(0)), bar_height, style);
  if (shown != error) {
    const double tip = at.x(std::copysign(axis_percent - 1, error));
    const SvgPoint arrow[] = {
        {at.x(shown), middle - bar_height / 2 - 2}, {tip, middle}, {at.x(shown), middle + bar_height / 2 + 2}};
    svg.polygon(arrow, {.colour = style.colour, .name = "cut"});
  }
  const double baseline = middle + 3.5;
  svg.text(at.left - 8, baseline, point.name, name_style);
  const std::string figures[] = {three_digits(point.predicted_seconds) + " s",
                                 three_digits(point.measured_seconds) + " s",
                                 percent(error, std::abs(error) < 100 ? 1 : 0)};
  for (int i = 0; i < 3; ++i) svg.text(at.right() + (i + 1) * column_width, baseline, figures[i], figure_style);
}

}  // namespace

std::string accuracy_chart(const std::string& title, const std::vector<AccuracyPoint>& points) {
  check(points);
  double names = 0;
  for (const AccuracyPoint& point : points) names = std::max(names, text_width(point.name, name_style));
  Layout at{.left = margin + names + 8};
  const double width = at.right() + 3 * column_width + margin;
  const std::vector<std::string> title_lines = wrapped(title, width - 2 * margin, title_style);
  const std::vector<std::string> summary_lines = wrapped(summary(points), width - 2 * margin, summary_style);
  at.top = margin + line_height * static_cast<double>(title_lines.size() + summary_lines.size()) + 20;
  at.bottom = at.top + row_height * static_cast<double>(points.size());

  SvgWriter svg(title, width, at.bottom + 40 + margin / 2);
  double baseline = margin;
  for (const std::string& line : title_lines) svg.text(margin, baseline += line_height - 4, line, title_style);
  for (const std::string& line : summary_lines) svg.text(margin, baseline += line_height, line, summary_style);
  draw_axis(svg, at);
  for (std::size_t i = 0; i < points.size(); ++i) {
    draw_row(svg, at, at.top + row_height * (static_cast<double>(i) + 0.5), points[i]);
  }
  return svg.finish();
}

}  // namespace halograd
