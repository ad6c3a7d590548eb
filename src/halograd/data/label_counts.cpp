#include "halograd/data/label_counts.hpp"

#include "halograd/core/error.hpp"
#include "halograd/data/hdf5_handle.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace halograd {
namespace {

constexpr hsize_t labels_at_once = hsize_t{16} << 20;

/// Leading rows of a dataset to read together: about so many labels, whole chunks.
hsize_t rows_at_once(const std::vector<hsize_t>& dims, hid_t dataset) {
  const Hdf5Handle creation(H5Dget_create_plist(dataset), H5Pclose);
  const std::vector<hsize_t> chunk = hdf5_chunk_dims(creation.id());
  const hsize_t unit = chunk.empty() ? 1 : chunk.front();
  const hsize_t row = std::accumulate(dims.begin() + 1, dims.end(), hsize_t{1}, std::multiplies<>());
  return std::max(labels_at_once / std::max(row * unit, hsize_t{1}), hsize_t{1}) * unit;
}

}  // namespace

std::optional<LabelCounts> count_labels(const std::string& file) {
  const char* const name = "segmentation";
  const Hdf5Lock lock;
  const Hdf5Handle handle = open_hdf5_file(file);
  if (H5Lexists(handle.id(), name, H5P_DEFAULT) <= 0) return std::nullopt;
  const Hdf5Handle dataset(H5Dopen2(handle.id(), name, H5P_DEFAULT), H5Dclose);
  if (!dataset.valid()) return std::nullopt;
  const Hdf5Handle type(H5Dget_type(dataset.id()), H5Tclose);
  const Hdf5Handle space(H5Dget_space(dataset.id()), H5Sclose);
  const std::vector<hsize_t> dims = hdf5_dims(space.id());
  if (hdf5_dtype(type.id()) != DType::u8 || dims.empty()) return std::nullopt;

  LabelCounts counts{};
  std::vector<std::uint8_t> labels;
  std::vector<hsize_t> start(dims.size(), 0);
  std::vector<hsize_t> count = dims;
  const hsize_t rows = rows_at_once(dims, dataset.id());
  for (; start[0] < dims[0]; start[0] += rows) {
    count[0] = std::min(rows, dims[0] - start[0]);
    labels.resize(std::accumulate(count.begin(), count.end(), hsize_t{1}, std::multiplies<>()));
    H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
    const Hdf5Handle memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), H5Sclose);
    if (H5Dread(dataset.id(), H5T_NATIVE_UINT8, memory.id(), space.id(), H5P_DEFAULT, labels.data()) < 0) {
      throw DataError("{}: `{}` cannot be read ({}); expected undamaged labels", file, name, hdf5_reason());
    }
    for (const std::uint8_t label : labels) ++counts[label];
  }
  return counts;
}

std::string to_text(const LabelCounts& counts) {
  const std::int64_t all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  std::vector<std::string> texts;
  for (std::size_t label = 0; label < counts.size(); ++label) {
    if (counts[label] == 0) continue;
    const double share = 100 * static_cast<double>(counts[label]) / static_cast<double>(all);
    texts.push_back(
        fmt::format("{} in {:.3g} %{} ({})", label, share, texts.empty() ? " of the voxels" : "", counts[label]));
  }
  return fmt::format("labels: {}", fmt::join(texts, ", "));
}

}  // namespace halograd
