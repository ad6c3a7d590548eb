#include "halograd/kernels/region_copy.hpp"

#include "halograd/kernels/cuda/grid.hpp"
#include "kernels/cuda/on_device.hpp"
#include "kernels/region_cases.hpp"

namespace halograd::test {
namespace {

class CudaRegionCopies : public OnDevice {
protected:
  void expect_like_the_reference(Move move) const {
    move.from.buffer = rounded(move.from.buffer, type());
    move.to.buffer = rounded(move.to.buffer, type());
    const DeviceArray from = activations(move.from.buffer);
    const DeviceArray to = activations(move.to.buffer);
    RegionCopy copy = move.copy;
    copy.type = type();
    const std::int64_t from_shift = move.from.shift * dtype_size(type());
    const std::int64_t to_shift = move.to.shift * dtype_size(type());
    Slice expected = move.to;
    copy_region(Backend::reference, move.copy, move.from.data(), expected.data());
    run([&] { copy_region(queue, copy, from.data<std::byte>() + from_shift, to.data<std::byte>() + to_shift); }, {&to});
    EXPECT_EQ(floats(to), expected.buffer);
    // Sums are rounded once.
    expected = move.to;
    add_region(Backend::reference, move.copy, move.from.data(), expected.data());
    run([&] { add_region(queue, copy, from.data<std::byte>() + from_shift, to.data<std::byte>() + to_shift); }, {&to});
    EXPECT_EQ(floats(to), rounded(expected.buffer, type()));
  }
};

TEST_P(CudaRegionCopies, MoveRandomRegionsAndNothingElse) {
  Dice dice(7);
  for (std::uint64_t round = 0; round < 80; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    expect_like_the_reference(random_move(dice, round));
  }
}

TEST_P(CudaRegionCopies, PackAndUnpackFacesOfTwoKernelWidths) {
  Dice dice(8);
  for (std::uint64_t round = 0; round < 36; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Move pack = face_move(dice, round);
    expect_like_the_reference(pack);
    expect_like_the_reference(reversed(pack));
  }
}

/// As many single numbers as make a thread take several at once.
TEST_P(CudaRegionCopies, MoveRegionsOfManyNumbers) {
  const Box region{{1, 1, 1}, {65, 65, 76}};
  ASSERT_TRUE(cuda::worth_batching(2 * region.volume()));
  Slice from = dense_slice(2, {{0, 0, 0}, {66, 66, 77}}, 1);
  from.buffer = random_values(static_cast<std::int64_t>(from.buffer.size()), 1);
  Slice to = dense_slice(2, region, 2);
  to.layout.pitch = 2;
  to.channels = 1;
  to.shift = 1;
  to.buffer = random_values(static_cast<std::int64_t>(to.buffer.size()), 2);
  expect_like_the_reference({{2, 1, from.layout, to.layout, region}, from, to});
}

TEST_P(CudaRegionCopies, MoveNothingOfNoSamplesOrNoVoxels) {
  const VoxelLayout one{{{0, 0, 0}, {1, 1, 1}}, 1};
  const DeviceArray from = activations({1});
  const DeviceArray to = activations({5});
  const RegionCopy no_samples{0, 1, one, one, one.box, type()};
  const RegionCopy no_voxels{1, 1, one, one, {{0, 0, 0}, {1, 0, 1}}, type()};
  for (const RegionCopy& copy : {no_samples, no_voxels}) {
    copy_region(queue, copy, from.data(), to.data());
    add_region(queue, copy, from.data(), to.data());
    EXPECT_EQ(floats(to), std::vector<float>{5});
  }
}

INSTANTIATE_TEST_SUITE_P(Places, CudaRegionCopies, all_places(), place_test_name);

}  // namespace
}  // namespace halograd::test
