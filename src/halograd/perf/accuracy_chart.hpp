#pragma once

#include <string>
#include <vector>

namespace halograd {

/// A configuration whose step was both predicted and measured.
struct AccuracyPoint {
  std::string name;
  double predicted_seconds = 0;
  double measured_seconds = 0;
};

/// An SVG picture: a row for each point with the prediction's relative error, (predicted - measured) / measured, as a
/// bar from 0, between lines at ±8 % and ±20 %, and both times in figures. Bars beyond 50 % are cut off and end in an
/// arrow. Throws UsageError where there is no point or a time is not positive and finite.
std::string accuracy_chart(const std::string& title, const std::vector<AccuracyPoint>& points);

}  // namespace halograd
