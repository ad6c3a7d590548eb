#pragma once

#include "halograd/comm/reduction.hpp"

#include <memory>

namespace halograd {

/// What a SumReduction does over one kind of transport.
template <typename T>
struct SumReduction<T>::Implementation {
  virtual ~Implementation() = default;
  virtual void run(T* values, std::int64_t count, bool contributes) = 0;
};

namespace comm {

template <typename T>
using SumPath = std::unique_ptr<typename SumReduction<T>::Implementation>;

/// Of the processor's memories, through shared memory or MPI.
template <typename T>
SumPath<T> make_host_sum(const Communicator& communicator, std::int64_t usual_count);
/// Of a device's memory through pinned host memory and a host sum.
template <typename T>
SumPath<T> make_staged_sum(const Link& link, std::int64_t usual_count);
/// By work on the link's queue alone: NCCL's, or none where the rank has no others.
template <typename T>
SumPath<T> make_queue_sum(const Link& link);

}  // namespace comm
}  // namespace halograd
