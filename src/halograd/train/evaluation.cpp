#include "halograd/train/evaluation.hpp"

#include "halograd/train/model.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace halograd {
namespace {

constexpr std::array<const char*, cosmology_targets> parameter_names{"omega_m", "sigma_8", "n_s", "h_0"};

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

BatchFeed::BatchFeed(const Executor& executor, const Plan& plan, const Dataset& dataset, InputTransform transform)
    : world_(executor.world()),
      grid_(plan.grid),
      group_(plan.grid.place(plan.rank).group),
      loader_(dataset, plan.input.own) {
  batch_.transform = transform;
}

void BatchFeed::request(const std::vector<std::int64_t>& samples) {
  const auto size = static_cast<std::int64_t>(samples.size());
  const SampleRange share = group_samples(size, grid_.data, group_);
  const auto first = samples.begin() + share.first;
  loader_.request({first, first + share.count});
  sizes_.push_back(size);
}

const MiniBatch& BatchFeed::next() {
  agree(world_, [&] {
    raw_ = &loader_.take();
    for (const RawSample& sample : raw_->samples) check_transform(sample, batch_.transform);
  });
  batch_.size = sizes_.front();
  sizes_.erase(sizes_.begin());
  batch_.samples.clear();
  for (const RawSample& sample : raw_->samples) {
    batch_.samples.push_back({sample.voxels.data(), sample.layout.dtype, sample.layout.channels_first, sample.file});
  }
  batch_.targets = raw_->targets.data();
  return batch_;
}

Evaluation evaluate(Executor& executor, const Dataset& dataset, Split split, std::int64_t batch_size,
                    InputTransform transform, const std::function<void(std::int64_t)>& progress) {
  Evaluation result;
  const std::vector<std::int64_t>& samples = dataset.samples(split);
  Sampler sampler(samples, {.batch = batch_size, .shuffle = false});
  result.loss = std::numeric_limits<double>::quiet_NaN();
  if (samples.empty()) return result;
  BatchFeed feed(executor, executor.prepare(Mode::evaluate, std::min(batch_size, sampler.samples())), dataset,
                 transform);
  feed.request(sampler.mini_batch(0, 0));
  double sum = 0;
  std::int64_t done = 0;
  std::vector<Prediction> mine;
  for (std::int64_t i = 0; i < sampler.batches_per_epoch(); ++i) {
    if (i + 1 < sampler.batches_per_epoch()) feed.request(sampler.mini_batch(0, i + 1));
    const MiniBatch& batch = feed.next();
    sum += executor.evaluate(batch).loss * static_cast<double>(batch.size);
    const Plan& plan = executor.prepare(Mode::evaluate, batch.size);
    if (plan.output.leads) {
      for (std::size_t n = 0; n < feed.raw().samples.size(); ++n) {
        const RawSample& raw = feed.raw().samples[n];
        Prediction p{.sample = done + plan.samples.first + static_cast<std::int64_t>(n)};
        std::copy_n(executor.output().begin() + static_cast<std::ptrdiff_t>(n) * cosmology_targets, cosmology_targets,
                    p.predicted.begin());
        p.target = raw.targets;
        if (raw.physical) p.physical.assign(raw.physical->begin(), raw.physical->end());
        mine.push_back(std::move(p));
      }
    }
    done += batch.size;
    if (progress) progress(done);
  }
  result.loss = sum / static_cast<double>(samples.size());
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
    by_parameter[parameter_names[k]] = error;
    of_mean[parameter_names[k]] = spread;
    if (physical) in_physical[parameter_names[k]] = error * physical_scale(all, k);
  }
  metrics["mae"] = total;
  metrics["mae_by_parameter"] = by_parameter;
  metrics["mae_of_predicting_the_mean"] = of_mean;
  if (physical) metrics["mae_physical"] = in_physical;
  return metrics;
}

}  // namespace halograd
