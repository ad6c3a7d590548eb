#include "halograd/kernels/segmentation_loss.hpp"

#include "kernels/cuda/on_device.hpp"
#include "kernels/segmentation_cases.hpp"

#include <limits>

namespace halograd::test {
namespace {

/// All of a loss on one rank.
struct Loss {
  std::vector<double> sums;
  SegmentationOutcome outcome;
  std::vector<double> dice;
  std::vector<float> gradient;
};

class CudaSegmentationLosses : public OnDevice {
protected:
  [[nodiscard]] static Loss by_reference(const SegmentationLossDesc& desc, const std::vector<float>& logits,
                                         const std::vector<std::uint8_t>& labels) {
    Loss loss{.sums = sums_of(desc), .outcome = {}, .dice = factors_of(desc), .gradient = logits};
    segmentation_sums(Backend::reference, desc, logits.data(), labels.data(), loss.sums.data());
    finish_segmentation(Backend::reference, desc, desc.samples, loss.sums.data(), &loss.outcome, loss.dice.data());
    segmentation_gradient(Backend::reference, desc, logits.data(), labels.data(), &loss.outcome, loss.dice.data(),
                          loss.gradient.data());
    return loss;
  }

  /// With the gradient in place of the logits. Logits and labels begin anywhere.
  [[nodiscard]] Loss on_device(SegmentationLossDesc desc, const std::vector<float>& logits,
                               const std::vector<std::uint8_t>& labels, std::int64_t shift = 0) const {
    desc.type = type();
    const DeviceArray on_logits = activations(logits, shift);
    const DeviceArray on_labels = array(labels, shift);
    const DeviceArray sums = array(sums_of(desc));
    const DeviceArray outcome = array(std::vector<SegmentationOutcome>(1));
    const DeviceArray dice = array(factors_of(desc));
    run(
        [&] {
          segmentation_sums(queue, desc, on_logits.data(), on_labels.data<std::uint8_t>(), sums.data<double>());
          finish_segmentation(queue, desc, desc.samples, sums.data<double>(), outcome.data<SegmentationOutcome>(),
                              dice.data<double>());
          segmentation_gradient(queue, desc, on_logits.data(), on_labels.data<std::uint8_t>(),
                                outcome.data<SegmentationOutcome>(), dice.data<double>(), on_logits.data());
        },
        {&on_logits, &sums, &outcome, &dice});
    return {sums.values<double>(), outcome.values<SegmentationOutcome>()[0], dice.values<double>(), floats(on_logits)};
  }

