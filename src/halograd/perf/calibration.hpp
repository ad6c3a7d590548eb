#pragma once

#include "halograd/comm/communicator.hpp"
#include "halograd/nn/network.hpp"
#include "halograd/optim/optimizer.hpp"
#include "halograd/perf/machine.hpp"
#include "halograd/plan/plan.hpp"

#include <vector>

namespace halograd {

/// How often each plan is run.
struct CalibrationOptions {
  Device device;
  OptimizerOptions optimizer;
  int least_runs = 5;        ///< after one that warms up
  double least_seconds = 1;  ///< and go on until so much time has passed,
  int most_runs = 25;        ///< at most so often
};

/// Collective over all ranks of a job, before anything else is measured. What a process holds beside what a plan
/// counts: code, libraries, compiled kernels, threads, MPI's memory, in bytes, of the largest rank. Trains `network`, a
/// small one, a sample on each rank.
std::int64_t measure_baseline(const Communicator& world, const Network& network, const CalibrationOptions& options);

/// Collective over the ranks that will share a node in the runs to be predicted. Every rank rehearses its plan, all at
/// the same time, since they share cores and memory: plans[rank], or where there are fewer, plans[0] on all. Adds the
/// median of each computing step to `setting.measured` (the mean over the ranks that have it), the same on all ranks;
/// what is there already stays. Nothing is run where all is known. Returns whether something was run. Throws
/// ResourceError on all ranks where a plan does not fit the node.
bool measure_plans(const Communicator& ranks, const std::vector<Plan>& plans, const CalibrationOptions& options,
                   MachineSetting& setting);

/// Collective over all ranks of a job: messages and sums within a node, and between nodes where there are several.
void measure_messages(const Communicator& world, Machine& machine, MachineSetting& setting);

/// Fits a rate to the measured operations of each kind.
void fit_rates(MachineSetting& setting);

}  // namespace halograd
