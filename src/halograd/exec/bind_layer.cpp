#include "halograd/exec/bound_plan.hpp"
#include "halograd/kernels/layout.hpp"
#include "halograd/kernels/loss.hpp"

#include <cstring>

namespace halograd {

BoundPlan::Task BoundPlan::bind_convolution(const Step& step) {
  const auto unit = static_cast<std::size_t>(step.unit);
  switch (step.kind) {
    case StepKind::convolution_forward: {
      const ConvolutionUnit& u = plan_.convolutions[unit];
      return [this, unit, &u, weight = to_.parameters->value(u.weight)] {
        PackedConvolution& convolution = convolutions_[unit];
        if (convolution.version != to_.parameters->version()) {
          convolution.kernel->set_weights(weight);
          convolution.version = to_.parameters->version();
        }
        convolution.kernel->forward(address(u.x), address(u.y));
      };
    }
    case StepKind::convolution_backward_data: {
      const ConvolutionUnit& u = plan_.convolutions[unit];
      return [this, unit, &u] { convolutions_[unit].kernel->backward_data(address(u.y), address(u.dx)); };
    }
    case StepKind::convolution_backward_weights: {
      const ConvolutionUnit& u = plan_.convolutions[unit];
      return [this, &u, kernel = convolutions_[unit].kernel.get(), dw = to_.parameters->gradient(u.weight)] {
        kernel->backward_weights(address(u.x), address(u.y), dw);
      };
    }
    default: return {};
  }
}

BoundPlan::Task BoundPlan::bind_layer(const Step& step) {
  const auto unit = static_cast<std::size_t>(step.unit);
  switch (step.kind) {
    case StepKind::dense_forward: {
      const DenseUnit& u = plan_.denses[unit];
      return [this, &u, kernel = denses_[unit].get(), w = to_.parameters->value(u.weight),
              b = to_.parameters->value(u.weight + 1)] { kernel->forward(address(u.x), w, b, address(u.y)); };
    }
    case StepKind::dense_backward_data: {
      const DenseUnit& u = plan_.denses[unit];
      return [this, &u, kernel = denses_[unit].get(), w = to_.parameters->value(u.weight)] {
        kernel->backward_data(address(u.y), w, address(u.dx));
      };
    }
    case StepKind::dense_backward_weights: {
      const DenseUnit& u = plan_.denses[unit];
      return [this, &u, kernel = denses_[unit].get(), dw = to_.parameters->gradient(u.weight),
              db = to_.parameters->gradient(u.weight + 1)] {
        kernel->backward_weights(address(u.x), address(u.y), dw, db);
      };
    }
    case StepKind::flatten_forward: {
      const FlattenUnit& u = plan_.flattens[unit];
      return [this, &u] { to_channels_first(u.shape, address(u.x), address(u.y)); };
    }
    case StepKind::flatten_backward: {
      const FlattenUnit& u = plan_.flattens[unit];
      return [this, &u] { to_channels_last(u.shape, address(u.dy), address(u.x)); };
    }
    case StepKind::copy: {
      const CopyUnit& u = plan_.copies[unit];
      const RegionCopy copy{u.samples, u.channels, u.from.box, u.to.box, u.region};
      const auto cleared = static_cast<std::size_t>(u.clear ? 4 * u.samples * u.channels * u.to.box.volume() : 0);
      return [this, &u, copy, cleared] {
        float* const to = address(u.to.buffer);
        std::memset(to, 0, cleared);
        copy_region(to_.backend, copy, address(u.from.buffer), to);
      };
    }
    case StepKind::loss: {
      const LossUnit& u = plan_.losses[unit];
      const bool training = plan_.mode == Mode::train;
      return [this, &u, training] {
        float* const prediction = address(u.prediction);
        const float* const target = address(u.target);
        loss_ = squared_error(to_.backend, prediction, target, u.elements);
        if (!training) return;
        const auto scale = static_cast<float>(2.0 / u.global_elements);
        squared_error_gradient(to_.backend, prediction, target, scale, u.elements, prediction);
      };
    }
    case StepKind::update: {
      const BucketUnit& u = plan_.buckets[unit];
      return [this, u] {
        to_.optimizer->update(u.offset, u.count, to_.parameters->gradients(), to_.parameters->values());
      };
    }
    default: return {};
  }
}

}  // namespace halograd
