#include "halograd/core/error.hpp"
#include "halograd/kernels/cuda/chain.hpp"
#include "halograd/kernels/cuda/conv3d.hpp"
#include "halograd/kernels/cuda/convert.hpp"
#include "halograd/kernels/cuda/dense.hpp"
#include "halograd/kernels/cuda/layout.hpp"
#include "halograd/kernels/cuda/loss.hpp"
#include "halograd/kernels/cuda/optimizer.hpp"
#include "halograd/kernels/cuda/region_copy.hpp"
#include "halograd/kernels/cuda/segmentation_loss.hpp"
#include "halograd/kernels/cuda/statistics.hpp"
#include "halograd/kernels/cuda/upsample.hpp"

/// Without CUDA there is no queue that these could be given: opening a GPU fails before.
namespace halograd::cuda {
namespace {

[[noreturn]] void refuse() {
  throw ResourceError("this halograd was built without CUDA");
}

}  // namespace

std::unique_ptr<Chain> make_chain(const Queue&, const ChainDesc&) {
  refuse();
}
std::unique_ptr<Conv3d> make_conv3d(const Queue&, const Conv3dDesc&) {
  refuse();
}
void convert_input(const Queue&, const ConvertDesc&, const void*, void*, std::uint32_t*) {
  refuse();
}
std::unique_ptr<Dense> make_dense(const Queue&, const DenseDesc&) {
  refuse();
}
void to_channels_first(const Queue&, DType, const LocalShape&, const void*, float*) {
  refuse();
}
void to_channels_last(const Queue&, DType, const LocalShape&, const float*, void*) {
  refuse();
}
void squared_error(const Queue&, DType, const void*, const float*, std::int64_t, double*) {
  refuse();
}
void squared_error_gradient(const Queue&, DType, const void*, const float*, float, std::int64_t, void*) {
  refuse();
}
void adam_update(const Queue&, const AdamStep*, const float*, float*, float*, float*, std::int64_t) {
  refuse();
}
void sgd_update(const Queue&, const SgdStep*, const float*, float*, float*, std::int64_t) {
  refuse();
}
void copy_region(const Queue&, const RegionCopy&, const void*, void*) {
  refuse();
}
void add_region(const Queue&, const RegionCopy&, const void*, void*) {
  refuse();
}
void segmentation_sums(const Queue&, const SegmentationLossDesc&, const void*, const std::uint8_t*, double*) {
  refuse();
}
void finish_segmentation(const Queue&, const SegmentationLossDesc&, std::int64_t, const double*, SegmentationOutcome*,
                         double*) {
  refuse();
}
void segmentation_gradient(const Queue&, const SegmentationLossDesc&, const void*, const std::uint8_t*,
                           const SegmentationOutcome*, const double*, void*) {
  refuse();
}
void statistics_sums(const Queue&, const StatisticsDesc&, const double*, double*) {
  refuse();
}
void statistics_squares(const Queue&, const StatisticsDesc&, const double*, double*, double*) {
  refuse();
}
void finish_statistics(const Queue&, const StatisticsDesc&, const double*, double*, float*, float*) {
  refuse();
}
void unbias_variance(const Queue&, const StatisticsDesc&, double*) {
  refuse();
}
void update_running_averages(const Queue&, const RunningAverages&, const double*, const double*, float*, float*) {
  refuse();
}
void use_running_statistics(const Queue&, std::int64_t, double, const float*, const float*, float*, float*) {
  refuse();
}
void finish_norm_gradient(const Queue&, const NormSums&, const double*, const float*, const float*, float*, float*,
                          double*, double*) {
  refuse();
}
void upsample(const Queue&, const UpsampleDesc&, const void*, void*) {
  refuse();
}
void upsample_backward(const Queue&, const UpsampleDesc&, const void*, void*) {
  refuse();
}

}  // namespace halograd::cuda
