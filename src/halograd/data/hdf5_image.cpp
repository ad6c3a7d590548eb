#include "halograd/data/hdf5_image.hpp"

#include "halograd/core/error.hpp"

#include <algorithm>

namespace halograd {
namespace {

constexpr std::size_t growth = 4096;  ///< HDF5 enlarges the memory by multiples of this

/// Where a superblock of version 0 (HDF5's choice unless newer features are asked for) says that the file is open for
/// writing (HDF5 File Format Specification, II.A).
constexpr std::int64_t open_flags = 20;

void require(bool done, const std::filesystem::path& file) {
  if (!done) throw ResourceError("cannot write {}: {}", file.string(), hdf5_reason());
}

}  // namespace

Hdf5Image::Hdf5Image(const std::filesystem::path& file, std::int64_t user_block)
    : file_(file), user_block_(user_block) {
  const Hdf5Lock lock;
  const Hdf5Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  require(H5Pset_userblock(creation.id(), static_cast<hsize_t>(user_block)) >= 0, file);
  require(H5Pset_fapl_core(access.id(), growth, false) >= 0, file);
  handle_ = {H5Fcreate(file.c_str(), H5F_ACC_TRUNC, creation.id(), access.id()), H5Fclose};
  require(handle_.valid(), file);
}

std::string_view Hdf5Image::bytes() const {
  const Hdf5Lock lock;
  require(H5Fflush(id(), H5F_SCOPE_GLOBAL) >= 0, file_);
  void* memory = nullptr;
  require(H5Fget_vfd_handle(id(), H5P_DEFAULT, &memory) >= 0, file_);
  // Without a buffer it copies nothing and gives the size alone, without the user block.
  const ssize_t size = H5Fget_file_image(id(), nullptr, 0);
  require(size > 0, file_);
  char* const start = *static_cast<char**>(memory);
  // As HDF5 does when it closes a file.
  std::fill_n(start + user_block_ + open_flags, 4, '\0');
  return {start, static_cast<std::size_t>(user_block_ + size)};
}

}  // namespace halograd
