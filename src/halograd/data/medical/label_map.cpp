#include "halograd/data/medical/label_map.hpp"

#include "halograd/core/error.hpp"
#include "halograd/data/medical/nifti_volume.hpp"
#include "halograd/data/medical/resample.hpp"

namespace halograd {

std::vector<std::uint8_t> restore_labels(std::span<const std::uint8_t> labels, std::int64_t width,
                                         const NiftiHeader& original) {
  std::vector<std::uint8_t> restored(static_cast<std::size_t>(original.voxels()));
  restore_nearest(labels, width, canonical_view(original.shape, orientation_of(original.affine)), restored);
  return restored;
}

std::vector<std::uint8_t> write_label_map(const std::filesystem::path& file, std::span<const std::uint8_t> labels,
                                          std::int64_t width, const NiftiHeader& original) {
  if (!has_nifti_name(file)) {
    throw UsageError("{}: a label map can't have that name; expected .nii or .nii.gz", file.string());
  }
  std::vector<std::uint8_t> restored = restore_labels(labels, width, original);
  write_nifti(file, original, restored);
  return restored;
}

}  // namespace halograd
