#include "halograd/core/durable_file.hpp"

#include "halograd/core/error.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

namespace halograd {
namespace {

constexpr std::string_view temporary_ending = ".partial";

std::string reason() {
  return std::generic_category().message(errno);
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "host";
}

/// The process whose `own_temporary` this would be; 0: none of this host.
pid_t owner_of(const std::string& name) {
  static const std::string host = fmt::format(".{}-", host_name());
  const std::size_t at = name.rfind(host);
  if (!name.starts_with('.') || !name.ends_with(temporary_ending) || at == std::string::npos) return 0;
  const char* const first = name.data() + at + host.size();
  const char* const last = name.data() + name.size() - temporary_ending.size();
  pid_t process = 0;
  const auto [end, failure] = std::from_chars(first, std::max(first, last), process);
  return failure == std::errc{} && end == last ? process : 0;
}

bool is_gone(pid_t process) {
  return kill(process, 0) != 0 && errno == ESRCH;
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

std::filesystem::path own_temporary(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  return file.parent_path() / fmt::format(".{}.{}-{}{}", name, host_name(), getpid(), temporary_ending);
}

void remove_left_temporaries(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> left;
  std::error_code ignored;
  std::filesystem::directory_iterator entries(directory, ignored);
  for (; entries != std::filesystem::directory_iterator(); entries.increment(ignored)) {
    const pid_t process = owner_of(entries->path().filename().string());
    if (process > 0 && is_gone(process)) left.push_back(entries->path());
  }
  for (const std::filesystem::path& file : left) std::filesystem::remove(file, ignored);
}

}  // namespace halograd
