#include "halograd/data/synthetic/cosmoflow_synthesis.hpp"

#include <system_error>

#include "halograd/core/error.hpp"
#include "halograd/data/synthetic/universe_file.hpp"

namespace halograd {
namespace {

// Each universe has a stream of its own among the 2^24 of its purpose.
constexpr std::int64_t max_index = (std::int64_t{1} << 24) - 1;

void check_options(const CosmoflowSynthesis& synthesis) {
  check_universe_options(synthesis.universe);
  if (synthesis.count < 1 || synthesis.count > max_index) {
    throw UsageError("the count of universes is {}; it must be 1 to {}", synthesis.count, max_index);
  }
  if (synthesis.first < 0 || synthesis.first > max_index - synthesis.count) {
    throw UsageError("the first universe is {}; it must be 0 to {}", synthesis.first, max_index - synthesis.count);
  }
  if (synthesis.ranks < 1 || synthesis.rank < 0 || synthesis.rank >= synthesis.ranks) {
    throw UsageError("rank {} of {} ranks; it must be 0 to ranks - 1", synthesis.rank, synthesis.ranks);
  }
  if (synthesis.directory.empty()) throw UsageError("no directory to write universes to; name one");
}

}  // namespace

void synthesize_cosmoflow(const CosmoflowSynthesis& synthesis,
                          const std::function<void(const SynthesisProgress&)>& progress) {
  check_options(synthesis);
  std::error_code error;
  std::filesystem::create_directories(synthesis.directory, error);
  if (error || !std::filesystem::is_directory(synthesis.directory)) {
    throw DataError("can't make the directory {}: {}", synthesis.directory.string(),
                    error ? error.message() : "something else has its name");
  }
  const auto is_mine = [&](std::int64_t index) { return index % synthesis.ranks == synthesis.rank; };
  SynthesisProgress now;
  for (std::int64_t i = 0; i < synthesis.count; ++i) now.total += is_mine(synthesis.first + i) ? 1 : 0;
  for (std::int64_t i = 0; i < synthesis.count; ++i) {
    now.index = synthesis.first + i;
    if (!is_mine(now.index)) continue;
    now.file = synthesis.directory / universe_file_name(now.index);
    write_universe(make_universe(synthesis.universe, now.index), now.file);
    ++now.done;
    if (progress) progress(now);
  }
}

}  // namespace halograd
