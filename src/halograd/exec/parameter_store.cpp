#include "halograd/exec/parameter_store.hpp"

namespace halograd {

ParameterStore::ParameterStore(const Plan& plan, const Device& device, const Queue& queue)
    : parameters_(plan.parameters),
      trainable_elements_(plan.trainable_elements),
      queue_(queue),
      values_(device, plan.parameter_elements),
      gradients_(device, plan.trainable_elements) {}

void ParameterStore::initialize(std::uint64_t seed) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    halograd::initialize(parameters_[i].spec, static_cast<std::uint32_t>(i), seed, value(static_cast<int>(i)));
  }
  changed();
}

void ParameterStore::to_host() const {
  values_.to_host(queue_);
  gradients_.to_host(queue_);
}

void ParameterStore::changed() {
  values_.to_device(queue_);
  ++version_;
}

}  // namespace halograd
