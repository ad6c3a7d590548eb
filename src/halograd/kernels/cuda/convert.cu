#include "halograd/kernels/cuda/convert.hpp"
#include "halograd/kernels/cuda/convert_element.hpp"
#include "halograd/kernels/cuda/launch.cuh"

namespace halograd::cuda {

void convert_input(const Queue& queue, const ConvertDesc& desc, const void* source, void* dst, std::uint32_t* refused) {
  with_source_type(desc.dtype, [&]<typename Source>(Source) {
    with_activation_type(desc.dst_type, [&]<typename T>(T) {
      convert_units(
          desc, static_cast<const Source*>(source), static_cast<T*>(dst), refused,
          [&](const auto& body, std::int64_t items) { for_each_item(queue, "converting input", body, items); });
    });
  });
}

}  // namespace halograd::cuda
