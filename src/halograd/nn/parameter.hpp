#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace halograd {

/// How a parameter starts.
enum class Initializer {
  constant,        ///< `value` everywhere
  glorot_uniform,  ///< uniform in ±√(6 / (fan_in + fan_out)) (Glorot and Bengio 2010)
  he_normal,       ///< normal with a variance of 2 / fan_in (He et al. 2015)
};

/// One array that a layer learns, or (trainable = false) keeps beside its weights, such as running averages.
struct ParameterSpec {
  std::string layer;               ///< "conv1"
  std::string name;                ///< "weight"
  std::vector<std::int64_t> dims;  ///< as in PyTorch: [out,in,kd,kh,kw], [out,in], [channels]
  Initializer initializer = Initializer::constant;
  double value = 0;
  bool trainable = true;
  double fan_in = 0;  ///< inputs that an output value sums over; where not constant
  double fan_out = 0;

  [[nodiscard]] std::int64_t elements() const;
};

/// Writes the initial values of `spec`, the `index`th of its network: the same for every grid. values: [elements].
void initialize(const ParameterSpec& spec, std::uint32_t index, std::uint64_t seed, float* values);

}  // namespace halograd
