#include "halograd/plan/plan.hpp"

#include "halograd/plan/compiler.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace halograd {

const char* step_kind_name(StepKind kind) {
  switch (kind) {
    case StepKind::load_input: return "load input";
    case StepKind::convolution_forward: return "convolution";
    case StepKind::convolution_backward_data: return "backward data";
    case StepKind::convolution_backward_weights: return "backward weights";
    case StepKind::chain_moments: return "moments";
    case StepKind::statistics_start: return "start statistics";
    case StepKind::statistics_wait: return "wait statistics";
    case StepKind::running_statistics: return "running statistics";
    case StepKind::chain_forward: return "chain";
    case StepKind::chain_backward_faces: return "chain backward faces";
    case StepKind::chain_backward_sums: return "chain backward sums";
    case StepKind::sums_start: return "start sums";
    case StepKind::sums_wait: return "wait sums";
    case StepKind::chain_backward_data: return "chain backward";
    case StepKind::exchange_start: return "start exchange";
    case StepKind::exchange_wait: return "wait exchange";
    case StepKind::copy: return "copy";
    case StepKind::upsample_forward: return "upsample";
    case StepKind::upsample_backward: return "upsample backward";
    case StepKind::flatten_forward: return "flatten";
    case StepKind::flatten_backward: return "flatten backward";
    case StepKind::dense_forward: return "dense";
    case StepKind::dense_backward_data: return "dense backward data";
    case StepKind::dense_backward_weights: return "dense backward weights";
    case StepKind::loss: return "loss";
    case StepKind::loss_sum_start: return "start loss sum";
    case StepKind::loss_sum_wait: return "wait loss sum";
    case StepKind::segmentation_sums: return "segmentation sums";
    case StepKind::segmentation_start: return "start segmentation sums";
    case StepKind::segmentation_wait: return "wait segmentation sums";
    case StepKind::segmentation_gradient: return "segmentation gradient";
    case StepKind::bucket_start: return "start bucket";
    case StepKind::bucket_wait: return "wait bucket";
    case StepKind::update: return "update";
  }
  return "";
}

bool computes(StepKind kind) {
  switch (kind) {
    case StepKind::statistics_start:
    case StepKind::statistics_wait:
    case StepKind::sums_start:
    case StepKind::sums_wait:
    case StepKind::exchange_start:
    case StepKind::exchange_wait:
    case StepKind::loss_sum_start:
    case StepKind::loss_sum_wait:
    case StepKind::segmentation_start:
    case StepKind::segmentation_wait:
    case StepKind::bucket_start:
    case StepKind::bucket_wait: return false;
    default: return true;
  }
}

bool is_convolution(StepKind kind) {
  return kind == StepKind::convolution_forward || kind == StepKind::convolution_backward_data ||
         kind == StepKind::convolution_backward_weights;
}

std::int64_t Plan::input_bytes() const {
  return buffers[static_cast<std::size_t>(input.tile.buffer)].bytes;
}

std::int64_t Plan::label_bytes() const {
  return input.labels < 0 ? 0 : buffers[static_cast<std::size_t>(input.labels)].bytes;
}

std::int64_t Plan::halo_bytes_sent() const {
  std::int64_t bytes = 0;
  for (const ExchangePlan& exchange : exchanges) bytes += exchange.bytes_sent();
  return bytes;
}

std::int64_t Plan::message_buffer_bytes() const {
  std::int64_t bytes = 0;
  for (const ExchangePlan& exchange : exchanges) {
    for (const auto& phase : exchange.phases) {
      for (const Transfer& transfer : phase) {
        bytes += exchange.message_bytes(transfer.send_box) + exchange.message_bytes(transfer.receive_box);
      }
    }
  }
  return bytes;
}

std::int64_t Plan::parameter_bytes(int optimizer_slots) const {
  return 4 * (parameter_elements + (1 + optimizer_slots) * trainable_elements);
}

std::string step_name(const Plan& plan, const Step& step) {
  const auto at = [&](const auto& list) { return list[static_cast<std::size_t>(step.unit)].name; };
  switch (step.kind) {
    case StepKind::load_input: return "input";
    case StepKind::convolution_forward:
    case StepKind::convolution_backward_data:
    case StepKind::convolution_backward_weights: return at(plan.convolutions);
    case StepKind::chain_moments:
    case StepKind::statistics_start:
    case StepKind::statistics_wait:
    case StepKind::running_statistics:
    case StepKind::chain_forward:
    case StepKind::chain_backward_faces:
    case StepKind::chain_backward_sums:
    case StepKind::sums_start:
    case StepKind::sums_wait:
    case StepKind::chain_backward_data: return at(plan.chains);
    case StepKind::exchange_start:
    case StepKind::exchange_wait: return at(plan.exchanges);
    case StepKind::copy: return at(plan.copies);
    case StepKind::flatten_forward:
    case StepKind::flatten_backward: return at(plan.flattens);
    case StepKind::dense_forward:
    case StepKind::dense_backward_data:
    case StepKind::dense_backward_weights: return at(plan.denses);
    case StepKind::loss:
    case StepKind::loss_sum_start:
    case StepKind::loss_sum_wait: return at(plan.losses);
    case StepKind::segmentation_sums:
    case StepKind::segmentation_start:
    case StepKind::segmentation_wait:
    case StepKind::segmentation_gradient: return at(plan.segmentations);
    case StepKind::upsample_forward:
    case StepKind::upsample_backward: return at(plan.upsamples);
    case StepKind::bucket_start:
    case StepKind::bucket_wait:
    case StepKind::update: return fmt::format("bucket {}", step.unit);
  }
  return {};
}

std::string describe(const Plan& plan) {
  std::string text;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    text += fmt::format("{:4} {} {}", i, step_kind_name(step.kind), step_name(plan, step));
    if (step.kind == StepKind::chain_forward || step.kind == StepKind::chain_backward_sums) {
      text += fmt::format(" part {}", step.part);
    }
    if (step.message_bytes > 0) text += fmt::format(" ({} bytes)", step.message_bytes);
    text += '\n';
  }
  return text;
}

}  // namespace halograd
