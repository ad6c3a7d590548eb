#include "halograd/kernels/cuda/layout_index.hpp"
#include "halograd/kernels/cuda/optimizer_element.hpp"
#include "kernels/bytes/traced_kernels.hpp"
#include "kernels/software_grid.hpp"
#include "kernels/software_tiles.hpp"

#include <fmt/format.h>

namespace halograd::test {
namespace {

template <typename T>
const char* type_name() {
  return sizeof(T) == 2 ? "bf16" : "f32";
}

constexpr std::int64_t parameters = std::int64_t{1} << 20;

void trace_optimizers(std::vector<TracedKernel>& rows) {
  MemoryTrace trace;
  const float* const g = trace.buffer<float>(parameters);
  float* const w = trace.buffer<float>(parameters);
  float* const m = trace.buffer<float>(parameters);
  float* const v = trace.buffer<float>(parameters);
  const auto* const adam = trace.buffer<AdamStep>(1, {});
  const auto* const sgd = trace.buffer<SgdStep>(1, {});
  const auto run = [&](const auto& range, const auto* step) {
    trace.launch([&] {
      const auto constants = range.constants(*step);
      run_walking([&](std::int64_t item) { range(item, constants); }, range.range.items());
    });
  };
  run(cuda::AdamRange(g, w, m, v, parameters), adam);
  rows.push_back({"Adam", "2²⁰ parameters", trace.moved(7 * 4 * parameters + std::int64_t{sizeof(AdamStep)})});
  run(cuda::SgdRange(g, w, m, parameters), sgd);
  rows.push_back({"SGD", "2²⁰ parameters", trace.moved(5 * 4 * parameters + std::int64_t{sizeof(SgdStep)})});
}

template <typename T>
void trace_packing(std::vector<TracedKernel>& rows) {
  const cuda::WeightLayout layout{128, 64, 27};
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  MemoryTrace trace;
  float* const plain = trace.buffer<float>(layout.elements());
  T* const packed = trace.buffer<T>(layout.elements());
  const std::string shape = fmt::format("128 × 64 × 3³, {}", type_name<T>());
  trace.launch([&] { run_pack(layout, plain, packed); });
  rows.push_back({"weights, pack", shape, trace.moved((4 + size) * layout.elements())});
  trace.launch([&] { run_unpack<false>(layout, packed, plain); });
  rows.push_back({"weights, unpack", shape, trace.moved((4 + size) * layout.elements())});
  trace.launch([&] { run_unpack<true>(layout, packed, plain); });
  rows.push_back({"weights, unpack and add", shape, trace.moved((8 + size) * layout.elements())});
}

template <typename T>
void trace_flattening(std::vector<TracedKernel>& rows) {
  const LocalShape shape{4, 256, Extent::cube(4)};
  MemoryTrace trace;
  T* const last = trace.buffer<T>(shape.elements());
  float* const first = trace.buffer<float>(shape.elements());
  const auto launch = [&](const auto& body, std::int64_t items) { trace.launch([&] { run_items(body, items); }); };
  const auto least = shape.elements() * (4 + static_cast<std::int64_t>(sizeof(T)));
  const std::string name = fmt::format("4 × 256 channels, 4³, {}", type_name<T>());
  cuda::move_numbers(cuda::to_channels_first_loops(shape), static_cast<const T*>(last), first, launch);
  rows.push_back({"flatten", name, trace.moved(least)});
  cuda::move_numbers(cuda::to_channels_last_loops(shape), static_cast<const float*>(first), last, launch);
  rows.push_back({"flatten, gradient", name, trace.moved(least)});
}

}  // namespace

std::vector<TracedKernel> traced_weights() {
  std::vector<TracedKernel> rows;
  trace_optimizers(rows);
  trace_packing<float>(rows);
  trace_packing<Bf16>(rows);
  trace_flattening<Bf16>(rows);
  return rows;
}

}  // namespace halograd::test
