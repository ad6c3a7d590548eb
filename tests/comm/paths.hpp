#pragma once

#include "halograd/comm/communicator.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace halograd::testing {

/// Collective. All ranks, with traffic through shared memory (path "shared") or by MPI messages ("mpi").
inline Communicator over(const std::string& path) {
  setenv("HALOGRAD_SHARED_MEMORY", path == "mpi" ? "0" : "1", 1);
  Communicator made = Communicator::world().duplicate();
  unsetenv("HALOGRAD_SHARED_MEMORY");
  return made;
}

/// Tests that run once through shared memory (where the ranks are on one node) and once through MPI messages.
class BothPaths : public ::testing::TestWithParam<const char*> {
protected:
  /// Collective. All ranks, with traffic that takes the path of this test.
  [[nodiscard]] Communicator world() const { return over(GetParam()); }
};

inline const auto both_paths = ::testing::Values("shared", "mpi");
inline std::string path_name(const ::testing::TestParamInfo<const char*>& info) {
  return info.param;
}

}  // namespace halograd::testing
