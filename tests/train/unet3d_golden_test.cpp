// The 3D U-Net (W = 32, batch norm) against PyTorch: the first step's loss and every gradient for three kinds of loss,
// ten steps of SGD and of Adam, and how the networks they end with segment. How the file was made, and why PyTorch's
// own gradients in float32 and float64 are as far apart as they are: tests/golden/README.md.
#include "halograd/models/unet3d.hpp"
#include "train/golden_comparison.hpp"

#include <array>

namespace halograd {
namespace {

constexpr std::uint64_t seed = 1;  // of the golden file's initial weights
constexpr int trainable_arrays = 46;
constexpr int running_arrays = 28;
constexpr double first_loss_bound = 1e-5;
constexpr double curve_bound = 1e-4;

/// A mini-batch of volumes of the golden file, as views of them and of labels.
MiniBatch batch_of(const std::vector<std::int16_t>& volumes, const std::vector<std::uint8_t>& labels,
                   std::int64_t voxels, std::span<const std::int64_t> members) {
  MiniBatch batch{.size = static_cast<std::int64_t>(members.size())};
  for (const std::int64_t member : members) {
    batch.samples.push_back(
        {volumes.data() + member * voxels, DType::i16, false, labels.data() + member * voxels, "golden"});
  }
  return batch;
}

struct Golden {
  const test::NumberFile file{HALOGRAD_GOLDEN_DIRECTORY "/unet3d_w32.h5"};
  const test::Schedule schedule{file};
  const std::int64_t width = static_cast<std::int64_t>(file.attribute("/", "width"));
  const std::int64_t voxels = width * width * width;
  const std::int64_t classes = static_cast<std::int64_t>(file.attribute("/", "classes"));
  const std::vector<std::int16_t> volumes = file.array<std::int16_t>("volume");             ///< [N,W,W,W]
  const std::vector<std::uint8_t> segmentation = file.array<std::uint8_t>("segmentation");  ///< [N,W,W,W]

  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(volumes.size()) / voxels; }
  [[nodiscard]] MiniBatch batch(std::span<const std::int64_t> members) const {
    return batch_of(volumes, segmentation, voxels, members);
  }

  [[nodiscard]] Executor executor(Backend backend, OptimizerKind kind, const SegmentationLoss& loss) const {
    const Network network = unet3d({.width = width,
                                    .classes = classes,
                                    .batch_norm_decay = file.attribute("/", "batch_norm_decay"),
                                    .loss = loss});
    return {network, Communicator::self(), {.backend = backend, .optimizer = {.kind = kind}, .seed = seed}};
  }
};

const Golden& golden() {
  static const Golden file;
  return file;
}

TEST(Unet3dGoldenInitialWeights, AreThoseThatPyTorchStartedFrom) {
  Executor executor = golden().executor(Backend::cpu, OptimizerKind::sgd, {});
  EXPECT_EQ(test::expect_initial_weights(executor, golden().file), trainable_arrays);
}

/// A kind of loss: where the golden file has its value and gradients, and what labels it is of.
struct FirstStep {
  std::string loss;
  std::string gradients;
  SegmentationLoss layer;
  std::vector<std::uint8_t> segmentation;  ///< of the first volumes at least
};

FirstStep plain() {
  return {"/first_step/loss", "/parameters", {}, golden().segmentation};
}

FirstStep weighted() {
  const std::string group = "/losses/weighted";
  const test::NumberFile& file = golden().file;
  return {group + "/loss",
          group + "/gradients",
          {.class_weights = file.array<double>(group + "/class_weights"),
           .ignore_label = static_cast<int>(file.attribute(group, "ignore_label"))},
          file.array<std::uint8_t>(group + "/segmentation")};
}

FirstStep dice() {
  const std::string group = "/losses/dice";
  return {group + "/loss", group + "/gradients", {.dice = 1}, golden().segmentation};
}

void check_first_step(Backend backend, const FirstStep& step, double share) {
  test::Deviations apart;
  const test::NumberFile& file = golden().file;
  Executor executor = golden().executor(backend, OptimizerKind::sgd, step.layer);
  const MiniBatch batch = batch_of(golden().volumes, step.segmentation, golden().voxels, golden().schedule.members(0));
  const double loss = executor.train(batch, 0, 0).loss;
  apart.check("loss", test::relative(loss, file.number(step.loss)), first_loss_bound);
  const auto bound_of = [&](const std::string& name) {
    return share * file.attribute(step.gradients + "/" + name, "gradient_float32_difference");
  };
  EXPECT_EQ(test::check_gradients(executor, file, step.gradients, bound_of, apart), trainable_arrays);
}

TEST(Unet3dGoldenFirstStep, HasPyTorchsLossAndGradients) {
  check_first_step(Backend::cpu, plain(), 2);
}
TEST(Unet3dGoldenFirstStep, WithClassWeightsAndIgnoredVoxels) {
  check_first_step(Backend::cpu, weighted(), 2);
}
TEST(Unet3dGoldenFirstStep, WithDice) {
  check_first_step(Backend::cpu, dice(), 2);
}
TEST(Unet3dGoldenFirstStep, DISABLED_OfReferenceKernels) {
  check_first_step(Backend::reference, plain(), 1);
}

/// [N,3,K] of an evaluation of all N volumes: voxels where class and label agree, voxels given the class (the first of
/// the largest logits), voxels with the label.
std::vector<double> overlap(std::span<const float> logits) {
  const auto classes = static_cast<std::size_t>(golden().classes);
  const auto voxels = static_cast<std::size_t>(golden().voxels);
  std::vector<double> counts(static_cast<std::size_t>(golden().count()) * 3 * classes);
  for (std::size_t i = 0; i < golden().segmentation.size(); ++i) {
    double* const sample = counts.data() + i / voxels * 3 * classes;
    const auto row = logits.subspan(i * classes, classes);
    const auto best = static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin());
    const std::size_t label = golden().segmentation[i];
    if (best == label) ++sample[label];
    ++sample[classes + best];
    ++sample[2 * classes + label];
  }
  return counts;
}

