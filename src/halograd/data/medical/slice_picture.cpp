#include "halograd/data/medical/slice_picture.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace halograd {
namespace {

constexpr double least_pixels = 256;
constexpr double most_pixels = 1024;
constexpr double largest_ratio = 20;
constexpr std::int64_t gap = 8;
constexpr double inside_weight = 0.35;
constexpr double outline_weight = 0.95;

/// Told apart on grey, also by those who see few colours (Okabe and Ito).
constexpr std::array<Colour, 7> palette = {
    {{230, 159, 0}, {86, 180, 233}, {0, 158, 115}, {240, 228, 66}, {213, 94, 0}, {204, 121, 167}, {0, 114, 178}}};

Colour colour_of(std::uint8_t label) {
  return palette[(label - 1U) % palette.size()];
}

std::size_t linear(const SliceView& view, const Index& at) {
  return static_cast<std::size_t>((at.d * view.extent.h + at.h) * view.extent.w + at.w);
}

/// One slice: which dimensions run down and across the picture, both from their far end.
struct Panel {
  int down;
  int across;
  std::int64_t height = 0;
  std::int64_t width = 0;
};

/// Looks up the voxels of one panel by pixel.
class Slice {
public:
  Slice(const SliceView& view, const Panel& panel, const Index& centre) : view_(view), panel_(panel), centre_(centre) {}

  [[nodiscard]] std::uint8_t label(std::int64_t x, std::int64_t y) const {
    if (view_.labels.empty()) return 0;
    Index at = centre_;
    at[panel_.down] = static_cast<std::int64_t>(std::lround(position(y, panel_.height, panel_.down)));
    at[panel_.across] = static_cast<std::int64_t>(std::lround(position(x, panel_.width, panel_.across)));
    return view_.labels[linear(view_, at)];
  }

  /// 0 to 1, between the window's ends.
  [[nodiscard]] double brightness(std::int64_t x, std::int64_t y) const {
    const double down = position(y, panel_.height, panel_.down);
    const double across = position(x, panel_.width, panel_.across);
    double sum = 0;
    for (int corner = 0; corner < 4; ++corner) {
      Index at = centre_;
      sum += weigh(down, corner / 2, panel_.down, at) * weigh(across, corner % 2, panel_.across, at) * value(at);
    }
    const double range = std::max(static_cast<double>(view_.high) - static_cast<double>(view_.low), 1e-30);
    return std::clamp((sum - static_cast<double>(view_.low)) / range, 0.0, 1.0);
  }

  [[nodiscard]] bool on_outline(std::int64_t x, std::int64_t y) const {
    const std::uint8_t own = label(x, y);
    const auto differs = [&](std::int64_t other_x, std::int64_t other_y) {
      const bool outside = other_x < 0 || other_y < 0 || other_x >= panel_.width || other_y >= panel_.height;
      return !outside && label(other_x, other_y) != own;
    };
    return differs(x - 1, y) || differs(x + 1, y) || differs(x, y - 1) || differs(x, y + 1);
  }

private:
  /// Where the centre of a pixel lies along a dimension, in voxels.
  [[nodiscard]] double position(std::int64_t pixel, std::int64_t pixels, int dimension) const {
    const auto n = static_cast<double>(view_.extent[dimension]);
    const double from_end = (static_cast<double>(pixel) + 0.5) * n / static_cast<double>(pixels) - 0.5;
    return std::clamp(n - 1 - from_end, 0.0, n - 1);
  }

  /// Moves `at` to the lower or upper of the voxels around a position and returns its weight.
  [[nodiscard]] double weigh(double place, int upper, int dimension, Index& at) const {
    const double low = std::floor(place);
    at[dimension] = std::min(static_cast<std::int64_t>(low) + upper, view_.extent[dimension] - 1);
    return upper == 1 ? place - low : 1 - (place - low);
  }

  [[nodiscard]] double value(const Index& at) const { return static_cast<double>(view_.image[linear(view_, at)]); }

