#include "halograd/perf/accuracy_chart.hpp"

#include "halograd/core/error.hpp"
#include "perf/svg_reader.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace halograd {
namespace {

using testing::all_of_class;
using testing::Element;
using testing::read_svg;
using testing::texts_of_class;
using Texts = std::vector<std::string>;

constexpr double rounding = 0.011;  // coordinates have two decimals

const std::vector<AccuracyPoint> five{
    {"a <b>", 0.9, 1}, {"c & d", 2.1, 2}, {"e", 0.75, 1}, {"f", 17, 1}, {"g", 0.02, 0.1}};

double x_of(const Element& vertical) {
  return vertical.points().at(0).first;
}

TEST(AccuracyChart, BarsReachFromZeroToTheirError) {
  const std::vector<Element> svg = read_svg(accuracy_chart("t", five));
  const std::vector<Element> limits = all_of_class(svg, "polyline", "limit");
  ASSERT_EQ(limits.size(), 4U);
  const double zero = x_of(all_of_class(svg, "polyline", "zero").at(0));
  const double per_percent = (x_of(limits[3]) - zero) / 20;
  EXPECT_NEAR(x_of(limits[0]), zero - 20 * per_percent, rounding);
  EXPECT_NEAR(x_of(limits[1]), zero - 8 * per_percent, rounding);
  EXPECT_NEAR(x_of(limits[2]), zero + 8 * per_percent, rounding);

  const std::vector<Element> bars = all_of_class(svg, "rect", "error");
  ASSERT_EQ(bars.size(), 5U);
  const double from[] = {-10, 0, -25, 0, -50};  // 1600 % and -80 % are cut off at 50 %
  const double to[] = {0, 5, 0, 50, 0};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(bars[i].number("x"), zero + from[i] * per_percent, 3 * rounding);
    EXPECT_NEAR(bars[i].number("width"), (to[i] - from[i]) * per_percent, 3 * rounding);
    if (i == 0) continue;
    EXPECT_GT(bars[i].number("y"), bars[i - 1].number("y") + bars[i - 1].number("height"));
  }
  const std::vector<Element> arrows = all_of_class(svg, "polygon", "cut");
  ASSERT_EQ(arrows.size(), 2U);
  EXPECT_GT(arrows[0].points().at(1).first, zero + 50 * per_percent);
  EXPECT_LT(arrows[1].points().at(1).first, zero - 50 * per_percent);
}

TEST(AccuracyChart, NamesConfigurationsTimesAndErrors) {
  const std::string text = accuracy_chart("One <1> & more", five);
  const std::vector<Element> svg = read_svg(text);
  EXPECT_EQ(svg.at(1).text, "One <1> & more");
  EXPECT_TRUE(svg.at(2).is("rect", "background"));
  EXPECT_EQ(svg[0].attributes.at("font-family"), "sans-serif");
  EXPECT_EQ(texts_of_class(svg, "name"), (Texts{"a <b>", "c & d", "e", "f", "g"}));
  EXPECT_EQ(texts_of_class(svg, "figure"),
            (Texts{"0.900 s", "1.00 s", "−10.0 %", "2.10 s", "2.00 s", "+5.0 %", "0.750 s", "1.00 s", "−25.0 %",
                   "17.0 s", "1.00 s", "+1600 %", "0.0200 s", "0.100 s", "−80.0 %"}));
  EXPECT_EQ(texts_of_class(svg, "summary"),
            Texts{"median of errors 25.0 %, largest 1600 %; within ±8 %: 1 of 5, within ±20 %: 2"});
  EXPECT_EQ(text.find("nan"), std::string::npos);
}

TEST(AccuracyChart, ColoursTellWithinWhichLimitAnErrorIs) {
  const std::vector<Element> svg =
      read_svg(accuracy_chart("t", {{"a", 1.07, 1}, {"b", 0.93, 1}, {"c", 1.19, 1}, {"d", 0.79, 1}}));
  const std::vector<Element> bars = all_of_class(svg, "rect", "error");
  const auto colour = [&](std::size_t i) { return bars.at(i).attributes.at("fill"); };
  EXPECT_EQ(colour(0), colour(1));
  EXPECT_NE(colour(0), colour(2));
  EXPECT_NE(colour(2), colour(3));
  EXPECT_NE(colour(0), colour(3));
}

TEST(AccuracyChart, AnExactPredictionHasNoBarAndNoSign) {
  const std::vector<Element> svg = read_svg(accuracy_chart("t", {{"a", 0.99999, 1}, {"b", 3, 3}}));
  EXPECT_EQ(texts_of_class(svg, "figure"), (Texts{"1.00 s", "1.00 s", "0.0 %", "3.00 s", "3.00 s", "0.0 %"}));
  EXPECT_EQ(all_of_class(svg, "rect", "error").at(1).number("width"), 0);
}

TEST(AccuracyChart, RefusesNoPointsAndAbsurdTimes) {
  EXPECT_THROW(accuracy_chart("t", {}), UsageError);
  for (const double bad : {0.0, -1.0, HUGE_VAL, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(accuracy_chart("t", {{"a", bad, 1}}), UsageError);
    EXPECT_THROW(accuracy_chart("t", {{"a", 1, bad}}), UsageError);
  }
}

}  // namespace
}  // namespace halograd
