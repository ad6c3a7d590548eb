#include "halograd/plan/lifetimes.hpp"

#include <algorithm>
#include <numeric>

namespace halograd {
namespace {

bool live_together(const BufferPlan& a, const BufferPlan& b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

void find_lives(const std::vector<Step>& steps, const std::vector<BufferId>& pinned, std::vector<BufferPlan>& buffers) {
  const auto extend = [&](BufferId id, int step) {
    BufferPlan& buffer = buffers[static_cast<std::size_t>(id)];
    buffer.first_step = buffer.first_step < 0 ? step : std::min(buffer.first_step, step);
    buffer.last_step = std::max(buffer.last_step, step);
  };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    for (const BufferId id : steps[i].touches) extend(id, static_cast<int>(i));
    if (steps[i].start >= 0) {
      for (const BufferId id : steps[static_cast<std::size_t>(steps[i].start)].touches) extend(id, static_cast<int>(i));
    }
  }
  for (const BufferId id : pinned) {
    extend(id, 0);
    extend(id, static_cast<int>(steps.size()));
  }
}

}  // namespace

std::int64_t place_buffers(const std::vector<Step>& steps, const std::vector<BufferId>& pinned, std::int64_t alignment,
                           std::vector<BufferPlan>& buffers) {
  find_lives(steps, pinned, buffers);
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return buffers[a].bytes > buffers[b].bytes; });

  std::int64_t arena = 0;
  std::vector<const BufferPlan*> placed;
  for (const std::size_t i : order) {
    BufferPlan& buffer = buffers[i];
    if (buffer.first_step < 0 || buffer.external) continue;
    std::vector<const BufferPlan*> rivals;
    for (const BufferPlan* other : placed) {
      if (live_together(buffer, *other)) rivals.push_back(other);
    }
    std::ranges::sort(rivals, {}, &BufferPlan::offset);
    std::int64_t offset = 0;
    for (const BufferPlan* rival : rivals) {
      if (offset + buffer.bytes <= rival->offset) break;
      const std::int64_t end = rival->offset + rival->bytes;
      offset = std::max(offset, (end + alignment - 1) / alignment * alignment);
    }
    buffer.offset = offset;
    arena = std::max(arena, offset + buffer.bytes);
    placed.push_back(&buffer);
  }
  return (arena + alignment - 1) / alignment * alignment;
}

}  // namespace halograd
