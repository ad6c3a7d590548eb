#include "halograd/kernels/layout.hpp"

#include "kernels/cuda/on_device.hpp"

namespace halograd::test {
namespace {

class CudaLayouts : public OnDevice {
protected:
  void expect_like_the_reference(const LocalShape& shape, std::uint64_t seed, std::int64_t shift) const {
    const auto last = random_activations(shape.elements(), seed);
    std::vector<float> first(last.size());
    to_channels_first(Backend::reference, DType::f32, shape, last.data(), first.data());
    const DeviceArray on_last = activations(last, shift);
    const DeviceArray on_first = array(std::vector<float>(last.size(), 9), shift);
    run([&] { to_channels_first(queue, type(), shape, on_last.data(), on_first.data<float>()); }, {&on_first});
    EXPECT_EQ(on_first.values<float>(), first);

    // Numbers that the type can't hold are rounded.
    const auto gradients = random_values(shape.elements(), seed + 1);
    std::vector<float> expected(last.size());
    to_channels_last(Backend::reference, DType::f32, shape, gradients.data(), expected.data());
    const DeviceArray on_gradients = array(gradients, shift);
    run([&] { to_channels_last(queue, type(), shape, on_gradients.data<float>(), on_last.data()); }, {&on_last});
    EXPECT_EQ(floats(on_last), rounded(expected, type()));
  }
};

TEST_P(CudaLayouts, TurnChannelsLikeTheReference) {
  Dice dice(1);
  for (std::uint64_t round = 0; round < 40; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const LocalShape shape{
        dice.between(0, 3), dice.between(1, 20), {dice.between(1, 4), dice.between(1, 4), dice.between(1, 4)}};
    expect_like_the_reference(shape, round, dice.between(0, 1));
  }
  expect_like_the_reference({3, 256, {8, 7, 9}}, 50, 0);
}

INSTANTIATE_TEST_SUITE_P(Places, CudaLayouts, all_places(), place_test_name);

}  // namespace
}  // namespace halograd::test
