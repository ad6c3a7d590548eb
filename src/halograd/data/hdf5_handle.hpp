#pragma once

// The one header that includes hdf5.h; include it from .cpp files only.
#include "halograd/core/types.hpp"
#include "halograd/data/hdf5_lock.hpp"

#include <hdf5.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace halograd {

/// An HDF5 identifier that closes itself. Holds whatever a call returned: ask `valid()` before use.
class Hdf5Handle {
public:
  using Close = herr_t (*)(hid_t);

  Hdf5Handle() = default;
  Hdf5Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept
      : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(std::exchange(other.close_, nullptr)) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Hdf5Handle() {
    if (!valid() || close_ == nullptr) return;
    const Hdf5Lock lock;
    close_(id_);
  }

  [[nodiscard]] bool valid() const { return id_ >= 0; }
  [[nodiscard]] hid_t id() const { return id_; }

private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

/// Throws DataError where a file is not there, no file or not readable. Needs no lock.
void check_readable(const std::string& file);

/// Opens a file for reading with the POSIX driver. Throws DataError naming the file and what is wrong with it: missing,
/// unreadable, no HDF5, truncated.
Hdf5Handle open_hdf5_file(const std::string& file);
/// The same as an access list says.
Hdf5Handle open_hdf5_file(const std::string& file, hid_t access_list);

/// An access list with the POSIX driver, for opening files to read.
Hdf5Handle hdf5_file_access();

/// The innermost line of HDF5's error stack after a call that failed, "" where there is none. Hold the lock.
std::string hdf5_reason();

/// The extent of a dataset or attribute's dataspace; empty for a scalar.
std::vector<hsize_t> hdf5_dims(hid_t dataspace);

/// The dimensions of a dataset's chunks, from its creation list; none where it has no chunks.
std::vector<hsize_t> hdf5_chunk_dims(hid_t creation);

/// "[128,128,128,4]".
std::string hdf5_shape_text(const std::vector<hsize_t>& dims);

/// "u16", "f32", "i64 big-endian", "string", …: what a file's type is called in messages.
std::string hdf5_type_text(hid_t type);

/// The type that a file's numbers are read as, whatever their byte order: their own, or the next wider or narrower
/// where we have none (i8 as i16, f64 as f32). Nothing for all others.
std::optional<DType> hdf5_dtype(hid_t type);

/// This processor's own HDF5 type for f32, u16, i16 and u8; HDF5 has none for bf16 (invalid identifier).
hid_t hdf5_native_type(DType type);

}  // namespace halograd
