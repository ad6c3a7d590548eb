// The 3D U-Net (batch norm) against PyTorch: at W = 32 with the cpu kernels the first step's loss and every gradient
// for three kinds of loss; at W = 16 the first step with the reference kernels, ten steps of SGD and of Adam, and how
// the networks they end with segment. The ten steps at W = 32 take a minute of processor time each:
//     test_train --gtest_also_run_disabled_tests --gtest_filter='*Width32*'
// How the files were made: tests/golden/README.md.
//
// A ReLU whose input is within float32's rounding of 0 sends the gradient another way, and the arrays below it are then
// 1e-3 apart; likewise a max pool. So PyTorch's own float32 run is as far from its float64 run as the files say, and
// what that leaves open of the gradients is left to the reference kernels, which round so little that no ReLU flips.
#include "halograd/models/unet3d.hpp"
#include "train/golden_comparison.hpp"

namespace halograd {
namespace {

constexpr std::uint64_t seed = 1;  // of the golden file's initial weights
constexpr int trainable_arrays = 46;
constexpr int running_arrays = 28;
constexpr double first_loss_bound = 1e-5;
constexpr double reference_gradient_bound = 1e-5;
constexpr double curve_bound = 1e-4;
// Times the farthest that PyTorch's float32 is off: how many ReLUs flip, and which, is a matter of chance, most so in a
// single step.
constexpr double slack = 3;
constexpr double first_step_slack = 10;

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
  explicit Golden(const std::string& name) : file(HALOGRAD_GOLDEN_DIRECTORY "/" + name) {}

  const test::NumberFile file;
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
    return {network,
            Communicator::self(),
            {.device = backend, .optimizer = {.kind = kind}, .seed = seed, .direct_convolutions = true}};
  }
};

const Golden& golden() {
  static const Golden file("unet3d_w32.h5");
  return file;
}

const Golden& small_golden() {
  static const Golden file("unet3d_w16.h5");
  return file;
}

TEST(Unet3dGoldenInitialWeights, AreThoseThatPyTorchStartedFrom) {
  Executor executor = golden().executor(Backend::cpu, OptimizerKind::sgd, {});
  EXPECT_EQ(test::expect_initial_weights(executor, golden().file), trainable_arrays);
}

/// A kind of loss: where a golden file has its value and gradients, and what labels it is of.
struct FirstStep {
  std::string loss;
  std::string gradients;
  SegmentationLoss layer;
  std::vector<std::uint8_t> segmentation;  ///< of the first volumes at least
};

FirstStep plain(const Golden& from) {
  return {"/first_step/loss", "/parameters", {}, from.segmentation};
}

FirstStep weighted(const Golden& from) {
  const std::string group = "/losses/weighted";
  return {group + "/loss",
          group + "/gradients",
          {.class_weights = from.file.array<double>(group + "/class_weights"),
           .ignore_label = static_cast<int>(from.file.attribute(group, "ignore_label"))},
          from.file.array<std::uint8_t>(group + "/segmentation")};
}

FirstStep with_dice(const Golden& from) {
  const std::string group = "/losses/dice";
  return {group + "/loss", group + "/gradients", {.dice = 1}, from.segmentation};
}

/// The largest of an attribute over the arrays in a group of the golden file.
double farthest(Executor& executor, const test::NumberFile& file, const std::string& group, const char* attribute) {
  double largest = 0;
  test::visit_arrays(executor, true, executor.parameters().values(), [&](const std::string& name, const auto&) {
    largest = std::max(largest, file.attribute(fmt::format("{}/{}", group, name), attribute));
  });
  return largest;
}

void check_first_step(const Golden& from, Backend backend, const FirstStep& step) {
  test::Deviations apart;
  Executor executor = from.executor(backend, OptimizerKind::sgd, step.layer);
  const MiniBatch batch = batch_of(from.volumes, step.segmentation, from.voxels, from.schedule.members(0));
  const double loss = executor.train(batch, 0, 0).loss;
  apart.check("loss", test::relative(loss, from.file.number(step.loss)), first_loss_bound);
  double flipped = 0;  // by any of the losses: the ReLUs are the same
  for (const char* gradients : {"/parameters", "/losses/weighted/gradients", "/losses/dice/gradients"}) {
    flipped = std::max(flipped, farthest(executor, from.file, gradients, "gradient_float32_difference"));
  }
  const auto bound_of = [&](const std::string& name) {
    // The last convolution's gradient passes no ReLU on its way.
    return backend == Backend::reference || name == "conv15/weight" ? reference_gradient_bound
                                                                    : first_step_slack * flipped;
  };
  EXPECT_EQ(test::check_gradients(executor, from.file, step.gradients, bound_of, apart), trainable_arrays);
}

TEST(Unet3dGoldenFirstStep, HasPyTorchsLossAndGradients) {
  check_first_step(golden(), Backend::cpu, plain(golden()));
}

TEST(Unet3dGoldenFirstStep, WithClassWeightsAndIgnoredVoxels) {
  check_first_step(golden(), Backend::cpu, weighted(golden()));
}

TEST(Unet3dGoldenFirstStep, WithDice) {
  check_first_step(golden(), Backend::cpu, with_dice(golden()));
}

TEST(Unet3dGoldenFirstStep, OfReferenceKernelsToTheLastBits) {
  check_first_step(small_golden(), Backend::reference, with_dice(small_golden()));
}

