#pragma once

#include "cli/program.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace halograd::test {

using nlohmann::json;

/// A machine file that comes with HaloGrad.
inline const std::string lassen = std::string(HALOGRAD_MACHINES_DIRECTORY) + "/lassen-v100.json";

inline bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline json parsed(const ProgramRun& run) {
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return json::parse(run.out, nullptr, false);
}

/// Forward convolutions of 1 GFlop/s, the others of 1 ms each; 1/16 s for whatever else, 1/4 s for the data; every
/// message of halos takes 1/2 s, every sum 2 s; nothing overlaps. One rank a node, so that all messages are alike.
inline json slow_machine() {
  return json::parse(R"({"format": "halograd-machine", "version": 1, "name": "slow", "node_memory_bytes": 8000000000,
    "settings": [{"ranks_on_node": 1, "threads": 1, "overlap": 0, "baseline_bytes": 1000000,
      "rates": {"convolution_forward": {"overhead_seconds": 0, "flops_per_second": 1e9},
                "convolution": {"overhead_seconds": 0.001},
                "load_input": {"overhead_seconds": 0.25},
                "default": {"overhead_seconds": 0.0625}}}],
    "network": [{"from_bytes": 0, "latency_seconds": 0.5, "bytes_per_second": 1e30}],
    "network_reduction": [{"from_bytes": 0, "constant": 1, "bytes_exponent": 0, "ranks_exponent": 0}]})");
}

inline std::string write_machine(const TemporaryDirectory& directory, const json& machine) {
  const std::string file = directory.file("machine.json");
  write_file(file, machine.dump());
  return file;
}

inline double number(const json& object, const char* key) {
  return object.at(key).get<double>();
}

/// The grids of one number of ranks.
inline json grids_of(const json& plan, std::int64_t ranks) {
  for (const json& each : plan.at("plans")) {
    if (each.at("ranks") == ranks) return each.at("grids");
  }
  ADD_FAILURE() << "no plan for " << ranks << " ranks";
  return json::array();
}

/// Two ranks share a node.
inline json machine_of_two_ranks() {
  json machine = slow_machine();
  json& setting = machine["settings"][0];
  setting["ranks_on_node"] = 2;
  setting["link"] = machine.at("network");
  setting["reduction"] = machine.at("network_reduction");
  return machine;
}

}  // namespace halograd::test
