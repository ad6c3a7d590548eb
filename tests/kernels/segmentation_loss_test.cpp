#include "halograd/kernels/segmentation_loss.hpp"

#include "halograd/core/parallel.hpp"
#include "kernels/bf16_support.hpp"
#include "kernels/segmentation_cases.hpp"
#include "kernels/support.hpp"

#include <fmt/format.h>

namespace halograd::test {
namespace {

std::vector<std::uint8_t> random_labels(std::int64_t count, std::int64_t classes, unsigned seed) {
  Dice dice(seed);
  std::vector<std::uint8_t> labels;
  for (std::int64_t i = 0; i < count; ++i) labels.push_back(static_cast<std::uint8_t>(dice.between(0, classes - 1)));
  return labels;
}

/// The loss by its formula, in double.
double naive_loss(const SegmentationLossDesc& desc, const std::vector<double>& logits,
                  const std::vector<std::uint8_t>& labels) {
  const auto classes = static_cast<std::size_t>(desc.classes);
  const auto voxels = static_cast<std::size_t>(desc.voxels);
  double entropy = 0;
  double weights = 0;
  double dice = 0;
  for (std::size_t n = 0; n < static_cast<std::size_t>(desc.samples); ++n) {
    std::vector<double> both(classes);
    std::vector<double> predicted(classes);
    std::vector<double> labelled(classes);
    for (std::size_t v = n * voxels; v < (n + 1) * voxels; ++v) {
      const std::size_t label = labels[v];
      if (labels[v] == desc.ignore_label) continue;
      double sum = 0;
      for (std::size_t k = 0; k < classes; ++k) sum += std::exp(logits[v * classes + k]);
      const double weight = desc.class_weights.empty() ? 1 : desc.class_weights[label];
      entropy += weight * (std::log(sum) - logits[v * classes + label]);
      weights += weight;
      for (std::size_t k = 0; k < classes; ++k) predicted[k] += std::exp(logits[v * classes + k]) / sum;
      both[label] += std::exp(logits[v * classes + label]) / sum;
      labelled[label] += 1;
    }
    for (std::size_t k = 0; k < classes; ++k) {
      dice += (2 * both[k] + desc.smooth) / (predicted[k] + labelled[k] + desc.smooth);
    }
  }
  return desc.cross_entropy * entropy / weights +
         desc.dice * (1 - dice / static_cast<double>(desc.samples * desc.classes));
}

struct LossResult {
  double loss = 0;
  std::vector<float> gradient;
};

LossResult run(Backend backend, const SegmentationLossDesc& desc, const std::vector<float>& logits,
               const std::vector<std::uint8_t>& labels) {
  std::vector<double> sums(static_cast<std::size_t>(segmentation_sum_count(desc, desc.samples)), 1e30);
  std::vector<double> dice(static_cast<std::size_t>(2 * desc.samples * desc.classes), 1e30);
  segmentation_sums(backend, desc, logits.data(), labels.data(), sums.data());
  SegmentationOutcome outcome;
  finish_segmentation(backend, desc, desc.samples, sums.data(), &outcome, dice.data());
  LossResult result{outcome.loss, logits};  // in place
  segmentation_gradient(backend, desc, result.gradient.data(), labels.data(), &outcome, dice.data(),
                        result.gradient.data());
  return result;
}

SegmentationLossDesc random_small_loss(Dice& dice, std::uint64_t round) {
  SegmentationLossDesc desc{.samples = dice.between(1, 3),
                            .voxels = dice.between(1, 200),
                            .classes = dice.one_of<std::int64_t>({2, 3, 5, 14})};
  if (round % 2 == 0) {
    for (std::int64_t k = 0; k < desc.classes; ++k) desc.class_weights.push_back(0.5 * static_cast<double>(k + 1));
  }
  if (round % 3 == 0) desc.ignore_label = static_cast<int>(dice.one_of<std::int64_t>({0, desc.classes - 1, 255}));
  desc.cross_entropy = round % 4 == 1 ? 0 : 0.7;
  desc.dice = round % 4 == 2 ? 0 : 1.3;
  desc.smooth = dice.one_of<double>({1e-5, 1});
  return desc;
}

class SegmentationLossTest : public BackendTest {};

TEST_P(SegmentationLossTest, MatchesTheFormulaAndItsGradientFiniteDifferences) {
  Dice dice(3);
  for (std::uint64_t round = 0; round < 24; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const SegmentationLossDesc desc = random_small_loss(dice, round);
    auto labels = random_labels(desc.samples * desc.voxels, desc.classes, static_cast<unsigned>(round));
    // At least one voxel counts; some are ignored also where that label is no class.
    labels[0] = static_cast<std::uint8_t>(desc.ignore_label == 0 ? 1 : 0);
    if (desc.ignore_label == 255) labels[labels.size() / 2] = labels.size() > 2 ? 255 : labels[0];
    const auto logits = random_values(desc.samples * desc.voxels * desc.classes, round, -4, 4);
    const LossResult got = run(GetParam(), desc, logits, labels);

    std::vector<double> exact(logits.begin(), logits.end());
    EXPECT_NEAR(got.loss, naive_loss(desc, exact, labels), 1e-6);
    std::vector<double> differences;
    std::vector<float> picked;
    for (int probe = 0; probe < 40; ++probe) {
      const auto i = static_cast<std::size_t>(dice.between(0, static_cast<std::int64_t>(logits.size()) - 1));
      const double step = 1e-4;
      const double value = exact[i];
      exact[i] = value + step;
      const double above = naive_loss(desc, exact, labels);
      exact[i] = value - step;
      const double below = naive_loss(desc, exact, labels);
      exact[i] = value;
      differences.push_back((above - below) / (2 * step));
      picked.push_back(got.gradient[i]);
    }
    double error = 0;
    double norm = 1e-6;
    for (std::size_t i = 0; i < picked.size(); ++i) {
      error = std::max(error, std::abs(static_cast<double>(picked[i]) - differences[i]));
      norm = std::max(norm, std::abs(differences[i]));
    }
    EXPECT_LT(error / norm, 2e-5);
  }
}

TEST_P(SegmentationLossTest, SurvivesLargeLogits) {
  const SegmentationLossDesc desc{.samples = 1, .voxels = 3, .classes = 3, .dice = 1};
  const std::vector<float> logits{1e4F, -1e4F, 0, 300, 300, -300, -500, -501, -502};
  const LossResult got = run(GetParam(), desc, logits, {0, 0, 2});
  const double third = 2 + std::log(1 + std::exp(-1.0) + std::exp(-2.0));
  SegmentationLossDesc entropy = desc;
  entropy.dice = 0;
  EXPECT_NEAR(run(GetParam(), entropy, logits, {0, 0, 2}).loss, (0 + std::log(2.0) + third) / 3, 1e-6);
  for (const float value : got.gradient) EXPECT_TRUE(std::isfinite(value));
  // A label that the network calls impossible: the surprise is the distance of the logits.
  EXPECT_NEAR(run(GetParam(), entropy, logits, {1, 0, 2}).loss, (2e4 + std::log(2.0) + third) / 3, 1e-2);
}

TEST_P(SegmentationLossTest, KeepsTheDigitsOfSmallLosses) {
  const SegmentationLossDesc desc{.samples = 1, .voxels = 1, .classes = 2};
  for (const float margin : {1.0F, 8.0F, 20.0F}) {
    const double expected = std::log1p(std::exp(-static_cast<double>(margin)));
    EXPECT_NEAR(run(GetParam(), desc, {margin, 0}, {0}).loss / expected, 1, 1e-6) << margin;
  }
}

TEST_P(SegmentationLossTest, ShowsNumbersThatAreNotFinite) {
  for (const SegmentationLossDesc& desc : losses_by_share(2, 3)) {
    const std::string loss = fmt::format("Dice {}, weights {}: ", desc.dice, desc.class_weights[0]);
    const std::vector<float> finite{0, 1, 2, 3, 4, 5};
    EXPECT_TRUE(std::isfinite(run(GetParam(), desc, finite, {1, 1}).loss)) << loss;
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      for (std::size_t i = 0; i < 3; ++i) {
        std::vector<float> logits = finite;
        logits[i] = bad;
        EXPECT_FALSE(std::isfinite(run(GetParam(), desc, logits, {1, 1}).loss)) << loss << bad << " at " << i;
      }
    }
  }
}

TEST_P(SegmentationLossTest, IgnoresVoxelsWhateverTheyHold) {
  SegmentationLossDesc desc{.samples = 1, .voxels = 3, .classes = 2, .ignore_label = 255, .dice = 1};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const LossResult three = run(GetParam(), desc, {1, 2, nan, nan, -1, 0.5F}, {0, 255, 1});
  desc.voxels = 2;
  const LossResult two = run(GetParam(), desc, {1, 2, -1, 0.5F}, {0, 1});
  EXPECT_NEAR(three.loss, two.loss, 1e-12);
  EXPECT_EQ(three.gradient[2], 0);
  EXPECT_EQ(three.gradient[3], 0);
  // Where nothing counts there is nothing to learn.
  const LossResult none = run(GetParam(), desc, {1, 2, -1, 0.5F}, {255, 255});
  EXPECT_EQ(none.gradient, std::vector<float>(4));
  EXPECT_EQ(none.loss, 0);
}

/// Ranks that hold parts of every sample, or other samples, add their sums and get the gradient of the whole.
TEST_P(SegmentationLossTest, PartsJoinToTheWhole) {
  const std::int64_t voxels = 1000;
  const std::int64_t classes = 3;
  SegmentationLossDesc whole{
      .samples = 2, .voxels = voxels, .classes = classes, .class_weights = {1, 2, 5}, .dice = 0.5};
  const auto logits = random_values(2 * voxels * classes, 1, -3, 3);
  const auto labels = random_labels(2 * voxels, classes, 2);
  const LossResult expected = run(GetParam(), whole, logits, labels);

  SegmentationLossDesc part = whole;
  part.samples = 1;
  const std::vector<std::int64_t> cuts{0, 130, 131, voxels};
  std::vector<double> sums(static_cast<std::size_t>(segmentation_sum_count(whole, 2)));
  const auto each_part = [&](const auto& body) {
    for (std::int64_t n = 0; n < 2; ++n) {
      for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
        part.voxels = cuts[i + 1] - cuts[i];
        body(static_cast<std::size_t>(n), n * voxels + cuts[i]);
      }
    }
  };
  each_part([&](std::size_t n, std::int64_t first) {
    std::vector<double> ours(static_cast<std::size_t>(segmentation_sum_count(part, 1)));
    segmentation_sums(GetParam(), part, logits.data() + first * classes, labels.data() + first, ours.data());
    for (std::size_t i = 0; i < 2; ++i) sums[i] += ours[i];
    for (std::size_t i = 0; i < 9; ++i) sums[2 + 9 * n + i] += ours[2 + i];
  });
  std::vector<double> dice(12);
  SegmentationOutcome outcome;
  finish_segmentation(GetParam(), whole, 2, sums.data(), &outcome, dice.data());
  std::vector<float> gradient(logits.size());
  each_part([&](std::size_t n, std::int64_t first) {
    segmentation_gradient(GetParam(), part, logits.data() + first * classes, labels.data() + first, &outcome,
                          dice.data() + 6 * n, gradient.data() + first * classes);
  });
  EXPECT_NEAR(outcome.loss, expected.loss, 1e-9);
  EXPECT_LT(relative_l2(gradient, expected.gradient), 1e-6);
}

