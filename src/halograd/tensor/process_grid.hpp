#pragma once

#include "halograd/tensor/shape.hpp"

#include <string>
#include <string_view>

namespace halograd {

/// Where a rank stands: its data-parallel group and its place in the spatial group.
struct GridPlace {
  std::int64_t group = 0;
  Index place;
  friend bool operator==(const GridPlace&, const GridPlace&) = default;
};

/// The ranks as `data` groups of depth × height × width; a group's ranks are neighbours in rank order, width fastest,
/// so that a node holds whole groups where they fit.
struct ProcessGrid {
  std::int64_t data = 1;
  std::int64_t depth = 1;
  std::int64_t height = 1;
  std::int64_t width = 1;

  [[nodiscard]] Extent spatial() const { return {depth, height, width}; }
  [[nodiscard]] std::int64_t spatial_size() const { return depth * height * width; }
  [[nodiscard]] std::int64_t size() const { return data * spatial_size(); }
  [[nodiscard]] GridPlace place(std::int64_t rank) const;
  [[nodiscard]] std::int64_t rank(const GridPlace& place) const;
  [[nodiscard]] std::string spatial_name() const;  ///< "2x1x1"

  /// The grid whose spatial part is `text` ("DxHxW") on `ranks` ranks; the ranks left over are data-parallel groups.
  /// Throws UsageError where the text is no grid or does not divide the ranks.
  static ProcessGrid parse(std::string_view text, std::int64_t ranks);
};

/// Samples of a mini-batch of `batch` that group `group` of `groups` trains: the first of them, and how many. Every
/// group gets batch / groups of them and the first batch % groups groups one more.
struct SampleRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};
SampleRange group_samples(std::int64_t batch, std::int64_t groups, std::int64_t group);

}  // namespace halograd
