#pragma once

#include "halograd/device/queue.hpp"
#include "halograd/kernels/cuda/cublaslt.hpp"
#include "halograd/kernels/cuda/dense_shapes.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace halograd::cuda {

/// Throws ResourceError naming `what` was being done, where the status says that it failed.
void check(cublasStatus_t status, const char* what);

/// One handle a GPU.
std::shared_ptr<cublasLtContext> cublas_handle(const Queue& queue);

/// A product of f32 matrices by cuBLASLt, with the algorithm that it expects to be the fastest.
class Matmul {
public:
  /// Workspace that a product may take, in bytes.
  static constexpr std::uint64_t workspace_limit = 32U << 20U;

  /// `precision`: f32 or tf32. Throws ResourceError where cuBLASLt has no algorithm.
  Matmul(const Queue& queue, const MatmulShape& shape, Precision precision);

  /// Lists the product on the queue. `bias` is read only by shapes that have one.
  void run(const float* a, const float* b, const float* bias, float* d, void* workspace);
  [[nodiscard]] std::int64_t workspace_bytes() const;
  /// "cublaslt algorithm 21".
  [[nodiscard]] std::string name() const;

private:
  struct Destroy {
    void operator()(cublasLtMatrixLayout_t layout) const { static_cast<void>(cublaslt().layout_destroy(layout)); }
    void operator()(cublasLtMatmulDesc_t operation) const { static_cast<void>(cublaslt().desc_destroy(operation)); }
  };
  using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, Destroy>;
  using Operation = std::unique_ptr<cublasLtMatmulDescOpaque_t, Destroy>;

  static Layout layout(std::int64_t rows, std::int64_t columns);
  [[nodiscard]] cublasLtMatmulHeuristicResult_t algorithm(std::uint32_t alignment);

  template <typename T>
  void set(cublasLtMatmulDescAttributes_t name, const T& value);

  Queue queue_;
  std::shared_ptr<cublasLtContext> handle_;
  bool bias_;
  Operation operation_;
  Layout a_;
  Layout b_;
  Layout d_;
  cublasLtMatmulHeuristicResult_t aligned_;    ///< for matrices that begin at multiples of 16 bytes
  cublasLtMatmulHeuristicResult_t unaligned_;  ///< of 4 bytes, as parameters may that follow others
};

}  // namespace halograd::cuda
