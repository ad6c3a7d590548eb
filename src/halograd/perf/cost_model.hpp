#pragma once

#include "halograd/perf/machine.hpp"
#include "halograd/plan/plan.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace halograd {

/// A step's time, taken apart: what is not hidden behind computing of each sort of message. The parts add up to it.
struct StepCost {
  double convolution_seconds = 0;
  double other_seconds = 0;       ///< normalise + activate + pool, dense layers, loss, optimiser
  double halo_seconds = 0;        ///< waited for halos and reshards
  double statistics_seconds = 0;  ///< waited for sums of statistics and of the loss
  double gradient_seconds = 0;    ///< waited for sums of gradients
  double data_seconds = 0;        ///< waited for the next mini-batch's conversion
  double hidden_seconds = 0;      ///< of messages, behind computing; not part of the step
  double interpolated = 0;        ///< part of the computing (0 to 1) whose very shape was not measured
  [[nodiscard]] double seconds() const {
    return convolution_seconds + other_seconds + halo_seconds + statistics_seconds + gradient_seconds + data_seconds;
  }
};

/// What one fused group of layers costs in a step, both ways. Without updates: together the step less these and the
/// waits for gradients, the loss and data. A bucket of gradients whose start keeps from computing stands as "bucket 0".
struct LayerCost {
  std::string name;
  double forward_seconds = 0;   ///< FP of the paper, section III-C: computing and what is waited for its halo
  double backward_seconds = 0;  ///< BD + BF
};

struct PlanCost {
  StepCost step;
  std::vector<LayerCost> layers;
  std::int64_t memory_bytes = 0;  ///< of the rank's process: activations, weights, messages, kernels, its baseline
};

/// What the executor holds beside the plan, and the setting it runs in.
struct PriceOptions {
  int optimizer_slots = 2;  ///< see Plan::parameter_bytes
  int input_slots = 2;  ///< of training: another thread converts the next mini-batch into the second; of 1: nobody does
  SettingChoice setting;
};

/// Prices one rank's plan: walks its steps with three clocks, of computing and of the two lanes of messages, as the
/// executor runs them. A message starts when its start step is reached and the lane is free; a wait ends when the
/// message has ended. Of that the paper's formula (section III-C) is what remains where each layer's halo is awaited
/// behind its main part, and gradients behind the whole backward pass: FP = max{Comp(main), Σ_d 2·SR(halo_d)} +
/// Comp(halo), Cost = Σ FP + max{Σ (BD + BF), Σ AR}. A pure function. Throws UsageError where the machine has no figure
/// for something that the plan does, or one so absurd that a step would take forever.
PlanCost price(const Plan& plan, const Machine& machine, const PriceOptions& options = {});

/// PlanCost::memory_bytes alone: needs no rates and no links.
std::int64_t memory_of(const Plan& plan, const Machine& machine, const PriceOptions& options = {});

}  // namespace halograd
