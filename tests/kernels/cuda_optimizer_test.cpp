#include "halograd/kernels/cuda/optimizer_element.hpp"
#include "kernels/software_grid.hpp"

namespace halograd::test {
namespace {

/// A buffer whose numbers begin `shift` behind a multiple of 16 bytes.
struct Shifted {
  Shifted(std::int64_t count, std::int64_t shift_by, std::uint64_t seed, double low = -1)
      : shift(shift_by), buffer(random_values(count + shift_by, seed, low)) {}
  [[nodiscard]] float* data() { return buffer.data() + shift; }
  std::int64_t shift;
  std::vector<float> buffer;
};

TEST(CudaOptimizer, PowersAreThoseOfTheLibrary) {
  for (const double base : {0.9, 0.999, 0.5, 0.9999}) {
    for (const std::int64_t exponent : {0, 1, 2, 3, 10, 1000, 123457}) {
      const double expected = std::pow(base, static_cast<double>(exponent));
      EXPECT_NEAR(cuda::power(base, exponent), expected, 1e-10 * expected) << base << "^" << exponent;
    }
  }
}

TEST(CudaOptimizer, AdamMatchesTheReferenceAtAnyAlignment) {
  Dice dice(1);
  for (std::uint64_t round = 0; round < 40; ++round) {
    const std::int64_t count = dice.between(0, 3000);
    const std::int64_t together = dice.between(0, 3);
    const auto shift = [&] { return round % 2 == 0 ? together : dice.between(0, 3); };
    Shifted g(count, shift(), round);
    Shifted w(count, shift(), round + 100);
    Shifted m(count, shift(), round + 200);
    Shifted v(count, shift(), round + 300, 0);
    const std::vector<float> start = w.buffer;
    Shifted expected_w = w;
    Shifted expected_m = m;
    Shifted expected_v = v;
    const AdamStep adam{.learning_rate = 0.01, .step = dice.one_of<std::int64_t>({1, 2, 7, 1000, 100000})};
    adam_update(Backend::reference, &adam, g.data(), expected_w.data(), expected_m.data(), expected_v.data(), count);
    const cuda::AdamRange range(g.data(), w.data(), m.data(), v.data(), count);
    const AdamConstants constants = cuda::AdamRange::constants(adam);
    run_walking([&](std::int64_t item) { range(item, constants); }, range.range.items());
    EXPECT_LT(relative_l2(m.buffer, expected_m.buffer), 1e-6);
    EXPECT_LT(relative_l2(v.buffer, expected_v.buffer), 1e-6);
    // What counts is the distance moved, not the weight it is added to: here 0.01, of weights near 1.
    for (std::size_t i = 0; i < start.size(); ++i) ASSERT_NEAR(w.buffer[i], expected_w.buffer[i], 3e-7) << i;
  }
}

TEST(CudaOptimizer, SgdMatchesTheReferenceAtAnyAlignment) {
  Dice dice(2);
  for (std::uint64_t round = 0; round < 20; ++round) {
    const std::int64_t count = dice.between(0, 3000);
    Shifted g(count, dice.between(0, 1), round);
    Shifted w(count, dice.between(0, 1), round + 100);
    Shifted velocity(count, dice.between(0, 1), round + 200);
    Shifted expected_w = w;
    Shifted expected_velocity = velocity;
    const SgdStep sgd{.learning_rate = 0.05, .momentum = 0.9};
    sgd_update(Backend::reference, &sgd, g.data(), expected_w.data(), expected_velocity.data(), count);
    const cuda::SgdRange range(g.data(), w.data(), velocity.data(), count);
    run_walking([&](std::int64_t item) { range(item, sgd_constants(sgd)); }, range.range.items());
    for (std::size_t i = 0; i < w.buffer.size(); ++i) ASSERT_NEAR(w.buffer[i], expected_w.buffer[i], 2e-7) << i;
    EXPECT_LT(relative_l2(velocity.buffer, expected_velocity.buffer), 1e-6);
  }
}

}  // namespace
}  // namespace halograd::test
