#include "halograd/perf/scaling_chart.hpp"

#include "halograd/core/error.hpp"
#include "perf/svg_reader.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace halograd {
namespace {

using testing::all_of_class;
using testing::Element;
using testing::read_svg;
using testing::texts_of_class;
using Texts = std::vector<std::string>;

constexpr const char* part_names[] = {"convolutions", "other computing", "halos", "statistics", "gradients"};
constexpr double rounding = 0.011;  // coordinates have two decimals

StepCost cost(double convolution, double other, double halo, double statistics, double gradient) {
  return {.convolution_seconds = convolution,
          .other_seconds = other,
          .halo_seconds = halo,
          .statistics_seconds = statistics,
          .gradient_seconds = gradient,
          .hidden_seconds = 7};
}

ScalingPoint point(std::int64_t ranks, const std::string& grid, std::int64_t batch, const StepCost& predicted,
                   std::optional<double> measured = {}) {
  return {.ranks = ranks, .grid = grid, .batch = batch, .predicted = predicted, .measured_seconds = measured};
}

/// 1.6 s on one rank, 1 s on two, 0.8 s on four.
ScalingSeries strong() {
  return {"Strong",
          {point(1, "1x1x1", 8, cost(1.2, 0.4, 0, 0, 0), 1.7), point(2, "2x1x1", 8, cost(0.6, 0.2, 0.1, 0.04, 0.06)),
           point(4, "2x2x1", 8, cost(0.3, 0.1, 0.2, 0.1, 0.1), 0.6)}};
}

ScalingSeries many(int points) {
  ScalingSeries series{"Many", {}};
  for (int i = 0; i < points; ++i) {
    const std::int64_t groups = std::int64_t{1} << i;
    series.points.push_back(point(256 * groups, fmt::format("32x8x1 × {}", groups), groups,
                                  cost(1, 0.2, 0.01 * i, 0.02 * i, 0.03 * i), 1.3));
  }
  return series;
}

/// Bottom y of an element's rectangle.
double bottom(const Element& rect) {
  return rect.number("y") + rect.number("height");
}

/// The seconds that one pixel of the first panel is worth, and where 0 s is, from its axis' labels.
struct Axis {
  double zero = 0;
  double per_second = 0;
  explicit Axis(const std::vector<Element>& svg) {
    const std::vector<Element> ticks = all_of_class(svg, "text", "tick");
    zero = ticks.at(0).number("y") - 3.5;
    per_second =
        (ticks.at(0).number("y") - ticks.at(1).number("y")) / (std::stod(ticks[1].text) - std::stod(ticks[0].text));
  }
  [[nodiscard]] double y(double seconds) const { return zero - per_second * seconds; }
};

TEST(ScalingChart, BarsHaveTheHeightOfTheirPartsInSecondsOfTheAxis) {
  const ScalingSeries series = strong();
  const std::vector<Element> svg = read_svg(scaling_chart("t", {series}));
  const Axis axis(svg);
  const double StepCost::*members[] = {&StepCost::convolution_seconds, &StepCost::other_seconds,
                                       &StepCost::halo_seconds, &StepCost::statistics_seconds,
                                       &StepCost::gradient_seconds};
  for (int part = 0; part < 5; ++part) {
    const std::vector<Element> rects = all_of_class(svg, "rect", part_names[part]);
    ASSERT_EQ(rects.size(), part < 2 ? 3U : 2U) << part_names[part];  // none for what takes no time
    for (std::size_t i = 0; i < rects.size(); ++i) {
      const StepCost& predicted = *series.points[i + 3 - rects.size()].predicted;
      EXPECT_NEAR(rects[i].number("height"), predicted.*members[part] * axis.per_second, 2 * rounding);
    }
  }
  const std::vector<Element> convolutions = all_of_class(svg, "rect", "convolutions");
  EXPECT_NEAR(convolutions[0].number("height") / convolutions[1].number("height"), 2, 0.001);
  EXPECT_NEAR(convolutions[0].number("height") / convolutions[2].number("height"), 4, 0.002);
}

TEST(ScalingChart, PartsStandOnOneAnotherAndAddUpToTheStep) {
  const std::vector<Element> svg = read_svg(scaling_chart("t", {strong()}));
  const Axis axis(svg);
  const double x = all_of_class(svg, "rect", "convolutions").at(2).number("x");
  double below = axis.y(0);
  double sum = 0;
  for (const char* name : part_names) {
    const Element rect = all_of_class(svg, "rect", name).back();
    EXPECT_EQ(rect.number("x"), x);
    EXPECT_NEAR(bottom(rect), below, 2 * rounding) << name;
    below = rect.number("y");
    sum += rect.number("height");
  }
  EXPECT_NEAR(sum, 0.8 * axis.per_second, 5 * rounding);
  EXPECT_NEAR(below, axis.y(0.8), 2 * rounding);
}

TEST(ScalingChart, StrongScalingNamesTimesSpeedUpsAndEfficiencies) {
  const std::vector<Element> svg = read_svg(scaling_chart("t", {strong()}));
  EXPECT_EQ(texts_of_class(svg, "over"),
            (Texts{"1.60 s", "1.00×, 100 %", "1.00 s", "1.60×, 80 %", "0.800 s", "2.00×, 50 %"}));
  EXPECT_EQ(texts_of_class(svg, "ranks"), (Texts{"1", "2", "4"}));
  EXPECT_EQ(texts_of_class(svg, "grid"), (Texts{"1x1x1", "2x1x1", "2x2x1"}));
  EXPECT_EQ(texts_of_class(svg, "batch"), Texts{});  // always 8
}

TEST(ScalingChart, WeakScalingIsOfThroughputFromTheFirstPointOn) {
  const ScalingSeries weak{
      "Weak",
      {point(8, "8x1x1", 2, cost(1, 0, 0, 0, 0)), point(16, "8x1x1 × 2", 4, cost(1, 0.25, 0, 0, 0)),
       point(64, "8x1x1 × 8", 16, cost(1.6, 0, 0, 0, 0))}};
  const std::vector<Element> svg = read_svg(scaling_chart("t", {weak}));
  EXPECT_EQ(texts_of_class(svg, "over"),
            (Texts{"1.00 s", "1.00×, 100 %", "1.25 s", "1.60×, 80 %", "1.60 s", "5.00×, 62 %"}));
  EXPECT_EQ(texts_of_class(svg, "batch"), (Texts{"2", "4", "16"}));
  const Axis axis(svg);
  for (const auto& [x, y] : all_of_class(svg, "polyline", "ideal").at(0).points())
    EXPECT_NEAR(y, axis.y(1), 2 * rounding);
}

TEST(ScalingChart, TheIdealLineFallsWithTheRanksAndIsDashed) {
  const std::vector<Element> svg = read_svg(scaling_chart("t", {strong()}));
  const Axis axis(svg);
  const Element line = all_of_class(svg, "polyline", "ideal").at(0);
  const auto points = line.points();
  ASSERT_EQ(points.size(), 6U);  // both ends of each column
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(points[i].second, axis.y(1.6 / (1 << (i / 2))), 2 * rounding);
    EXPECT_GE(points[i].first, points[i == 0 ? 0 : i - 1].first);
  }
  EXPECT_EQ(line.attributes.at("stroke-dasharray"), "5 3");
}

