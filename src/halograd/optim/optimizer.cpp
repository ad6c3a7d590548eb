#include "halograd/optim/optimizer.hpp"

#include "halograd/kernels/optimizer.hpp"

namespace halograd {

int optimizer_slots(OptimizerKind kind) {
  return kind == OptimizerKind::adam ? 2 : 1;
}

Optimizer::Optimizer(Backend backend, const OptimizerOptions& options, std::int64_t elements)
    : backend_(backend), options_(options), elements_(elements) {
  for (int i = 0; i < optimizer_slots(options.kind); ++i) slots_.emplace_back(4 * elements);
}

void Optimizer::begin_step(double learning_rate) {
  ++steps_;
  learning_rate_ = learning_rate;
}

void Optimizer::update(std::int64_t offset, std::int64_t count, const float* gradients, float* weights) {
  const auto slot = [&](std::size_t i) { return slots_[i].floats().data() + offset; };
  if (options_.kind == OptimizerKind::adam) {
    adam_update(backend_,
                {.learning_rate = learning_rate_,
                 .beta1 = options_.beta1,
                 .beta2 = options_.beta2,
                 .epsilon = options_.epsilon,
                 .step = steps_},
                gradients + offset, weights + offset, slot(0), slot(1), count);
  } else {
    sgd_update(backend_, {.learning_rate = learning_rate_, .momentum = options_.momentum}, gradients + offset,
               weights + offset, slot(0), count);
  }
}

std::vector<Optimizer::State> Optimizer::states() {
  const auto values = [&](std::size_t i) { return slots_[i].floats().first(static_cast<std::size_t>(elements_)); };
  if (options_.kind == OptimizerKind::adam) return {{"adam_m", values(0)}, {"adam_v", values(1)}};
  return {{"velocity", values(0)}};
}

}  // namespace halograd
