#include "halograd/data/medical/png_file.hpp"

#include "halograd/core/durable_file.hpp"
#include "halograd/core/error.hpp"

#include <png.h>

#include <string>

namespace halograd {

void write_png(const std::filesystem::path& file, const Picture& picture) {
  static_assert(sizeof(Colour) == 3);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = PNG_FORMAT_RGB;
  // The first call tells the size, the second writes.
  png_alloc_size_t bytes = 0;
  std::string text;
  bool done = png_image_write_to_memory(&image, nullptr, &bytes, 0, picture.pixels.data(), 0, nullptr) != 0;
  if (done) {
    text.resize(bytes);
    done = png_image_write_to_memory(&image, text.data(), &bytes, 0, picture.pixels.data(), 0, nullptr) != 0;
  }
  if (!done) throw ResourceError("cannot make the picture {}: {}", file.string(), image.message);
  text.resize(bytes);
  write_durably(file, text);
}

}  // namespace halograd
