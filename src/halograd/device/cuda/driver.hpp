#pragma once

#include <cudaTypedefs.h>

namespace halograd::cuda {

/// The driver's calls for memory whose addresses and pages are had apart. Found while the program runs, so that it
/// starts on machines without a driver.
struct DriverCalls {
  PFN_cuGetErrorString_v6000 error_string = nullptr;
  PFN_cuDeviceGetAttribute_v2000 device_attribute = nullptr;
  PFN_cuMemGetAllocationGranularity_v10020 granularity = nullptr;
  PFN_cuMemAddressReserve_v10020 address_reserve = nullptr;
  PFN_cuMemAddressFree_v10020 address_free = nullptr;
  PFN_cuMemCreate_v10020 create = nullptr;
  PFN_cuMemRelease_v10020 release = nullptr;
  PFN_cuMemMap_v10020 map = nullptr;
  PFN_cuMemUnmap_v10020 unmap = nullptr;
  PFN_cuMemSetAccess_v10020 set_access = nullptr;
};

/// Null where the driver lacks one of them.
const DriverCalls* driver_calls();

/// What the driver says about a failure.
const char* driver_message(CUresult status);

/// Whether a GPU has memory whose addresses and pages are had apart.
bool has_virtual_memory(int device);

}  // namespace halograd::cuda
