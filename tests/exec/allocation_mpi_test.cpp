// The steady state allocates nothing: allocations through operator new are counted, on all threads of the process.
// oneDNN makes a list of a few arguments each time a primitive runs; those stay below the size from which one counts.
// On a GPU steps that are replayed count: one that is listed anew calls cuDNN, whose allocations are not ours.
#include "exec/support.hpp"
#include "halograd/models/cosmoflow.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

constexpr std::size_t argument_list_bytes = 1024;
std::atomic<std::int64_t> allocations{0};

void* counted(std::size_t size, std::size_t alignment) {
  if (size > argument_list_bytes) ++allocations;
  void* const memory = alignment > alignof(std::max_align_t)
                           ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
                           : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) {
  return counted(size, 1);
}
void* operator new[](std::size_t size) {
  return counted(size, 1);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return counted(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace halograd {
namespace {

TEST(SteadyState, AllocatesNothingButOnednnsArgumentLists) {
  const Communicator world = Communicator::world();
  const ProcessGrid grid{1, world.size(), 1, 1};
  Executor executor(cosmoflow({.width = 32}), world,
                    {.grid = grid, .device = test::device_under_test(Backend::cpu, world), .input_slots = 2});
  if (executor.transport().starts_with("pinned")) GTEST_SKIP() << "steps with such messages are listed anew";
  const test::RandomBatch samples(executor.prepare(Mode::train, 2), 1);
  std::array<MiniBatch, 2> batches{samples.view(), samples.view()};
  batches[1].slot = 1;
  const auto train = [&](std::int64_t step) {
    executor.train(batches[static_cast<std::size_t>(step % 2)], step, 1e-4);
  };
  for (std::int64_t step = 0; step < 4; ++step) train(step);  // of each slot the second is recorded, where it can be
  world.barrier();
  const std::int64_t before = allocations;
  for (std::int64_t step = 4; step < 7; ++step) train(step);
  const std::int64_t during = allocations - before;
  EXPECT_EQ(during, 0);
}

}  // namespace
}  // namespace halograd
