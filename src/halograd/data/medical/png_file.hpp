#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace halograd {

/// Red, green and blue, 0 to 255.
using Colour = std::array<std::uint8_t, 3>;

/// A picture, row by row from the top left, black at first.
struct Picture {
  Picture(std::int64_t w, std::int64_t h) : width(w), height(h), pixels(static_cast<std::size_t>(w * h)) {}

  std::int64_t width;
  std::int64_t height;
  std::vector<Colour> pixels;

  [[nodiscard]] Colour& at(std::int64_t x, std::int64_t y) { return pixels[static_cast<std::size_t>(y * width + x)]; }
};

/// Writes a picture as PNG. Until it is whole it has another name. Throws ResourceError.
void write_png(const std::filesystem::path& file, const Picture& picture);

}  // namespace halograd
