#pragma once

#include "halograd/data/file_layout.hpp"
#include "halograd/tensor/box.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace halograd {

/// How HDF5 gets at the bytes.
enum class ReadDriver { posix, mpi_independent, mpi_collective };
/// "posix", "mpi-independent", "mpi-collective".
const char* driver_name(ReadDriver driver);

/// Which part of a sample each rank of its group reads.
enum class ReadShape {
  boxes,   ///< its own, straight from the file
  blocks,  ///< a well-shaped one (whole chunks, or slabs that are one run of the file), then passed on to its owners
  sample,  ///< all of it on the group's first rank, then scattered: the baseline
};
/// "own boxes", "blocks", "whole samples".
const char* shape_name(ReadShape shape);

struct ReadPlan {
  ReadDriver driver = ReadDriver::posix;
  ReadShape shape = ReadShape::boxes;
};

/// The voxels each rank of a group reads of a sample, in the sample's own indices; together they are the sample,
/// once. `file`: of a labelled one its image, with which the labels are read. `owned`: what each rank is to have, in
/// the group's order. `origin`: where the sample begins in its file (a sub-volume), which decides how chunks cut it.
/// Boxes may be empty. A pure function.
std::vector<Box> boxes_to_read(ReadShape shape, const VolumeLayout& file, const Index& origin, const Extent& sample,
                               const std::vector<Box>& owned);

/// Whether reading `owned` straight from the file is bad by nature: a chunk wanted by two ranks (each would read and
/// unpack it whole), or runs so short that seeking outweighs reading (a thin cut in width of a contiguous file).
bool boxes_are_slow(const VolumeLayout& file, const Index& origin, const Extent& sample, const std::vector<Box>& owned);

}  // namespace halograd
