#include "halograd/device/cuda/runtime.hpp"
#include "halograd/kernels/cuda/bias_gradient.hpp"

namespace halograd::cuda {
namespace {

constexpr int block_size = 128;

__global__ void __launch_bounds__(block_size)
    sum_samples(std::int64_t samples, std::int64_t features, const float* __restrict__ dy, float* __restrict__ db) {
  const std::int64_t o = static_cast<std::int64_t>(blockIdx.x) * block_size + threadIdx.x;
  if (o >= features) return;
  double sum = 0;
  for (std::int64_t n = 0; n < samples; ++n) sum += static_cast<double>(dy[n * features + o]);
  db[o] = static_cast<float>(sum);
}

}  // namespace

void bias_gradient(const Queue& queue, std::int64_t samples, std::int64_t features, const float* dy, float* db) {
  const auto blocks = static_cast<unsigned>((features + block_size - 1) / block_size);
  sum_samples<<<blocks, block_size, 0, stream_of(queue)>>>(samples, features, dy, db);
  check(cudaGetLastError(), "summing a dense layer's bias gradient");
}

}  // namespace halograd::cuda
