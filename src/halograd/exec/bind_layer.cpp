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
      return [this, unit, &u] { convolutions_[unit].kernel->backward_data(address(u.dy), address(u.dx)); };
    }
    case StepKind::convolution_backward_weights: {
      const ConvolutionUnit& u = plan_.convolutions[unit];
      return [this, &u, kernel = convolutions_[unit].kernel.get(), dw = to_.parameters->gradient(u.weight)] {
        kernel->backward_weights(address(u.x), address(u.dy), dw);
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
        kernel->backward_data(address(u.dy), w, address(u.dx));
      };
    }
    case StepKind::dense_backward_weights: {
      const DenseUnit& u = plan_.denses[unit];
      return [this, &u, kernel = denses_[unit].get(), dw = to_.parameters->gradient(u.weight),
              db = to_.parameters->gradient(u.weight + 1)] {
        kernel->backward_weights(address(u.x), address(u.dy), dw, db);
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
      const RegionCopy copy{u.samples, u.channels, u.from.layout(), u.to.layout(), u.region};
      const auto cleared = static_cast<std::size_t>(u.clear ? 4 * u.samples * copy.to.sample_elements() : 0);
      return [this, &u, copy, cleared] {
        float* const to = address(u.to);
        std::memset(to, 0, cleared);
        (u.add ? add_region : copy_region)(to_.backend, copy, address(u.from), to);
      };
    }
    case StepKind::upsample_forward: {
      const UpsampleUnit& u = plan_.upsamples[unit];
      return [this, &u] { upsample(to_.backend, u.desc, address(u.x), address(u.y)); };
    }
    case StepKind::upsample_backward: {
      const UpsampleUnit& u = plan_.upsamples[unit];
      return [this, &u] { upsample_backward(to_.backend, u.desc, address(u.dy), address(u.dx)); };
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
