#pragma once

#include "halograd/core/error.hpp"
#include "halograd/core/types.hpp"

#include <dnnl.hpp>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

/// The only place that includes oneDNN. It compiles with 2.x, where operation descriptors stand between the arguments
/// and a primitive descriptor, and with 3.x, where the latter is made directly.
namespace halograd::cpu::onednn {

using Tag = dnnl::memory::format_tag;

inline const dnnl::engine& engine() {
  static const dnnl::engine instance(dnnl::engine::kind::cpu, 0);
  return instance;
}

inline dnnl::memory::desc f32(const dnnl::memory::dims& dims, Tag tag) {
  return {dims, dnnl::memory::data_type::f32, tag};
}

/// type: f32 or bf16.
inline dnnl::memory::desc values(DType type, const dnnl::memory::dims& dims, Tag tag) {
  return {dims, type == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32, tag};
}

inline dnnl::memory::desc bytes(std::size_t count) {
  return {{static_cast<dnnl::memory::dim>(count)}, dnnl::memory::data_type::u8, Tag::a};
}

/// Whether oneDNN may use these instructions here; sets are bits, and newer ones include the older.
inline bool uses(dnnl::cpu_isa instructions) {
  const auto needed = static_cast<unsigned>(instructions);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & needed) == needed;
}

/// Whether the processor multiplies bf16 numbers. Where it doesn't, oneDNN 2.6 imitates that with AVX-512, which takes
/// 2 to 3 times as long as f32, and has nothing with less.
inline bool has_bf16() {
  return uses(dnnl::cpu_isa::avx512_core_bf16);
}

/// Whether it multiplies matrices of them, 8 times as fast as f32 instead of twice.
inline bool has_amx() {
  return uses(dnnl::cpu_isa::avx512_core_amx);
}

/// Primitives borrow their scratch memory from the object that owns them, so that a run allocates nothing.
inline dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

/// 0 for just-in-time kernels, 1 for im2col with a matrix product ("x64:gemm:jit"; "brgemm" is another thing), 2 for
/// plain loops.
inline int slowness(std::string_view implementation) {
  if (implementation.find("ref") != std::string_view::npos) return 2;
  const std::size_t gemm = implementation.find("gemm");
  if (gemm == std::string_view::npos) return 0;
  return gemm >= 2 && implementation.substr(gemm - 2, 2) == "br" ? 0 : 1;
}

/// Likewise where outputs must round alike whatever their number: the batch-reduce kernels ("brgconv") cut the sum over
/// input channels into pieces that depend on the extents (seen at 128 and 256 channels), the older ones never do.
inline int slowness_of_stable(std::string_view implementation) {
  const bool batch_reduce = implementation.find("brg") != std::string_view::npos;
  return batch_reduce ? 1 : slowness(implementation);
}

/// The first implementation that oneDNN lists in the fastest class it has for these arguments, none faster than
/// `least_slowness`; `make` returns a fresh primitive descriptor.
template <int least_slowness, typename Make>
auto fastest(const Make& make, int (*slowness)(std::string_view) = slowness) {
  auto candidate = make();
  int best = 0;
  int best_slowness = std::numeric_limits<int>::max();
  for (int i = 0; i == 0 || (best_slowness > least_slowness && candidate.next_impl()); ++i) {
    const int s = slowness(candidate.impl_info_str());
    if (s >= least_slowness && s < best_slowness) {
      best = i;
      best_slowness = s;
    }
  }
  // In 3.x descriptors are handles that next_impl changes in place, hence another one instead of a kept copy.
  auto chosen = make();
  for (int i = 0; i < best; ++i) chosen.next_impl();
  return chosen;
}

template <typename Primitive>
concept HasOperationDescriptor = requires {
  typename Primitive::desc;
};

/// The fastest forward primitive; `args` as the constructor of the primitive descriptor has them in 3.x, from the
/// propagation kind on.
template <typename Primitive, typename... Args>
typename Primitive::primitive_desc forward_desc(int (*slowness)(std::string_view), const Args&... args) {
  using Desc = typename Primitive::primitive_desc;
  if constexpr (HasOperationDescriptor<Primitive>) {
    // It has to outlive the search: the primitive descriptor's iterator points to it.
    const typename Primitive::desc operation(args...);
    return fastest<0>([&] { return Desc(operation, user_scratchpad(), engine()); }, slowness);
  } else {
    return fastest<0>([&] { return Desc(engine(), args..., user_scratchpad()); }, slowness);
  }
}

template <typename Primitive, int least_slowness = 0, typename ForwardDesc, typename... Args>
typename Primitive::primitive_desc backward_desc(const ForwardDesc& hint, const Args&... args) {
  using Desc = typename Primitive::primitive_desc;
  if constexpr (HasOperationDescriptor<Primitive>) {
    const typename Primitive::desc operation(args...);
    return fastest<least_slowness>([&] { return Desc(operation, user_scratchpad(), engine(), hint); });
  } else {
    return fastest<least_slowness>([&] { return Desc(engine(), args..., hint, user_scratchpad()); });
  }
}

/// c = a · b, or c += a · b.
inline dnnl::matmul::primitive_desc matmul_desc(const dnnl::memory::desc& a, const dnnl::memory::desc& b,
                                                const dnnl::memory::desc& c, bool accumulate) {
  return [&]<typename Primitive>(const Primitive*) {
    dnnl::primitive_attr attributes = user_scratchpad();
    if (accumulate) {
      dnnl::post_ops sum;
      sum.append_sum(1);
      attributes.set_post_ops(sum);
    }
    using Desc = typename Primitive::primitive_desc;
    if constexpr (HasOperationDescriptor<Primitive>) {
      return Desc(typename Primitive::desc(a, b, c), attributes, engine());
    } else {
      return Desc(engine(), a, b, c, attributes);
    }
  }(static_cast<const dnnl::matmul*>(nullptr));
}

/// Memory of oneDNN's own, every page touched (the first touch of a page is slow and belongs to the making).
inline dnnl::memory owned(const dnnl::memory::desc& desc) {
  dnnl::memory memory(desc, engine());
  if (desc.get_size() > 0) std::memset(memory.get_data_handle(), 0, desc.get_size());
  return memory;
}

/// A primitive with its arguments. Those that belong to the caller are bound before each run.
class Call {
public:
  Call() = default;
  Call(dnnl::primitive primitive, std::unordered_map<int, dnnl::memory> arguments)
      : primitive_(std::move(primitive)), arguments_(std::move(arguments)), stream_(engine()) {}

  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(primitive_); }

  [[nodiscard]] bool takes(int argument) const { return arguments_.count(argument) > 0; }

  void bind(int argument, const void* data) {
    // oneDNN takes sources and results alike as void*; it does not write to a source.
    arguments_.at(argument).set_data_handle(const_cast<void*>(data));
  }

  void run() {
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }

private:
  dnnl::primitive primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
  dnnl::stream stream_;
};

/// A caller's buffer, bound later.
inline dnnl::memory borrowed(const dnnl::memory::desc& desc) {
  return {desc, engine(), nullptr};
}

inline Call reorder(const dnnl::memory& from, const dnnl::memory& to) {
  const dnnl::reorder::primitive_desc desc(engine(), from.get_desc(), engine(), to.get_desc(), user_scratchpad());
  std::unordered_map<int, dnnl::memory> arguments{{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
  const auto scratch = desc.scratchpad_desc();
  if (scratch.get_size() > 0) arguments.emplace(DNNL_ARG_SCRATCHPAD, owned(scratch));
  return {dnnl::reorder(desc), std::move(arguments)};
}

}  // namespace halograd::cpu::onednn
