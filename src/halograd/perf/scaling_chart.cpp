#include "halograd/perf/scaling_chart.hpp"

#include "halograd/core/error.hpp"
#include "halograd/perf/svg.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace halograd {
namespace {

constexpr double margin = 16;
constexpr double plot_height = 240;
constexpr double head_room = 42;  // over the highest bar, for a mark and two lines of text
constexpr double least_width = 480;
constexpr double least_plot_width = 150;
constexpr double panel_gap = 24;
constexpr double row_height = 12;  // of labels
constexpr double over_line = 11;
constexpr double mark_radius = 5;

constexpr TextStyle title_style{.size = 15, .bold = true, .name = "title"};
constexpr TextStyle panel_style{.size = 12, .bold = true, .name = "panel"};
constexpr TextStyle legend_style{.size = 11, .name = "legend"};
constexpr TextStyle over_style{.size = 9, .anchor = TextAnchor::middle, .name = "over"};
constexpr TextStyle tick_style{.size = 10, .anchor = TextAnchor::end, .name = "tick"};
constexpr TextStyle ranks_style{.size = 11, .anchor = TextAnchor::middle, .bold = true, .name = "ranks"};
constexpr TextStyle grid_style{.size = 9, .anchor = TextAnchor::middle, .name = "grid"};
constexpr TextStyle batch_style{.size = 9, .anchor = TextAnchor::middle, .name = "batch"};
constexpr TextStyle head_style{.size = 9, .anchor = TextAnchor::end, .colour = "#666666"};
constexpr TextStyle note_style{.size = 9, .colour = "#666666", .name = "note"};
constexpr TextStyle axis_style{.size = 10, .anchor = TextAnchor::middle, .upright = true};
constexpr LineStyle ideal_style{.width = 1.4, .dashes = "5 3", .name = "ideal"};
constexpr FillStyle mark_style{.colour = "#000000", .outline = "#FFFFFF", .name = "measured"};

/// A step's parts, as they are stacked from below.
struct Part {
  std::string_view name;
  std::string_view colour;
  double StepCost::*seconds;
};
constexpr std::array<Part, 6> parts{{{"convolutions", okabe_ito::blue, &StepCost::convolution_seconds},
                                     {"other computing", okabe_ito::sky_blue, &StepCost::other_seconds},
                                     {"halos", okabe_ito::orange, &StepCost::halo_seconds},
                                     {"statistics", okabe_ito::green, &StepCost::statistics_seconds},
                                     {"gradients", okabe_ito::purple, &StepCost::gradient_seconds},
                                     {"data", okabe_ito::vermilion, &StepCost::data_seconds}}};

/// A point with what is written and drawn of it.
struct Column {
  const ScalingPoint* point = nullptr;
  std::optional<double> ideal_seconds;
  std::vector<std::string> over;  ///< lines over the bar
  std::vector<std::string> grid;  ///< lines under it
  [[nodiscard]] double highest() const {
    const double bar = point->predicted ? point->predicted->seconds() : 0;
    return std::max({bar, point->measured_seconds.value_or(0), ideal_seconds.value_or(0)});
  }
};

struct Panel {
  std::vector<std::string> title;
  std::vector<Column> columns;
  bool predictions = false;  ///< else all times are measured
  bool batches = false;      ///< they differ, so that they are written under the columns
  double highest = 0;
  double tick = 0;
  double axis_width = 0;  ///< what stands left of the plot
  double left = 0;        ///< of the plot
  double top = 0;
  double column_width = 0;

