#include "halograd/data/store_file.hpp"

#include "halograd/core/error.hpp"
#include "halograd/core/system.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <string>
#include <system_error>
#include <utility>

namespace halograd {

namespace {

namespace fs = std::filesystem;

std::string reason(int failure) {
  return std::generic_category().message(failure);
}

std::string words(std::int64_t bytes) {
  return format_bytes(static_cast<double>(bytes));
}

// While it lives a file that grows beyond the process's limit (ulimit -f) is an error, EFBIG, and not the end of the
// process: the signal goes to the thread that wrote, which holds it back and takes it away.
class WithoutFileSizeSignal {
public:
  WithoutFileSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~WithoutFileSizeSignal() {
    const int failure = errno;
    if (sigismember(&before_, SIGXFSZ) == 0) {
      const timespec at_once{};
      while (sigtimedwait(&signal_, nullptr, &at_once) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = failure;
  }
  WithoutFileSizeSignal(const WithoutFileSizeSignal&) = delete;
  WithoutFileSizeSignal& operator=(const WithoutFileSizeSignal&) = delete;

private:
  sigset_t signal_{};
  sigset_t before_{};
};

// A temporary directory that is memory would take the node's memory in the name of its disk. One named by the user is
// the user's choice.
fs::path default_directory(const StoreFile::Demand& demand) {
  std::error_code failure;
  fs::path directory = fs::temp_directory_path(failure);
  if (failure) {
    throw ResourceError(
        "no temporary directory for the data store ({}): set TMPDIR or data.store_dir to a directory "
        "on a disk of this node",
        failure.message());
  }
  struct statfs system {};
  if (statfs(directory.c_str(), &system) == 0 && (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC)) {
    throw ResourceError(
        "the data store of this rank has {} to put on a disk (its memory budget is {}), but the temporary "
        "directory {} is memory: name a directory on a disk of this node in data.store_dir",
        words(demand.bytes), words(demand.memory_budget), directory.string());
  }
  return directory;
}

// Goes on where a call moved less than was asked (a request beyond 2 GiB, a signal, a limit). Returns the bytes moved,
// less than `bytes` where the file ended; throws where `call` failed.
template <typename Call>
std::int64_t move_all(std::int64_t bytes, const fs::path& directory, const char* doing, const Call& call) {
  std::int64_t moved = 0;
  while (moved < bytes) {
    const ssize_t count = call(moved, static_cast<std::size_t>(bytes - moved));
    if (count == 0) break;
    if (count > 0)
      moved += count;
    else if (errno != EINTR)
      throw ResourceError("cannot {} the data store's file in {}: {}", doing, directory.string(), reason(errno));
  }
  return moved;
}

}  // namespace

StoreFile::StoreFile(const fs::path& directory, const Demand& demand)
    : directory_(directory.empty() ? default_directory(demand) : directory) {
  std::string name = (directory_ / "halograd_store_XXXXXX").string();
  file_ = mkostemp(name.data(), O_CLOEXEC);
  if (file_ < 0) {
    throw ResourceError(
        "cannot make the data store's file in {} ({}): data.store_dir must name a directory of this "
        "node that can be written to",
        directory_.string(), reason(errno));
  }
  try {
    if (unlink(name.c_str()) != 0) throw ResourceError("cannot unlink {}: {}", name, reason(errno));
    take_space(demand);
  } catch (...) {
    close(file_);
    throw;
  }
}

StoreFile::~StoreFile() {
  if (file_ >= 0) close(file_);
}

StoreFile::StoreFile(StoreFile&& other) noexcept
    : directory_(std::move(other.directory_)), file_(std::exchange(other.file_, -1)) {}

StoreFile& StoreFile::operator=(StoreFile&& other) noexcept {
  std::swap(directory_, other.directory_);
  std::swap(file_, other.file_);
  return *this;
}

void StoreFile::take_space(const Demand& demand) const {
  // Looked up first: a failing fallocate may have taken part of it.
  struct statvfs system {};
  const bool known = fstatvfs(file_, &system) == 0 && system.f_blocks > 0;  // some file systems do not say
  const std::int64_t free = known ? static_cast<std::int64_t>(system.f_bavail * system.f_frsize) : 0;
  int failure = 0;
  {
    const WithoutFileSizeSignal held;
    while ((failure = fallocate(file_, 0, 0, demand.bytes) == 0 ? 0 : errno) == EINTR) {
    }
  }
  if (failure == 0) return;
  // The file system cannot promise space: no more than this rank's share of what is free.
  const bool no_promise = failure == EOPNOTSUPP || failure == ENOSYS;
  if (no_promise && (!known || demand.bytes <= free / demand.ranks_on_node)) return;
  throw ResourceError(
      "the data store of this rank needs {}: {} fit in memory (its budget is {}), and the {} for the disk are not to "
      "be "
      "had in {}, which has {} free for the {} rank(s) of this node ({}); more ranks, a larger data.store_budget, "
      "another directory in data.store_dir or data.store = \"off\" would help",
      words(demand.memory_bytes + demand.bytes), words(demand.memory_bytes), words(demand.memory_budget),
      words(demand.bytes), directory_.string(), words(free), demand.ranks_on_node,
      reason(no_promise ? ENOSPC : failure));
}

void StoreFile::write(const std::byte* data, std::int64_t bytes, std::int64_t offset) const {
  const WithoutFileSizeSignal held;
  const std::int64_t moved = move_all(bytes, directory_, "write", [&](std::int64_t done, std::size_t rest) {
    return pwrite(file_, data + done, rest, offset + done);
  });
  if (moved < bytes) {
    throw ResourceError("cannot write the data store's file in {}: it took {} of {} bytes", directory_.string(), moved,
                        bytes);
  }
}

void StoreFile::read(std::byte* data, std::int64_t bytes, std::int64_t offset) const {
  const std::int64_t moved = move_all(bytes, directory_, "read", [&](std::int64_t done, std::size_t rest) {
    return pread(file_, data + done, rest, offset + done);
  });
  if (moved < bytes) {
    throw ResourceError("cannot read the data store's file in {}: it was cut short ({} of {} bytes at {})",
                        directory_.string(), moved, bytes, offset);
  }
}

}  // namespace halograd
