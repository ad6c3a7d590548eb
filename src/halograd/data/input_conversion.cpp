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

[[noreturn]] void refuse_voxels(const InputConversionOptions& conversion, const SampleSource& sample,
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

InputConversion::InputConversion(const InputConversionOptions& options)
    : options_(options), queue_(options.device.make_queue()), converter_(options.device, queue_) {}

void InputConversion::convert(const SampleSource& sample, const std::byte* hyperslab, std::byte* to,
                              std::uint8_t* labels) {
  const SampleLayout layout = sample.layout.sample();
  converter_.begin(1);
  converter_.convert({.dtype = layout.dtype,
                      .dst_type = options_.type,
                      .scale = sample.scale.scale,
                      .offset = sample.scale.offset,
                      .transform = options_.transform.kind,
                      .window = options_.transform.window,
                      .gain = sample.augmentation.gain,
                      .shift = sample.augmentation.shift,
                      .channels = options_.channels,
                      .channels_first = layout.channels_first,
                      .flip = sample.augmentation.flip,
                      .source = options_.own,
                      .dst = options_.tile},
                     hyperslab, to);
  if (layout.labelled && labels != nullptr) {
    convert_labels_of(sample, hyperslab + voxel_bytes(layout, options_.channels, options_.own), labels);
  }
  if (converter_.finish() >= 0) refuse_voxels(options_, sample, hyperslab);
}

/// The host checks them, and flips them, in bytes.
void InputConversion::convert_labels_of(const SampleSource& sample, const std::byte* hyperslab, std::uint8_t* to) {
  const std::int64_t voxels = options_.own.volume();
  const bool direct = queue_.works_at_once();
  if (!direct) checked_labels_.resize(static_cast<std::size_t>(voxels));
  std::uint8_t* const checked = direct ? to : checked_labels_.data();
  const Backend host = options_.device.backend() == Backend::reference ? Backend::reference : Backend::cpu;
  const int wrong = convert_labels(host,
                                   {.extent = options_.own.extent(),
                                    .flip = sample.augmentation.flip,
                                    .classes = options_.labels.classes,
                                    .ignore_label = options_.labels.ignore_label},
                                   reinterpret_cast<const std::uint8_t*>(hyperslab), checked);
  if (wrong >= 0) refuse_label(options_.labels, sample.file, wrong);
  if (!direct) converter_.copy_labels(checked, to, voxels);
}

}  // namespace halograd
