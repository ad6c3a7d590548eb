#include "halograd/core/version.hpp"

// The values come from CMake, for this file alone.
namespace halograd {

std::string version() {
  return HALOGRAD_VERSION;
}
std::string compiler_version() {
  return HALOGRAD_COMPILER;
}
std::string build_type() {
  return HALOGRAD_BUILD_TYPE;
}

}  // namespace halograd
