#include "halograd/kernels/reference/convert.hpp"

#include "halograd/kernels/reference/voxels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace halograd::reference {
namespace {

double value_at(DType type, const void* source, std::int64_t i) {
  switch (type) {
    case DType::f32: return static_cast<double>(static_cast<const float*>(source)[i]);
    case DType::bf16:
      return static_cast<double>(
          std::bit_cast<float>(std::uint32_t{static_cast<const std::uint16_t*>(source)[i]} << 16));
    case DType::u16: return static_cast<double>(static_cast<const std::uint16_t*>(source)[i]);
    case DType::i16: return static_cast<double>(static_cast<const std::int16_t*>(source)[i]);
    case DType::u8: return static_cast<double>(static_cast<const std::uint8_t*>(source)[i]);
  }
  return 0;
}

double transformed(const ConvertDesc& desc, double value) {
  const auto [low, high] = desc.window;
  switch (desc.transform) {
    case InputTransform::none: break;
    case InputTransform::log1p: return std::log1p(value);
    case InputTransform::window: return (std::clamp(value, low, high) - low) / (high - low) * 2 - 1;
  }
  return value;
}

/// Where the source holds what goes to the place `at` of an extent.
Index mirrored(const Index& at, const Extent& extent, const Flips& flip) {
  Index from = at;
  for (int i = 0; i < 3; ++i) {
    if (flip[static_cast<std::size_t>(i)]) from[i] = extent[i] - 1 - at[i];
  }
  return from;
}

}  // namespace

bool convert_input(const ConvertDesc& desc, const void* source, float* dst) {
  const Voxels<float> to{dst, desc.dst, desc.channels};
  const Extent extent = desc.source.extent();
  bool finite = true;
  for_each_voxel(desc.source.intersect(desc.dst), [&](const Index& at) {
    const Index here = mirrored(Box{at, at}.relative_to(desc.source.lo).lo, extent, desc.flip);
    const std::int64_t voxel = (here.d * extent.h + here.h) * extent.w + here.w;
    for (std::int64_t c = 0; c < desc.channels; ++c) {
      const std::int64_t i = desc.channels_first ? c * extent.volume() + voxel : voxel * desc.channels + c;
      const double meant = value_at(desc.dtype, source, i) * desc.scale + desc.offset;
      const double value = transformed(desc, meant);
      finite = finite && std::isfinite(static_cast<float>(meant)) && std::isfinite(static_cast<float>(value));
      to.voxel(0, at)[c] = static_cast<float>(value * desc.gain + desc.shift);
    }
  });
  return finite;
}

int convert_labels(const LabelDesc& desc, const std::uint8_t* source, std::uint8_t* dst) {
  const Extent& extent = desc.extent;
  int wrong = -1;
  for_each_voxel(Box::whole(extent), [&](const Index& at) {
    const Index here = mirrored(at, extent, desc.flip);
    const std::uint8_t label = source[(here.d * extent.h + here.h) * extent.w + here.w];
    dst[(at.d * extent.h + at.h) * extent.w + at.w] = label;
    if (label >= desc.classes && label != desc.ignore_label) wrong = std::max<int>(wrong, label);
  });
  return wrong;
}

}  // namespace halograd::reference