  void expect_like_the_reference(const SegmentationLossDesc& desc, const std::vector<float>& logits,
                                 const std::vector<std::uint8_t>& labels, std::int64_t shift = 0) const {
    const Loss expected = by_reference(desc, logits, labels);
    const Loss got = on_device(desc, logits, labels, shift);
    // Probabilities are floats, their sums doubles.
    ASSERT_LT(relative_l2(got.sums, expected.sums), 1e-6);
    // Counts are whole numbers, and weights sums of a few bits each.
    ASSERT_EQ(got.sums[1], expected.sums[1]);
    ASSERT_NEAR(got.outcome.loss, expected.outcome.loss, 1e-6 * std::max(1.0, std::abs(expected.outcome.loss)));
    const double scale = expected.outcome.cross_entropy_scale;
    ASSERT_NEAR(got.outcome.cross_entropy_scale, scale, 1e-14 * scale);
    ASSERT_LT(relative_l2(got.dice, expected.dice), 2e-6);
    double largest = 1e-6;
    for (const float value : expected.gradient) largest = std::max(largest, std::abs(static_cast<double>(value)));
    for (std::size_t i = 0; i < expected.gradient.size(); ++i) {
      const double value = static_cast<double>(expected.gradient[i]);
      ASSERT_NEAR(static_cast<double>(got.gradient[i]), value, half_unit() * std::abs(value) + 5e-6 * largest) << i;
    }
  }

private:
  [[nodiscard]] static std::vector<double> sums_of(const SegmentationLossDesc& desc) {
    return std::vector<double>(static_cast<std::size_t>(segmentation_sum_count(desc, desc.samples)), 1e30);
  }
  [[nodiscard]] static std::vector<double> factors_of(const SegmentationLossDesc& desc) {
    return std::vector<double>(static_cast<std::size_t>(2 * desc.samples * desc.classes), 1e30);
  }
};

TEST_P(CudaSegmentationLosses, MatchTheReferenceForAnyNumberOfClasses) {
  Dice dice(3);
  for (std::uint64_t round = 0; round < 160; ++round) {
    const SegmentationLossDesc desc = random_loss(dice, round);
    SCOPED_TRACE("round " + std::to_string(round) + ", " + std::to_string(desc.classes) + " classes");
    const std::int64_t shift = dice.between(0, 1) * dice.between(0, 7);
    const auto logits = random_activations(desc.samples * desc.voxels * desc.classes, round, -6, 6);
    expect_like_the_reference(desc, logits, random_labels(dice, desc), shift);
  }
}

TEST_P(CudaSegmentationLosses, MatchTheReferenceOnManyVoxels) {
  for (const std::int64_t classes : {3, 14, 40}) {
    const SegmentationLossDesc desc{.samples = 2, .voxels = 200011, .classes = classes, .dice = 0.5};
    Dice dice(4);
    const auto logits = random_activations(desc.samples * desc.voxels * classes, 1, -4, 4);
    expect_like_the_reference(desc, logits, random_labels(dice, desc));
  }
}

TEST_P(CudaSegmentationLosses, KeepTheDigitsOfSmallLosses) {
  for (const std::int64_t classes : {2, 9}) {
    const SegmentationLossDesc desc{.samples = 1, .voxels = 1, .classes = classes};
    for (const float margin : {1.0F, 8.0F, 20.0F}) {
      std::vector<float> logits(static_cast<std::size_t>(classes));
      logits[1] = margin;
      const double others = static_cast<double>(classes - 1) * std::exp(-static_cast<double>(margin));
      EXPECT_NEAR(on_device(desc, logits, {1}).outcome.loss / std::log1p(others), 1, 1e-6);
    }
  }
}

TEST_P(CudaSegmentationLosses, SurviveLargeLogits) {
  const SegmentationLossDesc desc{.samples = 1, .voxels = 2, .classes = 3, .dice = 1};
  // A label that the network calls impossible: the surprise is the distance of the logits.
  const Loss got = on_device(desc, {8192, -8192, 0, 256, 256, -256}, {1, 0});
  EXPECT_NEAR(got.sums[0], 16384 + std::log(2.0), 1e-3);
  for (const float value : got.gradient) EXPECT_TRUE(std::isfinite(value));
}

TEST_P(CudaSegmentationLosses, ShowNumbersThatAreNotFinite) {
  for (const std::int64_t classes : {3, 10}) {
    for (const SegmentationLossDesc& desc : losses_by_share(2, classes)) {
      for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        for (std::size_t i = 0; i < static_cast<std::size_t>(classes); ++i) {
          auto logits = random_activations(2 * classes, 1);
          logits[i] = bad;
          EXPECT_FALSE(std::isfinite(on_device(desc, logits, {1, 1}).outcome.loss))
              << bad << " at " << i << ", Dice " << desc.dice << ", weights " << desc.class_weights[0];
        }
      }
    }
  }
}

TEST_P(CudaSegmentationLosses, IgnoreVoxelsWhateverTheyHold) {
  for (const std::int64_t classes : {2, 12}) {
    const auto all = static_cast<std::size_t>(classes);
    const SegmentationLossDesc desc{.samples = 1, .voxels = 3, .classes = classes, .ignore_label = 255, .dice = 1};
    auto logits = random_activations(3 * classes, 1);
    std::fill_n(logits.begin() + classes, classes, std::numeric_limits<float>::quiet_NaN());
    const Loss three = on_device(desc, logits, {0, 255, 1});
    SegmentationLossDesc without = desc;
    without.voxels = 2;
    std::vector<float> two(logits.begin(), logits.begin() + classes);
    two.insert(two.end(), logits.begin() + 2 * classes, logits.end());
    EXPECT_NEAR(three.outcome.loss, on_device(without, two, {0, 1}).outcome.loss, 1e-12);
    for (std::size_t k = all; k < 2 * all; ++k) EXPECT_EQ(three.gradient[k], 0.0F);
    // Where nothing counts there is nothing to learn.
    const Loss none = on_device(desc, logits, {255, 255, 255});
    EXPECT_EQ(none.gradient, std::vector<float>(3 * all));
    EXPECT_EQ(none.outcome.loss, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Places, CudaSegmentationLosses, all_places(), place_test_name);

}  // namespace
}  // namespace halograd::test
