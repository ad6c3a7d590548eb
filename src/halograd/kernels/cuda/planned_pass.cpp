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

std::optional<PlannedPass> PlannedPass::make(const CudnnTarget& target, ConvPass pass, const ConvPart& whole,
                                             const Algorithm& algorithm) {
  const std::int64_t size = dtype_size(activation_type(whole.desc.precision));
  PlannedPass result(target);
  result.algorithm_ = algorithm;
  result.covers_input_ = cuda::covers_input(whole);
  std::vector<PlanShape> shapes;
  for (const ConvPart& piece : cut(whole, algorithm.pieces, pass == ConvPass::backward_data)) {
    Piece place{.x_bytes = piece.x_offset * size, .y_bytes = piece.y_offset * size};
    const PlanShape shape{
        piece.x(), piece.y(), piece.desc.pad_lo, {alignment_of(place.x_bytes), alignment_of(place.y_bytes)}};
    const auto known = std::ranges::find(shapes, shape);
    place.plan = static_cast<std::size_t>(known - shapes.begin());
    if (known == shapes.end()) {
      std::optional<ConvPlan> plan = ConvPlan::make(target, pass, piece, shape.alignment, algorithm);
      if (!plan) return std::nullopt;
      result.workspace_bytes_ = std::max(result.workspace_bytes_, plan->workspace_bytes());
      result.plans_.push_back(std::move(*plan));
      shapes.push_back(shape);
    }
    result.pieces_.push_back(std::move(place));
  }
  return result;
}

std::string PlannedPass::name() const {
  const std::string name = fmt::format("cudnn engine {}", algorithm_.engine);
  return pieces() == 1 ? name : fmt::format("{} in {} pieces", name, pieces());
}

void PlannedPass::run(std::size_t index, const void* x, const void* y, const void* w, void* workspace) {
  Piece& piece = pieces_[index];
  const std::array<const void*, 4> wanted{advanced(x, piece.x_bytes), advanced(y, piece.y_bytes), w, workspace};
  // A step runs with the same buffers every time, so that nothing is made in the steady state.
  if (wanted != piece.bound) {
    constexpr std::array<std::int64_t, 3> names{tensor_x, tensor_y, tensor_w};
    piece.pack = CudnnDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    piece.pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, names);
    piece.pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, wanted.data());
    piece.pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &wanted[3]);
    piece.pack.finish("binding the buffers of a convolution");
    piece.bound = wanted;
  }
  check(cudnnBackendExecute(target_.handle(), plans_[piece.plan].descriptor().get(), piece.pack.get()),
        "running a convolution");
}

}  // namespace halograd::cuda
