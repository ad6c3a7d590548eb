#pragma once

#include "halograd/data/input_conversion.hpp"
#include "halograd/exec/executor.hpp"
#include "halograd/train/config.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace halograd {

/// The layout and scale of a file that holds one sample of `shape`; what it should have been predicted as isn't asked
/// for. Not collective. Throws DataError naming the file.
SampleSource inspect_input(const std::string& file, const GlobalShape& shape, const DataConfig& data);

/// Reads `box` of it, in the file's type. Not collective. Throws DataError naming the file.
std::vector<std::byte> read_input(const SampleSource& sample, std::int64_t channels, const Box& box);

/// Converts this rank's own box into the network's input, as [data] says. Throws DataError naming the file.
void convert_to_slot(const Executor& executor, const InputUnit& input, const DataConfig& data,
                     const SampleSource& sample, const std::vector<std::byte>& voxels);

}  // namespace halograd
