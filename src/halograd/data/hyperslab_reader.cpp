#include "halograd/data/hyperslab_reader.hpp"

#include "halograd/core/error.hpp"
#include "halograd/data/hdf5_voxels.hpp"
#include "halograd/data/hyperslab.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>

namespace halograd {
namespace {

constexpr std::int64_t failed = std::numeric_limits<std::int64_t>::max();

void check_inside(const SamplePlace& place, const Box& box) {
  const Index& o = place.origin;
  const Box in_volume = box.relative_to({-o.d, -o.h, -o.w});
  const VolumeLayout& image = place.layout.image;
  const bool entry_exists = place.entry >= 0 && place.entry < image.entries;
  if (entry_exists && Box::whole(image.shape.extent).contains(in_volume)) return;
  throw UsageError("{}: the voxels to read lie beyond `{}`; expected a box within it", place.file,
                   volume_name(image.name));
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

/// What is read from one of a file's datasets.
struct HyperslabReader::Part {
  VolumeLayout volume;
  std::vector<Box> requests;
  std::byte* to = nullptr;
};

std::vector<HyperslabReader::Part> HyperslabReader::parts_of(const SamplePlace& place, const Box& box,
                                                             std::byte* to) const {
  std::vector<Part> parts;
  for (const VolumeLayout& volume : place.layout.volumes()) {
    parts.push_back({volume, read_requests(volume, place.origin, box, max_request_), to});
    to += voxel_bytes(volume.layout, volume.shape.channels, box);
  }
  return parts;
}

void HyperslabReader::read(const SamplePlace& place, const Box& box, std::byte* to) {
  const std::vector<Part> parts = parts_of(place, box, to);
  if (driver_ == ReadDriver::mpi_collective) {
    read_together(place, parts, box);
  } else {
    read_alone(place, parts, box);
  }
}

void HyperslabReader::read_alone(const SamplePlace& place, const std::vector<Part>& parts, const Box& box) {
  if (box.empty()) return;
  check_inside(place, box);
  const Hdf5Lock lock;
  const Hdf5Voxels voxels(place, access());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (const Box& request : parts[i].requests) {
      voxels.read(access(), i, request, box, parts[i].to);
      bytes_read_ += bytes_taken(parts[i].volume, place.entry, place.origin, request);
    }
  }
  voxels.check_length();
}

void HyperslabReader::read_together(const SamplePlace& place, const std::vector<Part>& parts, const Box& box) {
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
  // One dataset after the other: all ranks read from the same one at a time.
  std::vector<std::int64_t> rounds;
  for (const Part& part : parts) {
    rounds.push_back(group_.all_reduce_max(failure ? failed : static_cast<std::int64_t>(part.requests.size())));
  }
  if (failure) std::rethrow_exception(failure);
  if (rounds.front() == failed || rounds.front() == 0) return;

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

  failure = read_rounds(*voxels, place, parts, box, rounds);
  if (failure) std::rethrow_exception(failure);
  if (!box.empty()) voxels->check_length();
}

/// Plays this rank's part in as many readings of each dataset as the rank with the most takes; what failed last.
std::exception_ptr HyperslabReader::read_rounds(const Hdf5Voxels& voxels, const SamplePlace& place,
                                                const std::vector<Part>& parts, const Box& box,
                                                const std::vector<std::int64_t>& rounds) {
  std::exception_ptr failure;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (std::int64_t round = 0; round < rounds[i]; ++round) {
      const bool mine = round < std::ssize(parts[i].requests);
      const Box request = mine ? parts[i].requests[static_cast<std::size_t>(round)] : Box();
      try {
        voxels.read(access(), i, request, box, parts[i].to);
        bytes_read_ += bytes_taken(parts[i].volume, place.entry, place.origin, request);
      } catch (...) {
        failure = std::current_exception();  // the others go on, and this rank with them
      }
    }
  }
  return failure;
}

}  // namespace halograd
