#include "halograd/comm/shared_memory.hpp"

#include "halograd/core/error.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>

namespace halograd::comm {

namespace {

struct Descriptor {
  int value;
  explicit Descriptor(int v) : value(v) {}
  ~Descriptor() {
    if (value >= 0) close(value);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

// Process numbers repeat between containers that share /dev/shm; the random word keeps names apart all the same.
std::string unused_name() {
  static std::atomic<unsigned> serial{0};
  static const unsigned salt = std::random_device{}();
  return fmt::format("/halograd-{}-{:08x}-{}", getpid(), salt, serial++);
}

std::byte* map(int descriptor, std::int64_t bytes) {
  // Populated now: page faults in the first steps would cost more than the messages.
  void* data =
      mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, 0);
  if (data == MAP_FAILED) throw ResourceError("cannot map {} bytes of shared memory: {}", bytes, std::strerror(errno));
  return static_cast<std::byte*>(data);
}

}  // namespace

SharedSegment SharedSegment::create(std::int64_t bytes) {
  SharedSegment segment;
  segment.name_ = unused_name();
  const Descriptor descriptor(shm_open(segment.name_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (descriptor.value < 0) throw ResourceError("cannot make shared memory: {}", std::strerror(errno));
  segment.linked_ = true;
  // Reserved now: a full /dev/shm is an error here and would be a SIGBUS at the first touch.
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(descriptor.value, 0, static_cast<off_t>(bytes));
  if (error != 0) throw ResourceError("cannot reserve {} bytes of shared memory: {}", bytes, std::strerror(error));
  segment.data_ = map(descriptor.value, bytes);
  segment.bytes_ = bytes;
  return segment;
}

SharedSegment SharedSegment::open(const std::string& name, std::int64_t bytes) {
  SharedSegment segment;
  segment.name_ = name;
  const Descriptor descriptor(shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0600));
  if (descriptor.value < 0) throw ResourceError("cannot open shared memory {}: {}", name, std::strerror(errno));
  segment.data_ = map(descriptor.value, bytes);
  segment.bytes_ = bytes;
  return segment;
}

SharedSegment::~SharedSegment() {
  unlink();
  if (data_ != nullptr) munmap(data_, static_cast<std::size_t>(bytes_));
}

void SharedSegment::unlink() {
  if (linked_) shm_unlink(name_.c_str());
  linked_ = false;
}

void SharedSegment::swap(SharedSegment& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(name_, other.name_);
  std::swap(linked_, other.linked_);
}

PrivateBuffer::PrivateBuffer(std::int64_t bytes) : bytes_(aligned(bytes)) {
  if (bytes_ == 0) return;
  data_.reset(static_cast<std::byte*>(
      std::aligned_alloc(static_cast<std::size_t>(buffer_alignment), static_cast<std::size_t>(bytes_))));
  if (!data_) throw ResourceError("no memory for {} bytes of message buffers", bytes_);
  std::memset(data_.get(), 0, static_cast<std::size_t>(bytes_));
}

void PrivateBuffer::Free::operator()(std::byte* data) const {
  std::free(data);
}

}  // namespace halograd::comm
