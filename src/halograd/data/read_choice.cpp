#include "halograd/data/read_choice.hpp"

#include "halograd/core/system.hpp"
#include "halograd/data/hyperslab.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

namespace halograd {
namespace {

constexpr int timed_readings = 2;
constexpr double worth_changing = 0.9;  // of the time: within noise the simpler way, tried first, stays

/// What each rank of a group owns of a sample that is as deep as may be probed.
struct Probe {
  GlobalShape sample;
  std::vector<Box> owned;
};

/// The same grid over fewer depth planes, its cuts on chunks where there are any: a sample of at most `limit` bytes, or
/// of one unit a part.
Probe probe_of(const GroupReader& reader, const SamplePlace& place, std::int64_t limit) {
  Probe probe{reader.sample(), reader.owned()};
  Extent& extent = probe.sample.extent;
  std::set<std::int64_t> cuts{0, extent.d};
  for (const Box& box : probe.owned) {
    if (!box.empty()) cuts.insert({box.lo.d, box.hi.d});
  }
  const std::int64_t unit = place.layout.image.chunked ? place.layout.image.chunk.d : 1;
  const auto parts = static_cast<std::int64_t>(cuts.size()) - 1;
  const std::int64_t plane =
      hyperslab_bytes(place.layout.sample(), probe.sample.channels, Box::whole({1, extent.h, extent.w}));
  const std::int64_t each = std::max(limit / (plane * unit * parts), std::int64_t{1}) * unit;
  const std::int64_t before = place.origin.d % unit;  // of the chunk in which the sample begins
  if (each * parts - before >= extent.d) return probe;
  const auto moved = [&](std::int64_t cut) {
    const auto index = static_cast<std::int64_t>(std::distance(cuts.begin(), cuts.find(cut)));
    return index == 0 ? 0 : index * each - before;
  };
  for (Box& box : probe.owned) {
    if (box.empty()) continue;
    box.lo.d = moved(box.lo.d);
    box.hi.d = moved(box.hi.d);
  }
  extent.d = moved(extent.d);
  return probe;
}

bool whole_planes(const GroupReader& reader) {
  const Extent& sample = reader.sample().extent;
  return std::ranges::all_of(reader.owned(), [&](const Box& box) {
    return box.empty() || (box.extent().h == sample.h && box.extent().w == sample.w);
  });
}

/// Seconds of the slowest rank.
double time_of(const Communicator& world, GroupReader& reader, const SamplePlace& place, const ReadPlan& plan,
               std::byte* to) {
  double seconds = 0;
  world.barrier();
  agree(world, [&] {
    const double start = now_seconds();
    reader.read(place, plan, to);
    seconds = now_seconds() - start;
  });
  return world.all_reduce_max(seconds);
}

/// Each driver in turn, reading in the one shape.
ReadChoice fastest(const Communicator& world, GroupReader& reader, const SamplePlace& place, ReadShape shape,
                   std::int64_t limit) {
  const Probe probe = probe_of(reader, place, limit);
  GroupReader trial(reader.group(), probe.sample, probe.owned);
  const SampleLayout layout = place.layout.sample();
  std::vector<std::byte> buffer(static_cast<std::size_t>(hyperslab_bytes(layout, probe.sample.channels, trial.own())));
  const std::int64_t bytes = hyperslab_bytes(layout, probe.sample.channels, Box::whole(probe.sample.extent));

  ReadChoice choice;
  double best = std::numeric_limits<double>::infinity();
  for (const ReadDriver driver : {ReadDriver::posix, ReadDriver::mpi_independent, ReadDriver::mpi_collective}) {
    const ReadPlan plan{driver, shape};
    time_of(world, trial, place, plan, buffer.data());  // warms the page cache
    double seconds = std::numeric_limits<double>::infinity();
    for (int i = 0; i < timed_readings; ++i) {
      seconds = std::min(seconds, time_of(world, trial, place, plan, buffer.data()));
    }
    choice.why +=
        fmt::format("{}{:.2g}{} {}", choice.why.empty() ? "" : ", ", static_cast<double>(bytes) * 1e-9 / seconds,
                    choice.why.empty() ? " GB/s" : "", driver_name(driver));
    if (seconds > worth_changing * best) continue;
    best = seconds;
    choice.plan = plan;
  }
  choice.probe_bytes = trial.bytes_read();
  return choice;
}

}  // namespace

ReadChoice choose_read_plan(const Communicator& world, GroupReader& reader, const SamplePlace& place,
                            const ReadOptions& options) {
  const ReadDriver by_rule = options.driver.value_or(ReadDriver::posix);
  require_driver(by_rule);
  if (options.whole_samples) return {{by_rule, ReadShape::sample}, "each group's first rank reads whole samples"};
  if (reader.owned().size() == 1) return {{by_rule, ReadShape::boxes}, "each group is one rank"};
  if (!place.layout.image.chunked && whole_planes(reader)) {
    return {{by_rule, ReadShape::boxes}, "a depth cut of a contiguous file: each rank reads one run"};
  }
  const bool slow = boxes_are_slow(place.layout.image, place.origin, reader.sample().extent, reader.owned());
  const ReadShape shape = slow ? ReadShape::blocks : ReadShape::boxes;
  const std::string reason = !slow                        ? "own boxes suit the files"
                             : place.layout.image.chunked ? "own boxes would share chunks"
                                                          : "own boxes would be read in short runs";
  if (options.driver || !mpi_drivers_available()) return {{by_rule, shape}, reason};
  ReadChoice choice = fastest(world, reader, place, shape, options.probe_limit);
  choice.why = reason + "; " + choice.why;
  return choice;
}

}  // namespace halograd
