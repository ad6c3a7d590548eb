#pragma once

#include "halograd/comm/communicator.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace halograd {

/// What `bench io` is asked for: every grid with every layout and every way to read.
struct BenchIoOptions {
  std::filesystem::path data;       ///< samples to read; empty: made, one set a layout, and removed afterwards
  std::filesystem::path directory;  ///< where they are made; empty: the system's temporary directory
  std::int64_t width = 128;         ///< of a sample, with four channels
  std::int64_t samples = 8;         ///< made of each layout
  std::int64_t batch = 0;           ///< the global mini-batch; 0: one sample a group
  std::int64_t epochs = 3;          ///< the first reads, the others exchange
  double compute = 0;               ///< seconds that a step is taken to compute, while the next one is loaded
  bool cold = false;                ///< asks the system to forget the files before they are read
  std::string store = "memory";
  std::vector<std::string> grids;  ///< empty: a cut in depth and one in width
  std::vector<std::string> layouts{"contiguous", "chunked", "gzip"};
  std::vector<std::string> ways;  ///< drivers, "auto" and the baseline "sample"; empty: all there are
  bool json = false;
};

/// Collective. Loads samples as training does, without training. An array of one object for each case; see
/// docs/data-formats.md for its members. Throws UsageError, DataError and ResourceError on all ranks alike.
nlohmann::ordered_json bench_io(const Communicator& world, const BenchIoOptions& options);

/// The cases as a table.
std::string bench_io_table(const nlohmann::ordered_json& cases);

}  // namespace halograd
