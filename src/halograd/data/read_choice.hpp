#pragma once

#include "halograd/data/group_reader.hpp"

#include <optional>
#include <string>

namespace halograd {

/// What the configuration says of reading.
struct ReadOptions {
  bool whole_samples = false;                          ///< data.io = "sample": the baseline
  std::optional<ReadDriver> driver{};                  ///< nothing: "auto"
  std::int64_t probe_limit = std::int64_t{256} << 20;  ///< bytes of a sample that one reading to find out may take
};

struct ReadChoice {
  ReadPlan plan;
  std::string why;               ///< for the log, one line
  std::int64_t probe_bytes = 0;  ///< read from the file by this rank to find out
};

/// Collective over `world`, of whose groups `reader` is this rank's own. Picks shape and driver for samples that lie in
/// their files as `place` does. The shape is a rule: blocks where boxes_are_slow says so, so that no byte is taken from
/// a file twice. The driver is found out by reading `place` a few times with each, where there is something to weigh,
/// as what is fastest on the slowest rank; POSIX stays unless another is faster by a tenth. The same choice on all
/// ranks. What `options` fixes stays fixed. Throws DataError on all ranks alike.
ReadChoice choose_read_plan(const Communicator& world, GroupReader& reader, const SamplePlace& place,
                            const ReadOptions& options);

}  // namespace halograd
