#include "halograd/nn/layer_rules.hpp"

#include "halograd/core/error.hpp"

#include <algorithm>

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

/// Every output then has an input that reaches it.
void check_transposed_window(const Window& window, const std::string& name, const Extent& input) {
  check_window(window, name, input);
  for (int i = 0; i < 3; ++i) {
    if (window.kernel[i] >= window.stride[i] && window.output_padding[i] >= 0 &&
        window.output_padding[i] <= window.padding[i]) {
      continue;
    }
    throw UsageError(
        "layer {}: a deconvolution with kernel {}, stride {}, padding {} and output padding {} can't be: expected a "
        "kernel "
        "at least as wide as the stride and output padding from 0 to the padding",
        name, window.kernel[i], window.stride[i], window.padding[i], window.output_padding[i]);
  }
}

void check_channels(std::int64_t channels, const std::string& name) {
  if (channels < 1) throw UsageError("layer {}: needs at least one channel", name);
}

void check_loss(const SegmentationLoss& loss, const std::string& name, std::int64_t classes) {
  if (classes < 2 || classes > 255) {
    throw UsageError("layer {}: segments into 2 to 255 classes, not {}", name, classes);
  }
  if (!loss.class_weights.empty() && static_cast<std::int64_t>(loss.class_weights.size()) != classes) {
    throw UsageError("layer {}: {} class weights for {} classes", name, loss.class_weights.size(), classes);
  }
  if (std::ranges::any_of(loss.class_weights, [](double w) { return !(w >= 0); })) {
    throw UsageError("layer {}: class weights are not negative", name);
  }
  if (!(loss.cross_entropy >= 0 && loss.dice >= 0 && loss.cross_entropy + loss.dice > 0)) {
    throw UsageError("layer {}: takes shares of cross entropy and Dice that are not negative, one of them above 0",
                     name);
  }
  if (loss.ignore_label < -1 || loss.ignore_label > 255) {
    throw UsageError("layer {}: the label to ignore is one from 0 to 255, or -1 for none, not {}", name,
                     loss.ignore_label);
  }
}

GlobalShape joined(const Layer& layer, const std::string& name, std::span<const GlobalShape> inputs) {
  GlobalShape shape = inputs.front();
  for (const GlobalShape& input : inputs.subspan(1)) {
    const bool concatenates = std::holds_alternative<Concatenation>(layer);
    if (input.extent != shape.extent || (!concatenates && input.channels != shape.channels)) {
      const auto text = [](const GlobalShape& s) {
        return fmt::format("{} channels of {}x{}x{}", s.channels, s.extent.d, s.extent.h, s.extent.w);
      };
      throw UsageError("layer {}: can't join {} with {}", name, text(inputs.front()), text(input));
    }
    if (concatenates) shape.channels += input.channels;
  }
  return shape;
}

ParameterSpec weights(const std::string& name, std::vector<std::int64_t> dims, Initializer initializer, double fan_in,
                      double fan_out) {
  return {.layer = name,
          .name = "weight",
          .dims = std::move(dims),
          .initializer = initializer,
          .fan_in = fan_in,
          .fan_out = fan_out};
}

double product(std::int64_t channels, const Extent& kernel) {
  return static_cast<double>(channels * kernel.volume());
}

}  // namespace

std::string layer_kind(const Layer& layer) {
  return std::visit(
      Overloaded{
          [](const Convolution&) -> std::string { return "convolution"; },
          [](const Deconvolution&) -> std::string { return "deconvolution"; },
          [](const Upsample& up) -> std::string {
            return up.kind == UpsampleKind::nearest ? "nearest upsampling" : "trilinear upsampling";
          },
          [](const Concatenation&) -> std::string { return "concatenation"; },
          [](const Sum&) -> std::string { return "sum"; },
          [](const BatchNorm&) -> std::string { return "batch norm"; },
          [](const GroupNorm& norm) -> std::string { return norm.groups == 0 ? "instance norm" : "group norm"; },
          [](const LeakyRelu& relu) -> std::string { return relu.negative_slope == 0 ? "ReLU" : "leaky ReLU"; },
          [](const Pool& pool) -> std::string { return pool.kind == PoolKind::max ? "max pool" : "average pool"; },
          [](const Dropout&) -> std::string { return "dropout"; },
          [](const Flatten&) -> std::string { return "flatten"; },
          [](const FullyConnected&) -> std::string { return "dense"; },
          [](const MeanSquaredError&) -> std::string { return "mean squared error"; },
          [](const SegmentationLoss& loss) -> std::string {
            if (loss.dice == 0) return "cross entropy";
            return loss.cross_entropy == 0 ? "Dice loss" : "cross entropy and Dice loss";
          },
      },
      layer);
}

