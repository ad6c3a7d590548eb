#pragma once

#include "halograd/data/dataset.hpp"
#include "halograd/nn/network.hpp"
#include "halograd/plan/plan.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace halograd {

/// A mini-batch after the network has run on it without training.
struct EvaluatedBatch {
  const Plan& plan;
  std::span<const float> output;         ///< Executor::output
  const std::uint8_t* labels = nullptr;  ///< [local samples, own box], where the loss is on labels
  const Dataset& dataset;
  const std::vector<std::int64_t>& samples;  ///< this group's, by their numbers in the data set
  std::int64_t first = 0;                    ///< of the mini-batch, counted in the split
};

/// What is told of a network's predictions beside their loss. One a kind of network.
class EvaluationMetrics {
public:
  virtual ~EvaluationMetrics() = default;
  virtual void add(const EvaluatedBatch& batch) = 0;
  /// Collective, once all were added. The members of the "test" event beside loss and samples.
  virtual nlohmann::ordered_json finish(const Communicator& world) = 0;
};

/// For the loss that `network` ends with, over a split of `samples` samples.
std::unique_ptr<EvaluationMetrics> make_metrics(const Network& network, std::int64_t samples);

/// Mean absolute errors of a universe's parameters, in all and by parameter, in scaled units and (where every file has
/// them) in physical ones, and beside them what predicting the mean of these samples would give.
std::unique_ptr<EvaluationMetrics> make_cosmology_metrics();

/// Dice by class, 2·|P ∩ L| / (|P| + |L|) with P the voxels whose largest logit is the class's (the first of equals)
/// and L those labelled so, voxels with `ignore_label` left out: "dice" over all voxels of the split, "dice_per_case"
/// as the mean over the samples; null for a class that neither predictions nor labels have. "mean_dice" is over the
/// classes from 1 up.
std::unique_ptr<EvaluationMetrics> make_segmentation_metrics(std::int64_t classes, int ignore_label,
                                                             std::int64_t samples);

}  // namespace halograd
