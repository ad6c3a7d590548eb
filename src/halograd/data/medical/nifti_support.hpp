#pragma once

// The one header that includes nifti1_io.h; include it from .cpp files of this folder only.
#include "halograd/core/error.hpp"

#include <nifti1_io.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace halograd {

/// Keeps niftiio from printing; what it finds wrong is said by us.
inline void silence_nifti() {
  [[maybe_unused]] static const bool silenced = (nifti_set_debug_level(0), true);
}

struct NiftiImageFree {
  void operator()(nifti_image* image) const { nifti_image_free(image); }
};
using NiftiImage = std::unique_ptr<nifti_image, NiftiImageFree>;

/// A plain or, by its name, compressed file that is closed on the way out.
class NiftiStream {
public:
  /// `mode` is fopen's; `name` is what messages call it. Throws DataError where a file can't be read, ResourceError
  /// where it can't be written.
  NiftiStream(const std::filesystem::path& file, const char* mode, bool compressed, const std::filesystem::path& name);
  NiftiStream(const std::filesystem::path& file, const char* mode, bool compressed)
      : NiftiStream(file, mode, compressed, file) {}
  ~NiftiStream();
  NiftiStream(const NiftiStream&) = delete;
  NiftiStream& operator=(const NiftiStream&) = delete;

  void skip_to(std::int64_t offset);
  /// Throws DataError where the file ends before; `expected` ends its message.
  void read(void* data, std::int64_t bytes, const char* expected);
  void write(const void* data, std::int64_t bytes);
  /// Reads what is left and checks that the file is whole, which a compressed one shows only at its end.
  void finish_reading();
  /// Throws ResourceError where not everything could be written.
  void finish_writing();

private:
  std::string name_;
  znzFile stream_;
};

}  // namespace halograd