TEST_P(SegmentationLossTest, TakesAsManyClassesAsLabelsHave) {
  const SegmentationLossDesc desc{.samples = 1, .voxels = 300, .classes = 256, .dice = 1};
  const auto logits = random_values(300 * 256, 1, -2, 2);
  const auto labels = random_labels(300, 256, 2);
  const LossResult got = run(GetParam(), desc, logits, labels);
  EXPECT_NEAR(got.loss, naive_loss(desc, {logits.begin(), logits.end()}, labels), 1e-6);
  EXPECT_LT(relative_l2(got.gradient, run(Backend::reference, desc, logits, labels).gradient), 1e-5);
}

/// Sums are not rounded, gradients once, in place.
TEST(SegmentationLossBf16, IsTheReferenceOfTheSameNumbers) {
  Dice dice(4);
  for (std::uint64_t round = 0; round < 24; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    SegmentationLossDesc desc = random_small_loss(dice, round);
    if (round % 5 == 0) desc.voxels = 20000;
    auto labels = random_labels(desc.samples * desc.voxels, desc.classes, static_cast<unsigned>(round));
    labels[0] = static_cast<std::uint8_t>(desc.ignore_label == 0 ? 1 : 0);
    const auto logits = bf16_values(desc.samples * desc.voxels * desc.classes, round, -4, 4);
    const LossResult expected = run(Backend::reference, desc, logits, labels);

    desc.type = DType::bf16;
    std::vector<Bf16> narrow = to_bf16(logits);
    std::vector<double> sums(static_cast<std::size_t>(segmentation_sum_count(desc, desc.samples)), 1e30);
    std::vector<double> by_class(static_cast<std::size_t>(2 * desc.samples * desc.classes), 1e30);
    segmentation_sums(Backend::cpu, desc, narrow.data(), labels.data(), sums.data());
    SegmentationOutcome outcome;
    finish_segmentation(Backend::cpu, desc, desc.samples, sums.data(), &outcome, by_class.data());
    EXPECT_NEAR(outcome.loss, expected.loss, 1e-6);
    segmentation_gradient(Backend::cpu, desc, narrow.data(), labels.data(), &outcome, by_class.data(), narrow.data());
    expect_rounded(to_floats(narrow), expected.gradient, 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, SegmentationLossTest, both_backends(), backend_test_name);

TEST(CpuSegmentationLoss, SumsDoNotDependOnTheNumberOfThreads) {
  const SegmentationLossDesc desc{.samples = 2, .voxels = 5000, .classes = 3, .dice = 1};
  const auto logits = random_values(2 * 5000 * 3, 1, -5, 5);
  const auto labels = random_labels(2 * 5000, 3, 2);
  const int threads = thread_count();
  std::vector<double> first(static_cast<std::size_t>(segmentation_sum_count(desc, 2)));
  segmentation_sums(Backend::cpu, desc, logits.data(), labels.data(), first.data());
  for (const int count : {1, 2, 3, 7}) {
    omp_set_num_threads(count);
    std::vector<double> again(first.size());
    segmentation_sums(Backend::cpu, desc, logits.data(), labels.data(), again.data());
    EXPECT_EQ(again, first) << count << " threads";
  }
  omp_set_num_threads(threads);
}

TEST(FinishSegmentation, GivesPerfectPredictionsNoLossAndAbsentClassesNoBlame) {
  const SegmentationLossDesc desc{.samples = 1, .voxels = 4, .classes = 2, .cross_entropy = 0, .dice = 1, .smooth = 0};
  std::vector<double> dice(4);
  const std::vector<double> perfect{0, 4, 4, 0, 4, 0, 4, 0};  // all four voxels of class 0
  SegmentationOutcome outcome;
  finish_segmentation(Backend::cpu, desc, 1, perfect.data(), &outcome, dice.data());
  EXPECT_EQ(outcome.loss, 0);
  EXPECT_EQ(dice[1], 0);
  EXPECT_EQ(dice[3], 0);
  // Half of the mass: 2·2 / (2 + 4) of class 0, none of class 1.
  const std::vector<double> half{0, 4, 2, 0, 2, 2, 4, 0};
  finish_segmentation(Backend::cpu, desc, 1, half.data(), &outcome, dice.data());
  EXPECT_NEAR(outcome.loss, 1 - (4.0 / 6) / 2, 1e-15);
}

TEST(FinishSegmentation, ShowsSumsThatAreNotNumbers) {
  for (const double dice_share : {0, 1}) {
    const SegmentationLossDesc desc{
        .samples = 1, .voxels = 4, .classes = 2, .cross_entropy = 1 - dice_share, .dice = dice_share};
    // Σ g is a count of labels.
    for (const std::size_t i :
         dice_share == 0 ? std::vector<std::size_t>{0, 1} : std::vector<std::size_t>{2, 3, 4, 5}) {
      std::vector<double> sums{1, 4, 2, 0, 2, 2, 4, 0};
      sums[i] = std::numeric_limits<double>::quiet_NaN();
      SegmentationOutcome outcome;
      std::vector<double> dice(4);
      finish_segmentation(Backend::cpu, desc, 1, sums.data(), &outcome, dice.data());
      EXPECT_TRUE(std::isnan(outcome.loss)) << "Dice " << dice_share << ", sum " << i;
    }
  }
}

}  // namespace
}  // namespace halograd::test
