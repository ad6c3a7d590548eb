#include "halograd/kernels/cpu/chain.hpp"
#include "halograd/kernels/cpu/conv3d.hpp"
#include "halograd/kernels/cpu/convert.hpp"
#include "halograd/kernels/cpu/dense.hpp"
#include "halograd/kernels/cpu/loss.hpp"
#include "halograd/kernels/cpu/optimizer.hpp"
#include "halograd/kernels/cpu/region_copy.hpp"
#include "halograd/kernels/cpu/segmentation_loss.hpp"
#include "halograd/kernels/cpu/upsample.hpp"
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
#include "halograd/kernels/reference/chain.hpp"
#include "halograd/kernels/reference/conv3d.hpp"
#include "halograd/kernels/reference/convert.hpp"
#include "halograd/kernels/reference/dense.hpp"
#include "halograd/kernels/reference/f32_only.hpp"
#include "halograd/kernels/reference/layout.hpp"
#include "halograd/kernels/reference/loss.hpp"
#include "halograd/kernels/reference/optimizer.hpp"
#include "halograd/kernels/reference/region_copy.hpp"
#include "halograd/kernels/reference/segmentation_loss.hpp"
#include "halograd/kernels/reference/statistics.hpp"
#include "halograd/kernels/reference/upsample.hpp"

