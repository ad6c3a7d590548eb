#include "halograd/core/bf16.hpp"
#include "halograd/kernels/cuda/loss.hpp"
#include "halograd/kernels/cuda/loss_element.hpp"
#include "halograd/kernels/cuda/reduction.cuh"
#include "halograd/kernels/cuda/scratch.hpp"

namespace halograd::cuda {
namespace {

template <typename Term>
__global__ void __launch_bounds__(sum_threads)
    sum_pieces(const __grid_constant__ Term term, std::int64_t items, double* partial) {
  const std::int64_t begin = piece_begin(items, blockIdx.x, gridDim.x);
  const std::int64_t end = piece_begin(items, blockIdx.x + std::int64_t{1}, gridDim.x);
  const double sums[1] = {strided_sum(term, begin, end, static_cast<int>(threadIdx.x), sum_threads)};
  store_block_sums(sums, partial + blockIdx.x);
}

}  // namespace

void squared_error(const Queue& queue, DType type, const void* prediction, const float* target, std::int64_t count,
                   double* sum) {
  constexpr auto what = "summing squared errors";
  with_activation_type(type, [&]<typename T>(T) {
    const SquaredError<T> term{static_cast<const T*>(prediction), target};
    const std::int64_t pieces = squared_error_pieces(count);
    // What one block sums goes straight to its place.
    double* const partial = pieces == 1 ? sum : scratch_of(queue, pieces);
    launch(queue, what, Grid{static_cast<std::uint32_t>(pieces), sum_threads}, sum_pieces<SquaredError<T>>, term, count,
           partial);
    if (pieces > 1) merge_pieces(queue, what, PieceSums{.partial = partial, .pieces = pieces}, sum);
  });
}

void squared_error_gradient(const Queue& queue, DType type, const void* prediction, const float* target, float scale,
                            std::int64_t count, void* dprediction) {
  with_activation_type(type, [&]<typename T>(T) {
    const SquaredErrorGradient<T> body(static_cast<const T*>(prediction), target, scale, count,
                                       static_cast<T*>(dprediction));
    for_each_walking(queue, "the gradient of squared errors", body, body.range.items());
  });
}

}  // namespace halograd::cuda
