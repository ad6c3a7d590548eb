#include "halograd/cli/processor.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string_view>

namespace halograd {
namespace {

/// Those that kernels are chosen by, on x86-64 and aarch64.
constexpr std::array<std::string_view, 17> wanted{
    "sse4_1",      "avx",      "avx2",     "fma",      "f16c",  "avx512f", "avx512bw", "avx512vl", "avx512_vnni",
    "avx512_bf16", "amx_tile", "amx_bf16", "amx_int8", "asimd", "sve",     "sve2",     "bf16"};

}  // namespace

Processor this_processor() {
  Processor processor;
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    const std::string value = colon + 2 <= line.size() ? line.substr(colon + 2) : "";
    if (key == "model name" && processor.model.empty()) processor.model = value;
    if ((key == "flags" || key == "Features") && processor.features.empty()) {
      std::istringstream words(value);
      for (std::string word; words >> word;) {
        if (std::ranges::find(wanted, word) != wanted.end()) processor.features.push_back(word);
      }
    }
  }
  return processor;
}

}  // namespace halograd
