#pragma once

#include "halograd/plan/plan.hpp"

namespace halograd {

/// Fills in when each buffer lives, from the steps that touch it, and where it lies: largest first, each at the lowest
/// offset that is free for its whole life, offsets rounded up to `alignment`. `pinned` ones live throughout; external
/// ones get no place. Returns the arena's size.
std::int64_t place_buffers(const std::vector<Step>& steps, const std::vector<BufferId>& pinned, std::int64_t alignment,
                           std::vector<BufferPlan>& buffers);

}  // namespace halograd
