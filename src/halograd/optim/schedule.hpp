#pragma once

#include <algorithm>
#include <cstdint>

namespace halograd {

/// A learning rate that falls linearly, step by step, from `initial` to `final_fraction` of it over `decay_steps`, then
/// stays (paper, section IV: 0.01 times in 100 epochs). A function of the step alone, so that resuming can't compound
/// it.
struct LinearSchedule {
  double initial = 1e-3;
  double final_fraction = 0.01;
  std::int64_t decay_steps = 1;

  [[nodiscard]] double at(std::int64_t step) const {
    const double done =
        decay_steps <= 0 ? 1.0 : std::min(1.0, static_cast<double>(step) / static_cast<double>(decay_steps));
    return initial * (1.0 - (1.0 - final_fraction) * done);
  }
};

}  // namespace halograd
