#include "halograd/device/cuda/cuda_memory.hpp"

#include "halograd/core/error.hpp"
#include "halograd/core/system.hpp"
#include "halograd/device/cuda/driver.hpp"
#include "halograd/device/cuda/runtime.hpp"

#include <bit>
#include <cstring>
#include <vector>

namespace halograd::cuda {
namespace {

std::string readable(std::int64_t bytes) {
  return format_bytes(static_cast<double>(bytes));
}

std::string free_and_total() {
  std::size_t available = 0;
  std::size_t total = 0;
  if (cudaMemGetInfo(&available, &total) != cudaSuccess) return "an unknown part";
  return fmt::format("{} of {}", readable(static_cast<std::int64_t>(available)),
                     readable(static_cast<std::int64_t>(total)));
}

[[noreturn]] void throw_no_room(const std::string& device_name, std::int64_t bytes, const char* reason) {
  throw ResourceError("{} has no room for {} more: {} is free ({})", device_name, readable(bytes), free_and_total(),
                      reason);
}

// Not in any queue's order: returns when the memory is zero.
void clear_now(void* data, std::int64_t bytes) {
  check(cudaMemset(data, 0, static_cast<std::size_t>(bytes)), "clearing new memory");
  check(cudaStreamSynchronize(nullptr), "clearing new memory");
}

/// Of cudaMalloc: all there from the start.
class WholeMemory final : public DeviceMemory::Implementation {
public:
  WholeMemory(int device, const std::string& device_name, std::int64_t bytes) : device_(device), bytes_(bytes) {
    if (bytes == 0) return;
    make_current(device_);
    void* data = nullptr;
    const cudaError_t status = cudaMalloc(&data, static_cast<std::size_t>(bytes));
    if (status != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      throw_no_room(device_name, bytes, cudaGetErrorString(status));
    }
    data_ = static_cast<std::byte*>(data);
    clear_now(data_, bytes_);
  }
  ~WholeMemory() override {
    if (data_ == nullptr) return;
    cudaSetDevice(device_);
    cudaFree(data_);
  }
  WholeMemory(const WholeMemory&) = delete;
  WholeMemory& operator=(const WholeMemory&) = delete;

  [[nodiscard]] std::byte* data() const override { return data_; }
  [[nodiscard]] std::int64_t capacity() const override { return bytes_; }
  void commit(std::int64_t bytes) override {
    if (bytes > bytes_) throw UsageError("{} of {} reserved are wanted", readable(bytes), readable(bytes_));
  }

private:
  int device_;
  std::int64_t bytes_;
  std::byte* data_ = nullptr;
};

/// Addresses first, memory as it is committed.
class GrowingMemory final : public DeviceMemory::Implementation {
public:
  GrowingMemory(int device, std::string device_name, std::int64_t capacity);
  ~GrowingMemory() override;
  GrowingMemory(const GrowingMemory&) = delete;
  GrowingMemory& operator=(const GrowingMemory&) = delete;

  [[nodiscard]] std::byte* data() const override { return std::bit_cast<std::byte*>(base_); }
  [[nodiscard]] std::int64_t capacity() const override { return capacity_; }
  void commit(std::int64_t bytes) override;

private:
  struct Chunk {
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;
    std::size_t bytes;
  };

  [[nodiscard]] std::size_t rounded(std::int64_t bytes) const {
    return (static_cast<std::size_t>(bytes) + granularity_ - 1) / granularity_ * granularity_;
  }
  void check_driver(CUresult status, const char* what) const {
    if (status != CUDA_SUCCESS) throw ResourceError("{}: {}: {}", device_name_, what, driver_message(status));
  }
  void map(const Chunk& chunk);

