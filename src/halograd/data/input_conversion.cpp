#include "halograd/data/input_conversion.hpp"

#include "halograd/core/error.hpp"

#include <algorithm>

namespace halograd {
namespace {

template <typename Value>
double smallest(const std::byte* voxels, std::int64_t count) {
  const auto* const values = reinterpret_cast<const Value*>(voxels);
  Value low = 0;
  for (std::int64_t i = 0; i < count; ++i) low = std::min(low, values[i]);
  return static_cast<double>(low);
}

}  // namespace

void convert_sample(const InputConversion& conversion, const SampleLayout& layout, const std::string& file,
                    const std::byte* voxels, float* to) {
  const ConvertDesc desc{.dtype = layout.dtype,
                         .transform = conversion.transform,
                         .channels = conversion.channels,
                         .channels_first = layout.channels_first,
                         .source = conversion.own,
                         .dst = conversion.tile};
  if (convert_input(conversion.backend, desc, voxels, to)) return;
  const std::int64_t count = conversion.own.volume() * conversion.channels;
  double low = 0;
  if (layout.dtype == DType::i16) low = smallest<std::int16_t>(voxels, count);
  if (layout.dtype == DType::f32) low = smallest<float>(voxels, count);
  if (conversion.transform == InputTransform::log1p && low <= -1) {
    throw DataError("{}: `full` holds {}, which has no log1p; expected counts from 0 up, or data.transform = \"none\"",
                    file, low);
  }
  throw DataError("{}: `full` holds a value that is not finite; expected numbers", file);
}

}  // namespace halograd
