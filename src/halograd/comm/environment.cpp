#include "halograd/comm/environment.hpp"

#include <cstdlib>
#include <string_view>

namespace halograd::comm {

bool switched_off(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return false;
  const std::string_view text(value);
  return text == "0" || text == "off" || text == "OFF" || text == "false" || text == "no";
}

}  // namespace halograd::comm
