#pragma once

#include "halograd/data/dataset.hpp"
#include "halograd/exec/executor.hpp"
#include "halograd/train/batch_feed.hpp"

#include <nlohmann/json.hpp>

#include <functional>
#include <string>

namespace halograd {

struct Evaluation {
  double loss = 0;  ///< mean over all samples (of their mini-batches' losses); not finite where there are none
  std::int64_t samples = 0;
  nlohmann::ordered_json metrics;  ///< the members of the "test" event: loss, samples, and the network's own
};

/// Collective. Runs a split once, with fixed statistics and without dropout; its mini-batches are the next that `feed`
/// has. `progress` is told the samples done.
Evaluation evaluate(Executor& executor, BatchFeed& feed, const Dataset& dataset, Split split,
                    const std::function<void(std::int64_t)>& progress = {});

/// A member of Evaluation::metrics for people: "0.12346", "a 0.1  b 0.2" of an object, "0.1  0.2" of an array; "none"
/// of what is null.
std::string format_metric(const nlohmann::ordered_json& value);

/// All of them in one line: "loss 0.1, samples 12, dice 0.9  0.8".
std::string format_metrics(const nlohmann::ordered_json& metrics);

}  // namespace halograd
