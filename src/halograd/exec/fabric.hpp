#pragma once

#include "halograd/comm/lane.hpp"
#include "halograd/comm/link.hpp"
#include "halograd/comm/reduction.hpp"
#include "halograd/tensor/process_grid.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace halograd {

/// An activity's queue and who runs its jobs.
struct FabricLane {
  Queue queue;
  Lane lane;
};

/// A way for messages to travel that somebody decided on.
struct FabricTransport {
  Transport how = Transport::host;
  NcclFactory make_nccl = make_nccl_communicator;
};

/// A rank's communicators and the lanes that use them: one for halos and statistics, which compute waits for soon, one
/// for gradients, which it waits for at the step's end. On each lane all ranks post in the Plan's order.
class Fabric {
public:
  /// Collective over `world`. `largest_statistics`: doubles; `largest_bucket`: floats.
  Fabric(const Communicator& world, const ProcessGrid& grid, const Device& device,
         const std::optional<FabricTransport>& transport, std::int64_t largest_statistics, std::int64_t largest_bucket);

  /// All ranks, for what they decide on the host between steps.
  [[nodiscard]] const Communicator& world() const { return *world_; }
  /// The way to the ranks that share this rank's samples, numbered as Site and Transfer::peer do; of the halo lane.
  [[nodiscard]] const Link& group() const { return *group_; }
  [[nodiscard]] FabricLane& halos() { return *halos_; }
  [[nodiscard]] FabricLane& gradients() { return *gradients_; }
  [[nodiscard]] SumReduction<double>& world_sum() { return *world_sum_; }
  [[nodiscard]] SumReduction<double>& group_sum() { return *group_sum_; }
  [[nodiscard]] SumReduction<float>& gradient_sum() { return *gradient_sum_; }
  /// How messages travel, in one line.
  [[nodiscard]] const std::string& transport() const { return transport_; }
  /// Whether a whole step only lists work, so that it can be recorded.
  [[nodiscard]] bool returns_when_listed() const { return group_->returns_when_listed(); }

private:
  std::string transport_;
  std::optional<Communicator> world_;
  std::optional<Link> group_;
  std::optional<SumReduction<double>> world_sum_;
  std::optional<SumReduction<double>> group_sum_;
  std::optional<SumReduction<float>> gradient_sum_;
  std::optional<FabricLane> halos_;  // last: they stop first
  std::optional<FabricLane> gradients_;
};

}  // namespace halograd
