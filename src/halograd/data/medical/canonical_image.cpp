#include "halograd/data/medical/canonical_image.hpp"

#include "halograd/core/error.hpp"
#include "halograd/data/medical/nifti_volume.hpp"
#include "halograd/data/medical/resample.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace halograd {
namespace {

constexpr double smallest = std::numeric_limits<std::int16_t>::min();
constexpr double largest = std::numeric_limits<std::int16_t>::max();

struct Range {
  double lowest = std::numeric_limits<double>::infinity();
  double highest = -std::numeric_limits<double>::infinity();
  bool whole = true;
};

template <typename T>
Range range_of(std::span<const T> voxels, const NiftiHeader& header) {
  std::vector<Range> parts(static_cast<std::size_t>(thread_count()));
  parallel_ranges(static_cast<std::int64_t>(voxels.size()), [&](std::int64_t begin, std::int64_t end, int thread) {
    Range range;
    for (std::int64_t i = begin; i < end; ++i) {
      const double value = header.value(static_cast<double>(voxels[static_cast<std::size_t>(i)]));
      range.lowest = std::min(range.lowest, value);
      range.highest = std::max(range.highest, value);
      range.whole = range.whole && std::nearbyint(value) == value;
    }
    parts[static_cast<std::size_t>(thread)] = range;
  });
  Range all;
  for (const Range& part : parts) {
    all.lowest = std::min(all.lowest, part.lowest);
    all.highest = std::max(all.highest, part.highest);
    all.whole = all.whole && part.whole;
  }
  return all;
}

}  // namespace

std::int16_t ImageEncoding::encode(double value) const {
  return static_cast<std::int16_t>(std::clamp(std::nearbyint((value - offset) / scale), smallest, largest));
}

ImageEncoding choose_encoding(double lowest, double highest, bool whole) {
  if (whole && lowest >= smallest && highest <= largest) return {};
  if (whole && highest - lowest <= largest - smallest) return {1, lowest - smallest};
  const double step = (highest - lowest) / (largest - smallest);
  if (!(step > 0)) return {1, lowest};
  return {step, lowest - smallest * step};
}

CanonicalImage load_canonical_image(const std::filesystem::path& file, std::int64_t width) {
  return load_canonical_image(file, read_nifti_header(file), width);
}

CanonicalImage load_canonical_image(const std::filesystem::path& file, const NiftiHeader& header, std::int64_t width) {
  const NiftiVoxels voxels = read_nifti_voxels(file, header);
  CanonicalImage image{.original = header, .width = width};
  image.voxels.resize(static_cast<std::size_t>(width * width * width));
  const CanonicalView view = canonical_view(header.shape, orientation_of(header.affine));
  std::visit(
      [&]<typename T>(const std::vector<T>& stored) {
        const Range range = range_of(std::span<const T>(stored), header);
        if (!std::isfinite(range.lowest) || !std::isfinite(range.highest)) {
          if (header.slope == 1 && header.intercept == 0) {
            throw DataError("{}: a voxel's value does not fit a 32-bit float; expected values to {:.2g}", file.string(),
                            std::numeric_limits<float>::max());
          }
          throw DataError("{}: its slope {} and intercept {} give values that are not finite; expected finite ones",
                          file.string(), header.slope, header.intercept);
        }
        image.encoding = choose_encoding(range.lowest, range.highest, range.whole);
        const auto encode = [&](double value) { return image.encoding.encode(header.value(value)); };
        resample_linear(std::span<const T>(stored), view, width, encode, std::span(image.voxels));
      },
      voxels);
  return image;
}

}  // namespace halograd
