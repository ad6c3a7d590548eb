#include "halograd/data/input_conversion.hpp"

#include "halograd/core/error.hpp"
#include "halograd/data/hyperslab.hpp"

#include <algorithm>
#include <limits>

namespace halograd {
namespace {

/// What the smallest number stands for; not finite ones are passed over.
template <typename Value>
double smallest(const std::byte* voxels, std::int64_t count, const ValueScale& scale) {
  const auto* const values = reinterpret_cast<const Value*>(voxels);
  double low = std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < count; ++i) {
    low = std::min(low, static_cast<double>(values[i]) * scale.scale + scale.offset);
  }
  return low;
}

double smallest(DType type, const std::byte* voxels, std::int64_t count, const ValueScale& scale) {
  switch (type) {
    case DType::f32: return smallest<float>(voxels, count, scale);
    case DType::u16: return smallest<std::uint16_t>(voxels, count, scale);
    case DType::i16: return smallest<std::int16_t>(voxels, count, scale);
    case DType::u8: return smallest<std::uint8_t>(voxels, count, scale);
    case DType::bf16: break;  // no file's
  }
  return 0;
}

[[noreturn]] void refuse_voxels(const InputConversion& conversion, const SampleSource& sample,
                                const std::byte* hyperslab) {
  const VolumeLayout& image = sample.layout.image;
  const double low =
      smallest(image.layout.dtype, hyperslab, conversion.own.volume() * conversion.channels, sample.scale);
  if (conversion.transform.kind == InputTransform::log1p && low <= -1) {
    throw DataError("{}: `{}` holds {}, which has no log1p; expected counts from 0 up, or data.transform = \"{}\"",
                    sample.file, volume_name(image.name), low, image.name == VolumeName::full ? "none" : "window");
  }
  throw DataError("{}: `{}` holds a value that is not finite; expected numbers", sample.file, volume_name(image.name));
}

[[noreturn]] void refuse_label(const LabelRange& labels, const std::string& file, int label) {
  const std::string ignored = labels.ignore_label < 0 ? "" : fmt::format(", or {} to be ignored", labels.ignore_label);
  throw DataError("{}: `{}` holds label {}; expected 0 to {}{}", file, volume_name(VolumeName::segmentation), label,
                  labels.classes - 1, ignored);
}

}  // namespace

void convert_sample(const InputConversion& conversion, const SampleSource& sample, const std::byte* hyperslab,
                    float* to, std::uint8_t* labels) {
  const SampleLayout layout = sample.layout.sample();
  const ConvertDesc desc{.dtype = layout.dtype,
                         .scale = sample.scale.scale,
                         .offset = sample.scale.offset,
                         .transform = conversion.transform.kind,
                         .window = conversion.transform.window,
                         .gain = sample.augmentation.gain,
                         .shift = sample.augmentation.shift,
                         .channels = conversion.channels,
                         .channels_first = layout.channels_first,
                         .flip = sample.augmentation.flip,
                         .source = conversion.own,
                         .dst = conversion.tile};
  if (!convert_input(conversion.backend, desc, hyperslab, to)) refuse_voxels(conversion, sample, hyperslab);
  if (!layout.labelled || labels == nullptr) return;
  const std::byte* const stored = hyperslab + voxel_bytes(layout, conversion.channels, conversion.own);
  const int wrong = convert_labels(conversion.backend,
                                   {.extent = conversion.own.extent(),
                                    .flip = sample.augmentation.flip,
                                    .classes = conversion.labels.classes,
                                    .ignore_label = conversion.labels.ignore_label},
                                   reinterpret_cast<const std::uint8_t*>(stored), labels);
  if (wrong >= 0) refuse_label(conversion.labels, sample.file, wrong);
}

}  // namespace halograd
