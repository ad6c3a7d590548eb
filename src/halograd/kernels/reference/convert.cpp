#include "halograd/kernels/reference/convert.hpp"

#include "halograd/kernels/reference/voxels.hpp"

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

}  // namespace

bool convert_input(const ConvertDesc& desc, const void* source, float* dst) {
  const Voxels<float> to{dst, desc.dst, desc.channels};
  const Extent extent = desc.source.extent();
  bool finite = true;
  for_each_voxel(desc.source.intersect(desc.dst), [&](const Index& at) {
    const Box here = Box{at, at}.relative_to(desc.source.lo);
    const std::int64_t voxel = (here.lo.d * extent.h + here.lo.h) * extent.w + here.lo.w;
    for (std::int64_t c = 0; c < desc.channels; ++c) {
      const std::int64_t i = desc.channels_first ? c * extent.volume() + voxel : voxel * desc.channels + c;
      const double raw = value_at(desc.dtype, source, i);
      const float value = static_cast<float>(desc.transform == InputTransform::log1p ? std::log1p(raw) : raw);
      finite = finite && std::isfinite(value);
      to.voxel(0, at)[c] = value;
    }
  });
  return finite;
}

}  // namespace halograd::reference
