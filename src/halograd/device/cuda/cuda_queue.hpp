#pragma once

#include "halograd/device/device.hpp"

#include <cuda_runtime_api.h>

namespace halograd::cuda {

/// A stream that no other waits for unless told to.
class CudaQueue final : public Queue::Implementation {
public:
  CudaQueue(int device, Priority priority);
  ~CudaQueue() override;
  CudaQueue(const CudaQueue&) = delete;
  CudaQueue& operator=(const CudaQueue&) = delete;

  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  [[nodiscard]] int device() const { return device_; }

  void copy(const void* from, void* to, std::int64_t bytes) override;
  void clear(void* to, std::int64_t bytes) override;
  Event make_event() override;
  void record(const Event& event) override;
  void wait(const Event& event) override;
  void synchronize() override;
  void label(std::string_view what) override;
  [[nodiscard]] bool can_record() const override { return true; }
  void begin_recording() override;
  Graph end_recording() override;
  void launch(const Graph& graph) override;

private:
  int device_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace halograd::cuda
