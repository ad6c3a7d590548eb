#pragma once

#include "halograd/kernels/convert.hpp"

namespace halograd::cpu {

bool convert_input(const ConvertDesc& desc, const void* source, void* dst);
int convert_labels(const LabelDesc& desc, const std::uint8_t* source, std::uint8_t* dst);

}  // namespace halograd::cpu
