// CosmoFlow (W = 32, batch norm, no dropout) against PyTorch: the first step's loss and every gradient against its
// float64 run, ten steps of SGD and of Adam against its float32 curves. How the file was made: tests/golden/README.md.
#include "halograd/models/cosmoflow.hpp"
#include "train/golden_comparison.hpp"

namespace halograd {
namespace {

constexpr std::uint64_t seed = 1;  // of the golden file's initial weights
constexpr int trainable_arrays = 27;
constexpr int running_arrays = 14;
constexpr double curve_bound = 1e-4;
constexpr double update_bound = 1e-3;

/// How far the first loss and gradients may be from float64's, relative to them.
double gradient_bound(Backend backend) {
  return backend == Backend::reference ? 1e-4 : 1e-3;
}

/// The golden file's universes.
struct Universes {
  explicit Universes(const test::NumberFile& golden)
      : voxels(golden.array<std::uint16_t>("full")), targets(golden.array<float>("unitPar")) {}

  static constexpr std::int64_t target_count = 4;
  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(targets.size()) / target_count; }

  std::vector<std::uint16_t> voxels;  ///< [N,W,W,W,4]
  std::vector<float> targets;         ///< [N,4]
};

/// A mini-batch of some universes, with the targets its view points to.
struct UniverseBatch {
  UniverseBatch(const Universes& universes, std::span<const std::int64_t> members) {
    batch.size = static_cast<std::int64_t>(members.size());
    batch.transform = InputTransform::log1p;
    const std::int64_t voxels = static_cast<std::int64_t>(universes.voxels.size()) / universes.count();
    for (const std::int64_t member : members) {
      batch.samples.push_back({universes.voxels.data() + member * voxels, DType::u16, false, nullptr, "golden"});
      const float* const target = universes.targets.data() + member * Universes::target_count;
      targets.insert(targets.end(), target, target + Universes::target_count);
    }
    batch.targets = targets.data();
  }
  UniverseBatch(const UniverseBatch&) = delete;
  UniverseBatch& operator=(const UniverseBatch&) = delete;

  std::vector<float> targets;
  MiniBatch batch;
};

struct Golden {
  const test::NumberFile file{HALOGRAD_GOLDEN_DIRECTORY "/cosmoflow_w32.h5"};
  const test::Schedule schedule{file};
  const Universes universes{file};

  [[nodiscard]] UniverseBatch batch(std::int64_t step) const { return {universes, schedule.members(step)}; }

  [[nodiscard]] Executor executor(Backend backend, OptimizerKind kind) const {
    const Network network = cosmoflow({.width = static_cast<std::int64_t>(file.attribute("/", "width")),
                                       .dropout_keep = static_cast<float>(file.attribute("/", "dropout_keep")),
                                       .batch_norm_decay = file.attribute("/", "batch_norm_decay")});
    return {network, Communicator::self(), {.device = backend, .optimizer = {.kind = kind}, .seed = seed}};
  }
};

const Golden& golden() {
  static const Golden file;
  return file;
}

TEST(GoldenInitialWeights, AreThoseThatPyTorchStartedFrom) {
  Executor executor = golden().executor(Backend::reference, OptimizerKind::sgd);
  EXPECT_EQ(test::expect_initial_weights(executor, golden().file), trainable_arrays);
}

class GoldenFirstStep : public testing::TestWithParam<Backend> {};

TEST_P(GoldenFirstStep, HasPyTorchsLossAndGradients) {
  const double bound = gradient_bound(GetParam());
  test::Deviations apart;
  Executor executor = golden().executor(GetParam(), OptimizerKind::sgd);
  const auto first = golden().batch(0);
  const double loss = executor.train(first.batch, 0, 0).loss;
  apart.check("loss", test::relative(loss, golden().file.number("/first_step/loss")), bound);
  const auto everywhere = [&](const std::string&) { return bound; };
  EXPECT_EQ(test::check_gradients(executor, golden().file, "/parameters", everywhere, apart), trainable_arrays);
}

INSTANTIATE_TEST_SUITE_P(Backends, GoldenFirstStep, testing::Values(Backend::reference, Backend::cpu),
                         [](const auto& test) { return std::string(backend_name(test.param)); });

struct Run {
  Backend backend;
  OptimizerKind kind;
};

std::string optimizer_name(const Run& run) {
  return run.kind == OptimizerKind::sgd ? "sgd" : "adam";
}

class GoldenCurve : public testing::TestWithParam<Run> {
protected:
  void train() {
    const double rate = golden().file.attribute(group, "learning_rate");
    const auto losses = golden().file.array<double>(group + "/loss_float32");
    ASSERT_EQ(golden().schedule.steps(), static_cast<std::int64_t>(losses.size()));
    for (std::int64_t step = 0; step < golden().schedule.steps(); ++step) {
      const auto batch = golden().batch(step);
      const double loss = executor.train(batch.batch, step, rate).loss;
      apart.check("loss", test::relative(loss, losses[static_cast<std::size_t>(step)]), curve_bound,
                  fmt::format("step {}", step));
    }
  }

  const std::string group = "/curves/" + optimizer_name(GetParam());
  test::Deviations apart;
  Executor executor = golden().executor(GetParam().backend, GetParam().kind);
};

TEST_P(GoldenCurve, IsPyTorchs) {
  const test::NumberFile& file = golden().file;
  const float* const values = executor.parameters().values();
  const std::vector<float> initial(values, values + executor.parameters().trainable_elements());
  train();
  const auto everywhere = [](const std::string&) { return update_bound; };
  EXPECT_EQ(test::check_updates(executor, initial, file, group, golden().schedule.steps(), everywhere, apart),
            trainable_arrays);
  EXPECT_EQ(test::check_running_averages(executor, file, group, curve_bound, apart), running_arrays);
  const UniverseBatch everything(golden().universes, test::first_numbers(golden().universes.count()));
  const double loss = executor.evaluate(everything.batch).loss;
  apart.check("evaluation_loss", test::relative(loss, file.number(group + "/evaluation_float32")), curve_bound);
}

INSTANTIATE_TEST_SUITE_P(Runs, GoldenCurve,
                         testing::Values(Run{Backend::reference, OptimizerKind::sgd},
                                         Run{Backend::reference, OptimizerKind::adam},
                                         Run{Backend::cpu, OptimizerKind::sgd}, Run{Backend::cpu, OptimizerKind::adam}),
                         [](const auto& test) {
                           return fmt::format("{}_{}", optimizer_name(test.param), backend_name(test.param.backend));
                         });

}  // namespace
}  // namespace halograd