GlobalShape output_shape(const Layer& layer, const std::string& name, std::span<const GlobalShape> inputs) {
  const GlobalShape& input = inputs.front();
  const bool joins = std::holds_alternative<Concatenation>(layer) || std::holds_alternative<Sum>(layer);
  if (joins) return joined(layer, name, inputs);
  if (inputs.size() > 1) throw UsageError("layer {}: takes one input, not {}", name, inputs.size());
  return std::visit(
      Overloaded{
          [&](const Convolution& convolution) {
            check_window(convolution.window, name, input.extent);
            check_channels(convolution.channels, name);
            return GlobalShape{convolution.channels, convolution.window.output_extent(input.extent)};
          },
          [&](const Deconvolution& deconvolution) {
            check_transposed_window(deconvolution.window, name, input.extent);
            check_channels(deconvolution.channels, name);
            return GlobalShape{deconvolution.channels, deconvolution.window.output_extent(input.extent)};
          },
          [&](const Upsample& up) {
            if (std::min({up.factor.d, up.factor.h, up.factor.w}) < 1) {
              throw UsageError("layer {}: makes volumes larger by whole factors from 1 up", name);
            }
            Extent extent = input.extent;
            for (int i = 0; i < 3; ++i) extent[i] *= up.factor[i];
            return GlobalShape{input.channels, extent};
          },
          [&](const GroupNorm& norm) {
            if (norm.groups < 0 || (norm.groups > 0 && input.channels % norm.groups != 0)) {
              throw UsageError("layer {}: {} groups do not divide {} channels", name, norm.groups, input.channels);
            }
            return input;
          },
          [&](const SegmentationLoss& loss) {
            check_loss(loss, name, input.channels);
            return input;
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
            return List{weights(name, {c.channels, input.channels, k.d, k.h, k.w}, c.initializer,
                                product(input.channels, k), product(c.channels, k))};
          },
          [&](const Deconvolution& c) {
            // An output sums over one in stride³ of the kernel's places.
            const Extent& k = c.window.kernel;
            return List{weights(name, {input.channels, c.channels, k.d, k.h, k.w}, c.initializer,
                                product(input.channels, k) / static_cast<double>(c.window.stride.volume()),
                                product(c.channels, k))};
          },
          [&](const GroupNorm&) {
            const std::vector<std::int64_t> dims{input.channels};
            return List{{name, "gamma", dims, Initializer::constant, 1},
                        {name, "beta", dims, Initializer::constant, 0}};
          },
          [&](const BatchNorm&) {
            const std::vector<std::int64_t> dims{input.channels};
            return List{{name, "gamma", dims, Initializer::constant, 1},
                        {name, "beta", dims, Initializer::constant, 0},
                        {name, "running_mean", dims, Initializer::constant, 0, false},
                        {name, "running_var", dims, Initializer::constant, 1, false}};
          },
          [&](const FullyConnected& dense) {
            return List{weights(name, {dense.features, input.channels}, Initializer::glorot_uniform,
                                static_cast<double>(input.channels), static_cast<double>(dense.features)),
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
          [&](const Deconvolution& c) {
            return 2.0 * static_cast<double>(input.elements() * c.channels * c.window.kernel.volume());
          },
          [&](const FullyConnected&) { return 2.0 * static_cast<double>(input.channels * output.channels); },
          [](const auto&) { return 0.0; },
      },
      layer);
}

Window layer_window(const Layer& layer) {
  if (const auto* convolution = std::get_if<Convolution>(&layer)) return convolution->window;
  if (const auto* deconvolution = std::get_if<Deconvolution>(&layer)) return deconvolution->window;
  if (const auto* up = std::get_if<Upsample>(&layer)) return upsample_window(up->kind, up->factor);
  if (const auto* pool = std::get_if<Pool>(&layer)) return pool->window;
  return {};
}

}  // namespace halograd
