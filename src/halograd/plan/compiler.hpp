#pragma once

#include "halograd/plan/plan.hpp"

#include <optional>

namespace halograd {

/// What a backend asks of buffers.
struct KernelTraits {
  std::int64_t alignment = 4096;  ///< bytes; a page, so that no two buffers share one
  /// Convolutions take Conv3dDesc::forward_parts where a voxel's channels, in input and output, are a multiple of so
  /// many bytes; 0: never.
  std::int64_t box_alignment = 0;
};
/// A GPU's kernels need 16 bytes, its memory comes in sectors; 256 is what its own allocator aligns to.
/// cuDNN's engines want what they read to begin at 16 bytes: boxes that don't might be computed by other engines than
/// the whole, and round otherwise. oneDNN takes dense buffers only, of which a box is one just where a single sample is
/// cut in depth alone.
constexpr KernelTraits kernel_traits(Backend backend) {
  switch (backend) {
    case Backend::cuda: return {.alignment = 256, .box_alignment = 16};
    case Backend::reference: return {.box_alignment = 1};
    case Backend::cpu: break;
  }
  return {};
}

struct CompileOptions {
  ProcessGrid grid;
  std::int64_t rank = 0;
  std::int64_t batch = 1;  ///< global; need not divide by the groups
  Mode mode = Mode::train;
  StatisticsScope scope = StatisticsScope::global;
  Precision precision = Precision::f32;
  bool direct_convolutions = false;          ///< see Conv3dDesc::direct
  bool input_gradient = false;               ///< also the gradient of the network's input (for tests and saliency)
  std::optional<Partition> input_partition;  ///< default: Partition::even on multiples of the total stride
  std::int64_t bucket_bytes = 4 << 20;       ///< a gradient bucket is sent off once it holds so much
  KernelTraits traits;
};

/// Compiles `network` for one rank of a grid: a pure function, for any rank of any grid, without MPI or the arena.
/// Throws UsageError where the network can't be split so.
Plan compile(const Network& network, const CompileOptions& options);

/// The plan as text, a line a step, for people and tests.
std::string describe(const Plan& plan);

}  // namespace halograd
