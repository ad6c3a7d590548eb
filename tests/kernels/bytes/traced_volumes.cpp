#include "halograd/kernels/cuda/convert_element.hpp"
#include "halograd/kernels/cuda/region_copy_index.hpp"
#include "halograd/kernels/cuda/upsample_element.hpp"
#include "kernels/bytes/traced_kernels.hpp"
#include "kernels/software_grid.hpp"

#include <fmt/format.h>

namespace halograd::test {
namespace {

template <typename T>
const char* type_name() {
  return sizeof(T) == 2 ? "bf16" : "f32";
}

/// A universe's four redshifts, into a buffer with a margin as a layer of a grid reads it, or without.
template <typename T>
void trace_conversion(std::vector<TracedKernel>& rows, std::int64_t margin, double at_most) {
  constexpr std::int64_t channels = 4;
  constexpr std::int64_t width = 64;
  const Box box = Box::whole(Extent::cube(width));
  ConvertDesc desc{.dst_type = activation_of<T>, .transform = InputTransform::log1p, .channels = channels};
  desc.source = box;
  desc.dst = {{-margin, -margin, -margin}, {width + margin, width + margin, width + margin}};
  MemoryTrace trace;
  const auto* const source = trace.buffer<std::uint16_t>(box.volume() * channels);
  T* const dst = trace.buffer<T>(desc.dst.volume() * channels);
  std::uint32_t* const refused = trace.buffer<std::uint32_t>(1, 0);
  cuda::convert_units(desc, source, dst, refused,
                      [&](const auto& body, std::int64_t items) { trace.launch([&] { run_items(body, items); }); });
  const auto least = box.volume() * channels * (2 + static_cast<std::int64_t>(sizeof(T)));
  rows.push_back({"conversion of 16-bit input",
                  fmt::format("4 channels, 64³{}, {}", margin > 0 ? " into margins" : "", type_name<T>()),
                  trace.moved(least), at_most});
}

/// How many times the least packing a face, unpacking it into a margin and adding it to a tensor may move.
struct FaceLimits {
  double pack = tight;
  double unpack = tight;
  double add = tight;
};

/// A face of a 64³ part with margins all around, as wide as the margin of its kernel.
template <typename T>
void trace_face(std::vector<TracedKernel>& rows, int dimension, std::int64_t margin, std::int64_t channels,
                const FaceLimits& most) {
  constexpr std::int64_t width = 64;
  const VoxelLayout tensor{{{-margin, -margin, -margin}, {width + margin, width + margin, width + margin}}, channels};
  Box inside = Box::whole(Extent::cube(width));
  inside.hi[dimension] = margin;
  Box outside = inside;
  outside.lo[dimension] = -margin;
  outside.hi[dimension] = 0;
  const auto bytes = inside.volume() * channels * static_cast<std::int64_t>(sizeof(T));
  const std::string shape = fmt::format("{0}³ kernel, face in {1}, {2} channels, 64³, {3}", 2 * margin + 1,
                                        "DHW"[dimension], channels, type_name<T>());
  MemoryTrace trace;
  T* const values = trace.buffer<T>(tensor.sample_elements());
  T* const message = trace.buffer<T>(inside.volume() * channels);
  const auto launch = [&](const auto& body, std::int64_t items) {
    trace.launch(
        [&] { cuda::worth_batching(items) ? run_moves<cuda::copy_batch>(body, items) : run_moves<1>(body, items); });
  };
  const auto copy = [&](const Box& box, bool pack) {
    const VoxelLayout dense{box, channels};
    return RegionCopy{1, channels, pack ? tensor : dense, pack ? dense : tensor, box, activation_of<T>};
  };
  cuda::move_region<false>(copy(inside, true), static_cast<const T*>(values), message, launch);
  rows.push_back({"halo, pack", shape, trace.moved(2 * bytes), most.pack});
  cuda::move_region<false>(copy(outside, false), static_cast<const T*>(message), values, launch);
  rows.push_back({"halo, unpack", shape, trace.moved(2 * bytes), most.unpack});
  cuda::move_region<true>(copy(inside, false), static_cast<const T*>(message), values, launch);
  rows.push_back({"halo, add", shape, trace.moved(3 * bytes), most.add});
}

template <typename T>
void trace_upsampling(std::vector<TracedKernel>& rows, UpsampleKind kind) {
  constexpr std::int64_t channels = 16;
  const Box in = Box::whole(Extent::cube(32));
  const Box out = Box::whole(Extent::cube(64));
  const UpsampleDesc desc{.samples = 1,
                          .channels = channels,
                          .kind = kind,
                          .in_extent = Extent::cube(32),
                          .src = {in, channels},
                          .out = out,
                          .dst = {out, channels},
                          .type = activation_of<T>};
  MemoryTrace trace;
  T* const x = trace.buffer<T>(in.volume() * channels);
  T* const y = trace.buffer<T>(out.volume() * channels);
  const auto launch = [&](const auto& body, std::int64_t items) { trace.launch([&] { run_items(body, items); }); };
  const auto least = (in.volume() + out.volume()) * channels * static_cast<std::int64_t>(sizeof(T));
  const std::string shape = fmt::format("{}, 16 channels, 32³ to 64³, {}",
                                        kind == UpsampleKind::nearest ? "nearest" : "trilinear", type_name<T>());
  cuda::upsample_units<cuda::UpsampleForward>(desc, out, static_cast<const T*>(x), y, launch);
  rows.push_back({"upsampling", shape, trace.moved(least)});
  cuda::upsample_units<cuda::UpsampleBackward>(desc, in, static_cast<const T*>(y), x, launch);
  rows.push_back({"upsampling, gradient", shape, trace.moved(least)});
}

}  // namespace

std::vector<TracedKernel> traced_volumes() {
  std::vector<TracedKernel> rows;
  trace_conversion<float>(rows, 0, tight);
  trace_conversion<Bf16>(rows, 0, tight);
  // Rows of the destination begin and end inside sectors.
  trace_conversion<Bf16>(rows, 1, 1.017);
  for (const std::int64_t margin : {1, 2}) {
    trace_face<float>(rows, 0, margin, 16, {});
    trace_face<Bf16>(rows, 2, margin, 16, {});
  }
  // A voxel, or two, are a part of a sector, of which memory moves all whatever the order of accesses.
  trace_face<Bf16>(rows, 2, 1, 4, {2.5, 2.5, 3});
  trace_face<Bf16>(rows, 2, 2, 4, {1.5, 1.5, 1.667});
  trace_upsampling<float>(rows, UpsampleKind::nearest);
  trace_upsampling<Bf16>(rows, UpsampleKind::trilinear);
  return rows;
}

}  // namespace halograd::test
