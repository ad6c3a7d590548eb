#pragma once

#include "halograd/device/queue.hpp"

#include <cudnn.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace halograd::cuda {

static_assert(CUDNN_VERSION >= 90800, "cuDNN 9.8 is the first to make plans for a GPU that is only described");

/// Throws ResourceError naming `what` was being done and what the library says of it, where the status says that it
/// failed.
void check(cudnnStatus_t status, const char* what);

/// A descriptor of cuDNN's graph interface: attributes are set, then it is made final; others keep what they need of
/// it.
class CudnnDescriptor {
public:
  CudnnDescriptor() = default;
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type);

  [[nodiscard]] cudnnBackendDescriptor_t get() const { return descriptor_.get(); }

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count, const void* values);
  /// False where the library won't have it.
  [[nodiscard]] bool try_set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                             const void* values);
  void set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
    set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t name, std::int64_t value) { set(name, CUDNN_TYPE_INT64, 1, &value); }
  void set(cudnnBackendAttributeName_t name, float value) { set(name, CUDNN_TYPE_FLOAT, 1, &value); }
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t value) { set(name, CUDNN_TYPE_DATA_TYPE, 1, &value); }
  void set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
    const cudnnBackendDescriptor_t descriptor = value.get();
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &descriptor);
  }

  /// `what`: see check().
  void finish(const char* what);
  /// False where the library can't.
  [[nodiscard]] bool try_finish();

  [[nodiscard]] std::int64_t integer(cudnnBackendAttributeName_t name) const;
  /// How many there are; writes up to the size of `values`.
  std::int64_t read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t size,
                    void* values) const;
  /// Up to `most` descriptors of `type`.
  [[nodiscard]] std::vector<CudnnDescriptor> descriptors(cudnnBackendAttributeName_t name,
                                                         cudnnBackendDescriptorType_t type, std::int64_t most) const;

private:
  struct Destroy {
    void operator()(void* descriptor) const { static_cast<void>(cudnnBackendDestroyDescriptor(descriptor)); }
  };
  std::unique_ptr<void, Destroy> descriptor_;
};

/// Where convolutions are to run: on a queue of a GPU; or nowhere, for a GPU that is only described, as tests do.
class CudnnTarget {
public:
  explicit CudnnTarget(const Queue& queue);
  /// A GPU in the words of cuDNN's own JSON, for which plans can be made but not run.
  static CudnnTarget described(const std::string& json);

  /// Null for a described one.
  [[nodiscard]] cudnnHandle_t handle() const { return handle_.get(); }
  /// Empty but for a described one.
  [[nodiscard]] const CudnnDescriptor& description() const { return *description_; }
  [[nodiscard]] bool is_described() const { return description_->get() != nullptr; }

private:
  CudnnTarget() = default;
  std::shared_ptr<cudnnContext> handle_;
  std::shared_ptr<const CudnnDescriptor> description_ = std::make_shared<CudnnDescriptor>();
};

}  // namespace halograd::cuda
