#pragma once

#include "halograd/data/loader.hpp"
#include "halograd/data/sampler.hpp"
#include "halograd/exec/executor.hpp"

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

/// Feeds a split's mini-batches to an executor: what training and evaluation share. Reads one mini-batch ahead.
class BatchFeed {
public:
  BatchFeed(const Executor& executor, const Plan& plan, const Dataset& dataset, InputTransform transform);

  /// Queues this rank's share of a global mini-batch.
  void request(const std::vector<std::int64_t>& samples);
  /// Collective. The oldest one queued, ready for the executor; valid until the next. Throws on all ranks alike where
  /// reading failed on any.
  const MiniBatch& next();
  /// What `next` gave, as read.
  [[nodiscard]] const Batch& raw() const { return *raw_; }

private:
  Communicator world_;
  ProcessGrid grid_;
  std::int64_t group_;
  Loader loader_;
  std::vector<std::int64_t> sizes_;  // of the mini-batches queued
  MiniBatch batch_;
  const Batch* raw_ = nullptr;
};

/// Collective. Runs a split once, with fixed statistics and without dropout. `progress` is told the samples done.
Evaluation evaluate(Executor& executor, const Dataset& dataset, Split split, std::int64_t batch_size,
                    InputTransform transform, const std::function<void(std::int64_t)>& progress = {});

/// The members of the "test" event: loss, samples, mean absolute errors in all and by parameter, in scaled units and
/// (where every file has them) in physical ones, and beside them what predicting the mean of these samples would give.
nlohmann::ordered_json cosmology_metrics(const Evaluation& evaluation);

}  // namespace halograd
