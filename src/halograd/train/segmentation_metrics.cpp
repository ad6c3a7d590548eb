#include "halograd/core/parallel.hpp"
#include "halograd/train/class_map.hpp"
#include "halograd/train/evaluation_metrics.hpp"

#include <array>

namespace halograd {
namespace {

/// What is counted of each class.
enum Count : std::size_t { both, predicted, labelled, count_kinds };

/// 2·|P ∩ L| / (|P| + |L|); null where there is nothing of the class.
nlohmann::ordered_json dice_of(const double* counts) {
  const double all = counts[predicted] + counts[labelled];
  return all > 0 ? nlohmann::ordered_json(2 * counts[both] / all) : nlohmann::ordered_json(nullptr);
}

/// The mean over those that are not null; null where all are.
nlohmann::ordered_json mean_of(const std::vector<nlohmann::ordered_json>& values) {
  double sum = 0;
  double count = 0;
  for (const nlohmann::ordered_json& value : values) {
    if (value.is_null()) continue;
    sum += value.get<double>();
    count += 1;
  }
  return count > 0 ? nlohmann::ordered_json(sum / count) : nlohmann::ordered_json(nullptr);
}

class SegmentationMetrics final : public EvaluationMetrics {
public:
  SegmentationMetrics(std::int64_t classes, int ignore_label, std::int64_t samples)
      : classes_(static_cast<std::size_t>(classes)),
        ignore_label_(ignore_label),
        counts_(static_cast<std::size_t>(samples) * classes_ * count_kinds) {}

  void add(const EvaluatedBatch& batch) override {
    if (!batch.plan.output.leads) return;
    const auto voxels = static_cast<std::size_t>(batch.plan.output.own.volume());
    for (std::size_t n = 0; n < batch.samples.size(); ++n) {
      const auto sample = static_cast<std::size_t>(batch.first + batch.plan.samples.first) + n;
      count(batch.output.data() + n * voxels * classes_, batch.labels + n * voxels, static_cast<std::int64_t>(voxels),
            counts_.data() + sample * classes_ * count_kinds);
    }
  }

  /// Counts are whole numbers, so that their sums are the same on every grid.
  nlohmann::ordered_json finish(const Communicator& world) override {
    world.all_reduce_sum(counts_.data(), static_cast<std::int64_t>(counts_.size()));
    const std::size_t samples = counts_.size() / (classes_ * count_kinds);
    std::vector<nlohmann::ordered_json> dice;
    std::vector<nlohmann::ordered_json> per_case;
    for (std::size_t c = 0; c < classes_; ++c) {
      std::array<double, count_kinds> all{};
      std::vector<nlohmann::ordered_json> cases;
      for (std::size_t sample = 0; sample < samples; ++sample) {
        const double* const counts = counts_.data() + (sample * classes_ + c) * count_kinds;
        for (std::size_t kind = 0; kind < count_kinds; ++kind) all[kind] += counts[kind];
        cases.push_back(dice_of(counts));
      }
      dice.push_back(dice_of(all.data()));
      per_case.push_back(mean_of(cases));
    }
    const std::vector<nlohmann::ordered_json> foreground(dice.begin() + 1, dice.end());
    return {{"mean_dice", mean_of(foreground)}, {"dice", dice}, {"dice_per_case", per_case}};
  }

private:
  void count(const float* logits, const std::uint8_t* labels, std::int64_t voxels, double* counts) const {
    const std::size_t kinds = classes_ * count_kinds;
    std::vector<std::int64_t> partial(static_cast<std::size_t>(thread_count()) * kinds);
    parallel_ranges(voxels, [&](std::int64_t begin, std::int64_t end, int thread) {
      std::int64_t* const mine = partial.data() + static_cast<std::size_t>(thread) * kinds;
      for (std::int64_t voxel = begin; voxel < end; ++voxel) {
        if (labels[voxel] == ignore_label_) continue;
        const float* const row = logits + voxel * static_cast<std::int64_t>(classes_);
        const std::size_t best = predicted_class(row, static_cast<std::int64_t>(classes_));
        const auto label = static_cast<std::size_t>(labels[voxel]);
        ++mine[best * count_kinds + predicted];
        ++mine[label * count_kinds + labelled];
        if (best == label) ++mine[best * count_kinds + both];
      }
    });
    for (std::size_t i = 0; i < partial.size(); ++i) counts[i % kinds] += static_cast<double>(partial[i]);
  }

  std::size_t classes_;
  int ignore_label_;
  std::vector<double> counts_;  ///< [samples of the split, classes, count_kinds]
};

}  // namespace

std::unique_ptr<EvaluationMetrics> make_segmentation_metrics(std::int64_t classes, int ignore_label,
                                                             std::int64_t samples) {
  return std::make_unique<SegmentationMetrics>(classes, ignore_label, samples);
}

std::unique_ptr<EvaluationMetrics> make_metrics(const Network& network, std::int64_t samples) {
  const auto* loss = std::get_if<SegmentationLoss>(&network.nodes().back().layer);
  if (loss == nullptr) return make_cosmology_metrics();
  return make_segmentation_metrics(network.output().channels, loss->ignore_label, samples);
}

}  // namespace halograd
