#include "halograd/cli/predict_scan.hpp"

#include "halograd/core/error.hpp"
#include "halograd/data/hyperslab.hpp"
#include "halograd/data/medical/canonical_image.hpp"
#include "halograd/data/medical/case_file.hpp"

#include <span>

namespace halograd {
namespace {

/// Canonical images are like the volume of a converted case.
FileLayout image_layout(std::int64_t width) {
  return {.image = {.name = VolumeName::volume,
                    .channel_axis = false,
                    .shape = {1, Extent::cube(width)},
                    .layout = {.dtype = DType::i16}}};
}

/// Collective over the group. Rank 0 has the whole image, the others get their parts.
void share_image(GroupReader& group, Scan& scan) {
  group.group().broadcast(&scan.sample.scale, sizeof scan.sample.scale, 0);
  const SampleLayout layout = scan.sample.layout.sample();
  std::vector<Box> held(group.owned().size());
  held.front() = Box::whole(group.sample().extent);
  scan.voxels.resize(static_cast<std::size_t>(hyperslab_bytes(layout, 1, group.own())));
  group.redistribute(layout, held, scan.whole.data(), group.owned(), scan.voxels.data());
}

Scan load_image(const Communicator& world, GroupReader* group, const ScanRequest& request) {
  Scan scan{.sample = {.layout = image_layout(request.width), .file = request.file.string()}};
  agree(world, [&] {
    if (world.rank() != 0) return;
    const CanonicalImage image = load_canonical_image(request.file, request.width);
    const std::span<const std::byte> bytes = std::as_bytes(std::span(image.voxels));
    scan.whole.assign(bytes.begin(), bytes.end());
    scan.sample.scale = {image.encoding.scale, image.encoding.offset};
    scan.original = image.original;
    scan.spacing = image.spacing();
  });
  if (group != nullptr) share_image(*group, scan);
  return scan;
}

Scan load_case(const Communicator& world, const GroupReader* group, const ScanRequest& request,
               const DataConfig& data) {
  Scan scan;
  agree(world, [&] {
    if (group == nullptr) return;
    const GlobalShape& shape = group->sample();
    scan.sample = inspect_input(request.file.string(), shape, data);
    scan.voxels = read_input(scan.sample, shape.channels, group->own());
    if (world.rank() != 0) return;
    const CaseGeometry geometry = read_case_geometry(request.file);
    scan.original = geometry.original;
    scan.spacing = geometry.spacing;
    if (request.whole) scan.whole = read_input(scan.sample, shape.channels, Box::whole(shape.extent));
  });
  return scan;
}

}  // namespace

Scan load_scan(const Communicator& world, GroupReader* group, const ScanRequest& request, const DataConfig& data) {
  if (has_nifti_name(request.file)) return load_image(world, group, request);
  const std::string ending = request.file.extension().string();
  if (ending == ".hdf5" || ending == ".h5") return load_case(world, group, request, data);
  throw DataError("{}: neither a NIfTI image nor a converted case by its name; expected .nii, .nii.gz or .hdf5",
                  request.file.string());
}

}  // namespace halograd
