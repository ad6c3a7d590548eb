#pragma once

#include "halograd/train/model.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <vector>

namespace halograd::test {

/// A U-Net of three classes whose answer is known: with x the input (0 outside), M the largest positive x of the
/// aligned 8³ cube around a voxel, logits are max(−x(d,h,w+1), 0) + M/2, max(x(d,h,w), 0) and 2·max(x(d+1,h−1,w), 0).
/// It takes all levels, their skips, and neighbours along each dimension; no step rounds inputs of few digits.
class KnownNetwork {
public:
  static constexpr std::int64_t width = 16;

  KnownNetwork()
      : executor_(build_network({.name = "unet3d", .width = width, .batch_norm = false, .base_channels = 2}),
                  Communicator::self(), {}),
        arrays_(model_arrays(executor_.parameters())) {
    for (const NamedArray& array : arrays_) std::fill_n(array.data, element_count(array), 0.0F);
    const Offset here{0, 0, 0};
    set("conv1", 0, 0, here, 1);
    set("conv1", 1, 0, here, -1);
    set("conv2", 0, 0, here, 1);
    set("conv2", 1, 0, {1, 0, 0}, 1);
    set("conv2", 2, 1, {0, 0, 1}, 1);
    for (int i = 3; i <= 12; ++i) set("conv" + std::to_string(i), 0, 0, here, 1);
    for (const char* name : {"deconv1", "deconv2", "deconv3"}) {
      const NamedArray& weight = find(name);  // [in, out, 2,2,2]
      std::fill_n(weight.data, 8, 1.0F);
    }
    // Of [up, skip], 8 and 4 channels.
    set("conv13", 0, 8, here, 1);
    set("conv13", 1, 9, {0, -1, 0}, 1);
    set("conv13", 2, 10, here, 1);
    set("conv13", 3, 0, here, 1);
    for (int c = 0; c < 4; ++c) set("conv14", c, c, here, 1);
    set("conv15", 0, 2, here, 1);
    set("conv15", 0, 3, here, 0.5F);
    set("conv15", 1, 0, here, 1);
    set("conv15", 2, 1, here, 2);
  }

  void write(const std::filesystem::path& checkpoint) const { write_checkpoint(checkpoint, {}, arrays_); }

  /// `image`: [W,W,W].
  static std::vector<std::uint8_t> labels(const std::vector<float>& image) {
    std::vector<std::uint8_t> labels;
    const auto x = [&](std::int64_t d, std::int64_t h, std::int64_t w) {
      const bool inside = Box::whole(Extent::cube(width)).contains(Index{d, h, w});
      return inside ? image[static_cast<std::size_t>((d * width + h) * width + w)] : 0.0F;
    };
    for (std::int64_t d = 0; d < width; ++d) {
      for (std::int64_t h = 0; h < width; ++h) {
        for (std::int64_t w = 0; w < width; ++w) {
          float most = 0;
          for (std::int64_t i = 0; i < 512; ++i) {
            most = std::max(most, x(d / 8 * 8 + i / 64, h / 8 * 8 + i / 8 % 8, w / 8 * 8 + i % 8));
          }
          const std::array<float, 3> logits{std::max(-x(d, h, w + 1), 0.0F) + most / 2, std::max(x(d, h, w), 0.0F),
                                            2 * std::max(x(d + 1, h - 1, w), 0.0F)};
          labels.push_back(static_cast<std::uint8_t>(std::ranges::max_element(logits) - logits.begin()));
        }
      }
    }
    return labels;
  }

private:
  using Offset = std::array<std::int64_t, 3>;

  [[nodiscard]] const NamedArray& find(const std::string& layer) const {
    const auto found = std::ranges::find(arrays_, "/model/" + layer + "/weight", &NamedArray::path);
    if (found == arrays_.end()) throw std::runtime_error("no layer " + layer);
    return *found;
  }

  /// The weight with which output channel `to` takes channel `from` of the voxel at `offset`.
  void set(const std::string& layer, std::int64_t to, std::int64_t from, const Offset& offset, float value) {
    const NamedArray& weight = find(layer);  // [out, in, k,k,k]
    std::int64_t place = to * weight.dims[1] + from;
    for (std::size_t i = 0; i < 3; ++i) place = place * weight.dims[2 + i] + weight.dims[2 + i] / 2 + offset[i];
    weight.data[place] = value;
  }

  Executor executor_;
  std::vector<NamedArray> arrays_;
};

}  // namespace halograd::test
