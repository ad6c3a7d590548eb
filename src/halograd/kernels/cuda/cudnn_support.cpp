#include "halograd/kernels/cuda/cudnn_support.hpp"

#include "halograd/core/error.hpp"
#include "halograd/device/cuda/runtime.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <utility>

namespace halograd::cuda {
namespace {

/// The library's last words, on one line.
std::string last_message() {
  std::array<char, 1024> buffer{};
  cudnnGetLastErrorString(buffer.data(), buffer.size());
  std::string text(buffer.data());
  std::ranges::replace(text, '\n', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

/// One handle a GPU and stream: a handle has work of its own to set up, and keeps memory.
std::shared_ptr<cudnnContext> handle_for(const Queue& queue) {
  static std::mutex mutex;
  static std::map<std::pair<int, cudaStream_t>, std::weak_ptr<cudnnContext>> handles;
  const cudaStream_t stream = stream_of(queue);
  const std::lock_guard lock(mutex);
  std::weak_ptr<cudnnContext>& known = handles[{device_of(queue), stream}];
  if (auto handle = known.lock()) return handle;
  cudnnHandle_t made = nullptr;
  check(cudnnCreate(&made), "starting cuDNN");
  std::shared_ptr<cudnnContext> handle(made, [](cudnnHandle_t old) { static_cast<void>(cudnnDestroy(old)); });
  check(cudnnSetStream(made, stream), "giving cuDNN a stream");
  known = handle;
  return handle;
}

}  // namespace

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  const std::string message = last_message();
  throw ResourceError("{}: {}{}{}{}", what, cudnnGetErrorString(status), message.empty() ? "" : " (", message,
                      message.empty() ? "" : ")");
}

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t made = nullptr;
  check(cudnnBackendCreateDescriptor(type, &made), "making a cuDNN descriptor");
  descriptor_.reset(made);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                          const void* values) {
  check(cudnnBackendSetAttribute(get(), name, type, count, values), "setting an attribute of a cuDNN descriptor");
}

bool CudnnDescriptor::try_set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                              const void* values) {
  return cudnnBackendSetAttribute(get(), name, type, count, values) == CUDNN_STATUS_SUCCESS;
}

void CudnnDescriptor::finish(const char* what) {
  check(cudnnBackendFinalize(get()), what);
}

bool CudnnDescriptor::try_finish() {
  return cudnnBackendFinalize(get()) == CUDNN_STATUS_SUCCESS;
}

std::int64_t CudnnDescriptor::integer(cudnnBackendAttributeName_t name) const {
  std::int64_t value = 0;
  read(name, CUDNN_TYPE_INT64, 1, &value);
  return value;
}

std::int64_t CudnnDescriptor::read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                   std::int64_t size, void* values) const {
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(get(), name, type, size, &count, values), "reading a cuDNN descriptor");
  return count;
}

std::vector<CudnnDescriptor> CudnnDescriptor::descriptors(cudnnBackendAttributeName_t name,
                                                          cudnnBackendDescriptorType_t type, std::int64_t most) const {
  // The library fills in descriptors that the caller made.
  std::vector<CudnnDescriptor> result;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < most; ++i) raw.push_back(result.emplace_back(type).get());
  const std::int64_t count = read(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, raw.data());
  result.resize(static_cast<std::size_t>(std::min(count, most)));
  return result;
}

CudnnTarget::CudnnTarget(const Queue& queue) : handle_(handle_for(queue)) {}

CudnnTarget CudnnTarget::described(const std::string& json) {
  CudnnDescriptor description(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  description.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, static_cast<std::int64_t>(json.size()),
                  json.data());
  description.finish("reading the description of a GPU");
  CudnnTarget target;
  target.description_ = std::make_shared<const CudnnDescriptor>(std::move(description));
  return target;
}

}  // namespace halograd::cuda
