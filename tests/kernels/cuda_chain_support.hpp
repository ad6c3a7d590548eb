#pragma once

#include "kernels/chain_support.hpp"
#include "kernels/software_launcher.hpp"

#include "halograd/core/bf16.hpp"

#include <fmt/format.h>

namespace halograd::test {

/// What activations of type T can hold of these values.
template <typename T>
std::vector<float> rounded(std::vector<float> values) {
  for (float& value : values) value = static_cast<float>(static_cast<T>(value));
  return values;
}

template <typename T>
std::vector<T> as_type(const std::vector<float>& values) {
  std::vector<T> result;
  for (const float value : values) result.push_back(static_cast<T>(value));
  return result;
}

template <typename T>
std::vector<float> as_floats(const std::vector<T>& values) {
  std::vector<float> result;
  for (const T value : values) result.push_back(static_cast<float>(value));
  return result;
}

/// A tensor over `box` in a buffer of `layout`, behind half of the spare channels; all around it stands `canary`.
template <typename T>
class TypedTensor {
public:
  TypedTensor(const ChainDesc& desc, const VoxelLayout& layout, const Box& box, const std::vector<float>& values,
              float canary)
      : desc_(desc), layout_(layout), box_(box), canary_(canary) {
    std::size_t next = 0;
    for_each_place([&](bool mine) { buffer_.push_back(static_cast<T>(mine ? values[next++] : canary)); });
  }

  [[nodiscard]] T* data() { return buffer_.data() + lead(); }
  [[nodiscard]] const T* data() const { return buffer_.data() + lead(); }

  /// The tensor, dense over its box.
  [[nodiscard]] std::vector<float> values() const {
    std::vector<float> result;
    std::size_t at = 0;
    for_each_place([&](bool mine) {
      if (mine) result.push_back(static_cast<float>(buffer_[at]));
      ++at;
    });
    return result;
  }

  /// Whether all that stands around the tensor is what stood there at first.
  [[nodiscard]] bool surroundings_kept() const {
    bool kept = true;
    std::size_t at = 0;
    const T canary = static_cast<T>(canary_);
    for_each_place([&](bool mine) {
      if (!mine && std::memcmp(&buffer_[at], &canary, sizeof(T)) != 0) kept = false;
      ++at;
    });
    return kept;
  }

private:
  [[nodiscard]] std::int64_t lead() const { return (layout_.pitch - desc_.channels) / 2; }

  template <typename Body>
  void for_each_place(const Body& body) const {
    for (std::int64_t n = 0; n < desc_.samples; ++n) {
      for_each_index(layout_.box, [&](const Index& voxel) {
        for (std::int64_t c = -lead(); c < layout_.pitch - lead(); ++c) {
          body(box_.contains(voxel) && c >= 0 && c < desc_.channels);
        }
      });
    }
  }

  ChainDesc desc_;
  VoxelLayout layout_;
  Box box_;
  float canary_;
  std::vector<T> buffer_;
};

/// A chain, and one rank's part of it.
struct PlacedChain {
  std::string name;
  ChainDesc desc;
};

inline void PrintTo(const PlacedChain& chain, std::ostream* out) {
  *out << chain.name;
}

inline std::string placed_name(const testing::TestParamInfo<PlacedChain>& info) {
  return info.param.name;
}

/// Chains that fill a block's slices of channels only in part.
inline std::vector<ChainCase> sliced_chain_cases() {
  const Window centred{Extent::cube(3), Extent::cube(2), Extent::cube(1)};
  ChainCase four{.name = "slices_of_4",
                 .samples = 2,
                 .channels = 132,
                 .extent = {3, 4, 5},
                 .normalise = true,
                 .negative_slope = 0.01F,
                 .pool = PoolKind::average,
                 .window = centred};
  ChainCase eight = four;
  eight.name = "slices_of_8";
  eight.channels = 264;
  eight.pool = PoolKind::max;
  eight.window = {Extent::cube(2), Extent::cube(2), {}};
  return {four, eight};
}

/// Every chain on one rank and every rank's part of it on several grids; of some, whose destination leaves outputs out.
inline std::vector<PlacedChain> placed_chains() {
  std::vector<ChainCase> cases = chain_cases();
  for (const ChainCase& test : sliced_chain_cases()) cases.push_back(test);
  std::vector<PlacedChain> result;
  for (const ChainCase& test : cases) {
    result.push_back({test.name, whole_chain(test)});
    ChainDesc narrow = whole_chain(test);
    narrow.dst.box = narrow.out;
    for (int i = 0; i < 3; ++i) narrow.dst.box.hi[i] = std::max<std::int64_t>(1, narrow.out.hi[i] - 1);
    result.push_back({std::string(test.name) + "_narrow", narrow});
    for (const Extent& grid : {Extent{2, 1, 1}, Extent{1, 2, 2}, Extent{3, 1, 2}, Extent{2, 2, 2}}) {
      if (test.extent.d < grid.d) continue;
      const Partition input = Partition::even(test.extent, grid);
      if (!halos_fit(input, input.derive(test.window), test.window)) continue;
      for_each_index(Box::whole(grid), [&](const Index& at) {
        result.push_back({fmt::format("{}_{}x{}x{}_at_{}{}{}", test.name, grid.d, grid.h, grid.w, at.d, at.h, at.w),
                          part_chain(test, input, at, 1)});
      });
    }
  }
  return result;
}

/// Faces with random values, or (of the buffers inside the box) gradients.
template <typename T>
Faces<float> random_faces(const ChainDesc& desc, bool inside, std::uint64_t seed) {
  Faces<float> faces;
  for (int i = 0; i < 3; ++i) {
    for (const bool high : {false, true}) {
      const Box box = inside ? returned_voxels(desc, i, high) : face_voxels(desc, i, high);
      faces.side(i, high) = rounded<T>(random_values(elements(desc, box), seed++));
    }
  }
  return faces;
}

template <typename T>
Faces<T> typed_faces(Faces<float>& faces) {
  Faces<T> result;
  for (int i = 0; i < 3; ++i) {
    for (const bool high : {false, true}) result.side(i, high) = as_type<T>(faces.side(i, high));
  }
  return result;
}

}  // namespace halograd::test
