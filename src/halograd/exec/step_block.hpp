#pragma once

#include "halograd/device/device.hpp"
#include "halograd/kernels/segmentation_loss.hpp"

#include <cstdint>

namespace halograd {

/// The few numbers that go into a step and come out of it, where kernels find them: in memory of the device, so that no
/// step waits for the host and one that was recorded can be replayed with others. Internal to exec/.
class StepBlock {
public:
  explicit StepBlock(const Device& device)
      : host_(device.allocate_host(sizeof(Numbers))), device_(device.allocate(sizeof(Numbers))) {}

  struct Given {
    double least_weight = 0;  ///< of a new value in running averages
    std::uint32_t step = 0;   ///< of dropout's random numbers
  };

  /// Lists on `queue` that the step's numbers are set, and the results zeroed.
  void begin(const Queue& queue, const Given& given) {
    on_host() = {.given = given};
    queue.copy(host_.data(), device_.data(), sizeof(Numbers));
  }
  /// The loss, once `queue` has come to where it was listed. Waits.
  double loss(const Queue& queue) {
    queue.copy(device_.data(), host_.data(), sizeof(Numbers));
    queue.synchronize();
    return on_host().outcome.loss;
  }

  // On the device.
  [[nodiscard]] const double* least_weight() const { return &on_device().given.least_weight; }
  [[nodiscard]] const std::uint32_t* step() const { return &on_device().given.step; }
  /// A loss on labels leaves its outcome here, another its sum over the elements.
  [[nodiscard]] SegmentationOutcome* outcome() const { return &on_device().outcome; }
  [[nodiscard]] double* loss_sum() const { return &on_device().outcome.loss; }

private:
  struct Numbers {
    Given given;
    SegmentationOutcome outcome;
  };
  [[nodiscard]] Numbers& on_host() const { return *reinterpret_cast<Numbers*>(host_.data()); }
  [[nodiscard]] Numbers& on_device() const { return *reinterpret_cast<Numbers*>(device_.data()); }

  DeviceMemory host_;
  DeviceMemory device_;
};

}  // namespace halograd
