#include "kernels/software_tiles.hpp"
#include "kernels/support.hpp"

namespace halograd::test {
namespace {

using cuda::WeightLayout;

WeightLayout random_layout(Dice& dice) {
  return {dice.between(1, 5), dice.one_of<std::int64_t>({1, 3, 4, 16, 31, 32, 33, 70}),
          dice.one_of<std::int64_t>({1, 8, 27, 32, 125})};
}

TEST(CudaWeightTiles, PackingTurnsEveryWeightAndUnpackingTurnsItBack) {
  Dice dice(3);
  for (std::uint64_t i = 0; i < 60; ++i) {
    const WeightLayout layout = random_layout(dice);
    const auto plain = random_values(layout.elements(), i);
    std::vector<float> expected(plain.size());
    std::size_t next = 0;
    for (std::int64_t o = 0; o < layout.out_channels; ++o) {
      for (std::int64_t k = 0; k < layout.places; ++k) {
        for (std::int64_t c = 0; c < layout.in_channels; ++c) {
          expected[next++] = plain[static_cast<std::size_t>((o * layout.in_channels + c) * layout.places + k)];
        }
      }
    }
    std::vector<float> packed(plain.size(), -1e30F);
    run_pack(layout, plain.data(), packed.data());
    EXPECT_EQ(packed, expected);
    std::vector<float> back(plain.size(), 1.0F);
    run_unpack<false>(layout, packed.data(), back.data());
    EXPECT_EQ(back, plain);
    run_unpack<true>(layout, packed.data(), back.data());
    for (std::size_t j = 0; j < back.size(); ++j) ASSERT_EQ(back[j], plain[j] + plain[j]) << j;
  }
}

TEST(CudaWeightTiles, NeighbouringLanesAreNeighboursInMemory) {
  const WeightLayout layout{2, 64, 27};
  for (int lane = 1; lane < 27; ++lane) {
    EXPECT_EQ(cuda::plain_cell(layout, {1, 0, 1}, 5, lane).at, cuda::plain_cell(layout, {1, 0, 1}, 5, lane - 1).at + 1);
  }
  for (int lane = 1; lane < 32; ++lane) {
    EXPECT_EQ(cuda::packed_cell(layout, {1, 0, 1}, 5, lane).at,
              cuda::packed_cell(layout, {1, 0, 1}, 5, lane - 1).at + 1);
  }
}

}  // namespace
}  // namespace halograd::test
