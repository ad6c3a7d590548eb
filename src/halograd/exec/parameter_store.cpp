#include "halograd/exec/parameter_store.hpp"

namespace halograd {

ParameterStore::ParameterStore(const Plan& plan)
    : parameters_(plan.parameters),
      trainable_elements_(plan.trainable_elements),
      values_(4 * plan.parameter_elements),
      gradients_(4 * plan.trainable_elements) {}

void ParameterStore::initialize(std::uint64_t seed) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    halograd::initialize(parameters_[i].spec, static_cast<std::uint32_t>(i), seed, value(static_cast<int>(i)));
  }
  changed();
}

}  // namespace halograd