/// [N,3,K] of an evaluation of all N volumes: voxels where class and label agree, voxels given the class (the first of
/// the largest logits), voxels with the label.
std::vector<double> overlap(const Golden& golden, std::span<const float> logits) {
  const auto classes = static_cast<std::size_t>(golden.classes);
  const auto voxels = static_cast<std::size_t>(golden.voxels);
  std::vector<double> counts(static_cast<std::size_t>(golden.count()) * 3 * classes);
  for (std::size_t i = 0; i < golden.segmentation.size(); ++i) {
    double* const sample = counts.data() + i / voxels * 3 * classes;
    const auto row = logits.subspan(i * classes, classes);
    const auto best = static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin());
    const std::size_t label = golden.segmentation[i];
    if (best == label) ++sample[label];
    ++sample[classes + best];
    ++sample[2 * classes + label];
  }
  return counts;
}

/// 2 |both| / (|predicted| + |labelled|) of each volume and class; 1 where there is nothing of it.
std::vector<double> hard_dice(const std::vector<double>& overlap, std::size_t classes) {
  std::vector<double> values;
  for (std::size_t at = 0; at < overlap.size(); at += 3 * classes) {
    for (std::size_t k = at; k < at + classes; ++k) {
      const double sizes = overlap[k + classes] + overlap[k + 2 * classes];
      values.push_back(sizes > 0 ? 2 * overlap[k] / sizes : 1);
    }
  }
  return values;
}

double farthest_apart(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

struct Run {
  const Golden& (*golden)();
  OptimizerKind kind;
};

std::string optimizer_name(const Run& run) {
  return run.kind == OptimizerKind::sgd ? "sgd" : "adam";
}

class Unet3dGoldenCurve : public testing::TestWithParam<Run> {
protected:
  void train() {
    const double rate = from.file.attribute(group, "learning_rate");
    const auto losses = from.file.array<double>(group + "/loss_float64");
    ASSERT_EQ(from.schedule.steps(), static_cast<std::int64_t>(losses.size()));
    for (std::int64_t step = 0; step < from.schedule.steps(); ++step) {
      const double loss = executor.train(from.batch(from.schedule.members(step)), step, rate).loss;
      apart.check("loss", test::relative(loss, losses[static_cast<std::size_t>(step)]), curve_bound,
                  fmt::format("step {}", step));
    }
  }

  /// Of each running average, how far PyTorch's own float32 is off where it is farthest.
  [[nodiscard]] double averages_bound() {
    double largest = 0;
    test::visit_arrays(executor, false, executor.parameters().values(), [&](const std::string& name, const auto&) {
      const auto exact = from.file.array<double>(fmt::format("{}/running/{}", group, name));
      const auto rounded = from.file.array<float>(fmt::format("{}/running_float32/{}", group, name));
      largest = std::max(largest, test::relative_difference(rounded, {}, exact));
    });
    return slack * largest;
  }

  void check_evaluation() {
    const test::NumberFile& file = from.file;
    const auto all = test::first_numbers(from.count());
    const double loss = executor.evaluate(from.batch(all)).loss;
    const double exact = file.number(group + "/evaluation_float64");
    const double off = test::relative(file.number(group + "/evaluation_float32"), exact);
    apart.check("evaluation_loss", test::relative(loss, exact), std::max(curve_bound, slack * off));
    const auto classes = static_cast<std::size_t>(from.classes);
    const auto actual = hard_dice(overlap(from, executor.output()), classes);
    const auto expected = hard_dice(file.array<double>(group + "/overlap_float64"), classes);
    const auto rounded = hard_dice(file.array<double>(group + "/overlap_float32"), classes);
    apart.check("dice", farthest_apart(actual, expected), slack * farthest_apart(rounded, expected));
  }

  const Golden& from = GetParam().golden();
  const std::string group = "/curves/" + optimizer_name(GetParam());
  test::Deviations apart;
  Executor executor = from.executor(Backend::cpu, GetParam().kind, {});
};

TEST_P(Unet3dGoldenCurve, IsPyTorchs) {
  const test::NumberFile& file = from.file;
  const float* const values = executor.parameters().values();
  const std::vector<float> initial(values, values + executor.parameters().trainable_elements());
  train();
  const double flipped = slack * farthest(executor, file, group + "/updates", "float32_difference");
  const auto everywhere = [&](const std::string&) { return flipped; };
  EXPECT_EQ(test::check_updates(executor, initial, file, group, from.schedule.steps(), everywhere, apart),
            trainable_arrays);
  EXPECT_EQ(test::check_running_averages(executor, file, group, averages_bound(), apart), running_arrays);
  check_evaluation();
}

const auto name_of = [](const auto& test) { return optimizer_name(test.param); };
INSTANTIATE_TEST_SUITE_P(Width16, Unet3dGoldenCurve,
                         testing::Values(Run{small_golden, OptimizerKind::sgd}, Run{small_golden, OptimizerKind::adam}),
                         name_of);
INSTANTIATE_TEST_SUITE_P(DISABLED_Width32, Unet3dGoldenCurve,
                         testing::Values(Run{golden, OptimizerKind::sgd}, Run{golden, OptimizerKind::adam}), name_of);

}  // namespace
}  // namespace halograd
