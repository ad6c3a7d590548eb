#include "halograd/data/hyperslab.hpp"

#include <array>
#include <cstring>

namespace halograd {
namespace {

/// A hyperslab as four nested loops, outermost first: channels (one turn where they come last), depth, height, width.
struct Loops {
  std::array<std::int64_t, 4> stride{};  // bytes
  std::int64_t offset = 0;               // of the part's first voxel
};

Loops loops_over(const Box& box, const Index& first, std::int64_t voxel) {
  const Extent e = box.extent();
  const Box at = Box{first, first}.relative_to(box.lo);
  Loops loops;
  loops.stride[3] = voxel;
  loops.stride[2] = loops.stride[3] * e.w;
  loops.stride[1] = loops.stride[2] * e.h;
  loops.stride[0] = loops.stride[1] * e.d;
  loops.offset = at.lo.d * loops.stride[1] + at.lo.h * loops.stride[2] + at.lo.w * loops.stride[3];
  return loops;
}

/// The voxels, or the labels. `voxel`: the bytes that belong together.
void copy_volume(std::int64_t channels, std::int64_t voxel, const HyperslabSource& from, const HyperslabView& to) {
  const Box common = from.box.intersect(to.box);
  const Loops source = loops_over(from.box, common.lo, voxel);
  const Loops target = loops_over(to.box, common.lo, voxel);
  const Extent e = common.extent();
  std::array<std::int64_t, 4> count{channels, e.d, e.h, e.w};
  // Whatever lies in one run on both sides is copied in one go.
  std::int64_t run = voxel;
  for (std::size_t i = 4; i-- > 0;) {
    if (count[i] > 1 && (source.stride[i] != run || target.stride[i] != run)) break;
    run *= count[i];
    count[i] = 1;
  }
  const std::byte* in = from.data + source.offset;
  std::byte* out = to.data + target.offset;
  for (std::int64_t c = 0; c < count[0]; ++c) {
    for (std::int64_t d = 0; d < count[1]; ++d) {
      for (std::int64_t h = 0; h < count[2]; ++h) {
        for (std::int64_t w = 0; w < count[3]; ++w) {
          const auto place = [&](const Loops& l) {
            return c * l.stride[0] + d * l.stride[1] + h * l.stride[2] + w * l.stride[3];
          };
          std::memcpy(out + place(target), in + place(source), static_cast<std::size_t>(run));
        }
      }
    }
  }
}

}  // namespace

std::int64_t voxel_bytes(const SampleLayout& layout, std::int64_t channels, const Box& box) {
  return box.volume() * channels * dtype_size(layout.dtype);
}

std::int64_t hyperslab_bytes(const SampleLayout& layout, std::int64_t channels, const Box& box) {
  return voxel_bytes(layout, channels, box) + (layout.labelled ? box.volume() : 0);
}

void copy_hyperslab(const SampleLayout& layout, std::int64_t channels, const HyperslabSource& from,
                    const HyperslabView& to) {
  if (from.box.intersect(to.box).empty()) return;
  const std::int64_t number = dtype_size(layout.dtype);
  if (layout.channels_first) {
    copy_volume(channels, number, from, to);
  } else {
    copy_volume(1, number * channels, from, to);
  }
  if (!layout.labelled) return;
  copy_volume(1, 1, {from.box, from.data + voxel_bytes(layout, channels, from.box)},
              {to.box, to.data + voxel_bytes(layout, channels, to.box)});
}

}  // namespace halograd
