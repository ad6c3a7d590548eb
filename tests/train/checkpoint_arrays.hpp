#pragma once

#include "halograd/train/checkpoint.hpp"

#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace halograd::test {

/// Arrays of a small model with their memory; element i of array k is a function of both and of `seed`.
class Arrays {
public:
  explicit Arrays(std::vector<ArrayInfo> infos, float seed = 1) : infos_(std::move(infos)) {
    for (const ArrayInfo& info : infos_) {
      const auto size = std::accumulate(info.dims.begin(), info.dims.end(), std::int64_t{1}, std::multiplies<>{});
      std::vector<float> values(static_cast<std::size_t>(size));
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = std::sin(seed + static_cast<float>(values_.size()) + static_cast<float>(i));
      }
      values_.push_back(std::move(values));
    }
  }

  static std::vector<ArrayInfo> small_model() {
    return {{"/model/bn1/gamma", {4}},
            {"/model/conv1/weight", {4, 2, 3, 3, 3}},
            {"/optimizer/adam_m/bn1/gamma", {4}},
            {"/optimizer/adam_m/conv1/weight", {4, 2, 3, 3, 3}},
            {"/optimizer/scale", {}}};
  }

  [[nodiscard]] std::vector<NamedArray> named() {
    std::vector<NamedArray> named;
    for (std::size_t i = 0; i < infos_.size(); ++i)
      named.push_back({infos_[i].path, infos_[i].dims, values_[i].data()});
    return named;
  }

  [[nodiscard]] const std::vector<std::vector<float>>& values() const { return values_; }
  [[nodiscard]] const std::vector<ArrayInfo>& infos() const { return infos_; }

private:
  std::vector<ArrayInfo> infos_;
  std::vector<std::vector<float>> values_;
};

inline CheckpointState example_state(std::int64_t step = 12) {
  CheckpointState state{.epoch = 3, .step = step, .batch = 2, .optimizer_steps = step, .seed = 7};
  state.best_validation_loss = 0.1 + 0.2;
  state.counters = {{"bn1/updates", 11}, {"samples", 48}};
  state.values = {{"epoch_loss_sum", 1.0 / 3}};
  state.config = "[model]\nname = \"cosmoflow\"  # é\n";
  state.version = "0.1.0";
  return state;
}

}  // namespace halograd::test
