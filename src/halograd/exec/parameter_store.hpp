#pragma once

#include "halograd/core/memory.hpp"
#include "halograd/plan/plan.hpp"

#include <cstdint>
#include <vector>

namespace halograd {

/// All parameters of a network and their gradients, in flat arrays that plans of every batch and mode share. Every rank
/// holds all of them. Layout: Plan::parameters.
class ParameterStore {
public:
  explicit ParameterStore(const Plan& plan);

  /// Sets every array to its initial value, the same on every grid.
  void initialize(std::uint64_t seed);

  [[nodiscard]] const std::vector<ParameterPlan>& parameters() const { return parameters_; }
  [[nodiscard]] float* values() const { return values_.floats().data(); }
  [[nodiscard]] float* gradients() const { return gradients_.floats().data(); }
  [[nodiscard]] float* value(int parameter) const { return values() + offset(parameter); }
  [[nodiscard]] float* gradient(int parameter) const { return gradients() + offset(parameter); }
  [[nodiscard]] std::int64_t trainable_elements() const { return trainable_elements_; }

  /// Rises with every change of the values, so that repacked copies know when they are stale.
  [[nodiscard]] std::int64_t version() const { return version_; }
  void changed() { ++version_; }

private:
  [[nodiscard]] std::int64_t offset(int parameter) const {
    return parameters_[static_cast<std::size_t>(parameter)].offset;
  }

  std::vector<ParameterPlan> parameters_;
  std::int64_t trainable_elements_;
  ReservedMemory values_;
  ReservedMemory gradients_;
  std::int64_t version_ = 0;
};

}  // namespace halograd
