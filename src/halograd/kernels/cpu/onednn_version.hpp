#pragma once

#include <string>

namespace halograd::cpu {

/// The oneDNN that this process runs with, "2.6.3".
std::string onednn_version();

}  // namespace halograd::cpu
