#include "halograd/data/synthetic/cosmology.hpp"

namespace halograd {

Cosmology cosmology_at(const std::array<float, 4>& unit) {
  const auto value = [&](std::size_t i) {
    return cosmology_centres[i] * (1.0 + cosmology_half_width * static_cast<double>(unit[i]));
  };
  return {.omega_m = value(0), .sigma8 = value(1), .spectral_index = value(2), .hubble = value(3)};
}

std::array<float, 4> draw_unit_parameters(const RandomStream& stream) {
  std::array<float, 4> unit{};
  for (std::size_t i = 0; i < unit.size(); ++i) unit[i] = 2.0F * stream.uniform(i) - 1.0F;
  return unit;
}

}  // namespace halograd
