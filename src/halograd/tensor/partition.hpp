#pragma once

#include "halograd/tensor/window.hpp"

#include <array>
#include <string>
#include <vector>

namespace halograd {

/// How a volume is cut into boxes: the cut points of each dimension, first 0 and last the extent, so that part i of a
/// dimension owns [cuts[i], cuts[i+1]). A part may be empty only in a derived partition that nothing has checked yet.
class Partition {
public:
  /// One part: the volume on every rank alike.
  static Partition whole(const Extent& extent);

  /// Near-equal parts whose cuts are multiples of the largest divisor of `alignment` (a power of two times an odd rest
  /// is halved until it fits) that leaves the largest part within a tenth of the mean. Throws UsageError where a
  /// dimension has fewer voxels than parts.
  static Partition even(const Extent& extent, const Extent& parts, const Extent& alignment = Extent::cube(1));

  /// Parts at given cut points, each list from 0 to the extent and rising.
  explicit Partition(std::array<std::vector<std::int64_t>, 3> cuts);

  /// The partition of the outputs of `window` over this volume: output j lives with the input voxel it is centred on,
  /// or (transposed) output o with input ⌊o / stride⌋.
  [[nodiscard]] Partition derive(const Window& window) const;

  /// The same volume in `parts` parts that each join neighbouring parts of this one; every count must divide ours.
  [[nodiscard]] Partition coarsen(const Extent& parts) const;

  [[nodiscard]] Extent extent() const;
  [[nodiscard]] Extent parts() const;
  [[nodiscard]] Box box(const Index& part) const;
  [[nodiscard]] std::string name() const;  ///< "2x1x1"
  friend bool operator==(const Partition&, const Partition&) = default;

private:
  std::array<std::vector<std::int64_t>, 3> cuts_;
};

/// How many voxels beyond its own box a part reads on each side of each dimension (never negative).
struct Halo {
  Extent lo;
  Extent hi;
  [[nodiscard]] bool empty() const { return lo == Extent{} && hi == Extent{}; }
  friend bool operator==(const Halo&, const Halo&) = default;
};

/// The halo of `part` when `window` runs over `input` and its outputs are partitioned as `output`.
Halo halo_of(const Partition& input, const Partition& output, const Window& window, const Index& part);

/// Whether every part owns at least one input and output voxel and finds its whole halo with its nearest neighbours.
/// The answer is the same for all parts, so that all ranks compile alike.
bool halos_fit(const Partition& input, const Partition& output, const Window& window);

}  // namespace halograd
