#pragma once

#include "halograd/data/hdf5_access.hpp"
#include "halograd/data/hyperslab_reader.hpp"

namespace halograd {

/// The voxels (and labels) of an open file, found to be laid out as when the data set was opened. Hold the Hdf5Lock
/// around it; in a file opened together by several ranks they read() together.
class Hdf5Voxels {
public:
  /// Throws DataError naming the file: gone, unreadable, damaged, changed since `place` was made.
  Hdf5Voxels(const SamplePlace& place, const Hdf5Access& access);
  /// The same of a file that is open already and stays so for longer.
  Hdf5Voxels(const SamplePlace& place, hid_t file);

  /// Reads `part` of `box` from one of the layout's datasets (FileLayout::volumes) into a dense buffer of `box`; an
  /// empty part takes part without reading. Throws DataError where HDF5 fails.
  void read(const Hdf5Access& access, std::size_t volume, const Box& part, const Box& box, std::byte* to) const;
  /// Throws DataError where the file has been cut short since it was opened: HDF5 then hands out zeros.
  void check_length() const;

private:
  Hdf5Voxels(const SamplePlace& place, Hdf5Handle file);

  struct Volume {
    VolumeLayout layout;
    Hdf5Handle dataset;
  };

  SamplePlace place_;
  Hdf5Handle file_;
  std::vector<Volume> volumes_;
  hsize_t length_ = 0;
};

}  // namespace halograd
