#include "halograd/perf/operation.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace halograd {
namespace {

std::string text(const Extent& extent) {
  return fmt::format("{}x{}x{}", extent.d, extent.h, extent.w);
}

std::string text(const Window& window) {
  return fmt::format("k{} s{} p{}", text(window.kernel), text(window.stride), text(window.padding));
}

std::string text(const VoxelLayout& layout) {
  return fmt::format("{}:{}", text(layout.box.extent()), layout.pitch);
}

std::string text(const Halo& halo) {
  return fmt::format("{}+{}", text(halo.lo), text(halo.hi));
}

template <typename Units>
const auto& unit_of(const Units& units, const Step& step) {
  return units[static_cast<std::size_t>(step.unit)];
}

/// f32 goes without saying.
std::string text(DType type) {
  return type == DType::bf16 ? " bf16" : "";
}

std::string text(Precision precision) {
  return precision == Precision::f32 ? "" : fmt::format(" {}", precision_name(precision));
}

/// What an operation is, extents apart, and its extents.
struct OperationText {
  std::string family;
  std::string extents;
};

OperationText convolution_text(const ConvolutionUnit& unit, const Step& step) {
  OperationText of = std::visit(
      [](const auto& desc) {
        return OperationText{
            fmt::format("c{}-{} k{} s{}{}{}", desc.in_channels, desc.out_channels, text(desc.kernel), text(desc.stride),
                        desc.direct ? " direct" : "", text(desc.precision)),
            fmt::format("n{} {}-{} p{}", desc.samples, text(desc.in), text(desc.out), text(desc.pad_lo))};
      },
      unit.desc);
  const auto* const desc = std::get_if<Conv3dDesc>(&unit.desc);
  if (step.kind == StepKind::convolution_forward && desc != nullptr && !desc->forward_parts.empty()) {
    of.extents += " part " + text(desc->forward_parts[static_cast<std::size_t>(step.part)].extent());
  }
  return of;
}

/// The text is the same for all passes of a chain; the part of the volume is added. Faces are what its backward pass
/// computes for neighbours, and what it adds of theirs.
OperationText chain_text(const ChainUnit& unit, const Step& step) {
  const ChainDesc& desc = unit.desc;
  std::string family = fmt::format("c{}{}", desc.channels, text(desc.type));
  if (desc.normalise) family += desc.per_sample ? " norm-each" : " norm";
  if (desc.negative_slope != 1) family += fmt::format(" slope {}", desc.negative_slope);
  if (desc.pool != PoolKind::none) {
    family += fmt::format(" {} {}", desc.pool == PoolKind::max ? "max" : "average", text(desc.window));
  }
  if (desc.keep != 1) family += " dropout";
  if (desc.accumulate) family += " add";
  std::string extents = fmt::format("n{} {}-{} in {} out {}", desc.samples, text(desc.in.extent()),
                                    text(desc.out.extent()), text(desc.src), text(desc.dst));
  if (!desc.faces.empty()) extents += " faces " + text(desc.faces);
  if (!desc.returned.empty()) extents += " returned " + text(desc.returned);
  if (step.kind == StepKind::chain_forward) {
    extents += " part " + text(unit.forward_parts[static_cast<std::size_t>(step.part)].extent());
  }
  if (step.kind == StepKind::chain_backward_sums) {
    extents += " part " + text(unit.sum_parts[static_cast<std::size_t>(step.part)].extent());
  }
  return {std::move(family), std::move(extents)};
}

OperationText upsample_text(const UpsampleUnit& unit) {
  const UpsampleDesc& desc = unit.desc;
  return {fmt::format("c{} {} x{}{}", desc.channels, desc.kind == UpsampleKind::nearest ? "nearest" : "trilinear",
                      text(desc.factor), text(desc.type)),
          fmt::format("n{} {} of {}-{}", desc.samples, text(desc.out.extent()), text(desc.src), text(desc.dst))};
}

OperationText copy_text(const CopyUnit& unit) {
  return {
      fmt::format("c{}{}{}{}", unit.channels, unit.add ? " add" : "", unit.clear ? " clear" : "", text(unit.to.type)),
      fmt::format("n{} {} {}-{}", unit.samples, text(unit.region.extent()), text(unit.from.layout()),
                  text(unit.to.layout()))};
}

OperationText shape_text(const Plan& plan, const Step& step) {
  switch (step.kind) {
    case StepKind::load_input:
      return {fmt::format("c{}{}", plan.input.shape.channels, text(plan.input.tile.type)),
              fmt::format("n{} {} in {}", plan.samples.count, text(plan.input.own.extent()),
                          text(plan.input.tile.box.extent()))};
    case StepKind::convolution_forward:
    case StepKind::convolution_backward_data:
    case StepKind::convolution_backward_weights: return convolution_text(unit_of(plan.convolutions, step), step);
    case StepKind::chain_moments:
    case StepKind::running_statistics:
    case StepKind::chain_forward:
    case StepKind::chain_backward_faces:
    case StepKind::chain_backward_sums:
    case StepKind::chain_backward_data: return chain_text(unit_of(plan.chains, step), step);
    case StepKind::copy: return copy_text(unit_of(plan.copies, step));
    case StepKind::upsample_forward:
    case StepKind::upsample_backward: return upsample_text(unit_of(plan.upsamples, step));
    case StepKind::dense_forward:
    case StepKind::dense_backward_data:
    case StepKind::dense_backward_weights: {
      const DenseDesc& desc = unit_of(plan.denses, step).desc;
      return {fmt::format("{}-{}{}", desc.in_features, desc.out_features, text(desc.precision)),
              fmt::format("n{}", desc.samples)};
    }
    case StepKind::flatten_forward:
    case StepKind::flatten_backward: {
      const FlattenUnit& unit = unit_of(plan.flattens, step);
      const LocalShape& shape = unit.shape;
      return {fmt::format("c{}{}", shape.channels, text(unit.type)),
              fmt::format("n{} {}", shape.samples, text(shape.extent))};
    }
    case StepKind::loss:
      return {unit_of(plan.losses, step).type == DType::bf16 ? "bf16" : "",
              fmt::format("{}", unit_of(plan.losses, step).elements)};
    case StepKind::segmentation_sums:
    case StepKind::segmentation_gradient: {
      const SegmentationLossDesc& desc = unit_of(plan.segmentations, step).desc;
      return {fmt::format("c{} {} {}{}", desc.classes, desc.cross_entropy, desc.dice, text(desc.type)),
              fmt::format("n{} {}", desc.samples, desc.voxels)};
    }
    case StepKind::update: return {"", fmt::format("{}", unit_of(plan.buckets, step).count)};
    default: return {};
  }
}

std::string kind_of(const Plan& plan, const Step& step) {
  if (is_convolution(step.kind)) {
    const bool transposed = std::holds_alternative<Deconv3dDesc>(unit_of(plan.convolutions, step).desc);
    const char* const pass = step.kind == StepKind::convolution_forward         ? "forward"
                             : step.kind == StepKind::convolution_backward_data ? "backward_data"
                                                                                : "backward_weights";
    return fmt::format("{}_{}", transposed ? "deconvolution" : "convolution", pass);
  }
  std::string kind = step_kind_name(step.kind);
  std::ranges::replace(kind, ' ', '_');
  return kind;
}

}  // namespace

Operation operation_of(const Plan& plan, const Step& step) {
  Operation operation{.kind = kind_of(plan, step), .flops = step.flops, .bytes = step.bytes};
  if (is_convolution(step.kind)) {
    operation.out_channels =
        std::visit([](const auto& desc) { return desc.out_channels; }, unit_of(plan.convolutions, step).desc);
  }
  return operation;
}

OperationKey operation_key(const Plan& plan, const Step& step) {
  const OperationText of = shape_text(plan, step);
  std::string family = kind_of(plan, step) + (of.family.empty() ? "" : " " + of.family) + " |";
  std::string whole = family + " " + of.extents;
  return {std::move(family), std::move(whole)};
}

}  // namespace halograd
