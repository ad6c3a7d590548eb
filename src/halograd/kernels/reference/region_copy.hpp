#pragma once

#include "halograd/kernels/region_copy.hpp"

namespace halograd::reference {

void copy_region(const RegionCopy& copy, const float* from, float* to);
void add_region(const RegionCopy& copy, const float* from, float* to);

}  // namespace halograd::reference
