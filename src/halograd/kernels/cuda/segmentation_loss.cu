#include "halograd/core/bf16.hpp"
#include "halograd/kernels/cuda/reduction.cuh"
#include "halograd/kernels/cuda/scratch.hpp"
#include "halograd/kernels/cuda/segmentation_chunks.hpp"
#include "halograd/kernels/cuda/segmentation_lanes.hpp"
#include "halograd/kernels/cuda/segmentation_loss.hpp"

#include <utility>

namespace halograd::cuda {
namespace {

// Blocks are pieces of samples, piece fastest: [samples, pieces].

template <typename Sums>
__global__ void __launch_bounds__(sum_threads)
    chunk_sums(const __grid_constant__ Sums sums, std::uint32_t pieces, double* partial) {
  const std::int64_t sample = blockIdx.x / pieces;
  const std::int64_t piece = blockIdx.x % pieces;
  const std::int64_t items = sums.chunks.items();
  const std::int64_t end = piece_begin(items, piece + 1, pieces);
  typename Sums::State state;
  for (std::int64_t item = piece_begin(items, piece, pieces) + threadIdx.x; item < end; item += sum_threads) {
    sums.add(state, sample, item);
  }
  double mine[Sums::values];
  sums.finish(state, mine);
  store_block_sums(mine, partial + std::int64_t{blockIdx.x} * Sums::values);
}

template <typename Gradient>
__global__ void __launch_bounds__(sum_threads)
    chunk_gradient(const __grid_constant__ Gradient gradient, std::uint32_t pieces) {
  const std::int64_t sample = blockIdx.x / pieces;
  const std::int64_t piece = blockIdx.x % pieces;
  const std::int64_t items = gradient.chunks.items();
  const std::int64_t end = piece_begin(items, piece + 1, pieces);
  const auto factors = gradient.factors(sample);
  for (std::int64_t item = piece_begin(items, piece, pieces) + threadIdx.x; item < end; item += sum_threads) {
    gradient.write(factors, sample, item);
  }
}

template <int lanes, typename Value, typename Combine>
__device__ Value combine_lanes(Value value, const Combine& combine) {
#pragma unroll
  for (int apart = lanes / 2; apart >= 1; apart /= 2) value = combine(value, apart);
  return value;
}

template <int lanes>
__device__ Top top_of_lanes(const Top& mine) {
  return combine_lanes<lanes>(mine, [](const Top& top, int apart) {
    return upper(top, {__shfl_xor_sync(0xFFFFFFFFU, top.logit, apart), __shfl_xor_sync(0xFFFFFFFFU, top.at, apart)});
  });
}

template <int lanes>
__device__ float sum_of_lanes(float mine) {
  return combine_lanes<lanes>(mine,
                              [](float sum, int apart) { return sum + __shfl_xor_sync(0xFFFFFFFFU, sum, apart); });
}

/// Calls `body(voxel, there, lane)` for this lane's voxels of a piece, as often in all lanes of a warp.
template <int lanes, typename Body>
__device__ void for_each_voxel(std::int64_t voxels, std::int64_t sample, std::int64_t piece, std::int64_t pieces,
                               const Body& body) {
  constexpr int groups = sum_threads / lanes;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int group = static_cast<int>(threadIdx.x) / lanes;
  const std::int64_t end = piece_begin(voxels, piece + 1, pieces);
  for (std::int64_t first = piece_begin(voxels, piece, pieces); first < end; first += groups) {
    const std::int64_t voxel = first + group;
    body(sample * voxels + voxel, voxel < end, lane);
  }
}

/// The softmax of a voxel in all its lanes; returns Σ eᶻ⁻ᵗᵒᵖ without the top's 1.
template <typename T, int lanes, int run>
__device__ float softmax_of_lanes(const SegmentationLanes<T, lanes, run>& voxels, LaneVoxel& mine, int lane) {
  const Top top = top_of_lanes<lanes>(voxels.top(mine, lane));
  const float others = sum_of_lanes<lanes>(voxels.exponentials(mine, top, lane));
  voxels.probabilities(mine, others);
  return others;
}

template <typename T, int lanes, int run>
__global__ void __launch_bounds__(sum_threads)
    lane_sums(const __grid_constant__ SegmentationLaneSums<T, lanes, run> sums, std::uint32_t pieces, double* partial) {
  __shared__ double of_warps[sum_warps][2 + 3 * most_classes];
  const auto& shape = sums.voxels.shape;
  typename SegmentationLaneSums<T, lanes, run>::State state;
  for_each_voxel<lanes>(shape.voxels, blockIdx.x / pieces, blockIdx.x % pieces, pieces,
                        [&](std::int64_t voxel, bool there, int lane) {
                          LaneVoxel mine = sums.voxels.load_voxel(voxel, there, lane);
                          const float others = softmax_of_lanes(sums.voxels, mine, lane);
                          sums.add(state, mine, others, lane);
                        });
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const bool first_group = threadIdx.x % warp_size < lanes;
  double* const of_warp = of_warps[threadIdx.x / warp_size];
  const double surprises = warp_sum(state.surprises);
  const double weights = warp_sum(sums.weights(state, lane));
  if (threadIdx.x % warp_size == 0) {
    of_warp[0] = surprises;
    of_warp[1] = weights;
  }
#pragma unroll
  for (int j = 0; j < classes_a_lane; ++j) {
    const int k = sums.voxels.class_of(lane, j);
    const double both = warp_sum(state.both[j], lanes);
    const double predicted = warp_sum(state.predicted[j], lanes);
    const double labelled = warp_sum(state.labelled[j], lanes);
    if (first_group && k < shape.classes) {
      of_warp[2 + k] = both;
      of_warp[2 + shape.classes + k] = predicted;
      of_warp[2 + 2 * shape.classes + k] = labelled;
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < shape.values(); i += sum_threads) {
    double sum = 0;
    for (int warp = 0; warp < sum_warps; ++warp) sum += of_warps[warp][i];
    partial[blockIdx.x * shape.values() + i] = sum;
  }
}

template <typename T, int lanes, int run>
__global__ void __launch_bounds__(sum_threads)
    lane_gradient(const __grid_constant__ SegmentationLaneGradient<T, lanes, run> gradient, std::uint32_t pieces) {
  const std::int64_t sample = blockIdx.x / pieces;
  for_each_voxel<lanes>(gradient.voxels.shape.voxels, sample, blockIdx.x % pieces, pieces,
                        [&](std::int64_t voxel, bool there, int lane) {
                          LaneVoxel mine = gradient.voxels.load_voxel(voxel, there, lane);
                          softmax_of_lanes(gradient.voxels, mine, lane);
                          const float mean = sum_of_lanes<lanes>(gradient.mean(mine, sample, lane));
                          if (there) gradient.write(mine, mean, sample, voxel, lane);
                        });
}

__global__ void __launch_bounds__(sum_threads)
    finish(const __grid_constant__ FinishSegmentation body, SegmentationOutcome* outcome) {
  __shared__ double dice_loss;
  const double mine[1] = {
      strided_sum(body, 0, body.items(), static_cast<int>(threadIdx.x), sum_threads),
  };
  store_block_sums(mine, &dice_loss);
  // The thread that wrote the sum reads it.
  if (threadIdx.x == 0) *outcome = body.outcome(dice_loss);
}

/// Calls `body` with the number of classes as a type.
template <typename Body, int... counts>
void with_register_classes(std::int64_t classes, const Body& body, std::integer_sequence<int, counts...>) {
  ((classes == counts + 1 ? body(std::integral_constant<int, counts + 1>{}) : void()), ...);
}

template <typename T, typename Registers, typename Lanes>
void by_classes(std::int64_t classes, const T* logits, const T* written, const Registers& registers,
                const Lanes& lanes) {
  if (classes <= most_register_classes) {
    return with_register_classes(classes, registers, std::make_integer_sequence<int, most_register_classes>{});
  }
  with_lane_layout(classes, logits, written, lanes);
}

Grid grid_of(const SegmentationLossDesc& desc, std::int64_t pieces) {
  return {static_cast<std::uint32_t>(desc.samples * pieces), sum_threads};
}

}  // namespace

void segmentation_sums(const Queue& queue, const SegmentationLossDesc& desc, const void* logits,
                       const std::uint8_t* labels, double* sums) {
  constexpr auto what = "summing the segmentation loss";
  const std::int64_t values = 2 + 3 * desc.classes;
  const std::int64_t pieces = segmentation_pieces(desc, scratch_doubles);
  double* const partial = scratch_of(queue, desc.samples * pieces * values);
  const auto count = static_cast<std::uint32_t>(pieces);
  with_activation_type(desc.type, [&]<typename T>(T) {
    const auto* const z = static_cast<const T*>(logits);
    by_classes(
        desc.classes, z, static_cast<const T*>(nullptr),
        [&]<int classes>(std::integral_constant<int, classes>) {
          using Sums = SegmentationChunkSums<T, classes>;
          launch(queue, what, grid_of(desc, pieces), chunk_sums<Sums>, Sums{{desc, z, labels}}, count, partial);
        },
        [&]<int lanes, int run>(LaneLayout<lanes, run>) {
          launch(queue, what, grid_of(desc, pieces), lane_sums<T, lanes, run>,
                 SegmentationLaneSums<T, lanes, run>{{desc, z, labels}}, count, partial);
        });
  });
  merge_pieces(queue, what, {partial, desc.samples, pieces, values, 2}, sums);
}

void finish_segmentation(const Queue& queue, const SegmentationLossDesc& desc, std::int64_t samples, const double* sums,
                         SegmentationOutcome* outcome, double* dice) {
  launch(queue, "finishing the segmentation loss", Grid{1, sum_threads}, finish,
         FinishSegmentation(desc, samples, sums, dice), outcome);
}

void segmentation_gradient(const Queue& queue, const SegmentationLossDesc& desc, const void* logits,
                           const std::uint8_t* labels, const SegmentationOutcome* outcome, const double* dice,
                           void* dlogits) {
  constexpr auto what = "the gradient of the segmentation loss";
  const std::int64_t pieces = segmentation_pieces(desc, scratch_doubles);
  const auto count = static_cast<std::uint32_t>(pieces);
  with_activation_type(desc.type, [&]<typename T>(T) {
    const auto* const z = static_cast<const T*>(logits);
    auto* const dz = static_cast<T*>(dlogits);
    by_classes(
        desc.classes, z, static_cast<const T*>(dz),
        [&]<int classes>(std::integral_constant<int, classes>) {
          using Gradient = SegmentationChunkGradient<T, classes>;
          launch(queue, what, grid_of(desc, pieces), chunk_gradient<Gradient>,
                 Gradient{{desc, z, labels, dz}, outcome, dice, dz}, count);
        },
        [&]<int lanes, int run>(LaneLayout<lanes, run>) {
          launch(queue, what, grid_of(desc, pieces), lane_gradient<T, lanes, run>,
                 SegmentationLaneGradient<T, lanes, run>{{desc, z, labels}, outcome, dice, dz}, count);
        });
  });
}

}  // namespace halograd::cuda
