#pragma once

#include "halograd/device/queue.hpp"

#include <functional>

namespace halograd {

/// How often work that takes so long by itself is listed between two synchronizations, so that their cost does not
/// count: 20 times at most.
int calls_between_synchronizations(double seconds);

/// The least time in seconds that `work`, which lists something on the queue, takes the device: the best of
/// `repetitions`, each the mean of several calls between two synchronizations. Recorded and launched where the queue
/// can record, so that the host's calls do not count either. The first calls, which load kernels, are not measured.
/// Throws what `work` throws, and ResourceError where the device reports a failure.
double best_seconds(const Queue& queue, const std::function<void()>& work, int repetitions);

}  // namespace halograd
