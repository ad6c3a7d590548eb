#include "halograd/tensor/partition.hpp"

#include "halograd/core/error.hpp"

namespace halograd {
namespace {

constexpr std::array dimension_names{"depth", "height", "width"};

std::vector<std::int64_t> even_cuts(std::int64_t extent, std::int64_t parts, std::int64_t alignment) {
  const auto largest = [&](std::int64_t unit) { return ((extent + unit - 1) / unit + parts - 1) / parts * unit; };
  std::int64_t unit = alignment;
  while (unit > 1 && (extent / unit < parts || 10 * largest(unit) * parts > 11 * extent)) {
    unit = unit % 2 == 0 ? unit / 2 : 1;
  }
  const std::int64_t units = (extent + unit - 1) / unit;
  std::vector<std::int64_t> cuts{0};
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::int64_t share = units / parts + (i < units % parts ? 1 : 0);
    cuts.push_back(std::min(extent, cuts.back() + share * unit));
  }
  return cuts;
}

}  // namespace

Partition::Partition(std::array<std::vector<std::int64_t>, 3> cuts) : cuts_(std::move(cuts)) {}

Partition Partition::whole(const Extent& extent) {
  return Partition({std::vector<std::int64_t>{0, extent.d}, {0, extent.h}, {0, extent.w}});
}

Partition Partition::even(const Extent& extent, const Extent& parts, const Extent& alignment) {
  std::array<std::vector<std::int64_t>, 3> cuts;
  for (int i = 0; i < 3; ++i) {
    if (extent[i] < parts[i]) {
      throw UsageError("a {} of {} voxels can't be split {} ways: take a grid with at most {} there",
                       dimension_names[static_cast<std::size_t>(i)], extent[i], parts[i], extent[i]);
    }
    cuts[static_cast<std::size_t>(i)] = even_cuts(extent[i], parts[i], alignment[i]);
  }
  return Partition(std::move(cuts));
}

Partition Partition::derive(const Window& window) const {
  const Extent output = window.output_extent(extent());
  std::array<std::vector<std::int64_t>, 3> cuts;
  for (int i = 0; i < 3; ++i) {
    auto& list = cuts[static_cast<std::size_t>(i)];
    for (const std::int64_t cut : cuts_[static_cast<std::size_t>(i)]) {
      if (window.transposed) {
        list.push_back(std::min(cut * window.stride[i], output[i]));
        continue;
      }
      // The first output whose home is not below the cut: ⌈(cut − home(0)) / stride⌉.
      const std::int64_t distance = cut - window.home(i, 0);
      const std::int64_t first = distance <= 0 ? 0 : (distance + window.stride[i] - 1) / window.stride[i];
      list.push_back(std::min(first, output[i]));
    }
    list.front() = 0;
    list.back() = output[i];
  }
  return Partition(std::move(cuts));
}

Partition Partition::coarsen(const Extent& parts_wanted) const {
  const Extent have = parts();
  std::array<std::vector<std::int64_t>, 3> cuts;
  for (int i = 0; i < 3; ++i) {
    const auto& ours = cuts_[static_cast<std::size_t>(i)];
    const std::int64_t joined = have[i] / parts_wanted[i];
    for (std::int64_t part = 0; part <= parts_wanted[i]; ++part) {
      cuts[static_cast<std::size_t>(i)].push_back(ours[static_cast<std::size_t>(part * joined)]);
    }
  }
  return Partition(std::move(cuts));
}

Extent Partition::extent() const {
  return {cuts_[0].back(), cuts_[1].back(), cuts_[2].back()};
}

Extent Partition::parts() const {
  Extent parts;
  for (int i = 0; i < 3; ++i) parts[i] = static_cast<std::int64_t>(cuts_[static_cast<std::size_t>(i)].size()) - 1;
  return parts;
}

Box Partition::box(const Index& part) const {
  Box box;
  for (int i = 0; i < 3; ++i) {
    const auto& cuts = cuts_[static_cast<std::size_t>(i)];
    box.lo[i] = cuts[static_cast<std::size_t>(part[i])];
    box.hi[i] = cuts[static_cast<std::size_t>(part[i] + 1)];
  }
  return box;
}

std::string Partition::name() const {
  return fmt::format("{}x{}x{}", parts().d, parts().h, parts().w);
}

Halo halo_of(const Partition& input, const Partition& output, const Window& window, const Index& part) {
  const Box own = input.box(part);
  const Box needed = window.input_needed(output.box(part), input.extent());
  Halo halo;
  for (int i = 0; i < 3; ++i) {
    halo.lo[i] = std::max<std::int64_t>(0, own.lo[i] - needed.lo[i]);
    halo.hi[i] = std::max<std::int64_t>(0, needed.hi[i] - own.hi[i]);
  }
  return halo;
}

bool halos_fit(const Partition& input, const Partition& output, const Window& window) {
  const Extent parts = input.parts();
  for (int i = 0; i < 3; ++i) {
    for (std::int64_t part = 0; part < parts[i]; ++part) {
      Index at;
      at[i] = part;
      const auto size = [&](const Partition& partition, std::int64_t which) {
        Index index;
        index[i] = which;
        return partition.box(index).extent()[i];
      };
      if (size(input, part) < 1 || size(output, part) < 1) return false;
      const Halo halo = halo_of(input, output, window, at);
      if (halo.lo[i] > 0 && (part == 0 || halo.lo[i] > size(input, part - 1))) return false;
      if (halo.hi[i] > 0 && (part + 1 == parts[i] || halo.hi[i] > size(input, part + 1))) return false;
    }
  }
  return true;
}

}  // namespace halograd
