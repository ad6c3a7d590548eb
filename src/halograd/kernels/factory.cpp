#include "halograd/kernels/cpu/chain.hpp"
#include "halograd/kernels/cpu/conv3d.hpp"
#include "halograd/kernels/cpu/convert.hpp"
#include "halograd/kernels/cpu/dense.hpp"
#include "halograd/kernels/cpu/loss.hpp"
#include "halograd/kernels/cpu/optimizer.hpp"
#include "halograd/kernels/cpu/region_copy.hpp"
#include "halograd/kernels/cpu/segmentation_loss.hpp"
#include "halograd/kernels/cpu/upsample.hpp"
#include "halograd/kernels/reference/chain.hpp"
#include "halograd/kernels/reference/conv3d.hpp"
#include "halograd/kernels/reference/convert.hpp"
#include "halograd/kernels/reference/dense.hpp"
#include "halograd/kernels/reference/loss.hpp"
#include "halograd/kernels/reference/optimizer.hpp"
#include "halograd/kernels/reference/region_copy.hpp"
#include "halograd/kernels/reference/segmentation_loss.hpp"
#include "halograd/kernels/reference/upsample.hpp"

// The one place that knows which backends there are: each operation goes to the function of the same name in the
// backend's namespace.
namespace halograd {

const char* backend_name(Backend backend) {
  return backend == Backend::reference ? "reference" : "cpu";
}

std::unique_ptr<Conv3d> make_conv3d(Backend backend, const Conv3dDesc& desc) {
  return backend == Backend::reference ? reference::make_conv3d(desc) : cpu::make_conv3d(desc);
}

std::unique_ptr<Dense> make_dense(Backend backend, const DenseDesc& desc) {
  return backend == Backend::reference ? reference::make_dense(desc) : cpu::make_dense(desc);
}

std::unique_ptr<Chain> make_chain(Backend backend, const ChainDesc& desc) {
  return backend == Backend::reference ? reference::make_chain(desc) : cpu::make_chain(desc);
}

void copy_region(Backend backend, const RegionCopy& copy, const float* from, float* to) {
  backend == Backend::reference ? reference::copy_region(copy, from, to) : cpu::copy_region(copy, from, to);
}

void add_region(Backend backend, const RegionCopy& copy, const float* from, float* to) {
  backend == Backend::reference ? reference::add_region(copy, from, to) : cpu::add_region(copy, from, to);
}

void upsample(Backend backend, const UpsampleDesc& desc, const float* x, float* y) {
  backend == Backend::reference ? reference::upsample(desc, x, y) : cpu::upsample(desc, x, y);
}

void upsample_backward(Backend backend, const UpsampleDesc& desc, const float* dy, float* dx) {
  backend == Backend::reference ? reference::upsample_backward(desc, dy, dx) : cpu::upsample_backward(desc, dy, dx);
}

double squared_error(Backend backend, const float* prediction, const float* target, std::int64_t count) {
  return backend == Backend::reference ? reference::squared_error(prediction, target, count)
                                       : cpu::squared_error(prediction, target, count);
}

void squared_error_gradient(Backend backend, const float* prediction, const float* target, float scale,
                            std::int64_t count, float* dprediction) {
  backend == Backend::reference ? reference::squared_error_gradient(prediction, target, scale, count, dprediction)
                                : cpu::squared_error_gradient(prediction, target, scale, count, dprediction);
}

void segmentation_sums(Backend backend, const SegmentationLossDesc& desc, const float* logits,
                       const std::uint8_t* labels, double* sums) {
  backend == Backend::reference ? reference::segmentation_sums(desc, logits, labels, sums)
                                : cpu::segmentation_sums(desc, logits, labels, sums);
}

void segmentation_gradient(Backend backend, const SegmentationLossDesc& desc, const float* logits,
                           const std::uint8_t* labels, double cross_entropy_scale, std::span<const double> dice,
                           float* dlogits) {
  backend == Backend::reference
      ? reference::segmentation_gradient(desc, logits, labels, cross_entropy_scale, dice, dlogits)
      : cpu::segmentation_gradient(desc, logits, labels, cross_entropy_scale, dice, dlogits);
}

void adam_update(Backend backend, const AdamStep& adam, const float* g, float* w, float* m, float* v,
                 std::int64_t count) {
  backend == Backend::reference ? reference::adam_update(adam, g, w, m, v, count)
                                : cpu::adam_update(adam, g, w, m, v, count);
}

void sgd_update(Backend backend, const SgdStep& sgd, const float* g, float* w, float* velocity, std::int64_t count) {
  backend == Backend::reference ? reference::sgd_update(sgd, g, w, velocity, count)
                                : cpu::sgd_update(sgd, g, w, velocity, count);
}

bool convert_input(Backend backend, const ConvertDesc& desc, const void* source, float* dst) {
  return backend == Backend::reference ? reference::convert_input(desc, source, dst)
                                       : cpu::convert_input(desc, source, dst);
}

int convert_labels(Backend backend, const LabelDesc& desc, const std::uint8_t* source, std::uint8_t* dst) {
  return backend == Backend::reference ? reference::convert_labels(desc, source, dst)
                                       : cpu::convert_labels(desc, source, dst);
}

}  // namespace halograd
