#pragma once

#include "halograd/device/mirrored_floats.hpp"
#include "halograd/plan/plan.hpp"

#include <cstdint>
#include <vector>

namespace halograd {

/// All parameters of a network and their gradients, in flat arrays that plans of every batch and mode share. Every rank
/// holds all of them. Layout: Plan::parameters. The host sees copies of the device's arrays (on the processor, the
/// arrays themselves): to_host() before it reads what a step computed, changed() after it wrote.
class ParameterStore {
public:
  explicit ParameterStore(const Plan& plan, const Device& device = {}, const Queue& queue = {});

  /// Sets every array to its initial value, the same on every grid.
  void initialize(std::uint64_t seed);

  [[nodiscard]] const std::vector<ParameterPlan>& parameters() const { return parameters_; }
  [[nodiscard]] std::int64_t trainable_elements() const { return trainable_elements_; }

  // On the host.
  [[nodiscard]] float* values() const { return values_.on_host().data(); }
  [[nodiscard]] float* gradients() const { return gradients_.on_host().data(); }
  [[nodiscard]] float* value(int parameter) const { return values() + offset(parameter); }
  [[nodiscard]] float* gradient(int parameter) const { return gradients() + offset(parameter); }
  void to_host() const;
  /// Takes what the host wrote to the values.
  void changed();

  // On the device.
  [[nodiscard]] float* device_values() const { return values_.on_device(); }
  [[nodiscard]] float* device_gradients() const { return gradients_.on_device(); }
  [[nodiscard]] float* device_value(int parameter) const { return device_values() + offset(parameter); }
  [[nodiscard]] float* device_gradient(int parameter) const { return device_gradients() + offset(parameter); }
  /// Says that a step changed the values there.
  void stepped() { ++version_; }

  /// Rises with every change of the values, so that repacked copies know when they are stale.
  [[nodiscard]] std::int64_t version() const { return version_; }

private:
  [[nodiscard]] std::int64_t offset(int parameter) const {
    return parameters_[static_cast<std::size_t>(parameter)].offset;
  }

  std::vector<ParameterPlan> parameters_;
  std::int64_t trainable_elements_;
  Queue queue_;
  MirroredFloats values_;
  MirroredFloats gradients_;
  std::int64_t version_ = 0;
};

}  // namespace halograd
