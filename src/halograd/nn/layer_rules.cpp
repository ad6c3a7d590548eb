#include "halograd/nn/layer_rules.hpp"

#include "halograd/core/error.hpp"

namespace halograd {
namespace {

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

void check_window(const Window& window, const std::string& name, const Extent& input) {
  for (int i = 0; i < 3; ++i) {
    if (window.kernel[i] < 1 || window.stride[i] < 1 || window.padding[i] < 0 ||
        window.padding[i] > (window.kernel[i] - 1) / 2) {
      throw UsageError(
          "layer {}: a window of {} with stride {} and padding {} can't be: kernel and stride are at least 1 "
          "and padding at most (kernel - 1) / 2",
          name, window.kernel[i], window.stride[i], window.padding[i]);
    }
    if (window.output_extent(input)[i] < 1) {
      throw UsageError("layer {}: a window of {} does not fit an input of {}x{}x{}", name, window.kernel[i], input.d,
                       input.h, input.w);
    }
  }
}

}  // namespace

std::string layer_kind(const Layer& layer) {
  return std::visit(
      Overloaded{
          [](const Convolution&) -> std::string { return "convolution"; },
          [](const BatchNorm&) -> std::string { return "batch norm"; },
          [](const LeakyRelu& relu) -> std::string { return relu.negative_slope == 0 ? "ReLU" : "leaky ReLU"; },
          [](const Pool& pool) -> std::string { return pool.kind == PoolKind::max ? "max pool" : "average pool"; },
          [](const Dropout&) -> std::string { return "dropout"; },
          [](const Flatten&) -> std::string { return "flatten"; },
          [](const FullyConnected&) -> std::string { return "dense"; },
          [](const MeanSquaredError&) -> std::string { return "mean squared error"; },
      },
      layer);
}

GlobalShape output_shape(const Layer& layer, const std::string& name, const GlobalShape& input) {
  return std::visit(
      Overloaded{
          [&](const Convolution& convolution) {
            check_window(convolution.window, name, input.extent);
            if (convolution.channels < 1) throw UsageError("layer {}: needs at least one channel", name);
            return GlobalShape{convolution.channels, convolution.window.output_extent(input.extent)};
          },
          [&](const Pool& pool) {
            check_window(pool.window, name, input.extent);
            if (pool.window.kernel.volume() > 256) {  // max pooling remembers the winner in a byte
              throw UsageError("layer {}: a pool's window holds at most 256 voxels", name);
            }
            return GlobalShape{input.channels, pool.window.output_extent(input.extent)};
          },
          [&](const Dropout& dropout) {
            if (!(dropout.keep > 0 && dropout.keep <= 1)) {
              throw UsageError("layer {}: dropout keeps with a probability in (0, 1], not {}", name, dropout.keep);
            }
            return input;
          },
          [&](const Flatten&) {
            return GlobalShape{input.elements(), Extent::cube(1)};
          },
          [&](const FullyConnected& dense) {
            if (input.extent != Extent::cube(1)) {
              throw UsageError("layer {}: a dense layer needs a flattened input: put flatten before it", name);
            }
            if (dense.features < 1) throw UsageError("layer {}: needs at least one feature", name);
            return GlobalShape{dense.features, Extent::cube(1)};
          },
          [&](const auto&) { return input; },
      },
      layer);
}

std::vector<ParameterSpec> layer_parameters(const Layer& layer, const std::string& name, const GlobalShape& input) {
  using List = std::vector<ParameterSpec>;
  return std::visit(
      Overloaded{
          [&](const Convolution& c) {
            const Extent& k = c.window.kernel;
            return List{{name, "weight", {c.channels, input.channels, k.d, k.h, k.w}, Initializer::glorot_uniform}};
          },
          [&](const BatchNorm&) {
            const std::vector<std::int64_t> dims{input.channels};
            return List{{name, "gamma", dims, Initializer::constant, 1},
                        {name, "beta", dims, Initializer::constant, 0},
                        {name, "running_mean", dims, Initializer::constant, 0, false},
                        {name, "running_var", dims, Initializer::constant, 1, false}};
          },
          [&](const FullyConnected& dense) {
            return List{{name, "weight", {dense.features, input.channels}, Initializer::glorot_uniform},
                        {name, "bias", {dense.features}, Initializer::constant, dense.initial_bias}};
          },
          [](const auto&) { return List{}; },
      },
      layer);
}

double forward_flops(const Layer& layer, const GlobalShape& input, const GlobalShape& output) {
  return std::visit(
      Overloaded{
          [&](const Convolution& c) {
            return 2.0 * static_cast<double>(output.elements() * input.channels * c.window.kernel.volume());
          },
          [&](const FullyConnected&) { return 2.0 * static_cast<double>(input.channels * output.channels); },
          [](const auto&) { return 0.0; },
      },
      layer);
}

Window layer_window(const Layer& layer) {
  if (const auto* convolution = std::get_if<Convolution>(&layer)) return convolution->window;
  if (const auto* pool = std::get_if<Pool>(&layer)) return pool->window;
  return {};
}

}  // namespace halograd
