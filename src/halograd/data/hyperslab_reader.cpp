#include "halograd/data/hyperslab_reader.hpp"

#include "halograd/core/error.hpp"
#include "halograd/data/hdf5_voxels.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <limits>
#include <optional>

namespace halograd {
namespace {

constexpr std::int64_t failed = std::numeric_limits<std::int64_t>::max();

void check_inside(const SamplePlace& place, const Box& box) {
  const Index& o = place.origin;
  const Box in_volume = box.relative_to({-o.d, -o.h, -o.w});
  const bool entry_exists = place.entry >= 0 && place.entry < place.layout.entries;
  if (entry_exists && Box::whole(place.layout.shape.extent).contains(in_volume)) return;
  throw UsageError("{}: the voxels to read lie beyond `full`; expected a box within it", place.file);
}

/// A file held open. While it is, `path` opens it again even where its own name is gone: an MPI_File_open that fails on
/// one rank alone never returns on the others.
class HeldFile {
public:
  explicit HeldFile(const std::string& file) {
    check_readable(file);
    descriptor_ = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0) throw DataError("{}: cannot be opened ({})", file, std::strerror(errno));
  }
  ~HeldFile() { close(descriptor_); }
  HeldFile(const HeldFile&) = delete;
  HeldFile& operator=(const HeldFile&) = delete;

  [[nodiscard]] std::string path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

private:
  int descriptor_ = -1;
};

/// Collective.
Hdf5Handle open_together(const std::string& file, const HeldFile& held, const Hdf5Access& access) {
  Hdf5Handle handle(H5Fopen(held.path().c_str(), H5F_ACC_RDONLY, access.file.id()), H5Fclose);
  if (handle.valid()) return handle;
  throw DataError("{}: can no longer be opened ({}); expected files that do not change during a run", file,
                  hdf5_reason());
}

}  // namespace

void require_driver(ReadDriver driver) {
  if (driver == ReadDriver::posix || mpi_drivers_available()) return;
  throw UsageError("the driver {} needs MPI: start the job with mpirun, or take posix", driver_name(driver));
}

HyperslabReader::HyperslabReader(const Communicator& group, ReadDriver driver, std::int64_t max_request)
    : group_(group), driver_(driver), max_request_(max_request) {
  require_driver(driver);
}

const Hdf5Access& HyperslabReader::access() {
  if (!access_) access_ = std::make_shared<const Hdf5Access>(group_, driver_);
  return *access_;
}

void HyperslabReader::read(const SamplePlace& place, const Box& box, std::byte* to) {
  const auto requests = read_requests(place.layout, place.origin, box, max_request_);
  if (driver_ == ReadDriver::mpi_collective) {
    read_together(place, requests, box, to);
  } else {
    read_alone(place, requests, box, to);
  }
}

void HyperslabReader::read_alone(const SamplePlace& place, const std::vector<Box>& requests, const Box& box,
                                 std::byte* to) {
  if (requests.empty()) return;
  check_inside(place, box);
  const Hdf5Lock lock;
  const Hdf5Voxels voxels(place, access());
  for (const Box& request : requests) {
    voxels.read(access(), request, box, to);
    bytes_read_ += bytes_taken(place.layout, place.entry, place.origin, request);
  }
  voxels.check_length();
}

void HyperslabReader::read_together(const SamplePlace& place, const std::vector<Box>& requests, const Box& box,
                                    std::byte* to) {
  // Whether all can is found out where nobody waits for anybody.
  std::exception_ptr failure;
  std::optional<HeldFile> held;
  try {
    check_inside(place, box);
    held.emplace(place.file);
    const Hdf5Lock lock;
    const Hdf5Voxels tried(place, Hdf5Access(group_, ReadDriver::posix));
  } catch (...) {
    failure = std::current_exception();
  }
  const std::int64_t rounds = group_.all_reduce_max(failure ? failed : static_cast<std::int64_t>(requests.size()));
  if (failure) std::rethrow_exception(failure);
  if (rounds == failed || rounds == 0) return;

  const Hdf5Lock lock;
  const Hdf5Handle file = open_together(place.file, *held, access());
  std::optional<Hdf5Voxels> voxels;
  try {
    voxels.emplace(place, file.id());
  } catch (...) {
    failure = std::current_exception();
  }
  // The file may have changed since it was tried. Only together can all close it again.
  const bool changed = group_.all_reduce_max(std::int64_t{failure ? 1 : 0}) > 0;
  if (failure) std::rethrow_exception(failure);
  if (changed) return;

  for (std::int64_t i = 0; i < rounds; ++i) {
    const bool mine = i < static_cast<std::int64_t>(requests.size());
    const Box request = mine ? requests[static_cast<std::size_t>(i)] : Box();
    try {
      voxels->read(access(), request, box, to);
      bytes_read_ += bytes_taken(place.layout, place.entry, place.origin, request);
    } catch (...) {
      failure = std::current_exception();  // the others go on, and this rank with them
    }
  }
  if (failure) std::rethrow_exception(failure);
  if (!requests.empty()) voxels->check_length();
}

}  // namespace halograd
