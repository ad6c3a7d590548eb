#include "data/case_files.hpp"
#include "data/shared_directory.hpp"
#include "halograd/tensor/partition.hpp"
#include "halograd/train/evaluation_metrics.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace halograd {
namespace {

using Json = nlohmann::ordered_json;
using test::SharedDirectory;

constexpr std::int64_t classes = 4;
constexpr int ignored = 255;
constexpr std::int64_t voxels = 8;

/// A sample of eight voxels.
struct Case {
  std::vector<std::uint8_t> labels;
  std::vector<int> predicted;
};

/// Were it not ignored, the last voxel would make the prediction of 2 wrong. The second has nothing of class 2, and no
/// case has of class 3.
const std::vector<Case> two_cases{{{0, 0, 0, 1, 1, 1, 2, ignored}, {0, 0, 1, 1, 1, 0, 2, 2}},
                                  {{0, 0, 0, 0, 0, 0, 1, 1}, {0, 0, 0, 0, 0, 1, 1, 1}}};

/// What this rank holds of a mini-batch: voxels of each sample, and which samples.
struct Share {
  Box own{{0, 0, 0}, {voxels, 1, 1}};
  SampleRange samples;
  bool leads = true;
};

/// Measures cases in mini-batches of `batch`, of which each rank has its share.
class Metrics {
public:
  explicit Metrics(const Communicator& world) : world_(world), directory_(world) {
    directory_.write([&] { test::write_case(directory_.file("a.hdf5"), {}); });
    dataset_.emplace(Dataset::open(
        world, {.path = directory_.path(), .format = "lits", .shape = {1, Extent::cube(8)}, .split = {1, 0, 0}}));
  }

  template <typename ShareOf>
  Json measure(const std::vector<Case>& cases, std::int64_t batch, const ShareOf& share_of) {
    const auto count = static_cast<std::int64_t>(cases.size());
    const auto metrics = make_segmentation_metrics(classes, ignored, count);
    for (std::int64_t first = 0; first < count; first += batch) {
      add(*metrics, cases, first, share_of(std::min(batch, count - first)));
    }
    return metrics->finish(world_);
  }

private:
  void add(EvaluationMetrics& metrics, const std::vector<Case>& cases, std::int64_t first, const Share& share) {
    Plan plan;
    plan.samples = share.samples;
    plan.output = {.shape = {classes, {voxels, 1, 1}}, .own = share.own, .leads = share.leads};
    std::vector<float> logits;
    std::vector<std::uint8_t> labels;
    for (std::int64_t n = 0; n < share.samples.count; ++n) {
      const Case& one = cases[static_cast<std::size_t>(first + share.samples.first + n)];
      for (std::int64_t d = share.own.lo.d; d < share.own.hi.d; ++d) {
        labels.push_back(one.labels[static_cast<std::size_t>(d)]);
        for (int c = 0; c < classes; ++c) logits.push_back(c == one.predicted[static_cast<std::size_t>(d)] ? 0.5F : -2);
      }
    }
    const std::vector<std::int64_t> samples(static_cast<std::size_t>(share.samples.count), 0);
    metrics.add({.plan = plan,
                 .output = logits,
                 .labels = labels.data(),
                 .dataset = *dataset_,
                 .samples = samples,
                 .first = first});
  }

  Communicator world_;
  SharedDirectory directory_;
  std::optional<Dataset> dataset_;
};

/// Counted by hand: of class 0, say, 7 voxels are rightly found among 9 labelled and 8 predicted.
const Json right{
    {"mean_dice", (8.0 / 11 + 1) / 2},
    {"dice", {14.0 / 17, 8.0 / 11, 1.0, nullptr}},
    {"dice_per_case", {(4.0 / 6 + 10.0 / 11) / 2, (4.0 / 6 + 4.0 / 5) / 2, 1.0, nullptr}},
};

void expect_near(const Json& given, const Json& expected) {
  for (const auto& [name, value] : expected.items()) {
    const Json& found = given.at(name);
    ASSERT_EQ(found.size(), value.size()) << name;
    for (std::size_t i = 0; i < value.size(); ++i) {
      const Json& one = value.is_array() ? value[i] : value;
      const Json& other = value.is_array() ? found[i] : found;
      ASSERT_EQ(other.is_null(), one.is_null()) << name << i;
      if (one.is_null()) continue;
      EXPECT_NEAR(other.get<double>(), one.get<double>(), 1e-12) << name << i;
    }
  }
}

TEST(SegmentationMetricsMpi, parts_of_each_sample_add_up) {
  const Communicator world = Communicator::world();
  const Partition parts = Partition::even({voxels, 1, 1}, {world.size(), 1, 1});
  Metrics metrics(world);
  const auto own = parts.box({world.rank(), 0, 0});
  expect_near(metrics.measure(two_cases, 2, [&](std::int64_t n) { return Share{own, {0, n}}; }), right);
  expect_near(metrics.measure(two_cases, 1, [&](std::int64_t n) { return Share{own, {0, n}}; }), right);
}

TEST(SegmentationMetricsMpi, groups_measure_samples_of_their_own) {
  const Communicator world = Communicator::world();
  Metrics metrics(world);
  const auto share = [&](std::int64_t n) { return Share{.samples = group_samples(n, world.size(), world.rank())}; };
  expect_near(metrics.measure(two_cases, 2, share), right);
}

TEST(SegmentationMetricsMpi, of_replicas_one_counts) {
  const Communicator world = Communicator::world();
  Metrics metrics(world);
  const auto share = [&](std::int64_t n) { return Share{.samples = {0, n}, .leads = world.rank() == 0}; };
  expect_near(metrics.measure(two_cases, 2, share), right);
}

TEST(SegmentationMetricsMpi, what_is_ignored_or_nowhere_has_no_dice) {
  const Communicator world = Communicator::world();
  Metrics metrics(world);
  const auto share = [&](std::int64_t n) { return Share{.samples = {0, n}, .leads = world.rank() == 0}; };
  const std::vector<Case> all_ignored{{std::vector<std::uint8_t>(voxels, ignored), std::vector<int>(voxels, 1)}};
  const Json none{nullptr, nullptr, nullptr, nullptr};
  EXPECT_EQ(metrics.measure(all_ignored, 1, share),
            (Json{{"mean_dice", nullptr}, {"dice", none}, {"dice_per_case", none}}));
  // Where no class is predicted more than others the first is: a class that is only labelled has a Dice of 0.
  const std::vector<Case> missed{{std::vector<std::uint8_t>(voxels, 3), std::vector<int>(voxels, -1)}};
  EXPECT_EQ(metrics.measure(missed, 1, share).at("dice"), (Json{0.0, nullptr, nullptr, 0.0}));
  EXPECT_EQ(metrics.measure(missed, 1, share).at("mean_dice"), 0.0);
}

}  // namespace
}  // namespace halograd
