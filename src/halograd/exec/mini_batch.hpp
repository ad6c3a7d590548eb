#pragma once

#include "halograd/kernels/convert.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace halograd {

/// One sample's voxels of this rank's own box (Plan::input.own), in the file's type.
struct SampleView {
  const void* data = nullptr;  ///< null: converted already, into the mini-batch's input slot
  DType dtype = DType::f32;
  bool channels_first = false;
  const std::uint8_t* labels = nullptr;  ///< of the same voxels; null: none, or in the label slot already
  std::string_view name;                 ///< for errors
};

/// What a rank is given for one step: its group's samples of the mini-batch (Plan::samples, in that order).
struct MiniBatch {
  std::int64_t size = 0;  ///< of the global mini-batch
  std::vector<SampleView> samples;
  const float* targets = nullptr;  ///< [local samples, Plan::output.own, channels]; null for prediction, or with labels
  InputTransform transform = InputTransform::none;
  int slot = 0;  ///< the executor's input slot (and label slot) that its converted voxels are in, or go to
};

/// How a step went. The times add up to it; `communication` is what compute had to wait for messages. On a GPU that
/// wait is in the phases it delays, and a step that was launched whole (recorded) has one time.
struct StepResult {
  double loss = 0;  ///< mean over the global mini-batch, the same on all ranks
  double forward_seconds = 0;
  double backward_seconds = 0;
  double update_seconds = 0;
  double communication_seconds = 0;
  double recorded_seconds = 0;
  [[nodiscard]] double seconds() const {
    return forward_seconds + backward_seconds + update_seconds + communication_seconds + recorded_seconds;
  }
};

}  // namespace halograd
