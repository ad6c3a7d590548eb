#include "halograd/optim/optimizer.hpp"

#include <cstring>

namespace halograd {

int optimizer_slots(OptimizerKind kind) {
  return kind == OptimizerKind::adam ? 2 : 1;
}

Optimizer::Optimizer(const Device& device, const Queue& queue, const OptimizerOptions& options, std::int64_t elements)
    : queue_(queue),
      options_(options),
      now_on_host_(device.allocate_host(sizeof(Now))),
      now_on_device_(device.allocate(sizeof(Now))) {
  for (int i = 0; i < optimizer_slots(options.kind); ++i) slots_.emplace_back(device, elements);
}

void Optimizer::begin_step(double learning_rate) {
  ++steps_;
  const Now now{.adam = {.learning_rate = learning_rate,
                         .beta1 = options_.beta1,
                         .beta2 = options_.beta2,
                         .epsilon = options_.epsilon,
                         .step = steps_},
                .sgd = {.learning_rate = learning_rate, .momentum = options_.momentum}};
  std::memcpy(now_on_host_.data(), &now, sizeof now);
  queue_.copy(now_on_host_.data(), now_on_device_.data(), sizeof now);
}

void Optimizer::update(std::int64_t offset, std::int64_t count, const float* gradients, float* weights) const {
  const auto* const now = reinterpret_cast<const Now*>(now_on_device_.data());
  const auto slot = [&](std::size_t i) { return slots_[i].on_device() + offset; };
  if (options_.kind == OptimizerKind::adam) {
    adam_update(queue_, &now->adam, gradients + offset, weights + offset, slot(0), slot(1), count);
  } else {
    sgd_update(queue_, &now->sgd, gradients + offset, weights + offset, slot(0), count);
  }
}

std::vector<Optimizer::State> Optimizer::states() {
  if (options_.kind == OptimizerKind::adam) {
    return {{"adam_m", slots_[0].on_host()}, {"adam_v", slots_[1].on_host()}};
  }
  return {{"velocity", slots_[0].on_host()}};
}

void Optimizer::to_host() const {
  for (const MirroredFloats& slot : slots_) slot.to_host(queue_);
}

void Optimizer::to_device() const {
  for (const MirroredFloats& slot : slots_) slot.to_device(queue_);
}

}  // namespace halograd
