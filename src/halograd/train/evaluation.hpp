#pragma once

#include "halograd/data/dataset.hpp"
#include "halograd/exec/executor.hpp"
#include "halograd/train/batch_feed.hpp"

#include <nlohmann/json.hpp>

#include <functional>

namespace halograd {

struct Evaluation {
  double loss = 0;  ///< mean over all samples; not finite where there are none
  std::int64_t samples = 0;
  nlohmann::ordered_json metrics;  ///< the members of the "test" event: loss, samples, and the network's own
};

/// Collective. Runs a split once, with fixed statistics and without dropout; its mini-batches are the next that `feed`
/// has. `progress` is told the samples done.
Evaluation evaluate(Executor& executor, BatchFeed& feed, const Dataset& dataset, Split split,
                    const std::function<void(std::int64_t)>& progress = {});

}  // namespace halograd
