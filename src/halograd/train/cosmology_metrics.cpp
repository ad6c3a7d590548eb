#include "halograd/train/evaluation_metrics.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace halograd {
namespace {

/// One sample's prediction beside what it should be: Ω_M, σ8, n_s, H0, scaled to [-1, 1]; `physical` is empty where the
/// file has none.
struct Prediction {
  std::int64_t sample = 0;
  Cosmology predicted{};
  Cosmology target{};
  std::vector<float> physical;
};

/// The records of all ranks, in order of the samples' numbers in the split.
std::vector<Prediction> gather(const Communicator& world, const std::vector<Prediction>& mine) {
  std::string bytes;
  const auto put = [&](const auto* data, std::size_t count) {
    bytes.append(reinterpret_cast<const char*>(data), count * sizeof *data);
  };
  for (const Prediction& p : mine) {
    const auto sample = p.sample;
    const auto physical = static_cast<std::int64_t>(p.physical.size());
    put(&sample, 1);
    put(&physical, 1);
    put(p.predicted.data(), p.predicted.size());
    put(p.target.data(), p.target.size());
    put(p.physical.data(), p.physical.size());
  }
  std::vector<Prediction> all;
  for (const std::string& part : world.all_gather(bytes)) {
    const char* at = part.data();
    const auto get = [&](auto* data, std::size_t count) {
      std::memcpy(data, at, count * sizeof *data);
      at += count * sizeof *data;
    };
    while (at < part.data() + part.size()) {
      Prediction p;
      std::int64_t physical = 0;
      get(&p.sample, 1);
      get(&physical, 1);
      get(p.predicted.data(), p.predicted.size());
      get(p.target.data(), p.target.size());
      p.physical.resize(static_cast<std::size_t>(physical));
      get(p.physical.data(), p.physical.size());
      all.push_back(std::move(p));
    }
  }
  std::ranges::sort(all, {}, &Prediction::sample);
  return all;
}

/// Physical units per scaled unit of parameter k, from the files themselves (both are given there): a least-squares
/// slope.
double physical_scale(const std::vector<Prediction>& predictions, std::size_t k) {
  double unit_mean = 0;
  double physical_mean = 0;
  for (const Prediction& p : predictions) {
    unit_mean += p.target[k];
    physical_mean += p.physical[k];
  }
  unit_mean /= static_cast<double>(predictions.size());
  physical_mean /= static_cast<double>(predictions.size());
  double product = 0;
  double square = 0;
  for (const Prediction& p : predictions) {
    product += (p.target[k] - unit_mean) * (p.physical[k] - physical_mean);
    square += (p.target[k] - unit_mean) * (p.target[k] - unit_mean);
  }
  return square > 0 ? product / square : std::numeric_limits<double>::quiet_NaN();
}

nlohmann::ordered_json errors_of(const std::vector<Prediction>& all) {
  nlohmann::ordered_json metrics = nlohmann::ordered_json::object();
  if (all.empty()) return metrics;
  const double count = static_cast<double>(all.size());
  const bool physical = std::ranges::all_of(all, [](const Prediction& p) { return !p.physical.empty(); });
  nlohmann::ordered_json by_parameter;
  nlohmann::ordered_json of_mean;
  nlohmann::ordered_json in_physical;
  double total = 0;
  for (std::size_t k = 0; k < cosmology_targets; ++k) {
    double mean = 0;
    for (const Prediction& p : all) mean += p.target[k] / count;
    double error = 0;
    double spread = 0;
    for (const Prediction& p : all) {
      error += std::abs(static_cast<double>(p.predicted[k]) - p.target[k]) / count;
      spread += std::abs(p.target[k] - mean) / count;
    }
    total += error / cosmology_targets;
    by_parameter[cosmology_parameters[k]] = error;
    of_mean[cosmology_parameters[k]] = spread;
    if (physical) in_physical[cosmology_parameters[k]] = error * physical_scale(all, k);
  }
  metrics["mae"] = total;
  metrics["mae_by_parameter"] = by_parameter;
  metrics["mae_of_predicting_the_mean"] = of_mean;
  if (physical) metrics["mae_physical"] = in_physical;
  return metrics;
}

class CosmologyMetrics final : public EvaluationMetrics {
public:
  void add(const EvaluatedBatch& batch) override {
    if (!batch.plan.output.leads) return;
    for (std::size_t n = 0; n < batch.samples.size(); ++n) {
      const auto index = static_cast<std::int64_t>(n);
      Prediction p{.sample = batch.first + batch.plan.samples.first + index};
      std::copy_n(batch.output.begin() + index * cosmology_targets, cosmology_targets, p.predicted.begin());
      p.target = batch.dataset.targets(batch.samples[n]);
      const std::optional<Cosmology>& physical = batch.dataset.physical(batch.samples[n]);
      if (physical) p.physical.assign(physical->begin(), physical->end());
      mine_.push_back(std::move(p));
    }
  }

  nlohmann::ordered_json finish(const Communicator& world) override { return errors_of(gather(world, mine_)); }

private:
  std::vector<Prediction> mine_;
};

}  // namespace

std::unique_ptr<EvaluationMetrics> make_cosmology_metrics() {
  return std::make_unique<CosmologyMetrics>();
}

}  // namespace halograd
