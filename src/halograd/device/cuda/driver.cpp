#include "halograd/device/cuda/driver.hpp"

#include <cuda_runtime_api.h>

#include <optional>

namespace halograd::cuda {
namespace {

// `version`: the CUDA version since which the call has been as its type says.
template <typename Call>
bool find(const char* name, unsigned int version, Call& call) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  if (cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &result) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  if (result != cudaDriverEntryPointSuccess) return false;
  call = reinterpret_cast<Call>(found);
  return true;
}

std::optional<DriverCalls> find_all() {
  DriverCalls calls;
  const bool all = find("cuGetErrorString", 6000, calls.error_string) &&
                   find("cuDeviceGetAttribute", 2000, calls.device_attribute) &&
                   find("cuMemGetAllocationGranularity", 10020, calls.granularity) &&
                   find("cuMemAddressReserve", 10020, calls.address_reserve) &&
                   find("cuMemAddressFree", 10020, calls.address_free) && find("cuMemCreate", 10020, calls.create) &&
                   find("cuMemRelease", 10020, calls.release) && find("cuMemMap", 10020, calls.map) &&
                   find("cuMemUnmap", 10020, calls.unmap) && find("cuMemSetAccess", 10020, calls.set_access);
  return all ? std::optional(calls) : std::nullopt;
}

}  // namespace

const DriverCalls* driver_calls() {
  static const std::optional<DriverCalls> calls = find_all();
  return calls ? &*calls : nullptr;
}

const char* driver_message(CUresult status) {
  const char* message = nullptr;
  if (const DriverCalls* calls = driver_calls()) calls->error_string(status, &message);
  return message != nullptr ? message : "unknown error of the driver";
}

bool has_virtual_memory(int device) {
  const DriverCalls* calls = driver_calls();
  int has = 0;
  return calls != nullptr &&
         calls->device_attribute(&has, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device) ==
             CUDA_SUCCESS &&
         has != 0;
}

}  // namespace halograd::cuda
