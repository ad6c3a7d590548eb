#include "halograd/kernels/cuda/dense.hpp"

#include "halograd/core/error.hpp"
#include "halograd/kernels/cuda/bias_gradient.hpp"
#include "halograd/kernels/cuda/dense_shapes.hpp"
#include "halograd/kernels/cuda/device_buffer.hpp"
#include "halograd/kernels/cuda/matmul.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace halograd::cuda {
namespace {

class CublasDense final : public Dense {
public:
  CublasDense(const Queue& queue, const DenseDesc& desc) : queue_(queue), desc_(desc) {
    if (desc.samples == 0) return;
    forward_.emplace(queue, forward_shape(desc), desc.precision);
    if (desc.training) {
      backward_data_.emplace(queue, backward_data_shape(desc), desc.precision);
      backward_weights_.emplace(queue, backward_weights_shape(desc), desc.precision);
    }
    // The products never run at once, so they share the largest one's workspace.
    std::int64_t workspace = 0;
    for (const Matmul* product : products()) workspace = std::max(workspace, product->workspace_bytes());
    workspace_ = DeviceBuffer(workspace, "allocating a dense layer's workspace");
  }

  void forward(const float* x, const float* w, const float* b, float* y) override {
    if (forward_) forward_->run(w, x, b, y, workspace_.data());
  }

  void backward_data(const float* dy, const float* w, float* dx) override {
    if (backward_data_) backward_data_->run(w, dy, nullptr, dx, workspace_.data());
  }

  void backward_weights(const float* x, const float* dy, float* dw, float* db) override {
    if (backward_weights_) {
      backward_weights_->run(x, dy, nullptr, dw, workspace_.data());
    } else {
      queue_.clear(dw, 4 * desc_.out_features * desc_.in_features);
    }
    bias_gradient(queue_, desc_.samples, desc_.out_features, dy, db);
  }

  [[nodiscard]] std::int64_t held_bytes() const override { return workspace_.bytes(); }
  [[nodiscard]] std::vector<std::string> implementations() const override {
    std::vector<std::string> names;
    for (const Matmul* product : products()) names.push_back(product->name());
    return names;
  }

private:
  [[nodiscard]] std::vector<const Matmul*> products() const {
    std::vector<const Matmul*> made;
    for (const auto* product : {&forward_, &backward_data_, &backward_weights_}) {
      if (*product) made.push_back(&**product);
    }
    return made;
  }

  Queue queue_;
  DenseDesc desc_;
  std::optional<Matmul> forward_;
  std::optional<Matmul> backward_data_;
  std::optional<Matmul> backward_weights_;
  DeviceBuffer workspace_;
};

}  // namespace

std::unique_ptr<Dense> make_dense(const Queue& queue, const DenseDesc& desc) {
  if (desc.precision == Precision::bf16) {
    throw UsageError("a dense layer computes in f32 or tf32, not in bf16: its activations are f32");
  }
  return std::make_unique<CublasDense>(queue, desc);
}

}  // namespace halograd::cuda
