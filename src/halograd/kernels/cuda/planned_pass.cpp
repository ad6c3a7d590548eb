#include "halograd/kernels/cuda/planned_pass.hpp"

#include <algorithm>
#include <utility>

namespace halograd::cuda {
namespace {

/// The largest power of two up to 16 that divides an offset.
std::int64_t alignment_of(std::int64_t bytes) {
  std::int64_t alignment = 16;
  while (bytes % alignment != 0) alignment /= 2;
  return alignment;
}

/// What a plan depends on.
struct PlanShape {
  TensorShape x;
  TensorShape y;
  Extent pad_lo;
  ConvAlignment alignment;
  friend bool operator==(const PlanShape&, const PlanShape&) = default;
};

const void* advanced(const void* buffer, std::int64_t bytes) {
  return static_cast<const std::byte*>(buffer) + bytes;
}

}  // namespace

std::optional<PlannedPass> PlannedPass::make(const CudnnTarget& target, ConvPass pass, const Conv3dDesc& desc,
                                             const Algorithm& algorithm) {
  const ConvPart whole = whole_part(desc);
  const std::int64_t size = dtype_size(activation_type(desc.precision));
  PlannedPass result(target);
  result.algorithm_ = algorithm;
  result.covers_input_ = cuda::covers_input(whole);
  std::vector<PlanShape> shapes;
  for (const ConvPart& part : cut(whole, algorithm.pieces, pass == ConvPass::backward_data)) {
    Part place{.x_bytes = part.x_offset * size, .y_bytes = part.y_offset * size};
    const PlanShape shape{
        part.x(), part.y(), part.desc.pad_lo, {alignment_of(place.x_bytes), alignment_of(place.y_bytes)}};
    const auto known = std::ranges::find(shapes, shape);
    place.plan = static_cast<std::size_t>(known - shapes.begin());
    if (known == shapes.end()) {
      std::optional<ConvPlan> plan = ConvPlan::make(target, pass, part, shape.alignment, algorithm);
      if (!plan) return std::nullopt;
      result.workspace_bytes_ = std::max(result.workspace_bytes_, plan->workspace_bytes());
      result.plans_.push_back(std::move(*plan));
      shapes.push_back(shape);
    }
    result.parts_.push_back(std::move(place));
  }
  return result;
}

std::string PlannedPass::name() const {
  const std::string name = fmt::format("cudnn engine {}", algorithm_.engine);
  return parts() == 1 ? name : fmt::format("{} in {} parts", name, parts());
}

void PlannedPass::run(std::size_t index, const void* x, const void* y, const void* w, void* workspace) {
  Part& part = parts_[index];
  const std::array<const void*, 4> wanted{advanced(x, part.x_bytes), advanced(y, part.y_bytes), w, workspace};
  // A step runs with the same buffers every time, so that nothing is made in the steady state.
  if (wanted != part.bound) {
    constexpr std::array<std::int64_t, 3> names{tensor_x, tensor_y, tensor_w};
    part.pack = CudnnDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    part.pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, names);
    part.pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, wanted.data());
    part.pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &wanted[3]);
    part.pack.finish("binding the buffers of a convolution");
    part.bound = wanted;
  }
  check(cudnnBackendExecute(target_.handle(), plans_[part.plan].descriptor().get(), part.pack.get()),
        "running a convolution");
}

}  // namespace halograd::cuda
