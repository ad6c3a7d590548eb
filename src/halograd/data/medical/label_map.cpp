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

void write_label_map(const std::filesystem::path& file, std::span<const std::uint8_t> labels, std::int64_t width,
                     const NiftiHeader& original) {
  const std::string name = file.filename().string();
  if (!name.ends_with(".nii") && !name.ends_with(".nii.gz")) {
    throw UsageError("{}: a label map can't have that name; expected .nii or .nii.gz", file.string());
  }
  write_nifti(file, original, restore_labels(labels, width, original));
}

}  // namespace halograd
