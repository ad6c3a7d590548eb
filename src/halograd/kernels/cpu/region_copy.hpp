#pragma once

#include "halograd/kernels/region_copy.hpp"

namespace halograd::cpu {

void copy_region(const RegionCopy& copy, const void* from, void* to);
void add_region(const RegionCopy& copy, const void* from, void* to);

}  // namespace halograd::cpu
