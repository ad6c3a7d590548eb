#pragma once

// Brings hdf5.h along; include it from .cpp files only.
#include "halograd/data/hdf5_handle.hpp"

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace halograd {

/// An HDF5 file being made in memory, to be written to the disk by other means (core/durable_file.hpp): HDF5 1.10 does
/// not survive a write that fails, as on a full disk; it crashes when the program ends. Takes as much memory as the
/// file.
class Hdf5Image {
public:
  /// `file` is what messages call it; nothing is made there. The first `user_block` bytes (0 or a power of two from
  /// 512) are left free, as zeros. Throws ResourceError.
  explicit Hdf5Image(const std::filesystem::path& file, std::int64_t user_block = 0);

  /// The open file, to make objects in. Hold the Hdf5Lock for that.
  [[nodiscard]] hid_t id() const { return handle_.id(); }

  /// The bytes HDF5 would have written, without a copy: valid until more is made in the file, whose objects must be
  /// closed before. Throws ResourceError.
  [[nodiscard]] std::string_view bytes() const;

private:
  std::filesystem::path file_;
  std::int64_t user_block_;
  Hdf5Handle handle_;
};

}  // namespace halograd
