#include "halograd/data/medical/synthetic_scan.hpp"

#include "halograd/core/error.hpp"
#include "halograd/core/parallel.hpp"
#include "halograd/core/random.hpp"
#include "halograd/data/medical/anatomy.hpp"
#include "halograd/data/medical/nifti_volume.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <system_error>

namespace halograd {
namespace {

// Each scan has streams of its own among the 2^24 of its purpose, with steps that the universes don't use.
constexpr std::int64_t max_index = (std::int64_t{1} << 24) - 1;
constexpr std::uint32_t anatomy_step = 0x4C695401;
constexpr std::uint32_t scanner_step = 0x4C695402;
constexpr std::uint32_t noise_step = 0x4C695403;

RandomStream stream_of(std::uint64_t seed, std::int64_t index, std::uint32_t step) {
  return random_stream(seed, RandomPurpose::synthetic, static_cast<std::uint32_t>(index), step);
}

/// What differs from scanner to scanner.
struct Scanner {
  Extent extent;
  std::array<double, 3> spacing{};  ///< along D, H, W
  Orientation orientation;
  double noise = 0;

  [[nodiscard]] FileShape shape() const {
    FileShape shape{};
    for (int d = 0; d < 3; ++d) {
      shape[static_cast<std::size_t>(orientation.axis[static_cast<std::size_t>(d)])] = extent[d];
    }
    return shape;
  }

