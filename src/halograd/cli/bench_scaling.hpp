#pragma once

#include "halograd/cli/model_options.hpp"
#include "halograd/comm/communicator.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace halograd {

struct BenchScalingOptions {
  ModelOptions model;
  std::vector<std::string> grids;  ///< for each number of ranks the first that divides them as finely as any
  std::string machine;
  std::int64_t steps = 0;
  std::string chart;
  bool json = false;
};

/// Collective. Measures steps on the first 1, 2, 4, … ranks and on all while the others wait: with one mini-batch
/// (strong scaling), and with one that grows with the ranks (weak). One object: "strong" and "weak", each a list.
nlohmann::ordered_json bench_scaling(const Communicator& world, const BenchScalingOptions& options);

std::string bench_scaling_table(const nlohmann::ordered_json& report);

}  // namespace halograd