TEST(ScalingChart, DiamondsStandAtMeasuredTimesInTheMiddleOfTheirBars) {
  const std::vector<Element> svg = read_svg(scaling_chart("t", {strong()}));
  const Axis axis(svg);
  const std::vector<Element> marks = all_of_class(svg, "polygon", "measured");
  const std::vector<Element> bars = all_of_class(svg, "rect", "convolutions");
  ASSERT_EQ(marks.size(), 3U);  // the legend's is the first
  const double seconds[] = {1.7, 0.6};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto points = marks[i + 1].points();
    EXPECT_NEAR((points[0].second + points[2].second) / 2, axis.y(seconds[i]), 2 * rounding);
    EXPECT_NEAR(points[0].first, bars[2 * i].number("x") + bars[2 * i].number("width") / 2, 2 * rounding);
  }
}

TEST(ScalingChart, OneLegendNamesWhatIsThere) {
  const ScalingSeries bare{"Bare", {point(1, "1x1x1", 1, cost(1, 0, 0, 0.5, 0))}};
  EXPECT_EQ(texts_of_class(read_svg(scaling_chart("t", {bare})), "legend"), (Texts{"convolutions", "statistics"}));
  const std::vector<Element> svg = read_svg(scaling_chart("t", {bare, strong(), bare}));
  EXPECT_EQ(texts_of_class(svg, "legend"),
            (Texts{"convolutions", "other computing", "halos", "statistics", "gradients", "measured", "ideal"}));
  EXPECT_EQ(texts_of_class(svg, "panel"), (Texts{"Bare", "Strong", "Bare"}));
  const std::vector<Element> swatches = all_of_class(svg, "rect", "swatch");
  ASSERT_EQ(swatches.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(swatches[i].attributes.at("fill"), all_of_class(svg, "rect", part_names[i]).at(0).attributes.at("fill"));
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(swatches[i].attributes.at("fill"), swatches[j].attributes.at("fill"));
  }
}

