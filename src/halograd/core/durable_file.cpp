#include "halograd/core/durable_file.hpp"

#include "halograd/core/error.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>

namespace halograd {
namespace {

std::string reason() {
  return std::generic_category().message(errno);
}

}  // namespace

void write_file(const std::filesystem::path& file, std::string_view bytes, const std::string& name) {
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  stream.close();
  if (!stream) throw ResourceError("cannot write {}: {}", name, reason());
}

void sync_path(const std::filesystem::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw ResourceError("cannot open {} to sync it: {}", path.string(), reason());
  const int result = fsync(descriptor);
  const int failure = errno;
  close(descriptor);
  // Some file systems do not sync directories (EINVAL); there is nothing more to be done on them.
  if (result != 0 && failure != EINVAL) {
    throw ResourceError("cannot write {} to the disk: {}", path.string(), std::generic_category().message(failure));
  }
}

void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code failure;
  std::filesystem::rename(from, to, failure);
  if (failure) throw ResourceError("cannot rename {} to {}: {}", from.string(), to.string(), failure.message());
  sync_path(to.has_parent_path() ? to.parent_path() : ".");
}

void write_durably(const std::filesystem::path& file, std::string_view bytes, const std::filesystem::path& temporary) {
  try {
    write_file(temporary, bytes, file.string());
    sync_path(temporary);
    rename_durably(temporary, file);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw;
  }
}

void write_durably(const std::filesystem::path& file, std::string_view bytes) {
  write_durably(file, bytes, file.string() + ".partial");
}

}  // namespace halograd
