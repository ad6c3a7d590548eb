#pragma once

#include "halograd/kernels/region_copy.hpp"

namespace halograd::cpu {

void copy_region(const RegionCopy& copy, const float* from, float* to);
void add_region(const RegionCopy& copy, const float* from, float* to);

}  // namespace halograd::cpu
