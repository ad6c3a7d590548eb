#include "halograd/tensor/process_grid.hpp"

#include "halograd/core/error.hpp"

#include <algorithm>
#include <charconv>

namespace halograd {

GridPlace ProcessGrid::place(std::int64_t rank) const {
  const std::int64_t spatial = rank % spatial_size();
  return {rank / spatial_size(), {spatial / (height * width), spatial / width % height, spatial % width}};
}

std::int64_t ProcessGrid::rank(const GridPlace& at) const {
  return ((at.group * depth + at.place.d) * height + at.place.h) * width + at.place.w;
}

std::string ProcessGrid::spatial_name() const {
  return fmt::format("{}x{}x{}", depth, height, width);
}

ProcessGrid ProcessGrid::parse(std::string_view text, std::int64_t ranks) {
  Extent parts;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int i = 0; i < 3; ++i) {
    const auto [next, failure] = std::from_chars(at, end, parts[i]);
    const bool separated = i < 2 ? (next != end && *next == 'x') : next == end;
    if (failure != std::errc{} || parts[i] < 1 || parts[i] > ranks || !separated) {
      throw UsageError("grid '{}' is not DEPTHxHEIGHTxWIDTH with each part between 1 and the {} rank{} there {}", text,
                       ranks, ranks == 1 ? "" : "s", ranks == 1 ? "is" : "are");
    }
    at = next + 1;
  }
  if (ranks % parts.volume() != 0) {
    throw UsageError("grid {} needs a multiple of {} ranks, but there are {}", text, parts.volume(), ranks);
  }
  return {ranks / parts.volume(), parts.d, parts.h, parts.w};
}

SampleRange group_samples(std::int64_t batch, std::int64_t groups, std::int64_t group) {
  const std::int64_t share = batch / groups;
  const std::int64_t more = batch % groups;
  return {group * share + std::min(group, more), share + (group < more ? 1 : 0)};
}

}  // namespace halograd
