#include "halograd/train/evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace halograd {
namespace {

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

}  // namespace

Evaluation evaluate(Executor& executor, BatchFeed& feed, const Dataset& dataset, Split split,
                    const std::function<void(std::int64_t)>& progress) {
  Evaluation result;
  result.loss = std::numeric_limits<double>::quiet_NaN();
  const auto samples = static_cast<std::int64_t>(dataset.samples(split).size());
  double sum = 0;
  std::int64_t done = 0;
  std::vector<Prediction> mine;
  while (done < samples) {
    const MiniBatch& batch = feed.next();
    if (feed.scheduled().split != split) throw std::logic_error("the feed stands at another split than the evaluation");
    sum += executor.evaluate(batch).loss * static_cast<double>(batch.size);
    const Plan& plan = executor.prepare(Mode::evaluate, batch.size);
    for (std::size_t n = 0; plan.output.leads && n < feed.samples().size(); ++n) {
      Prediction p{.sample = done + plan.samples.first + static_cast<std::int64_t>(n)};
      std::copy_n(executor.output().begin() + static_cast<std::ptrdiff_t>(n) * cosmology_targets, cosmology_targets,
                  p.predicted.begin());
      p.target = dataset.targets(feed.samples()[n]);
      const std::optional<Cosmology>& physical = dataset.physical(feed.samples()[n]);
      if (physical) p.physical.assign(physical->begin(), physical->end());
      mine.push_back(std::move(p));
    }
    done += batch.size;
    if (progress) progress(done);
  }
  if (samples > 0) result.loss = sum / static_cast<double>(samples);
  result.predictions = gather(executor.world(), mine);
  return result;
}

nlohmann::ordered_json cosmology_metrics(const Evaluation& evaluation) {
  nlohmann::ordered_json metrics;
  const std::vector<Prediction>& all = evaluation.predictions;
  metrics["loss"] = evaluation.loss;
  metrics["samples"] = all.size();
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

}  // namespace halograd
