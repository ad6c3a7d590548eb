#pragma once

#include "halograd/kernels/cpu/line_vector.hpp"
#include "halograd/kernels/cpu/onednn.hpp"

#include <omp.h>

#include <cstdint>
#include <unordered_map>
#include <utility>

namespace halograd::cpu {

/// c = a · b, or c += a · b, run by the calling thread alone whatever else runs, with the matrices bound before.
class LoneProduct {
public:
  LoneProduct(const dnnl::memory::desc& a, const dnnl::memory::desc& b, const dnnl::memory::desc& c, bool accumulate) {
    // oneDNN splits a product when it is made, over the threads that a parallel region would have then.
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    try {
      make(a, b, c, accumulate);
    } catch (...) {
      omp_set_num_threads(threads);
      throw;
    }
    omp_set_num_threads(threads);
  }

  void run(const float* a, const float* b, float* c) {
    call_.bind(DNNL_ARG_SRC, a);
    call_.bind(DNNL_ARG_WEIGHTS, b);
    call_.bind(DNNL_ARG_DST, c);
    call_.run();
  }

  [[nodiscard]] std::int64_t held_bytes() const { return held_bytes_; }

private:
  void make(const dnnl::memory::desc& a, const dnnl::memory::desc& b, const dnnl::memory::desc& c, bool accumulate) {
    const auto desc = onednn::matmul_desc(a, b, c, accumulate);
    std::unordered_map<int, dnnl::memory> arguments{{DNNL_ARG_SRC, onednn::borrowed(a)},
                                                    {DNNL_ARG_WEIGHTS, onednn::borrowed(b)},
                                                    {DNNL_ARG_DST, onednn::borrowed(c)}};
    if (desc.scratchpad_desc().get_size() > 0) {
      arguments.emplace(DNNL_ARG_SCRATCHPAD, onednn::owned(desc.scratchpad_desc()));
      held_bytes_ = static_cast<std::int64_t>(desc.scratchpad_desc().get_size());
    }
    call_ = onednn::Call(dnnl::matmul(desc), std::move(arguments));
  }

  onednn::Call call_;
  std::int64_t held_bytes_ = 0;
};

}  // namespace halograd::cpu
