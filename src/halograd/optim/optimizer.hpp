#pragma once

#include "halograd/device/mirrored_floats.hpp"
#include "halograd/kernels/optimizer.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace halograd {

enum class OptimizerKind { adam, sgd };

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adam;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double momentum = 0.9;  ///< sgd
};

/// How many state arrays an optimiser keeps beside each weight.
int optimizer_slots(OptimizerKind kind);

/// Adam or SGD with momentum over the flat array of trainable parameters, range by range, so that a range can be
/// updated as soon as its gradient is summed.
class Optimizer {
public:
  /// Works on `queue`, which is one of `device`.
  Optimizer(const Device& device, const Queue& queue, const OptimizerOptions& options, std::int64_t elements);

  /// Starts the next step at this learning rate. From here on nothing of it is the host's to say.
  void begin_step(double learning_rate);
  /// Updates weights [offset, offset + count); gradients and weights point to the flat arrays' starts, on the device.
  void update(std::int64_t offset, std::int64_t count, const float* gradients, float* weights) const;

  struct State {
    std::string name;         ///< "adam_m", "adam_v", "velocity"
    std::span<float> values;  ///< on the host
  };
  [[nodiscard]] std::vector<State> states();
  /// Brings the states on the host up to date, and takes what the host wrote to them.
  void to_host() const;
  void to_device() const;
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }

private:
  /// What the kernels of a step read.
  struct Now {
    AdamStep adam;
    SgdStep sgd;
  };

  Queue queue_;
  OptimizerOptions options_;
  std::vector<MirroredFloats> slots_;
  DeviceMemory now_on_host_;
  DeviceMemory now_on_device_;
  std::int64_t steps_ = 0;
};

}  // namespace halograd