/// 2 |both| / (|predicted| + |labelled|) of each volume and class; 1 where there is nothing of it.
std::vector<double> hard_dice(const std::vector<double>& overlap) {
  const auto classes = static_cast<std::size_t>(golden().classes);
  std::vector<double> values;
  for (std::size_t at = 0; at < overlap.size(); at += 3 * classes) {
    for (std::size_t k = at; k < at + classes; ++k) {
      const double sizes = overlap[k + classes] + overlap[k + 2 * classes];
      values.push_back(sizes > 0 ? 2 * overlap[k] / sizes : 1);
    }
  }
  return values;
}

class Unet3dGoldenCurve : public testing::TestWithParam<OptimizerKind> {
protected:
  void train() {
    const double rate = golden().file.attribute(group, "learning_rate");
    const auto losses = golden().file.array<double>(group + "/loss_float64");
    ASSERT_EQ(golden().schedule.steps(), static_cast<std::int64_t>(losses.size()));
    for (std::int64_t step = 0; step < golden().schedule.steps(); ++step) {
      const double loss = executor.train(golden().batch(golden().schedule.members(step)), step, rate).loss;
      apart.check("loss", test::relative(loss, losses[static_cast<std::size_t>(step)]), curve_bound,
                  fmt::format("step {}", step));
    }
  }

  void check_evaluation() {
    const auto all = test::first_numbers(golden().count());
    const double loss = executor.evaluate(golden().batch(all)).loss;
    apart.check("evaluation_loss", test::relative(loss, golden().file.number(group + "/evaluation_float64")),
                curve_bound);
    const auto actual = hard_dice(overlap(executor.output()));
    const auto expected = hard_dice(golden().file.array<double>(group + "/overlap_float64"));
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      apart.check("dice", std::abs(actual[i] - expected[i]), 1e-3, fmt::format("{}", i));
    }
  }

  const std::string group = GetParam() == OptimizerKind::sgd ? "/curves/sgd" : "/curves/adam";
  test::Deviations apart;
  Executor executor = golden().executor(Backend::cpu, GetParam(), {});
};

TEST_P(Unet3dGoldenCurve, IsPyTorchs) {
  const test::NumberFile& file = golden().file;
  const float* const values = executor.parameters().values();
  const std::vector<float> initial(values, values + executor.parameters().trainable_elements());
  train();
  const auto bound_of = [&](const std::string& name) {
    return 2 * file.attribute(fmt::format("{}/updates/{}", group, name), "float32_difference");
  };
  EXPECT_EQ(test::check_updates(executor, initial, file, group, golden().schedule.steps(), bound_of, apart),
            trainable_arrays);
  EXPECT_EQ(test::check_running_averages(executor, file, group, curve_bound, apart), running_arrays);
  check_evaluation();
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Unet3dGoldenCurve, testing::Values(OptimizerKind::sgd, OptimizerKind::adam),
                         [](const auto& test) { return test.param == OptimizerKind::sgd ? "sgd" : "adam"; });

}  // namespace
}  // namespace halograd
