#include "halograd/comm/mpi_version.hpp"

#include "halograd/comm/mpi_support.hpp"

#include <fmt/format.h>

#include <array>

namespace halograd::comm {

std::string mpi_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  int major = 0;
  int minor = 0;
  check(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
  check(MPI_Get_version(&major, &minor), "MPI_Get_version");
  // Libraries go on about their makers behind the first comma or line end.
  const std::string all(text.data(), static_cast<std::size_t>(length));
  return fmt::format("{} (MPI {}.{})", all.substr(0, all.find_first_of(",\n")), major, minor);
}

}  // namespace halograd::comm
