#pragma once

#include "halograd/device/device.hpp"

namespace halograd::cuda {

class CudaDevice final : public Device::Implementation {
public:
  CudaDevice(int index, std::string model, std::string id);

  [[nodiscard]] int index() const { return index_; }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string id() const override { return id_; }
  [[nodiscard]] Queue make_queue(Priority priority) override;
  [[nodiscard]] DeviceMemory reserve(std::int64_t capacity) override;
  [[nodiscard]] DeviceMemory allocate(std::int64_t bytes) override;
  [[nodiscard]] DeviceMemory allocate_host(std::int64_t bytes) override;
  [[nodiscard]] std::int64_t available_bytes() const override;
  [[nodiscard]] std::int64_t total_bytes() const override;

private:
  int index_;
  std::string name_;
  std::string id_;
};

}  // namespace halograd::cuda
