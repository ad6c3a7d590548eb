#include "halograd/kernels/reference/loss.hpp"

namespace halograd::reference {

double squared_error(const float* prediction, const float* target, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double difference = static_cast<double>(prediction[i]) - static_cast<double>(target[i]);
    sum += difference * difference;
  }
  return sum;
}

void squared_error_gradient(const float* prediction, const float* target, float scale, std::int64_t count,
                            float* dprediction) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double difference = static_cast<double>(prediction[i]) - static_cast<double>(target[i]);
    dprediction[i] = static_cast<float>(static_cast<double>(scale) * difference);
  }
}

}  // namespace halograd::reference
