#pragma once

#include "halograd/core/random.hpp"
#include "halograd/device/backend.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace halograd::test {

/// Floats uniform in [low, high), the same for the same seed on any machine.
inline std::vector<float> random_values(std::int64_t count, std::uint64_t seed, double low = -1, double high = 1) {
  const RandomStream stream{seed, 77, 0};
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(low + (high - low) * stream.uniform53(i));
  }
  return values;
}

/// ‖a − b‖ / ‖b‖ in double, or ‖a‖ where b is zero; infinite where the sizes differ or a value is not finite.
template <typename A, typename B>
double relative_l2(const std::vector<A>& a, const std::vector<B>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double delta = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    difference += delta * delta;
    norm += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

/// Random choices for test shapes.
class Dice {
public:
  explicit Dice(unsigned seed) : engine_(seed) {}
  /// A whole number from low to high, both included.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  template <typename T>
  T one_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(values.size()) - 1))];
  }

private:
  std::mt19937 engine_;
};

/// A test that runs once a backend.
class BackendTest : public testing::TestWithParam<Backend> {};

inline auto both_backends() {
  return testing::Values(Backend::reference, Backend::cpu);
}

inline std::string backend_test_name(const testing::TestParamInfo<Backend>& info) {
  return backend_name(info.param);
}

}  // namespace halograd::test
