#pragma once

#include <cstdint>

namespace halograd::cuda {

/// A launch: so many blocks of so many threads.
struct Grid {
  std::uint32_t blocks = 0;
  std::uint32_t threads = 0;
};

constexpr int warp_size = 32;
constexpr int block_threads = 256;
/// Blocks that a multiprocessor can run at once: up to 64 registers a thread. Said to the compiler, which would
/// otherwise spill some to run more.
constexpr int resident_blocks = 4;
/// Blocks of threads that walk: as many as 132 multiprocessors run at once, with enough loads under way.
constexpr std::int64_t filling_blocks = 132 * resident_blocks;

constexpr std::int64_t ceiling_quotient(std::int64_t count, std::int64_t divisor) {
  return (count + divisor - 1) / divisor;
}

/// A thread for every `batch` items.
constexpr Grid grid_for(std::int64_t items, std::int64_t batch = 1) {
  return {static_cast<std::uint32_t>(ceiling_quotient(items, batch * block_threads)), block_threads};
}

/// Threads that walk over the items with the stride of the whole grid.
constexpr Grid walking_grid(std::int64_t items) {
  const std::int64_t blocks = ceiling_quotient(items, block_threads);
  return {static_cast<std::uint32_t>(blocks < filling_blocks ? blocks : filling_blocks), block_threads};
}

/// Items that each thread of a copy takes at once: enough loads are under way where there are many, and all
/// multiprocessors have some where there are few.
constexpr int copy_batch = 4;
constexpr bool worth_batching(std::int64_t items) {
  return items >= filling_blocks * block_threads * copy_batch;
}
/// The `turn`-th of the items that a thread of such a launch takes: threads side by side take items side by side.
constexpr std::uint32_t batched_item(std::uint32_t block, std::uint32_t thread, int batch, int turn) {
  return (block * static_cast<std::uint32_t>(batch) + static_cast<std::uint32_t>(turn)) * block_threads + thread;
}

}  // namespace halograd::cuda
