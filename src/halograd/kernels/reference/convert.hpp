#pragma once

#include "halograd/kernels/convert.hpp"

namespace halograd::reference {

bool convert_input(const ConvertDesc& desc, const void* source, float* dst);

}  // namespace halograd::reference
