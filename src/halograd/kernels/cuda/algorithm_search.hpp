#pragma once

#include "halograd/device/queue.hpp"
#include "halograd/kernels/cuda/conv3d.hpp"
#include "halograd/kernels/cuda/planned_pass.hpp"

#include <string>
#include <vector>

namespace halograd::cuda {

/// What an algorithm's choice depends on, as the record of algorithms has it: the pass and where its voxels lie, the
/// GPU and cuDNN's version.
std::string algorithm_key(ConvPass pass, const ConvPart& whole, const std::string& device_name);

/// Passes to choose from: those of admitted engines that need `limit` of workspace or less, in the order of cuDNN's
/// expectations, for the fewest pieces and then for pieces as small as `workspace_limit` asks for; where they are few,
/// then those that take nearly everything. Where there are none, the one that needs the least. Throws ResourceError
/// where no engine takes the convolution.
std::vector<PlannedPass> candidates(const CudnnTarget& target, ConvPass pass, const ConvPart& whole,
                                    std::int64_t limit);

/// For `direct`, forward and backward data: the first that takes the convolution in an order of engines and settings
/// that depends on channels, kernel, stride and precision, and not on extents, so that it is the same one on all grids.
/// Engines that do not sum every voxel alike are not in it.
PlannedPass direct_pass(const CudnnTarget& target, ConvPass pass, const ConvPart& whole);

/// The pass with the algorithm that the process's record has for it, or else the fastest candidate, measured on
/// buffers of its own and then recorded. Where there is no memory to measure in, the one that cuDNN expects to be the
/// fastest.
PlannedPass chosen_pass(const Queue& queue, const CudnnTarget& target, ConvPass pass, const ConvPart& whole);

}  // namespace halograd::cuda