  const DriverCalls& driver_ = *driver_calls();
  int device_;
  std::string device_name_;
  std::int64_t capacity_;
  CUmemAllocationProp properties_{};
  std::size_t granularity_ = 0;
  CUdeviceptr base_ = 0;
  std::size_t committed_ = 0;
  std::vector<Chunk> chunks_;
};

GrowingMemory::GrowingMemory(int device, std::string device_name, std::int64_t capacity)
    : device_(device), device_name_(std::move(device_name)), capacity_(capacity) {
  make_current(device_);
  properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties_.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device_};
  check_driver(driver_.granularity(&granularity_, &properties_, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
               "asking for the size of its pages");
  check_driver(driver_.address_reserve(&base_, rounded(capacity_), 0, 0, 0), "reserving addresses");
}

GrowingMemory::~GrowingMemory() {
  cudaSetDevice(device_);
  // Unlike cudaFree, unmapping does not wait for work that uses the memory.
  cudaDeviceSynchronize();
  for (const Chunk& chunk : chunks_) {
    driver_.unmap(chunk.at, chunk.bytes);
    driver_.release(chunk.handle);
  }
  driver_.address_free(base_, rounded(capacity_));
}

void GrowingMemory::commit(std::int64_t bytes) {
  if (bytes > capacity_) throw UsageError("{} of {} reserved are wanted", readable(bytes), readable(capacity_));
  const std::size_t wanted = rounded(bytes);
  if (wanted <= committed_) return;
  make_current(device_);
  Chunk chunk{.handle = 0, .at = base_ + committed_, .bytes = wanted - committed_};
  const auto size = static_cast<std::int64_t>(chunk.bytes);
  const CUresult status = driver_.create(&chunk.handle, chunk.bytes, &properties_, 0);
  if (status != CUDA_SUCCESS) throw_no_room(device_name_, size, driver_message(status));
  map(chunk);
  clear_now(std::bit_cast<void*>(chunk.at), size);
  committed_ = wanted;
}

// Takes the chunk over, whatever happens.
void GrowingMemory::map(const Chunk& chunk) {
  if (const CUresult status = driver_.map(chunk.at, chunk.bytes, 0, chunk.handle, 0); status != CUDA_SUCCESS) {
    driver_.release(chunk.handle);
    check_driver(status, "giving memory its addresses");
  }
  chunks_.push_back(chunk);
  const CUmemAccessDesc access{.location = properties_.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  check_driver(driver_.set_access(chunk.at, chunk.bytes, &access, 1), "opening memory for use");
}

class PinnedMemory final : public DeviceMemory::Implementation {
public:
  PinnedMemory(int device, std::int64_t bytes) : device_(device), bytes_(bytes) {
    if (bytes == 0) return;
    make_current(device_);
    void* data = nullptr;
    const cudaError_t status = cudaHostAlloc(&data, static_cast<std::size_t>(bytes), cudaHostAllocPortable);
    if (status != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      throw ResourceError("no room for {} of pinned host memory: {} ({} of the host's is available)", readable(bytes),
                          cudaGetErrorString(status), readable(available_memory_bytes()));
    }
    data_ = static_cast<std::byte*>(data);
    std::memset(data_, 0, static_cast<std::size_t>(bytes));
  }
  ~PinnedMemory() override {
    if (data_ == nullptr) return;
    cudaSetDevice(device_);
    cudaFreeHost(data_);
  }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  [[nodiscard]] std::byte* data() const override { return data_; }
  [[nodiscard]] std::int64_t capacity() const override { return bytes_; }
  void commit(std::int64_t bytes) override {
    if (bytes > bytes_) throw UsageError("{} of {} pinned are wanted", readable(bytes), readable(bytes_));
  }

private:
  int device_;
  std::int64_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace

DeviceMemory reserve_memory(int device, const std::string& device_name, std::int64_t capacity) {
  if (capacity == 0 || !has_virtual_memory(device)) return allocate_memory(device, device_name, capacity);
  return DeviceMemory(std::make_shared<GrowingMemory>(device, device_name, capacity));
}

DeviceMemory allocate_memory(int device, const std::string& device_name, std::int64_t bytes) {
  return DeviceMemory(std::make_shared<WholeMemory>(device, device_name, bytes));
}

DeviceMemory allocate_pinned(int device, std::int64_t bytes) {
  return DeviceMemory(std::make_shared<PinnedMemory>(device, bytes));
}

}  // namespace halograd::cuda
