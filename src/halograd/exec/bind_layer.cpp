#include "halograd/exec/bound_plan.hpp"
#include "halograd/kernels/layout.hpp"
#include "halograd/kernels/loss.hpp"

namespace halograd {

BoundPlan::Task BoundPlan::bind_convolution(const Step& step) {
  const auto unit = static_cast<std::size_t>(step.unit);
  switch (step.kind) {
    case StepKind::convolution_forward: {
      const ConvolutionUnit& u = plan_.convolutions[unit];
      const auto part = static_cast<std::size_t>(step.part);
      return [this, unit, part, &u, weight = to_.parameters->device_value(u.weight)] {
        PackedConvolution& convolution = convolutions_[unit];
        if (convolution.version != to_.parameters->version()) {
          convolution.kernel->set_weights(weight);
          convolution.version = to_.parameters->version();
        }
        convolution.kernel->forward_part(part, address(u.x), address(u.y));
      };
    }
    case StepKind::convolution_backward_data: {
      const ConvolutionUnit& u = plan_.convolutions[unit];
      return [this, unit, &u] { convolutions_[unit].kernel->backward_data(address(u.dy), address(u.dx)); };
    }
    case StepKind::convolution_backward_weights: {
      const ConvolutionUnit& u = plan_.convolutions[unit];
      return [this, &u, kernel = convolutions_[unit].kernel.get(), dw = to_.parameters->device_gradient(u.weight)] {
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
      return [this, &u, kernel = denses_[unit].get(), w = to_.parameters->device_value(u.weight),
              b = to_.parameters->device_value(u.weight + 1)] { kernel->forward(floats(u.x), w, b, floats(u.y)); };
    }
    case StepKind::dense_backward_data: {
      const DenseUnit& u = plan_.denses[unit];
      return [this, &u, kernel = denses_[unit].get(), w = to_.parameters->device_value(u.weight)] {
        kernel->backward_data(floats(u.dy), w, floats(u.dx));
      };
    }
    case StepKind::dense_backward_weights: {
      const DenseUnit& u = plan_.denses[unit];
      return [this, &u, kernel = denses_[unit].get(), dw = to_.parameters->device_gradient(u.weight),
              db = to_.parameters->device_gradient(u.weight + 1)] {
        kernel->backward_weights(floats(u.x), floats(u.dy), dw, db);
      };
    }
    case StepKind::flatten_forward: {
      const FlattenUnit& u = plan_.flattens[unit];
      return [this, &u] { to_channels_first(to_.queue, u.type, u.shape, address(u.x), floats(u.y)); };
    }
    case StepKind::flatten_backward: {
      const FlattenUnit& u = plan_.flattens[unit];
      return [this, &u] { to_channels_last(to_.queue, u.type, u.shape, floats(u.dy), address(u.x)); };
    }
    case StepKind::copy: {
      const CopyUnit& u = plan_.copies[unit];
      const RegionCopy copy{u.samples, u.channels, u.from.layout(), u.to.layout(), u.region, u.to.type};
      const std::int64_t cleared = u.clear ? dtype_size(u.to.type) * u.samples * copy.to.sample_elements() : 0;
      return [this, &u, copy, cleared] {
        std::byte* const to = address(u.to);
        to_.queue.clear(to, cleared);
        (u.add ? add_region : copy_region)(to_.queue, copy, address(u.from), to);
      };
    }
    case StepKind::upsample_forward: {
      const UpsampleUnit& u = plan_.upsamples[unit];
      return [this, &u] { upsample(to_.queue, u.desc, address(u.x), address(u.y)); };
    }
    case StepKind::upsample_backward: {
      const UpsampleUnit& u = plan_.upsamples[unit];
      return [this, &u] { upsample_backward(to_.queue, u.desc, address(u.dy), address(u.dx)); };
    }
    case StepKind::loss: {
      const LossUnit& u = plan_.losses[unit];
      const bool training = plan_.mode == Mode::train;
      return [this, &u, training] {
        std::byte* const prediction = address(u.prediction);
        const float* const target = floats(u.target);
        squared_error(to_.queue, u.type, prediction, target, u.elements, to_.block->loss_sum());
        if (!training) return;
        const auto scale = static_cast<float>(2.0 / u.global_elements);
        squared_error_gradient(to_.queue, u.type, prediction, target, scale, u.elements, prediction);
      };
    }
    case StepKind::update: {
      const BucketUnit& u = plan_.buckets[unit];
      return [this, u] {
        to_.optimizer->update(u.offset, u.count, to_.parameters->device_gradients(), to_.parameters->device_values());
      };
    }
    default: return {};
  }
}

}  // namespace halograd
