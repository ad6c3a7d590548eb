#pragma once

#include "halograd/tensor/shape.hpp"

#include <cstdint>
#include <filesystem>

namespace halograd {

/// A sample file of no meaning but of a given layout: small random counts, unsigned 16-bit.
struct PlainSample {
  GlobalShape shape;
  bool channels_first = false;
  Extent chunk{};  ///< all 0: contiguous; chunks hold all channels
  int gzip = 0;    ///< level; 0: not compressed
  std::uint64_t seed = 1;
};

/// Writes `sample` to `file`, with targets. It is made in memory first. Not collective. Throws ResourceError.
void write_plain_sample(const PlainSample& sample, const std::filesystem::path& file);

}  // namespace halograd
