// 128 values a thread, all alive at once, in the 64 registers that blocks of 1,024 threads leave to each: this kernel
// must spill.
__global__ void __launch_bounds__(1024) spilling(float* values, int rounds) {
  constexpr int count = 128;
  float held[count];
#pragma unroll
  for (int i = 0; i < count; ++i) held[i] = values[i * 1024 + threadIdx.x];
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < count; ++i) held[i] += held[(i * 7 + 3) % count] * held[i];
  }
#pragma unroll
  for (int i = 0; i < count; ++i) values[i * 1024 + threadIdx.x] = held[i];
}
