#include "halograd/train/evaluation.hpp"

#include "halograd/train/evaluation_metrics.hpp"

#include <fmt/format.h>

#include <limits>
#include <stdexcept>

namespace halograd {

Evaluation evaluate(Executor& executor, BatchFeed& feed, const Dataset& dataset, Split split,
                    const std::function<void(std::int64_t)>& progress) {
  Evaluation result{.loss = std::numeric_limits<double>::quiet_NaN(),
                    .samples = static_cast<std::int64_t>(dataset.samples(split).size()),
                    .metrics = {}};
  const std::unique_ptr<EvaluationMetrics> metrics = make_metrics(executor.network(), result.samples);
  double sum = 0;
  std::int64_t done = 0;
  while (done < result.samples) {
    const MiniBatch& batch = feed.next();
    if (feed.scheduled().split != split) throw std::logic_error("the feed stands at another split than the evaluation");
    sum += executor.evaluate(batch).loss * static_cast<double>(batch.size);
    metrics->add({.plan = executor.prepare(Mode::evaluate, batch.size),
                  .output = executor.output(),
                  .labels = executor.label_slot(batch.slot),
                  .dataset = dataset,
                  .samples = feed.samples(),
                  .first = done});
    done += batch.size;
    if (progress) progress(done);
  }
  if (result.samples > 0) result.loss = sum / static_cast<double>(result.samples);
  result.metrics["loss"] = result.loss;
  result.metrics["samples"] = result.samples;
  result.metrics.update(metrics->finish(executor.world()));
  return result;
}

std::string format_metric(const nlohmann::ordered_json& value) {
  if (value.is_null()) return "none";
  if (value.is_number_float()) return fmt::format("{:.5g}", value.get<double>());
  if (!value.is_structured()) return value.dump();
  std::string text;
  for (const auto& [name, one] : value.items()) {
    text += fmt::format("{}{}{}", text.empty() ? "" : "  ", value.is_object() ? name + " " : "", format_metric(one));
  }
  return text;
}

std::string format_metrics(const nlohmann::ordered_json& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics.items()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, format_metric(value));
  }
  return text;
}

}  // namespace halograd
