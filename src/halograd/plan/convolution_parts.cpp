#include "halograd/plan/convolution_parts.hpp"

#include "halograd/plan/exchange_plan.hpp"

#include <utility>

namespace halograd {

std::vector<Box> convolution_parts(const Window& window, const Box& outputs, const Box& own, const Extent& volume) {
  Halo around;
  Box interior = outputs;
  for (int i = 0; i < 3; ++i) {
    const auto reads_own = [&](std::int64_t output) {
      Box slab = outputs;
      slab.lo[i] = output;
      slab.hi[i] = output + 1;
      const Box needed = window.input_needed(slab, volume);
      return needed.lo[i] >= own.lo[i] && needed.hi[i] <= own.hi[i];
    };
    while (interior.lo[i] < interior.hi[i] && !reads_own(interior.lo[i])) ++interior.lo[i];
    while (interior.lo[i] < interior.hi[i] && !reads_own(interior.hi[i] - 1)) --interior.hi[i];
    around.lo[i] = interior.lo[i] - outputs.lo[i];
    around.hi[i] = outputs.hi[i] - interior.hi[i];
  }
  if (interior.empty() || 2 * interior.volume() < outputs.volume()) return {};
  ShellSplit split = split_shell(outputs, around);
  std::vector<Box> parts{split.interior};
  parts.insert(parts.end(), split.shell.begin(), split.shell.end());
  return parts;
}

}  // namespace halograd
