#pragma once

#include "halograd/cli/model_options.hpp"
#include "halograd/comm/communicator.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace halograd {

/// What `bench step` is asked for.
struct BenchStepOptions {
  ModelOptions model;
  std::int64_t steps = 0;  ///< 0: 5, or 3 from a width of 256 up
  std::int64_t warm_up = 2;
  bool floor = true;
  std::string machine;  ///< a machine file: predict the step too
  bool json = false;
};

/// Collective. Trains on random voxels of the files' type, made once, and measures steps from barrier to barrier.
/// With a machine file the report has what the cost model predicts beside what was measured. Peak memory is read before
/// the convolutions are timed alone. Throws NumericalError where the loss is not finite.
nlohmann::ordered_json bench_step(const Communicator& world, const BenchStepOptions& options);

}  // namespace halograd
