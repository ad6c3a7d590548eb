#include "halograd/device/queue_timing.hpp"

#include "halograd/core/system.hpp"

#include <algorithm>
#include <limits>

namespace halograd {
namespace {

constexpr double long_enough = 5e-3;  // seconds; a synchronization costs some 10 µs
constexpr int most_calls = 20;

double seconds_of(const Queue& queue, const std::function<void()>& work) {
  const double start = now_seconds();
  work();
  queue.synchronize();
  return now_seconds() - start;
}

}  // namespace

int calls_between_synchronizations(double seconds) {
  if (seconds * most_calls <= long_enough) return most_calls;
  return std::max(1, static_cast<int>(long_enough / seconds));
}

double best_seconds(const Queue& queue, const std::function<void()>& work, int repetitions) {
  work();
  queue.synchronize();
  const int calls = calls_between_synchronizations(seconds_of(queue, work));
  const auto list = [&] {
    for (int i = 0; i < calls; ++i) work();
  };
  std::function<void()> run = list;
  if (queue.can_record()) {
    queue.begin_recording();
    list();
    run = [&queue, graph = queue.end_recording()] { queue.launch(graph); };
    seconds_of(queue, run);  // the first launch brings the graph to the device
  }
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < std::max(1, repetitions); ++i) best = std::min(best, seconds_of(queue, run));
  return best / calls;
}

}  // namespace halograd
