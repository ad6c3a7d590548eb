#pragma once

#include "halograd/models/unet3d.hpp"
#include "halograd/perf/machine.hpp"
#include "halograd/perf/operation.hpp"
#include "halograd/plan/compiler.hpp"

#include <string>
#include <vector>

namespace halograd::test {

/// A convolution without a halo, an activation, and a convolution with one: 24 × 8 × 8 voxels.
inline Network two_convolutions() {
  Network net({.channels = 2, .extent = {24, 8, 8}});
  net.add("c1", Convolution{.channels = 4, .window = {Extent::cube(1), Extent::cube(1), {}}});
  net.add("relu", LeakyRelu{});
  net.add("c2", Convolution{.channels = 8});
  net.add("loss", MeanSquaredError{});
  return net;
}

/// A bit of everything: halos, pooling faces, statistics, a reshard to dense layers. `depth` × 8 × 8 voxels.
inline Network small_regression(std::int64_t depth = 16) {
  Network net({.channels = 2, .extent = {depth, 8, 8}});
  net.add("c1", Convolution{.channels = 4});
  net.add("bn1", BatchNorm{});
  net.add("relu1", LeakyRelu{});
  net.add("pool1", Pool{});
  net.add("c2", Convolution{.channels = 8});
  net.add("flatten", Flatten{});
  net.add("fc", FullyConnected{.features = 4});
  net.add("loss", MeanSquaredError{});
  return net;
}

inline Network small_unet() {
  return unet3d({.width = 16, .base_channels = 4});
}

/// A message of any length takes so long.
inline LinkRanges constant_link(double seconds) {
  return {{.from_bytes = 0, .latency_seconds = seconds, .bytes_per_second = 1e300}};
}

/// A sum takes 2^exponent · bytes^of_bytes · ranks^of_ranks seconds.
inline ReductionFit power_sum(double exponent, double of_bytes = 0, double of_ranks = 0) {
  return {{.from_bytes = 0, .constant = exponent, .bytes_exponent = of_bytes, .ranks_exponent = of_ranks}};
}

constexpr double no_time = -1000;  ///< as an exponent of two

/// Convolutions take 1 µs for each flop, all else 1 µs for each byte; messages take nothing, and everything that can
/// overlap does.
inline Machine plain_machine(std::int64_t ranks_on_node) {
  MachineSetting setting{.ranks_on_node = ranks_on_node};
  setting.rates["convolution"] = {.flops_per_second = 1e6};
  setting.rates["deconvolution"] = {.flops_per_second = 1e6};
  setting.rates["default"] = {.bytes_per_second = 1e6};
  setting.link = constant_link(0);
  setting.reduction = power_sum(no_time);
  return {.name = "plain",
          .node_memory_bytes = std::int64_t{1} << 40,
          .settings = {setting},
          .network = constant_link(0),
          .network_reduction = power_sum(no_time)};
}

/// Of the steps that compute, in order.
inline std::vector<std::string> keys_of(const Plan& plan) {
  std::vector<std::string> keys;
  for (const Step& step : plan.steps) {
    if (computes(step.kind)) keys.push_back(operation_key(plan, step).whole);
  }
  return keys;
}

}  // namespace halograd::test