  [[nodiscard]] double plot_width() const { return column_width * static_cast<double>(columns.size()); }
  [[nodiscard]] double bottom() const { return top + plot_height; }
  [[nodiscard]] double pixels(double seconds) const { return seconds / highest * (plot_height - head_room); }
  [[nodiscard]] double y(double seconds) const { return bottom() - pixels(seconds); }
  [[nodiscard]] double middle(std::size_t column) const {
    return left + column_width * (static_cast<double>(column) + 0.5);
  }
};

void check(const std::vector<ScalingSeries>& series) {
  if (series.empty()) throw UsageError("a scaling chart needs at least one series");
  for (const ScalingSeries& one : series) {
    bool any = false;
    for (const ScalingPoint& point : one.points) {
      const auto refuse = [&](std::string_view what) {
        throw UsageError("scaling chart: series '{}' at {} ranks: {}", one.title, point.ranks, what);
      };
      if (point.ranks < 1 || point.batch < 1) refuse("ranks and mini-batch must be at least 1");
      if (const auto& cost = point.predicted) {
        for (const Part& part : parts) {
          const double seconds = (*cost).*part.seconds;
          if (!std::isfinite(seconds) || seconds < 0)
            refuse("the parts of a prediction must be finite and not negative");
        }
        if (cost->seconds() <= 0 || !std::isfinite(cost->seconds()))
          refuse("a prediction must be finite and above 0 s");
      }
      const double measured = point.measured_seconds.value_or(1);
      if (!std::isfinite(measured) || measured <= 0) refuse("a measurement must be finite and above 0 s");
      any = any || point.predicted || point.measured_seconds;
    }
    if (!any) throw UsageError("scaling chart: series '{}' needs at least one point with a time", one.title);
  }
}

/// The time that speed-ups are about: predicted, or measured in a series without predictions.
std::optional<double> seconds_of(const ScalingPoint& point, bool predictions) {
  if (!predictions) return point.measured_seconds;
  return point.predicted ? std::optional<double>(point.predicted->seconds()) : std::nullopt;
}

/// Fills in ideal times, speed-ups and efficiencies from the first point that has a time on. They are of throughput, so
/// that one formula holds for strong scaling (all mini-batches the same) and for weak.
void compare(std::vector<Column>& columns, bool predictions) {
  const ScalingPoint* first = nullptr;
  for (Column& column : columns) {
    const ScalingPoint& point = *column.point;
    const std::optional<double> seconds = seconds_of(point, predictions);
    if (first == nullptr && seconds) first = &point;
    column.over = {"not", predictions ? "predicted" : "measured"};
    if (first == nullptr) continue;
    const double work = static_cast<double>(point.batch) / static_cast<double>(first->batch);
    const double more_ranks = static_cast<double>(point.ranks) / static_cast<double>(first->ranks);
    const double reference = *seconds_of(*first, predictions);
    column.ideal_seconds = reference * work / more_ranks;
    if (!seconds) continue;
    const double speed_up = reference * work / *seconds;
    column.over = {three_digits(*seconds) + " s",
                   fmt::format("{}×, {:.0f} %", three_digits(speed_up), 100 * speed_up / more_ranks)};
  }
  if (columns.size() < 2) columns.front().ideal_seconds.reset();
}

/// Where a series has a grid longer than a column needs to be, all are broken before their groups.
void break_grids(std::vector<Column>& columns) {
  constexpr std::string_view times = " × ";
  const bool fit = std::all_of(columns.begin(), columns.end(),
                               [](const Column& column) { return text_width(column.point->grid, grid_style) <= 66; });
  for (Column& column : columns) {
    const std::string& grid = column.point->grid;
    const std::size_t at = fit ? std::string::npos : grid.find(times);
    column.grid = {grid.substr(0, at)};
    if (at != std::string::npos) column.grid.push_back(grid.substr(at + 1));
  }
}

std::string batch_label(const ScalingPoint& point) {
  return fmt::format("{}", point.batch);
}

/// A series with its texts and the least widths that they ask for.
Panel prepare(const ScalingSeries& series) {
  Panel panel;
  for (const ScalingPoint& point : series.points) {
    panel.columns.push_back({.point = &point});
    panel.predictions = panel.predictions || point.predicted;
    panel.batches = panel.batches || point.batch != series.points.front().batch;
  }
  compare(panel.columns, panel.predictions);
  break_grids(panel.columns);
  double widest = 0;
  for (const Column& column : panel.columns) {
    panel.highest = std::max(panel.highest, column.highest());
    for (const std::string& line : column.over) widest = std::max(widest, text_width(line, over_style));
    for (const std::string& line : column.grid) widest = std::max(widest, text_width(line, grid_style));
    widest = std::max(widest, text_width(fmt::format("{}", column.point->ranks), ranks_style));
    if (panel.batches) widest = std::max(widest, text_width(batch_label(*column.point), batch_style));
  }
  const double range = panel.highest * plot_height / (plot_height - head_room);
  panel.tick = round_tick(range, 7);
  const double ticks = text_width(tick_label(range, panel.tick), tick_style);
  panel.axis_width = 18 + std::max(ticks + 8, text_width("ranks", head_style));
  panel.column_width = std::max(widest + 6, least_plot_width / static_cast<double>(series.points.size()));
  return panel;
}

struct LegendEntry {
  std::string_view name;
  const Part* part = nullptr;  ///< else the mark of measurements or the ideal line
  double x = 0;
  int row = 0;
};

std::vector<LegendEntry> legend_of(const std::vector<Panel>& panels, double width) {
  const auto any = [&](const auto& holds) {
    return std::any_of(panels.begin(), panels.end(), [&](const Panel& panel) {
      return std::any_of(panel.columns.begin(), panel.columns.end(), holds);
    });
  };
  std::vector<LegendEntry> entries;
  for (const Part& part : parts) {
    if (any([&](const Column& c) { return c.point->predicted && (*c.point->predicted).*part.seconds > 0; })) {
      entries.push_back({.name = part.name, .part = &part});
    }
  }
  if (any([](const Column& c) { return c.point->measured_seconds.has_value(); })) entries.push_back({"measured"});
  if (any([](const Column& c) { return c.ideal_seconds.has_value(); })) entries.push_back({"ideal"});
  double x = 0;
  int row = 0;
  for (LegendEntry& entry : entries) {
    const double needs = 26 + text_width(entry.name, legend_style);
    if (x > 0 && x + needs > width) {
      x = 0;
      ++row;
    }
    entry.x = x;
    entry.row = row;
    x += needs + 8;
  }
  return entries;
}

void draw_mark(SvgWriter& svg, double x, double y) {
  const SvgPoint diamond[] = {{x, y - mark_radius}, {x + mark_radius, y}, {x, y + mark_radius}, {x - mark_radius, y}};
  svg.polygon(diamond, mark_style);
}

void draw_legend(SvgWriter& svg, const std::vector<LegendEntry>& entries, double top) {
  for (const LegendEntry& entry : entries) {
    const double x = margin + entry.x;
    const double y = top + 18 * entry.row;
    if (entry.part != nullptr) {
      svg.rect(x, y, 14, 11, {.colour = entry.part->colour, .name = "swatch"});
    } else if (entry.name == "ideal") {
      svg.line({x, y + 5.5}, {x + 18, y + 5.5}, {.width = ideal_style.width, .dashes = ideal_style.dashes});
    } else {
      draw_mark(svg, x + 8, y + 5.5);
    }
    svg.text(x + 21, y + 9.5, entry.name, legend_style);
  }
}

void draw_axes(SvgWriter& svg, const Panel& panel) {
  const double right = panel.left + panel.plot_width();
  for (int i = 0; panel.y(i * panel.tick) >= panel.top; ++i) {
    const double y = panel.y(i * panel.tick);
    if (i > 0) svg.line({panel.left, y}, {right, y}, {.colour = "#DDDDDD", .width = 0.8});
    svg.line({panel.left - 4, y}, {panel.left, y});
    svg.text(panel.left - 7, y + 3.5, tick_label(i * panel.tick, panel.tick), tick_style);
  }
  svg.line({panel.left, panel.top}, {panel.left, panel.bottom()});
  svg.text(panel.left - panel.axis_width + 10, panel.top + plot_height / 2, "seconds a step", axis_style);
}

/// Under the plot: ranks, grid and, where they differ, mini-batches.
void draw_labels(SvgWriter& svg, const Panel& panel, double grid_rows) {
  const double ranks_y = panel.bottom() + 15;
  const double grid_y = ranks_y + row_height + 2;
  const double batch_y = grid_y + row_height * grid_rows;
  const double head_x = panel.left - 7;
  svg.text(head_x, ranks_y, "ranks", head_style);
  svg.text(head_x, grid_y, "grid", head_style);
  if (panel.batches) svg.text(head_x, batch_y, "batch", head_style);
  for (std::size_t i = 0; i < panel.columns.size(); ++i) {
    const Column& column = panel.columns[i];
    svg.text(panel.middle(i), ranks_y, fmt::format("{}", column.point->ranks), ranks_style);
    double y = grid_y - row_height;
    for (const std::string& line : column.grid) svg.text(panel.middle(i), y += row_height, line, grid_style);
    if (panel.batches) svg.text(panel.middle(i), batch_y, batch_label(*column.point), batch_style);
  }
}

void draw_bars(SvgWriter& svg, const Panel& panel) {
  const double width = std::min(46.0, 0.6 * panel.column_width);
  for (std::size_t i = 0; i < panel.columns.size(); ++i) {
    const auto& predicted = panel.columns[i].point->predicted;
    double below = 0;
    for (const Part& part : parts) {
      const double seconds = predicted ? (*predicted).*part.seconds : 0;
      if (seconds <= 0) continue;
      below += seconds;
      svg.rect(panel.middle(i) - width / 2, panel.y(below), width, panel.pixels(seconds),
               {.colour = part.colour, .name = part.name});
    }
  }
}

/// The ideal is drawn as steps a column wide: between columns there are no ranks, and texts over bars stay free of it.
void draw_ideal(SvgWriter& svg, const Panel& panel) {
  std::vector<SvgPoint> steps;
  for (std::size_t i = 0; i < panel.columns.size(); ++i) {
    if (!panel.columns[i].ideal_seconds) continue;
    const double y = panel.y(*panel.columns[i].ideal_seconds);
    steps.emplace_back(panel.middle(i) - panel.column_width / 2, y);
    steps.emplace_back(panel.middle(i) + panel.column_width / 2, y);
  }
  if (!steps.empty()) svg.line(steps, ideal_style);
}

/// Mark of a measurement and lines of text, over bar, ideal and mark, or between those where they fit.
void draw_over(SvgWriter& svg, const Panel& panel, std::size_t i) {
  const Column& column = panel.columns[i];
  const auto& measured = column.point->measured_seconds;
  const auto& predicted = column.point->predicted;
  const double height = over_line * static_cast<double>(column.over.size()) + 6;
  double y = panel.y(std::max(predicted ? predicted->seconds() : 0, column.ideal_seconds.value_or(0)));
  if (measured) {
    const double mark = panel.y(*measured);
    draw_mark(svg, panel.middle(i), mark);
    if (mark + mark_radius > y - height) y = std::min(y, mark - mark_radius);
  }
  y += 1 - height;
  for (const std::string& line : column.over) svg.text(panel.middle(i), y += over_line, line, over_style);
}

void draw_panel(SvgWriter& svg, const Panel& panel, double grid_rows) {
  double baseline = panel.top - 10 - 15 * static_cast<double>(panel.title.size());
  for (const std::string& line : panel.title) {
    svg.text(panel.left - panel.axis_width, baseline += 15, line, panel_style);
  }
  draw_axes(svg, panel);
  draw_bars(svg, panel);
  draw_ideal(svg, panel);
  svg.line({panel.left, panel.bottom()}, {panel.left + panel.plot_width(), panel.bottom()});
  draw_labels(svg, panel, grid_rows);
  for (std::size_t i = 0; i < panel.columns.size(); ++i) draw_over(svg, panel, i);
}

/// What the figures over the bars are.
std::string note_of(const std::vector<Panel>& panels) {
  bool predictions = false;
  bool none = false;
  for (const Panel& panel : panels) {
    predictions = predictions || panel.predictions;
    none = none || !panel.predictions;
  }
  std::string_view time = "measured time";
  if (predictions) time = none ? "predicted time (measured, in a panel without predictions)" : "predicted time";
  return fmt::format("Over the bars: {} of a step; speed-up and efficiency against the panel's first point.", time);
}

/// Puts panels side by side from `margin` on; returns the picture's width.
double place_side_by_side(std::vector<Panel>& panels) {
  double axes = 2 * margin + panel_gap * static_cast<double>(panels.size() - 1);
  double plots = 0;
  for (const Panel& panel : panels) {
    axes += panel.axis_width;
    plots += panel.plot_width();
  }
  const double stretch = std::max(1.0, (least_width - axes) / plots);
  double x = margin;
  for (Panel& panel : panels) {
    panel.column_width *= stretch;
    panel.left = x + panel.axis_width;
    x = panel.left + panel.plot_width() + panel_gap;
  }
  return x - panel_gap + margin;
}

}  // namespace

