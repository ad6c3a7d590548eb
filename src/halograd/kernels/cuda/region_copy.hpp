#pragma once

#include "halograd/kernels/region_copy.hpp"

namespace halograd::cuda {

void copy_region(const Queue& queue, const RegionCopy& copy, const void* from, void* to);
void add_region(const Queue& queue, const RegionCopy& copy, const void* from, void* to);

}  // namespace halograd::cuda
