#include "halograd/data/medical/nifti_support.hpp"

#include <array>
#include <cerrno>
#include <system_error>

namespace halograd {

NiftiStream::NiftiStream(const std::filesystem::path& file, const char* mode, bool compressed,
                         const std::filesystem::path& name)
    : name_(name.string()) {
  silence_nifti();
  stream_ = znzopen(file.c_str(), mode, compressed ? 1 : 0);
  if (!znz_isnull(stream_)) return;
  const std::string reason = std::generic_category().message(errno);
  if (mode[0] == 'r') throw DataError("{}: cannot be opened ({}); expected a readable NIfTI file", name_, reason);
  throw ResourceError("cannot write {}: {}", name_, reason);
}

NiftiStream::~NiftiStream() {
  if (!znz_isnull(stream_)) znzclose(stream_);
}

void NiftiStream::skip_to(std::int64_t offset) {
  if (znzseek(stream_, offset, SEEK_SET) < 0) {
    throw DataError("{}: ends before its voxels (or is damaged); expected a whole NIfTI file", name_);
  }
}

void NiftiStream::read(void* data, std::int64_t bytes, const char* expected) {
  const auto wanted = static_cast<std::size_t>(bytes);
  if (znzread(data, 1, wanted, stream_) != wanted) {
    throw DataError("{}: cut short or damaged; expected {}", name_, expected);
  }
}

void NiftiStream::write(const void* data, std::int64_t bytes) {
  const auto wanted = static_cast<std::size_t>(bytes);
  if (znzwrite(data, 1, wanted, stream_) != wanted) {
    throw ResourceError("cannot write {}: {}", name_, std::generic_category().message(errno));
  }
}

void NiftiStream::finish_reading() {
  std::array<char, 4096> rest;
  std::size_t got = 0;
  do {
    got = znzread(rest.data(), 1, rest.size(), stream_);
  } while (got == rest.size());
  // On a damaged stream the number read comes back as -1 or closing fails.
  const int closed = znzclose(stream_);
  if (got > rest.size() || closed != 0) {
    throw DataError("{}: cut short or damaged at its end; expected a whole compressed file", name_);
  }
}

void NiftiStream::finish_writing() {
  if (znzclose(stream_) != 0) {
    throw ResourceError("cannot write {}: {}", name_, std::generic_category().message(errno));
  }
}

}  // namespace halograd