  /// From the file's axes; the middle of the volume is the origin.
  [[nodiscard]] Affine affine() const {
    Affine affine{};
    affine[3][3] = 1;
    for (std::size_t d = 0; d < 3; ++d) {
      const double step = orientation.reversed[d] ? -spacing[d] : spacing[d];
      affine[2 - d][static_cast<std::size_t>(orientation.axis[d])] = step;
      affine[2 - d][3] = -step * static_cast<double>(extent[static_cast<int>(d)] - 1) / 2;
    }
    return affine;
  }
};

Scanner draw_scanner(std::int64_t width, std::uint64_t seed, std::int64_t index) {
  const RandomStream stream = stream_of(seed, index, scanner_step);
  const auto between = [&](std::uint64_t at, double low, double high) {
    return low + (high - low) * stream.uniform53(at);
  };
  const auto slices = std::lround(static_cast<double>(width) * between(0, 0.6, 1.4));
  Scanner scanner;
  scanner.extent = {slices, width, width};
  const double across = 360 * between(1, 0.9, 1.1) / static_cast<double>(width);
  scanner.spacing = {300 * between(2, 0.9, 1.1) / static_cast<double>(slices), across, across};
  // LAS, RAS, LPS, and PIR, whose slices are sagittal.
  constexpr std::array<Orientation, 4> orientations = {{{{2, 1, 0}, {false, false, true}},
                                                        {{2, 1, 0}, {false, false, false}},
                                                        {{2, 1, 0}, {false, true, true}},
                                                        {{1, 0, 2}, {true, true, false}}}};
  scanner.orientation = orientations[static_cast<std::size_t>(index) % orientations.size()];
  scanner.noise = between(3, 15, 20);
  return scanner;
}

/// Weights 1/4, 1/2, 1/4 along one of a volume's dimensions, its ends continued.
void blur(std::vector<float>& values, const Extent& extent, int dimension) {
  const Extent strides{extent.h * extent.w, extent.w, 1};
  const std::int64_t n = extent[dimension];
  const std::int64_t stride = strides[dimension];
  parallel_for(extent.volume() / n, [&](std::int64_t line) {
    float* const start = values.data() + line / stride * stride * n + line % stride;
    float before = start[0];
    for (std::int64_t i = 0; i < n; ++i) {
      const float own = start[i * stride];
      const float after = start[std::min(i + 1, n - 1) * stride];
      start[i * stride] = 0.25F * before + 0.5F * own + 0.25F * after;
      before = own;
    }
  });
}

/// Two normally distributed numbers (Box and Muller) of two random words.
std::array<double, 2> normals(std::uint32_t a, std::uint32_t b) {
  const double radius = std::sqrt(-2 * std::log((static_cast<double>(a) + 1) * 0x1p-32));
  const double angle = 2 * std::numbers::pi * 0x1p-32 * static_cast<double>(b);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

void add_noise(std::vector<float>& values, double sigma, const RandomStream& stream) {
  const auto count = static_cast<std::int64_t>(values.size());
  parallel_for((count + 3) / 4, [&](std::int64_t block) {
    const auto words =
        philox(stream.seed, (std::uint64_t{stream.purpose} << 32) | stream.step, static_cast<std::uint64_t>(block));
    const std::array<std::array<double, 2>, 2> pairs = {normals(words[0], words[1]), normals(words[2], words[3])};
    for (std::int64_t i = 4 * block; i < std::min(count, 4 * block + 4); ++i) {
      const auto part = static_cast<std::size_t>(i % 4);
      values[static_cast<std::size_t>(i)] += static_cast<float>(sigma * pairs[part / 2][part % 2]);
    }
  });
}

double place(std::int64_t i, std::int64_t n) {
  return static_cast<double>(2 * i + 1) / static_cast<double>(n) - 1;
}

void check_options(const LitsSynthesis& synthesis) {
  if (synthesis.count < 1 || synthesis.count > max_index) {
    throw UsageError("the count of scans is {}; it must be 1 to {}", synthesis.count, max_index);
  }
  if (synthesis.first < 0 || synthesis.first > max_index - synthesis.count) {
    throw UsageError("the first scan is {}; it must be 0 to {}", synthesis.first, max_index - synthesis.count);
  }
  if (synthesis.width < 16 || synthesis.width > 1024) {
    throw UsageError("the width is {}; it must be 16 to 1024", synthesis.width);
  }
  if (synthesis.ranks < 1 || synthesis.rank < 0 || synthesis.rank >= synthesis.ranks) {
    throw UsageError("rank {} of {} ranks; it must be 0 to ranks - 1", synthesis.rank, synthesis.ranks);
  }
  if (synthesis.directory.empty()) throw UsageError("no directory to write scans to; name one");
}

}  // namespace

SyntheticScan make_scan(std::int64_t width, std::uint64_t seed, std::int64_t index) {
  const Scanner scanner = draw_scanner(width, seed, index);
  const Extent& extent = scanner.extent;
  // Three voxels across, whatever the width.
  const Anatomy anatomy = draw_anatomy(stream_of(seed, index, anatomy_step), 3 / static_cast<double>(width));
  SyntheticScan scan{.geometry = make_nifti_header(scanner.shape(), scanner.affine())};
  const CanonicalView view = canonical_view(scan.geometry.shape, scanner.orientation);
  const auto voxels = static_cast<std::size_t>(extent.volume());
  std::vector<float> values(voxels);
  scan.labels.resize(voxels);
  parallel_for(extent.d * extent.h, [&](std::int64_t row) {
    const std::int64_t d = row / extent.h;
    const std::int64_t h = row % extent.h;
    for (std::int64_t w = 0; w < extent.w; ++w) {
      const BodyPart part = part_at(anatomy, {place(w, extent.w), place(h, extent.h), place(d, extent.d)});
      values[static_cast<std::size_t>(row * extent.w + w)] = static_cast<float>(part.hounsfield);
      scan.labels[static_cast<std::size_t>(view.at(d, h, w))] = part.label;
    }
  });
  for (int dimension = 0; dimension < 3; ++dimension) blur(values, extent, dimension);
  add_noise(values, scanner.noise, stream_of(seed, index, noise_step));
  scan.voxels.resize(voxels);
  parallel_for(extent.d * extent.h, [&](std::int64_t row) {
    for (std::int64_t w = 0; w < extent.w; ++w) {
      const float value = values[static_cast<std::size_t>(row * extent.w + w)];
      scan.voxels[static_cast<std::size_t>(view.at(row / extent.h, row % extent.h, w))] =
          static_cast<std::int16_t>(std::lround(std::clamp(value, -1024.0F, 3071.0F)));
    }
  });
  return scan;
}

void synthesize_lits(const LitsSynthesis& synthesis,
                     const std::function<void(std::int64_t done, std::int64_t total)>& progress) {
  check_options(synthesis);
  std::error_code error;
  std::filesystem::create_directories(synthesis.directory, error);
  if (error || !std::filesystem::is_directory(synthesis.directory)) {
    throw DataError("can't make the directory {}: {}", synthesis.directory.string(),
                    error ? error.message() : "something else has its name");
  }
  std::vector<std::int64_t> mine;
  for (std::int64_t index = synthesis.first; index < synthesis.first + synthesis.count; ++index) {
    if (index % synthesis.ranks == synthesis.rank) mine.push_back(index);
  }
  std::int64_t done = 0;
  for (const std::int64_t index : mine) {
    const SyntheticScan scan = make_scan(synthesis.width, synthesis.seed, index);
    write_nifti(synthesis.directory / fmt::format("volume-{}.nii.gz", index), scan.geometry, std::span(scan.voxels));
    write_nifti(synthesis.directory / fmt::format("segmentation-{}.nii.gz", index), scan.geometry,
                std::span(scan.labels));
    ++done;
    if (progress) progress(done, static_cast<std::int64_t>(mine.size()));
  }
}

}  // namespace halograd