std::string scaling_chart(const std::string& title, const std::vector<ScalingSeries>& series) {
  check(series);
  std::vector<Panel> panels;
  panels.reserve(series.size());
  for (const ScalingSeries& one : series) panels.push_back(prepare(one));
  const double width = place_side_by_side(panels);
  const std::vector<std::string> title_lines = wrapped(title, width - 2 * margin, title_style);
  const std::vector<LegendEntry> legend = legend_of(panels, width - 2 * margin);

  std::size_t panel_titles = 1;
  std::size_t grid_rows = 1;
  bool batches = false;
  for (std::size_t i = 0; i < panels.size(); ++i) {
    Panel& panel = panels[i];
    panel.title = wrapped(series[i].title, panel.axis_width + panel.plot_width(), panel_style);
    panel_titles = std::max(panel_titles, panel.title.size());
    for (const Column& column : panel.columns) grid_rows = std::max(grid_rows, column.grid.size());
    batches = batches || panel.batches;
  }
  const double legend_top = margin + 20 * static_cast<double>(title_lines.size()) + 6;
  const double panels_top = legend_top + 18 * (legend.back().row + 1) + 8;
  for (Panel& panel : panels) panel.top = panels_top + 15 * static_cast<double>(panel_titles) + 10;
  const double rows = static_cast<double>(grid_rows) + (batches ? 1 : 0);
  const std::vector<std::string> note = wrapped(note_of(panels), width - 2 * margin, note_style);
  double note_y = panels.front().bottom() + 26 + row_height * rows;

  SvgWriter svg(title, width, note_y + row_height * static_cast<double>(note.size()) + margin / 2);
  double baseline = margin - 4;
  for (const std::string& line : title_lines) svg.text(margin, baseline += 20, line, title_style);
  draw_legend(svg, legend, legend_top);
  for (const Panel& panel : panels) draw_panel(svg, panel, static_cast<double>(grid_rows));
  for (const std::string& line : note) svg.text(margin, note_y += row_height, line, note_style);
  return svg.finish();
}

}  // namespace halograd