TEST(ScalingChart, PointsWithoutPredictionSaySoAndSpeedUpsStartAtTheFirstThatHasOne) {
  ScalingSeries series = strong();
  series.points[0].predicted.reset();
  const std::vector<Element> svg = read_svg(scaling_chart("t", {series}));
  EXPECT_EQ(texts_of_class(svg, "over"),
            (Texts{"not", "predicted", "1.00 s", "1.00×, 100 %", "0.800 s", "1.25×, 62 %"}));
  EXPECT_EQ(all_of_class(svg, "rect", "convolutions").size(), 2U);
  EXPECT_EQ(all_of_class(svg, "polyline", "ideal").at(0).points().size(), 4U);
}

TEST(ScalingChart, ASeriesWithoutPredictionsIsOfMeasuredTimes) {
  const ScalingSeries series{"Measured",
                             {{.ranks = 1, .grid = "1x1x1", .measured_seconds = 0.012},
                              {.ranks = 2, .grid = "2x1x1", .measured_seconds = 0.009}}};
  const std::vector<Element> svg = read_svg(scaling_chart("t", {series}));
  EXPECT_EQ(texts_of_class(svg, "over"), (Texts{"0.0120 s", "1.00×, 100 %", "0.00900 s", "1.33×, 67 %"}));
  EXPECT_EQ(texts_of_class(svg, "legend"), (Texts{"measured", "ideal"}));
}

TEST(ScalingChart, AxesHaveRoundTicksAtAnyMagnitude) {
  const std::pair<double, Texts> cases[] = {{1.6, {"0.0", "0.5", "1.0", "1.5"}},
                                            {37, {"0", "10", "20", "30", "40"}},
                                            {0.000412, {"0.0000", "0.0001", "0.0002", "0.0003", "0.0004"}},
                                            {1000, {"0", "200", "400", "600", "800", "1000", "1200"}}};
  for (const auto& [seconds, labels] : cases) {
    const ScalingSeries series{"s", {point(1, "1x1x1", 1, cost(seconds, 0, 0, 0, 0))}};
    EXPECT_EQ(texts_of_class(read_svg(scaling_chart("t", {series})), "tick"), labels) << seconds;
  }
}

TEST(ScalingChart, IsAStandaloneDocumentWithEscapedTexts) {
  ScalingSeries series = strong();
  series.title = "a<b & \"c\" 'd'";
  series.points[0].grid = "<1>";
  const std::string text = scaling_chart("U-Net <256³> & more\n\x01\xFF\xC3", {series});
  const std::vector<Element> svg = read_svg(text);
  EXPECT_EQ(svg.at(0).name, "svg");
  EXPECT_EQ(svg[0].attributes.at("font-family"), "sans-serif");
  EXPECT_EQ(svg[0].attributes.at("viewBox"),
            "0 0 " + svg[0].attributes.at("width") + " " + svg[0].attributes.at("height"));
  EXPECT_EQ(svg.at(1).name, "title");
  EXPECT_EQ(svg[1].text, "U-Net <256³> & more  \uFFFD\uFFFD");
  EXPECT_TRUE(svg.at(2).is("rect", "background"));
  EXPECT_EQ(svg[2].number("width"), svg[0].number("width"));
  EXPECT_EQ(svg[2].number("height"), svg[0].number("height"));
  EXPECT_EQ(texts_of_class(svg, "panel"), (Texts{series.title}));
  EXPECT_EQ(texts_of_class(svg, "grid").at(0), "<1>");
  EXPECT_NE(text.find("&lt;256³&gt; &amp; more"), std::string::npos);
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_EQ(text.find("inf"), std::string::npos);
}

