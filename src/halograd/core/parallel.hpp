#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace halograd {

/// Threads a parallel loop of this process uses (OMP_NUM_THREADS; oneDNN uses the same).
inline int thread_count() {
  return omp_get_max_threads();
}

/// From here on the calling thread runs its loops alone: for threads that work beside the computing ones.
inline void work_alone() {
  omp_set_num_threads(1);
}

/// While it lives, the calling thread runs its loops alone.
class OneThread {
public:
  OneThread() : threads_(thread_count()) { work_alone(); }
  ~OneThread() { omp_set_num_threads(threads_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

private:
  int threads_;
};

/// Calls `body(begin, end, thread)` once a thread on contiguous, near-equal parts of [0, count). Parts depend on the
/// number of threads only, so that sums per part come out the same run after run. `body` must not throw.
template <typename Body>
void parallel_ranges(std::int64_t count, const Body& body) {
  const std::int64_t parts = std::min<std::int64_t>(thread_count(), count);
  if (parts <= 1) {
    if (count > 0) body(std::int64_t{0}, count, 0);
    return;
  }
#pragma omp parallel for schedule(static, 1) num_threads(static_cast <int>(parts))
  for (std::int64_t part = 0; part < parts; ++part) {
    body(count * part / parts, count * (part + 1) / parts, static_cast<int>(part));
  }
}

/// Calls `body(i)` for i in [0, count), spread over the threads. `body` must not throw.
template <typename Body>
void parallel_for(std::int64_t count, const Body& body) {
  parallel_ranges(count, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

}  // namespace halograd
