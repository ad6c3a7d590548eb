#include "halograd/kernels/cuda/layout_index.hpp"
#include "halograd/kernels/layout.hpp"
#include "kernels/software_grid.hpp"

namespace halograd::test {
namespace {

template <typename T>
class CudaLayoutTest : public ActivationTest<T> {};
TYPED_TEST_SUITE(CudaLayoutTest, ActivationTypes);

TYPED_TEST(CudaLayoutTest, TurnsChannelsLikeTheReference) {
  Dice dice(1);
  const auto run = [](const auto& body, std::int64_t items) { run_items(body, items); };
  for (std::uint64_t round = 0; round < 40; ++round) {
    const LocalShape shape{
        dice.between(0, 3), dice.between(1, 20), {dice.between(1, 4), dice.between(1, 4), dice.between(1, 4)}};
    const auto last = rounded<TypeParam>(random_values(shape.elements(), round));
    std::vector<float> first(last.size());
    std::vector<float> expected(last.size());
    to_channels_first(Backend::reference, activation_of<TypeParam>, shape, last.data(), expected.data());
    cuda::move_numbers(cuda::to_channels_first_loops(shape), last.data(), first.data(), run);
    EXPECT_EQ(first, expected);
    std::vector<TypeParam> back(last.size());
    cuda::move_numbers(cuda::to_channels_last_loops(shape), static_cast<const float*>(first.data()), back.data(), run);
    EXPECT_EQ(widened(back), widened(last));
  }
}

}  // namespace
}  // namespace halograd::test
