#pragma once

#include "halograd/device/queue.hpp"

#include <cstdint>

namespace halograd::cuda {

/// What sums of two stages may leave between them.
constexpr std::int64_t scratch_doubles = std::int64_t{1} << 19;

/// The queue's scratch memory: [scratch_doubles] on its GPU, of which `doubles` are wanted. One a queue, so that what
/// runs side by side has its own; nothing stays there beyond the launches of one call. Allocated when the queue first
/// asks (in a capture of a graph too: the memory is not part of it) and kept until the process ends, because a captured
/// graph may be replayed at any time. Throws UsageError where more is wanted than there is, ResourceError where the
/// device has none left.
double* scratch_of(const Queue& queue, std::int64_t doubles);

}  // namespace halograd::cuda
