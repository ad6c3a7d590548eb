#pragma once

#include "halograd/kernels/convert.hpp"

namespace halograd::cuda {

void convert_input(const Queue& queue, const ConvertDesc& desc, const void* source, void* dst, std::uint32_t* refused);

}  // namespace halograd::cuda
