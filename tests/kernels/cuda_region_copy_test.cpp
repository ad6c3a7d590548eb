#include "halograd/kernels/cuda/region_copy_index.hpp"
#include "kernels/region_cases.hpp"
#include "kernels/software_grid.hpp"

#include <set>

namespace halograd::test {
namespace {

template <typename T>
class CudaRegionCopyTest : public ActivationTest<T> {};
TYPED_TEST_SUITE(CudaRegionCopyTest, ActivationTypes);

/// What the kernels leave of `to`, with the widths that they moved in.
template <bool add, int batch, typename T>
std::vector<T> moved(const RegionCopy& copy, const Slice& from, const Slice& to, std::set<int>* widths = nullptr) {
  const std::vector<T> source = rounded<T>(from.buffer);
  std::vector<T> target = rounded<T>(to.buffer);
  cuda::move_region<add>(copy, source.data() + from.shift, target.data() + to.shift,
                         [&]<int width>(const cuda::MoveUnits<T, width, add>& body, std::int64_t items) {
                           if (widths != nullptr) widths->insert(width);
                           run_moves<batch>(body, items);
                         });
  return target;
}

template <typename T>
void expect_like_the_reference(const RegionCopy& copy, const Slice& from, const Slice& to) {
  const Slice source{from.layout, from.channels, from.shift, widened(rounded<T>(from.buffer))};
  Slice expected{to.layout, to.channels, to.shift, widened(rounded<T>(to.buffer))};
  const Slice before = expected;
  copy_region(Backend::reference, copy, source.data(), expected.data());
  EXPECT_EQ(widened(moved<false, 1, T>(copy, from, to)), expected.buffer);
  EXPECT_EQ(widened(moved<false, 4, T>(copy, from, to)), expected.buffer);
  expected = before;
  add_region(Backend::reference, copy, source.data(), expected.data());
  // Sums are rounded once.
  EXPECT_EQ(widened(moved<true, 1, T>(copy, from, to)), widened(rounded<T>(expected.buffer)));
  EXPECT_EQ(widened(moved<true, 4, T>(copy, from, to)), widened(rounded<T>(expected.buffer)));
}

TYPED_TEST(CudaRegionCopyTest, MovesRandomRegionsAndNothingElse) {
  Dice dice(7);
  for (std::uint64_t round = 0; round < 120; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Move move = random_move(dice, round);
    expect_like_the_reference<TypeParam>(move.copy, move.from, move.to);
  }
}

TYPED_TEST(CudaRegionCopyTest, PacksAndUnpacksFacesOfTwoKernelWidths) {
  Dice dice(8);
  for (std::uint64_t round = 0; round < 36; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Move pack = face_move(dice, round);
    expect_like_the_reference<TypeParam>(pack.copy, pack.from, pack.to);
    const Move unpack = reversed(pack);
    expect_like_the_reference<TypeParam>(unpack.copy, unpack.from, unpack.to);
  }
}

TYPED_TEST(CudaRegionCopyTest, MovesNothingOfNoSamplesOrNoVoxels) {
  const VoxelLayout one{{{0, 0, 0}, {1, 1, 1}}, 1};
  TypeParam value(5.0F);
  const auto fail = [](const auto&, std::int64_t) { ADD_FAILURE(); };
  cuda::move_region<false>({0, 1, one, one, one.box}, static_cast<const TypeParam*>(nullptr), &value, fail);
  cuda::move_region<false>({1, 1, one, one, {{0, 0, 0}, {1, 0, 1}}}, static_cast<const TypeParam*>(&value), &value,
                           fail);
}

/// The width that a face of `thickness` voxels in W is packed with, in bytes.
template <typename T>
std::int64_t width_of_face(std::int64_t channels, std::int64_t thickness) {
  Slice tensor = dense_slice(1, {{0, 0, 0}, {4, 4, 16}}, channels);
  const Box face{{0, 0, 1}, {4, 4, 1 + thickness}};
  const Slice message = dense_slice(1, face, channels);
  std::set<int> widths;
  moved<false, 1, T>({1, channels, tensor.layout, message.layout, face}, tensor, message, &widths);
  EXPECT_EQ(widths.size(), 1U);
  return *widths.begin() * static_cast<std::int64_t>(sizeof(T));
}

TEST(CudaRegionCopy, MovesSixteenBytesAtATimeWhereRunsAllow) {
  EXPECT_EQ(width_of_face<float>(4, 1), 16);
  EXPECT_EQ(width_of_face<float>(16, 1), 16);
  EXPECT_EQ(width_of_face<float>(16, 2), 16);
  EXPECT_EQ(width_of_face<float>(6, 1), 8);
  EXPECT_EQ(width_of_face<float>(1, 1), 4);
  EXPECT_EQ(width_of_face<float>(2, 2), 8);  // the face begins at 8 bytes
  EXPECT_EQ(width_of_face<Bf16>(16, 1), 16);
  EXPECT_EQ(width_of_face<Bf16>(8, 2), 16);
  EXPECT_EQ(width_of_face<Bf16>(4, 1), 8);
  EXPECT_EQ(width_of_face<Bf16>(3, 1), 2);
}

}  // namespace
}  // namespace halograd::test
