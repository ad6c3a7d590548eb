#pragma once

#include "halograd/perf/cost_model.hpp"

#include <optional>
#include <string>
#include <vector>

namespace halograd {

/// One bar of a scaling chart: a number of ranks, the step predicted for it and, where it was run, measured.
struct ScalingPoint {
  std::int64_t ranks = 1;
  std::string grid;  ///< "2x1x1 × 4 groups"
  std::int64_t batch = 1;
  std::optional<StepCost> predicted;
  std::optional<double> measured_seconds;
};

/// A series: fixed mini-batch (strong scaling) or one that grows with the ranks (weak).
struct ScalingSeries {
  std::string title;
  std::vector<ScalingPoint> points;
};

/// An SVG picture: a panel for each series, a bar for each point whose predicted parts are stacked (convolutions,
/// other computing, halos, statistics, gradients), a mark where it was measured, the ideal line from the first point,
/// and the step's time, speed-up and efficiency written over the bars (of the predictions; of the measurements in a
/// series without any). Speed-up is that of throughput, mini-batch / time, over the first point with a time; efficiency
/// is speed-up over the growth of ranks. Throws UsageError where there is no series, a series without a time, or a
/// time, rank or mini-batch that is not positive and finite.
std::string scaling_chart(const std::string& title, const std::vector<ScalingSeries>& series);

}  // namespace halograd
