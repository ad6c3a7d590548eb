#include "halograd/kernels/cuda/loss_element.hpp"
#include "halograd/kernels/cuda/scratch.hpp"
#include "kernels/bytes/traced_kernels.hpp"
#include "kernels/software_segmentation.hpp"

#include <fmt/format.h>

namespace halograd::test {
namespace {

constexpr std::int64_t size_of_double = 8;

template <typename T>
void trace_squared_error(std::vector<TracedKernel>& rows) {
  constexpr std::int64_t count = std::int64_t{1} << 20;
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  MemoryTrace trace;
  T* const prediction = trace.buffer<T>(count);
  const float* const target = trace.buffer<float>(count);
  double* const sum = trace.buffer<double>(1);
  const std::int64_t pieces = cuda::squared_error_pieces(count);
  double* const partial = trace.buffer<double>(pieces);
  const std::string shape = fmt::format("2²⁰ numbers, {}", size == 2 ? "bf16" : "f32");
  trace.launch([&] {
    const cuda::SquaredError<T> term{prediction, target};
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      partial[piece] = block_sum([&](int thread) {
        return cuda::strided_sum(term, cuda::piece_begin(count, piece, pieces),
                                 cuda::piece_begin(count, piece + 1, pieces), thread, cuda::sum_threads);
      });
    }
  });
  trace.launch([&] { run_merge({.partial = partial, .pieces = pieces}, sum); });
  rows.push_back({"squared error", shape, trace.moved(count * (size + 4) + size_of_double), 1.003});
  trace.launch([&] {
    const cuda::SquaredErrorGradient<T> body(prediction, target, 0.25F, count, prediction);
    run_walking(body, body.range.items());
  });
  rows.push_back({"squared error, gradient", shape, trace.moved(count * (2 * size + 4))});
}

template <typename T>
void trace_segmentation(std::vector<TracedKernel>& rows) {
  constexpr int classes = 3;
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  const SegmentationLossDesc desc{.type = size == 2 ? DType::bf16 : DType::f32,
                                  .samples = 2,
                                  .voxels = std::int64_t{128} * 128 * 128,
                                  .classes = classes,
                                  .dice = 1};
  const std::int64_t voxels = desc.samples * desc.voxels;
  const std::int64_t pieces = cuda::segmentation_pieces(desc, cuda::scratch_doubles);
  const std::int64_t values = 2 + 3 * classes;
  MemoryTrace trace;
  T* const logits = trace.buffer<T>(voxels * classes);
  const std::uint8_t* const labels = trace.buffer<std::uint8_t>(voxels);
  double* const partial = trace.buffer<double>(desc.samples * pieces * values);
  const std::int64_t sum_count = segmentation_sum_count(desc, desc.samples);
  double* const sums = trace.buffer<double>(sum_count);
  const double* const dice = trace.buffer<double>(2 * desc.samples * classes);
  const auto* const outcome = trace.buffer<SegmentationOutcome>(1, {});
  const std::string shape = fmt::format("3 classes, 2 × 128³, {}", size == 2 ? "bf16" : "f32");
  const std::int64_t needed = voxels * (classes * size + 1);
  trace.launch([&] {
    run_chunk_sums(cuda::SegmentationChunkSums<T, classes>{{desc, logits, labels}}, desc, pieces, partial);
  });
  trace.launch([&] { run_merge({partial, desc.samples, pieces, values, 2}, sums); });
  rows.push_back({"segmentation loss, sums", shape, trace.moved(needed + size_of_double * sum_count), 1.007});
  trace.launch([&] {
    using Gradient = cuda::SegmentationChunkGradient<T, classes>;
    run_chunk_gradient(Gradient{{desc, logits, labels, logits}, outcome, dice, logits}, desc, pieces);
  });
  rows.push_back({"segmentation loss, gradient", shape, trace.moved(needed + voxels * classes * size)});
}

}  // namespace

std::vector<TracedKernel> traced_losses() {
  std::vector<TracedKernel> rows;
  trace_squared_error<float>(rows);
  trace_squared_error<Bf16>(rows);
  trace_segmentation<float>(rows);
  trace_segmentation<Bf16>(rows);
  return rows;
}

}  // namespace halograd::test