  const SliceView& view_;
  const Panel& panel_;
  const Index& centre_;
};

Colour pixel_of(const Slice& slice, std::int64_t x, std::int64_t y) {
  const double grey = 255 * slice.brightness(x, y);
  const std::uint8_t label = slice.label(x, y);
  const double weight = label == 0 ? 0 : (slice.on_outline(x, y) ? outline_weight : inside_weight);
  const Colour tint = label == 0 ? Colour{} : colour_of(label);
  Colour colour;
  for (std::size_t i = 0; i < 3; ++i) {
    colour[i] = static_cast<std::uint8_t>(std::lround((1 - weight) * grey + weight * static_cast<double>(tint[i])));
  }
  return colour;
}

/// The spacings over the finest one. Headers say 0, and what is not a number; a picture has to show those too.
std::array<double, 3> shown_ratios(const std::array<double, 3>& spacing) {
  double finest = std::numeric_limits<double>::infinity();
  for (const double length : spacing) {
    if (length > 0) finest = std::min(finest, length);
  }
  std::array<double, 3> ratios{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double ratio = spacing[i] / finest;
    ratios[i] = ratio > 1 ? std::min(ratio, largest_ratio) : 1;
  }
  return ratios;
}

/// The axial, coronal and sagittal panels with their sizes in pixels.
std::array<Panel, 3> panels_of(const SliceView& view) {
  std::array<double, 3> lengths{};
  const std::array<double, 3> ratios = shown_ratios(view.spacing);
  for (int dimension = 0; dimension < 3; ++dimension) {
    const auto i = static_cast<std::size_t>(dimension);
    lengths[i] = static_cast<double>(view.extent[dimension]) * ratios[i];
  }
  const auto [shortest, longest] = std::ranges::minmax(lengths);
  const double zoom = std::min(std::max(1.0, std::ceil(least_pixels / shortest)), most_pixels / longest);
  const auto pixels = [&](int dimension) {
    return std::max<std::int64_t>(1, std::lround(lengths[static_cast<std::size_t>(dimension)] * zoom));
  };
  std::array<Panel, 3> panels = {{{1, 2}, {0, 2}, {0, 1}}};
  for (Panel& panel : panels) {
    panel.height = pixels(panel.down);
    panel.width = pixels(panel.across);
  }
  return panels;
}

}  // namespace

Index slice_centre(const SliceView& view) {
  const Extent& extent = view.extent;
  const Index middle{extent.d / 2, extent.h / 2, extent.w / 2};
  if (view.labels.empty()) return middle;
  Index sum{};
  std::int64_t count = 0;
  for (Index at{}; at.d < extent.d; ++at.d) {
    for (at.h = 0; at.h < extent.h; ++at.h) {
      for (at.w = 0; at.w < extent.w; ++at.w) {
        if (view.labels[linear(view, at)] == 0) continue;
        for (int dimension = 0; dimension < 3; ++dimension) sum[dimension] += at[dimension];
        ++count;
      }
    }
  }
  if (count == 0) return middle;
  return {(sum.d + count / 2) / count, (sum.h + count / 2) / count, (sum.w + count / 2) / count};
}

Picture draw_slices(const SliceView& view) {
  const std::array<Panel, 3> panels = panels_of(view);
  const Index centre = slice_centre(view);
  std::int64_t width = -gap;
  std::int64_t height = 0;
  for (const Panel& panel : panels) {
    width += panel.width + gap;
    height = std::max(height, panel.height);
  }
  Picture picture(width, height);
  std::int64_t left = 0;
  for (const Panel& panel : panels) {
    const Slice slice(view, panel, centre);
    const std::int64_t top = (height - panel.height) / 2;
    for (std::int64_t y = 0; y < panel.height; ++y) {
      for (std::int64_t x = 0; x < panel.width; ++x) picture.at(left + x, top + y) = pixel_of(slice, x, y);
    }
    left += panel.width + gap;
  }
  return picture;
}

void write_slice_picture(const std::filesystem::path& file, const SliceView& view) {
  write_png(file, draw_slices(view));
}

}  // namespace halograd