// The one place that knows which backends there are: each operation goes to the function of the same name in the
// backend's namespace.
namespace halograd {
namespace {

/// The result of the call that belongs to the backend.
template <typename Reference, typename Cpu, typename Cuda>
auto pick(const Queue& queue, const Reference& reference, const Cpu& cpu, const Cuda& cuda) {
  if (queue.backend() == Backend::cuda) return cuda();
  return queue.backend() == Backend::cpu ? cpu() : reference();
}

// What the reference computes in.
const float* floats(DType type, const void* values) {
  reference::expect_f32(type);
  return static_cast<const float*>(values);
}
float* floats(DType type, void* values) {
  reference::expect_f32(type);
  return static_cast<float*>(values);
}

}  // namespace

std::unique_ptr<Conv3d> make_conv3d(const Queue& queue, const Conv3dDesc& desc) {
  return pick(
      queue, [&] { return reference::make_conv3d(desc); }, [&] { return cpu::make_conv3d(desc); },
      [&] { return cuda::make_conv3d(queue, desc); });
}

std::unique_ptr<Dense> make_dense(const Queue& queue, const DenseDesc& desc) {
  return pick(
      queue, [&] { return reference::make_dense(desc); }, [&] { return cpu::make_dense(desc); },
      [&] { return cuda::make_dense(queue, desc); });
}

std::unique_ptr<Chain> make_chain(const Queue& queue, const ChainDesc& desc) {
  return pick(
      queue, [&] { return reference::make_chain(desc); }, [&] { return cpu::make_chain(desc); },
      [&] { return cuda::make_chain(queue, desc); });
}

void copy_region(const Queue& queue, const RegionCopy& copy, const void* from, void* to) {
  pick(
      queue, [&] { reference::copy_region(copy, floats(copy.type, from), floats(copy.type, to)); },
      [&] { cpu::copy_region(copy, from, to); }, [&] { cuda::copy_region(queue, copy, from, to); });
}

void add_region(const Queue& queue, const RegionCopy& copy, const void* from, void* to) {
  pick(
      queue, [&] { reference::add_region(copy, floats(copy.type, from), floats(copy.type, to)); },
      [&] { cpu::add_region(copy, from, to); }, [&] { cuda::add_region(queue, copy, from, to); });
}

void upsample(const Queue& queue, const UpsampleDesc& desc, const void* x, void* y) {
  pick(
      queue, [&] { reference::upsample(desc, floats(desc.type, x), floats(desc.type, y)); },
      [&] { cpu::upsample(desc, x, y); }, [&] { cuda::upsample(queue, desc, x, y); });
}

void upsample_backward(const Queue& queue, const UpsampleDesc& desc, const void* dy, void* dx) {
  pick(
      queue, [&] { reference::upsample_backward(desc, floats(desc.type, dy), floats(desc.type, dx)); },
      [&] { cpu::upsample_backward(desc, dy, dx); }, [&] { cuda::upsample_backward(queue, desc, dy, dx); });
}

void squared_error(const Queue& queue, DType type, const void* prediction, const float* target, std::int64_t count,
                   double* sum) {
  pick(
      queue, [&] { *sum = reference::squared_error(floats(type, prediction), target, count); },
      [&] { *sum = cpu::squared_error(type, prediction, target, count); },
      [&] { cuda::squared_error(queue, type, prediction, target, count, sum); });
}

void squared_error_gradient(const Queue& queue, DType type, const void* prediction, const float* target, float scale,
                            std::int64_t count, void* dprediction) {
  pick(
      queue,
      [&] {
        reference::squared_error_gradient(floats(type, prediction), target, scale, count, floats(type, dprediction));
      },
      [&] { cpu::squared_error_gradient(type, prediction, target, scale, count, dprediction); },
      [&] { cuda::squared_error_gradient(queue, type, prediction, target, scale, count, dprediction); });
}

void segmentation_sums(const Queue& queue, const SegmentationLossDesc& desc, const void* logits,
                       const std::uint8_t* labels, double* sums) {
  pick(
      queue, [&] { reference::segmentation_sums(desc, floats(desc.type, logits), labels, sums); },
      [&] { cpu::segmentation_sums(desc, logits, labels, sums); },
      [&] { cuda::segmentation_sums(queue, desc, logits, labels, sums); });
}

void finish_segmentation(const Queue& queue, const SegmentationLossDesc& desc, std::int64_t samples, const double* sums,
                         SegmentationOutcome* outcome, double* dice) {
  if (queue.backend() == Backend::cuda) return cuda::finish_segmentation(queue, desc, samples, sums, outcome, dice);
  reference::finish_segmentation(desc, samples, sums, outcome, dice);
}

void segmentation_gradient(const Queue& queue, const SegmentationLossDesc& desc, const void* logits,
                           const std::uint8_t* labels, const SegmentationOutcome* outcome, const double* dice,
                           void* dlogits) {
  pick(
      queue,
      [&] {
        reference::segmentation_gradient(desc, floats(desc.type, logits), labels, outcome->cross_entropy_scale, dice,
                                         floats(desc.type, dlogits));
      },
      [&] { cpu::segmentation_gradient(desc, logits, labels, outcome->cross_entropy_scale, dice, dlogits); },
      [&] { cuda::segmentation_gradient(queue, desc, logits, labels, outcome, dice, dlogits); });
}

void adam_update(const Queue& queue, const AdamStep* adam, const float* g, float* w, float* m, float* v,
                 std::int64_t count) {
  pick(
      queue, [&] { reference::adam_update(*adam, g, w, m, v, count); },
      [&] { cpu::adam_update(*adam, g, w, m, v, count); }, [&] { cuda::adam_update(queue, adam, g, w, m, v, count); });
}

void sgd_update(const Queue& queue, const SgdStep* sgd, const float* g, float* w, float* velocity, std::int64_t count) {
  pick(
      queue, [&] { reference::sgd_update(*sgd, g, w, velocity, count); },
      [&] { cpu::sgd_update(*sgd, g, w, velocity, count); },
      [&] { cuda::sgd_update(queue, sgd, g, w, velocity, count); });
}

void convert_input(const Queue& queue, const ConvertDesc& desc, const void* source, void* dst, std::uint32_t* refused) {
  pick(
      queue,
      [&] {
        if (!reference::convert_input(desc, source, floats(desc.dst_type, dst))) *refused = 1;
      },
      [&] {
        if (!cpu::convert_input(desc, source, dst)) *refused = 1;
      },
      [&] { cuda::convert_input(queue, desc, source, dst, refused); });
}

int convert_labels(Backend backend, const LabelDesc& desc, const std::uint8_t* source, std::uint8_t* dst) {
  return backend == Backend::reference ? reference::convert_labels(desc, source, dst)
                                       : cpu::convert_labels(desc, source, dst);
}

// What follows is small: the processor has one implementation of it.

void to_channels_first(const Queue& queue, DType type, const LocalShape& shape, const void* channels_last,
                       float* channels_first) {
  if (queue.backend() == Backend::cuda)
    return cuda::to_channels_first(queue, type, shape, channels_last, channels_first);
  reference::to_channels_first(type, shape, channels_last, channels_first);
}

void to_channels_last(const Queue& queue, DType type, const LocalShape& shape, const float* channels_first,
                      void* channels_last) {
  if (queue.backend() == Backend::cuda)
    return cuda::to_channels_last(queue, type, shape, channels_first, channels_last);
  reference::to_channels_last(type, shape, channels_first, channels_last);
}

void statistics_sums(const Queue& queue, const StatisticsDesc& desc, const double* moments, double* sums) {
  if (queue.backend() == Backend::cuda) return cuda::statistics_sums(queue, desc, moments, sums);
  reference::statistics_sums(desc, moments, sums);
}

void statistics_squares(const Queue& queue, const StatisticsDesc& desc, const double* moments, double* mean,
                        double* squares) {
  if (queue.backend() == Backend::cuda) return cuda::statistics_squares(queue, desc, moments, mean, squares);
  reference::statistics_squares(desc, moments, mean, squares);
}

void finish_statistics(const Queue& queue, const StatisticsDesc& desc, const double* mean, double* variance,
                       float* mean_of, float* inverse_deviation) {
  if (queue.backend() == Backend::cuda)
    return cuda::finish_statistics(queue, desc, mean, variance, mean_of, inverse_deviation);
  reference::finish_statistics(desc, mean, variance, mean_of, inverse_deviation);
}

void unbias_variance(const Queue& queue, const StatisticsDesc& desc, double* variance) {
  if (queue.backend() == Backend::cuda) return cuda::unbias_variance(queue, desc, variance);
  reference::unbias_variance(desc, variance);
}

void update_running_averages(const Queue& queue, const RunningAverages& desc, const double* averages,
                             const double* least_weight, float* running_mean, float* running_variance) {
  if (queue.backend() == Backend::cuda)
    return cuda::update_running_averages(queue, desc, averages, least_weight, running_mean, running_variance);
  reference::update_running_averages(desc, averages, least_weight, running_mean, running_variance);
}

void use_running_statistics(const Queue& queue, std::int64_t channels, double epsilon, const float* running_mean,
                            const float* running_variance, float* mean, float* inverse_deviation) {
  if (queue.backend() == Backend::cuda)
    return cuda::use_running_statistics(queue, channels, epsilon, running_mean, running_variance, mean,
                                        inverse_deviation);
  reference::use_running_statistics(channels, epsilon, running_mean, running_variance, mean, inverse_deviation);
}

void finish_norm_gradient(const Queue& queue, const NormSums& desc, const double* sums, const float* gamma,
                          const float* inverse_deviation, float* dgamma, float* dbeta, double* offset, double* pull) {
  if (queue.backend() == Backend::cuda)
    return cuda::finish_norm_gradient(queue, desc, sums, gamma, inverse_deviation, dgamma, dbeta, offset, pull);
  reference::finish_norm_gradient(desc, sums, gamma, inverse_deviation, dgamma, dbeta, offset, pull);
}

}  // namespace halograd
