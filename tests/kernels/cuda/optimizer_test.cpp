#include "halograd/kernels/optimizer.hpp"

#include "kernels/cuda/on_device.hpp"

namespace halograd::test {
namespace {

class CudaOptimizers : public OnDevice {};

/// A range of parameters begins anywhere; their gradients and the optimizer's numbers mostly as far from an alignment.
std::vector<std::int64_t> shifts(Dice& dice, std::uint64_t round) {
  const std::int64_t together = dice.between(0, 3);
  std::vector<std::int64_t> result;
  for (int i = 0; i < 4; ++i) result.push_back(round % 2 == 0 ? together : dice.between(0, 3));
  return result;
}

void expect_near(const std::vector<float>& got, const std::vector<float>& expected, double bound) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], bound) << i;
}

TEST_P(CudaOptimizers, AdamMatchesTheReferenceAtAnyAlignment) {
  Dice dice(1);
  for (std::uint64_t round = 0; round < 40; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const std::int64_t count = round == 0 ? 1000003 : dice.between(0, 3000);
    const auto shift = shifts(dice, round);
    const auto g = random_values(count, round);
    auto w = random_values(count, round + 100);
    auto m = random_values(count, round + 200);
    auto v = random_values(count, round + 300, 0.01);
    const DeviceArray on_g = array(g, shift[0]);
    const DeviceArray on_w = array(w, shift[1]);
    const DeviceArray on_m = array(m, shift[2]);
    const DeviceArray on_v = array(v, shift[3]);
    const AdamStep adam{.learning_rate = 0.01, .step = dice.one_of<std::int64_t>({1, 2, 7, 1000, 100000})};
    const DeviceArray on_adam = array(std::vector<AdamStep>{adam});
    adam_update(Backend::reference, &adam, g.data(), w.data(), m.data(), v.data(), count);
    run(
        [&] {
          adam_update(queue, on_adam.data<AdamStep>(), on_g.data<float>(), on_w.data<float>(), on_m.data<float>(),
                      on_v.data<float>(), count);
        },
        {&on_w, &on_m, &on_v});
    EXPECT_LT(relative_l2(on_m.values<float>(), m), 1e-6);
    EXPECT_LT(relative_l2(on_v.values<float>(), v), 1e-6);
    // Weights are near 1 and move by 0.1 at most: two of a float's steps at 1, and a little.
    expect_near(on_w.values<float>(), w, 3e-7);
  }
}

TEST_P(CudaOptimizers, SgdMatchesTheReferenceAtAnyAlignment) {
  Dice dice(2);
  for (std::uint64_t round = 0; round < 20; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const std::int64_t count = round == 0 ? 1000003 : dice.between(0, 3000);
    const auto shift = shifts(dice, round);
    const auto g = random_values(count, round);
    auto w = random_values(count, round + 100);
    auto velocity = random_values(count, round + 200);
    const DeviceArray on_g = array(g, shift[0]);
    const DeviceArray on_w = array(w, shift[1]);
    const DeviceArray on_velocity = array(velocity, shift[2]);
    const SgdStep sgd{.learning_rate = 0.05, .momentum = 0.9};
    const DeviceArray on_sgd = array(std::vector<SgdStep>{sgd});
    sgd_update(Backend::reference, &sgd, g.data(), w.data(), velocity.data(), count);
    run(
        [&] {
          sgd_update(queue, on_sgd.data<SgdStep>(), on_g.data<float>(), on_w.data<float>(), on_velocity.data<float>(),
                     count);
        },
        {&on_w, &on_velocity});
    EXPECT_LT(relative_l2(on_velocity.values<float>(), velocity), 1e-6);
    expect_near(on_w.values<float>(), w, 2e-7);
  }
}

/// A recorded step takes the rate and the count that stand in the device's memory when it is launched.
TEST_P(CudaOptimizers, FollowTheStepInMemory) {
  const std::int64_t count = 1037;
  const auto g = random_values(count, 1);
  auto w = random_values(count, 2);
  std::vector<float> m(w.size()), v(w.size());
  const DeviceArray on_g = array(g);
  const DeviceArray on_w = array(w);
  const DeviceArray on_m = array(m);
  const DeviceArray on_v = array(v);
  DeviceArray on_adam = array(std::vector<AdamStep>{{.learning_rate = 1}});
  const auto list = [&] {
    adam_update(queue, on_adam.data<AdamStep>(), on_g.data<float>(), on_w.data<float>(), on_m.data<float>(),
                on_v.data<float>(), count);
  };
  Graph graph;
  if (queue.can_record()) {
    queue.begin_recording();
    list();
    graph = queue.end_recording();
  }
  AdamStep adam{.learning_rate = 0.01};
  for (adam.step = 1; adam.step <= 5; ++adam.step) {
    adam.learning_rate *= 0.8;
    adam_update(Backend::reference, &adam, g.data(), w.data(), m.data(), v.data(), count);
    on_adam.assign(std::vector<AdamStep>{adam});
    graph ? queue.launch(graph) : list();
    queue.synchronize();
  }
  EXPECT_LT(relative_l2(on_m.values<float>(), m), 1e-6);
  EXPECT_LT(relative_l2(on_v.values<float>(), v), 1e-6);
  expect_near(on_w.values<float>(), w, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Places, CudaOptimizers, float_places(), place_test_name);

}  // namespace
}  // namespace halograd::test
