#include "halograd/data/synthetic/plain_sample.hpp"

#include "halograd/core/durable_file.hpp"
#include "halograd/core/error.hpp"
#include "halograd/core/parallel.hpp"
#include "halograd/core/random.hpp"
#include "halograd/data/hdf5_image.hpp"

#include <array>
#include <vector>

namespace halograd {
namespace {

hsize_t size(std::int64_t n) {
  return static_cast<hsize_t>(n);
}

std::array<hsize_t, 4> ordered(bool channels_first, const Extent& e, std::int64_t channels) {
  if (channels_first) return {size(channels), size(e.d), size(e.h), size(e.w)};
  return {size(e.d), size(e.h), size(e.w), size(channels)};
}

/// Counts from 0 to 15, as most voxels of a universe hold.
std::vector<std::uint16_t> counts_of(const PlainSample& sample) {
  const std::int64_t elements = sample.shape.channels * sample.shape.extent.volume();
  std::vector<std::uint16_t> counts(static_cast<std::size_t>(elements));
  const RandomStream stream = random_stream(sample.seed, RandomPurpose::synthetic);
  // One draw gives eight of them.
  parallel_for((elements + 7) / 8, [&](std::int64_t block) {
    const std::uint32_t bits = stream.bits(static_cast<std::uint64_t>(block));
    for (std::int64_t i = 8 * block; i < std::min(elements, 8 * block + 8); ++i) {
      counts[static_cast<std::size_t>(i)] = static_cast<std::uint16_t>((bits >> (4 * (i % 8))) & 15U);
    }
  });
  return counts;
}

void require(bool done, const std::filesystem::path& file) {
  if (!done) throw ResourceError("can't write {}: {}", file.string(), hdf5_reason());
}

void write_contents(hid_t id, const PlainSample& sample, const std::filesystem::path& file) {
  const std::array<hsize_t, 4> dims = ordered(sample.channels_first, sample.shape.extent, sample.shape.channels);
  const Hdf5Handle space(H5Screate_simple(4, dims.data(), nullptr), H5Sclose);
  const Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  require(H5Pset_fill_time(creation.id(), H5D_FILL_TIME_NEVER) >= 0, file);
  if (sample.chunk.volume() > 0) {
    const std::array<hsize_t, 4> chunk = ordered(sample.channels_first, sample.chunk, sample.shape.channels);
    require(H5Pset_chunk(creation.id(), 4, chunk.data()) >= 0, file);
  }
  if (sample.gzip > 0) require(H5Pset_deflate(creation.id(), static_cast<unsigned>(sample.gzip)) >= 0, file);
  const Hdf5Handle full(H5Dcreate2(id, "full", H5T_STD_U16LE, space.id(), H5P_DEFAULT, creation.id(), H5P_DEFAULT),
                        H5Dclose);
  const std::vector<std::uint16_t> counts = counts_of(sample);
  require(full.valid() && H5Dwrite(full.id(), H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, counts.data()) >= 0,
          file);
  const hsize_t four = 4;
  const std::array<float, 4> targets{};
  const Hdf5Handle line(H5Screate_simple(1, &four, nullptr), H5Sclose);
  const Hdf5Handle parameters(
      H5Dcreate2(id, "unitPar", H5T_IEEE_F32LE, line.id(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Dclose);
  require(parameters.valid() &&
              H5Dwrite(parameters.id(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, targets.data()) >= 0,
          file);
}

}  // namespace

void write_plain_sample(const PlainSample& sample, const std::filesystem::path& file) {
  const Hdf5Lock lock;
  const Hdf5Image image(file);
  write_contents(image.id(), sample, file);
  write_file(file, image.bytes(), file.string());
}

}  // namespace halograd
