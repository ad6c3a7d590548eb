#pragma once

#include "halograd/core/memory.hpp"
#include "halograd/device/backend.hpp"

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
  Optimizer(Backend backend, const OptimizerOptions& options, std::int64_t elements);

  /// Starts the next step at this learning rate.
  void begin_step(double learning_rate);
  /// Updates weights [offset, offset + count); gradients and weights point to the flat arrays' starts.
  void update(std::int64_t offset, std::int64_t count, const float* gradients, float* weights);

  struct State {
    std::string name;  ///< "adam_m", "adam_v", "velocity"
    std::span<float> values;
  };
  [[nodiscard]] std::vector<State> states();
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }

private:
  Backend backend_;
  OptimizerOptions options_;
  std::int64_t elements_;
  std::vector<ReservedMemory> slots_;
  std::int64_t steps_ = 0;
  double learning_rate_ = 0;
};

}  // namespace halograd
