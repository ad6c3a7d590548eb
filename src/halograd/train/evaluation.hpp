#pragma once

#include "halograd/data/dataset.hpp"
#include "halograd/exec/executor.hpp"
#include "halograd/train/batch_feed.hpp"

#include <nlohmann/json.hpp>

#include <functional>
#include <vector>

namespace halograd {

/// One sample's prediction beside what it should be: Ω_M, σ8, n_s, H0, scaled to [-1, 1]; `physical` is empty where the
/// file has none.
struct Prediction {
  std::int64_t sample = 0;
  Cosmology predicted{};
  Cosmology target{};
  std::vector<float> physical;
};

struct Evaluation {
  double loss = 0;                      ///< mean over all samples; not finite where there are none
  std::vector<Prediction> predictions;  ///< of all samples on all ranks, in their order
};

/// Collective. Runs a split once, with fixed statistics and without dropout; its mini-batches are the next that `feed`
/// has. `progress` is told the samples done.
Evaluation evaluate(Executor& executor, BatchFeed& feed, const Dataset& dataset, Split split,
                    const std::function<void(std::int64_t)>& progress = {});

/// The members of the "test" event: loss, samples, mean absolute errors in all and by parameter, in scaled units and
/// (where every file has them) in physical ones, and beside them what predicting the mean of these samples would give.
nlohmann::ordered_json cosmology_metrics(const Evaluation& evaluation);

}  // namespace halograd