/// Left and right end, at least 0.5 of its size a character: what Helvetica takes of digits is 0.56.
std::pair<double, double> span(const Element& text) {
  const auto characters = std::count_if(text.text.begin(), text.text.end(), [](char c) { return (c & 0xC0) != 0x80; });
  const double half = 0.25 * text.number("font-size") * static_cast<double>(characters);
  return {text.number("x") - half, text.number("x") + half};
}

TEST(ScalingChart, TextsKeepClearOfOneAnotherAndInsideThePicture) {
  for (const int points : {1, 2, 6, 12}) {
    const std::vector<Element> svg = read_svg(scaling_chart("t", {many(points), strong()}));
    const double width = svg.at(0).number("width");
    for (const char* name : {"over", "ranks", "grid", "batch"}) {
      const std::vector<Element> texts = all_of_class(svg, "text", name);
      for (std::size_t i = 0; i < texts.size(); ++i) {
        EXPECT_GT(span(texts[i]).first, 0);
        EXPECT_LT(span(texts[i]).second, width);
        for (std::size_t j = 0; j < i; ++j) {
          const bool apart = span(texts[j]).second < span(texts[i]).first ||
                             std::abs(texts[j].number("y") - texts[i].number("y")) >= texts[i].number("font-size");
          EXPECT_TRUE(apart) << points << " points: " << texts[j].text << " and " << texts[i].text;
        }
      }
    }
  }
}

TEST(ScalingChart, FiguresStandOverBarIdealAndMark) {
  ScalingSeries series = strong();
  series.points[1].measured_seconds = 1.05;  // so near over the bar that figures do not fit between
  series.points[2].measured_seconds = 1.5;   // so far that they do
  const std::vector<Element> svg = read_svg(scaling_chart("t", {series}));
  const Axis axis(svg);
  const std::vector<Element> over = all_of_class(svg, "text", "over");
  EXPECT_LT(over.at(1).number("y"), axis.y(1.7) - 5);
  EXPECT_LT(over.at(3).number("y"), axis.y(1.05) - 5);
  EXPECT_LT(over.at(5).number("y"), axis.y(0.8));
  EXPECT_GT(over.at(4).number("y") - 9, axis.y(1.5) + 5);
}

TEST(ScalingChart, LongGridsAreBrokenBeforeTheirGroups) {
  ScalingSeries series = many(2);
  EXPECT_EQ(texts_of_class(read_svg(scaling_chart("t", {series})), "grid"), (Texts{"32x8x1 × 1", "32x8x1 × 2"}));
  series.points[1].grid = "32x8x1 × 64 groups";
  EXPECT_EQ(texts_of_class(read_svg(scaling_chart("t", {series})), "grid"),
            (Texts{"32x8x1", "× 1", "32x8x1", "× 64 groups"}));
}

TEST(ScalingChart, RefusesWhatItCannotDraw) {
  EXPECT_THROW(scaling_chart("t", {}), UsageError);
  EXPECT_THROW(scaling_chart("t", {strong(), {"empty", {}}}), UsageError);
  EXPECT_THROW(scaling_chart("t", {{"no time", {{.ranks = 1, .grid = "1x1x1"}}}}), UsageError);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const StepCost costs[] = {cost(nan, 1, 0, 0, 0), cost(2, -1, 0, 0, 0), cost(0, 0, 0, 0, 0),
                            cost(HUGE_VAL, 0, 0, 0, 0)};
  for (const StepCost& bad : costs) EXPECT_THROW(scaling_chart("t", {{"s", {point(1, "g", 1, bad)}}}), UsageError);
  for (const double bad : {nan, 0.0, -1.0, HUGE_VAL}) {
    EXPECT_THROW(scaling_chart("t", {{"s", {point(1, "g", 1, cost(1, 0, 0, 0, 0), bad)}}}), UsageError);
  }
  EXPECT_THROW(scaling_chart("t", {{"s", {point(0, "g", 1, cost(1, 0, 0, 0, 0))}}}), UsageError);
  try {
    scaling_chart("t", {{"Strong", {point(4, "g", 0, cost(1, 0, 0, 0, 0))}}});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "scaling chart: series 'Strong' at 4 ranks: ranks and mini-batch must be at least 1");
  }
}

}  // namespace
}  // namespace halograd
