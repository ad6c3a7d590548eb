#include "halograd/data/hdf5_handle.hpp"

#include "halograd/core/error.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace halograd {
namespace {

herr_t keep_innermost(unsigned depth, const H5E_error2_t* entry, void* text) {
  if (depth == 0 && entry->desc != nullptr) *static_cast<std::string*>(text) = entry->desc;
  return 0;
}

}  // namespace

void check_readable(const std::string& file) {
  std::error_code code;
  const auto status = std::filesystem::status(file, code);
  if (!std::filesystem::exists(status)) throw DataError("{}: no such file; expected an HDF5 file", file);
  if (!std::filesystem::is_regular_file(status)) throw DataError("{}: not a file; expected an HDF5 file", file);
  if (access(file.c_str(), R_OK) != 0) {
    throw DataError("{}: cannot be read ({}); expected a readable HDF5 file", file, std::strerror(errno));
  }
}

std::string hdf5_reason() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, &text);
  return text;
}

Hdf5Handle hdf5_file_access() {
  const Hdf5Lock lock;
  Hdf5Handle access_list(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_sec2(access_list.id());
  // A file system without locks (Lustre, a read-only mount) must not keep anyone from reading.
  H5Pset_file_locking(access_list.id(), true, true);
  return access_list;
}

Hdf5Handle open_hdf5_file(const std::string& file) {
  const Hdf5Lock lock;
  const Hdf5Handle access_list = hdf5_file_access();
  return open_hdf5_file(file, access_list.id());
}

Hdf5Handle open_hdf5_file(const std::string& file, hid_t access_list) {
  const Hdf5Lock lock;
  check_readable(file);
  Hdf5Handle handle(H5Fopen(file.c_str(), H5F_ACC_RDONLY, access_list), H5Fclose);
  if (!handle.valid()) {
    const std::string reason = hdf5_reason();
    if (H5Fis_hdf5(file.c_str()) <= 0) throw DataError("{}: not an HDF5 file (or its start is damaged)", file);
    throw DataError("{}: damaged, open in another program, or cut short ({}); expected a complete HDF5 file", file,
                    reason);
  }
  return handle;
}

std::vector<hsize_t> hdf5_dims(hid_t dataspace) {
  const int rank = H5Sget_simple_extent_ndims(dataspace);
  std::vector<hsize_t> dims(rank > 0 ? static_cast<std::size_t>(rank) : 0);
  if (!dims.empty()) H5Sget_simple_extent_dims(dataspace, dims.data(), nullptr);
  return dims;
}

std::vector<hsize_t> hdf5_chunk_dims(hid_t creation) {
  if (H5Pget_layout(creation) != H5D_CHUNKED) return {};
  std::array<hsize_t, H5S_MAX_RANK> chunk{};
  const int rank = std::max(0, H5Pget_chunk(creation, H5S_MAX_RANK, chunk.data()));
  return {chunk.begin(), chunk.begin() + rank};
}

std::string hdf5_shape_text(const std::vector<hsize_t>& dims) {
  return fmt::format("[{}]", fmt::join(dims, ","));
}

std::string hdf5_type_text(hid_t type) {
  const std::size_t bytes = H5Tget_size(type);
  const H5T_class_t kind = H5Tget_class(type);
  if (kind == H5T_INTEGER || kind == H5T_FLOAT) {
    const char letter = kind == H5T_FLOAT ? 'f' : (H5Tget_sign(type) == H5T_SGN_NONE ? 'u' : 'i');
    const H5T_order_t foreign = std::endian::native == std::endian::little ? H5T_ORDER_BE : H5T_ORDER_LE;
    const bool swapped = bytes > 1 && H5Tget_order(type) == foreign;
    const char* order = foreign == H5T_ORDER_BE ? " big-endian" : " little-endian";
    return fmt::format("{}{}{}", letter, 8 * bytes, swapped ? order : "");
  }
  switch (kind) {
    case H5T_STRING: return "string";
    case H5T_BITFIELD: return fmt::format("bits{}", 8 * bytes);
    case H5T_OPAQUE: return fmt::format("opaque, {} bytes", bytes);
    case H5T_COMPOUND: return fmt::format("compound, {} bytes", bytes);
    case H5T_REFERENCE: return "reference";
    case H5T_ENUM: return fmt::format("enum, {} bytes", bytes);
    case H5T_VLEN: return "variable-length";
    case H5T_ARRAY: return fmt::format("array, {} bytes", bytes);
    default: return "unknown";
  }
}

std::optional<DType> hdf5_dtype(hid_t type) {
  const std::size_t bytes = H5Tget_size(type);
  const H5T_class_t kind = H5Tget_class(type);
  if (kind == H5T_FLOAT && (bytes == 4 || bytes == 8)) return DType::f32;
  if (kind != H5T_INTEGER) return std::nullopt;
  const bool is_signed = H5Tget_sign(type) != H5T_SGN_NONE;
  if (bytes == 2) return is_signed ? DType::i16 : DType::u16;
  if (bytes == 1) return is_signed ? DType::i16 : DType::u8;
  return std::nullopt;
}

hid_t hdf5_native_type(DType type) {
  switch (type) {
    case DType::f32: return H5T_NATIVE_FLOAT;
    case DType::u16: return H5T_NATIVE_UINT16;
    case DType::i16: return H5T_NATIVE_INT16;
    case DType::u8: return H5T_NATIVE_UINT8;
    case DType::bf16: break;
  }
  return H5I_INVALID_HID;
}

}  // namespace halograd
