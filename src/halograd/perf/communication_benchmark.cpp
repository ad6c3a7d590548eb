#include "halograd/perf/communication_benchmark.hpp"

#include "halograd/comm/reduction.hpp"
#include "halograd/core/parallel.hpp"
#include "halograd/core/system.hpp"
#include "halograd/exec/halo_exchange.hpp"
#include "halograd/perf/fit_ranges.hpp"

#include <omp.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace halograd {

namespace {

constexpr std::int64_t face_channels = 16;
constexpr std::int64_t smallest_face = 4;  // voxels
constexpr std::int64_t largest_face = 512 * 512;

constexpr std::int64_t fewest_summed = 64;  // float32
constexpr std::int64_t most_summed = 16 * 1024 * 1024;
constexpr std::int64_t growth = 2;  // so that each range of a fit has some

constexpr int warm_up_runs = 2;
constexpr double seconds_each = 0.02;
constexpr double fewest_runs = 5;
constexpr double most_runs = 2000;

double seconds_of(const std::function<void()>& action) {
  const double begin = now_seconds();
  action();
  return now_seconds() - begin;
}

/// Collective. The median of `action` on the slowest of the ranks that take part; the others wait.
double slowest_median(const Communicator& ranks, bool takes_part, const std::function<void()>& action) {
  double fastest = takes_part ? std::numeric_limits<double>::infinity() : 0;
  for (int run = 0; takes_part && run < warm_up_runs; ++run) fastest = std::min(fastest, seconds_of(action));
  // All ranks must run it equally often.
  const double runs = std::clamp(seconds_each / ranks.all_reduce_max(fastest), fewest_runs, most_runs);
  std::vector<double> seconds;
  seconds.reserve(static_cast<std::size_t>(runs));
  ranks.barrier();
  for (int run = 0; takes_part && run < static_cast<int>(runs); ++run) seconds.push_back(seconds_of(action));
  return ranks.all_reduce_max(takes_part ? median(std::move(seconds)) : 0.0);
}

/// Square, or twice as wide as high.
Extent face_of(std::int64_t voxels) {
  Extent face{1, 1, 1};
  while (face.volume() < voxels) (face.h < face.w ? face.h : face.w) *= 2;
  return face;
}

/// Ranks 2i and 2i + 1 as neighbours in depth: each has a layer of one buffer [2, height, width, channels] and gets the
/// other's. A last rank without a neighbour has nothing to exchange.
ExchangePlan face_exchange(const Communicator& ranks, const Extent& face) {
  ExchangePlan plan{.name = "face", .samples = 1, .channels = face_channels, .phases = {{}}};
  const int peer = ranks.rank() ^ 1;
  if (peer >= ranks.size()) return plan;
  const Tile buffer{.buffer = 0, .box = {{0, 0, 0}, {2, face.h, face.w}}, .pitch = face_channels};
  const auto layer = [&](std::int64_t depth) { return Box{{depth, 0, 0}, {depth + 1, face.h, face.w}}; };
  const Box own = layer(ranks.rank() % 2);
  const Box other = layer(peer % 2);
  plan.phases.front().push_back({.peer = peer,
                                 .send_box = own,
                                 .send = {{.tile = buffer, .region = own}},
                                 .receive_box = other,
                                 .receive = {{.tile = buffer, .region = other}}});
  return plan;
}

MessageSample measure_message(const Communicator& ranks, std::int64_t voxels) {
  const ExchangePlan plan = face_exchange(ranks, face_of(voxels));
  std::vector<float> buffer;
  agree(ranks, [&] { buffer.resize(static_cast<std::size_t>(2 * voxels * face_channels)); });
  const std::array<std::byte*, 1> addresses{reinterpret_cast<std::byte*>(buffer.data())};
  HaloExchange exchange(ranks, plan);
  const bool takes_part = !plan.phases.front().empty();
  const double seconds = slowest_median(ranks, takes_part, [&] { exchange.run(addresses); });
  return {.bytes = static_cast<double>(4 * voxels * face_channels), .ranks = 2, .seconds = seconds};
}

/// Sums over groups of so many neighbouring ranks, all groups at once, as they would in a step. Ranks too few for a
/// group wait.
class GroupSums {
public:
  GroupSums(const Communicator& ranks, int group_size)
      : ranks_(ranks),
        group_(ranks.split(ranks.rank() / group_size, ranks.rank())),
        group_size_(group_size),
        sum_(group_, most_summed) {}

  [[nodiscard]] MessageSample measure(std::vector<float>& values, std::int64_t count) {
    const bool takes_part = group_.size() == group_size_;
    const double seconds = slowest_median(ranks_, takes_part, [&] { sum_.run(values.data(), count); });
    return {.bytes = static_cast<double>(4 * count), .ranks = group_size_, .seconds = seconds};
  }

private:
  const Communicator& ranks_;
  Communicator group_;
  int group_size_;
  SumReduction<float> sum_;
};

std::vector<int> group_sizes(int ranks) {
  std::vector<int> sizes;
  for (int size = 2; size < ranks; size *= 2) sizes.push_back(size);
  sizes.push_back(ranks);
  return sizes;
}

std::vector<std::int64_t> growing(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> values;
  for (std::int64_t value = first; value <= last; value *= growth) values.push_back(value);
  return values;
}

}  // namespace

CommunicationSamples measure_communication(const Communicator& ranks, const std::function<void(int, int)>& progress) {
  CommunicationSamples samples;
  if (ranks.size() == 1) return samples;
  const OneThread one_thread;
  const auto faces = growing(smallest_face, largest_face);
  const auto counts = growing(fewest_summed, most_summed);
  const auto groups = group_sizes(ranks.size());
  const auto total = static_cast<int>(faces.size() + groups.size() * counts.size());
  const auto report = [&] {
    if (progress) progress(static_cast<int>(samples.messages.size() + samples.sums.size()), total);
  };
  for (const std::int64_t voxels : faces) {
    samples.messages.push_back(measure_message(ranks, voxels));
    report();
  }
  std::vector<float> values;  // zeros, so that they stay as they are
  agree(ranks, [&] { values.resize(static_cast<std::size_t>(most_summed)); });
  for (const int group_size : groups) {
    GroupSums sums(ranks, group_size);
    for (const std::int64_t count : counts) {
      samples.sums.push_back(sums.measure(values, count));
      report();
    }
  }
  return samples;
}

}  // namespace halograd
