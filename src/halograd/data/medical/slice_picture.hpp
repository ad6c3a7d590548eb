#pragma once

#include "halograd/data/medical/png_file.hpp"
#include "halograd/tensor/shape.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>

namespace halograd {

/// A volume in canonical order (see Orientation) with a label map, to look at.
struct SliceView {
  std::span<const float> image;          ///< [D,H,W]
  std::span<const std::uint8_t> labels;  ///< [D,H,W], or empty for none; 0 is not coloured
  Extent extent;
  std::array<double, 3> spacing = {1, 1, 1};  ///< millimetres along D, H, W
  float low = 0;                              ///< shown black
  float high = 1;                             ///< shown white
};

/// Where the three slices cross: the labels' centre of mass, the volume's middle where there are none.
Index slice_centre(const SliceView& view);

/// Three slices side by side: axial (front up), coronal and sagittal (head up). As radiologists look at them: the
/// patient's right is on the left, and the sagittal one looks to the left. Labels are translucent with an outline. Each
/// panel is as wide and high as its millimetres tell, spacings that differ 20-fold at most: 256 pixels at least, where
/// no side gets longer than 1024 by that.
Picture draw_slices(const SliceView& view);

/// The same as a PNG file. Throws ResourceError where it can't be written.
void write_slice_picture(const std::filesystem::path& file, const SliceView& view);

}  // namespace halograd
