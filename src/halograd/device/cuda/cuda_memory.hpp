#pragma once

#include "halograd/device/device.hpp"

#include <string>

namespace halograd::cuda {

/// Address space of a GPU, into which commit() puts memory behind what is there.
DeviceMemory reserve_memory(int device, const std::string& device_name, std::int64_t capacity);
/// Memory of a GPU at once.
DeviceMemory allocate_memory(int device, const std::string& device_name, std::int64_t bytes);
/// Host memory that stays where it is, so that GPUs copy from and to it by themselves.
DeviceMemory allocate_pinned(int device, std::int64_t bytes);

}  // namespace halograd::cuda
