#pragma once

#include "halograd/comm/communicator.hpp"
#include "halograd/comm/lane.hpp"
#include "halograd/comm/reduction.hpp"
#include "halograd/tensor/process_grid.hpp"

#include <cstdint>
#include <optional>

namespace halograd {

/// A rank's communicators and the threads that run them: one lane for halos and statistics, which compute waits for
/// soon, one for gradients, which it waits for at the step's end. On each lane all ranks post in the Plan's order.
class Fabric {
public:
  /// Collective over `world`. `largest_statistics`: doubles; `largest_bucket`: floats.
  Fabric(const Communicator& world, const ProcessGrid& grid, std::int64_t largest_statistics,
         std::int64_t largest_bucket);

  /// The ranks that share this rank's samples, numbered as Site and Transfer::peer do.
  [[nodiscard]] const Communicator& group() const { return group_; }
  [[nodiscard]] Lane& halo_lane() { return *halo_lane_; }
  [[nodiscard]] Lane& gradient_lane() { return *gradient_lane_; }
  [[nodiscard]] SumReduction<double>& world_sum() { return *world_sum_; }
  [[nodiscard]] SumReduction<double>& group_sum() { return *group_sum_; }
  [[nodiscard]] SumReduction<float>& gradient_sum() { return *gradient_sum_; }

private:
  Communicator world_;
  Communicator group_;
  std::optional<SumReduction<double>> world_sum_;
  std::optional<SumReduction<double>> group_sum_;
  std::optional<SumReduction<float>> gradient_sum_;
  std::optional<Lane> halo_lane_;  // last: they stop first
  std::optional<Lane> gradient_lane_;
};

}  // namespace halograd
