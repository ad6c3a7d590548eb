#pragma once

#include "data/medical/nifti_files.hpp"

namespace halograd::test {

/// One small pair that converts well.
inline void write_pair(const std::filesystem::path& directory, const std::string& name, std::int64_t slices = 4) {
  const Extent extent{slices, 5, 6};
  oriented<std::int16_t>(ras, extent, 4, [](const Index& at) {
    return static_cast<std::int16_t>(at.d * 30 + at.h * 6 + at.w);
  }).write(directory / ("volume-" + name + ".nii"));
  oriented<std::uint8_t>(ras, extent, 2, [](const Index& at) {
    return static_cast<std::uint8_t>((at.d + at.h + at.w) % 3);
  }).write(directory / ("segmentation-" + name + ".nii"));
}

}  // namespace halograd::test
