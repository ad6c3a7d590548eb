#include "halograd/kernels/cuda/matmul.hpp"

#include "halograd/core/error.hpp"
#include "halograd/device/cuda/runtime.hpp"

#include <algorithm>
#include <map>
#include <mutex>

namespace halograd::cuda {
namespace {

struct DestroyPreference {
  void operator()(cublasLtMatmulPreference_t preference) const {
    static_cast<void>(cublaslt().preference_destroy(preference));
  }
};
using Preference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, DestroyPreference>;

template <typename T>
void set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t name, const T& value) {
  check(cublaslt().preference_set(preference.get(), name, &value, sizeof(value)),
        "telling cuBLASLt what algorithms may do");
}

Preference preference(std::uint32_t alignment) {
  cublasLtMatmulPreference_t made = nullptr;
  check(cublaslt().preference_create(&made), "asking cuBLASLt for an algorithm");
  Preference result(made);
  set(result, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, Matmul::workspace_limit);
  for (const auto matrix : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(result, matrix, alignment);
  }
  return result;
}

constexpr std::uint32_t wide = 16;

bool is_wide(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % wide == 0;
}

}  // namespace

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw ResourceError("{}: {} ({})", what, cublaslt().status_string(status), cublaslt().status_name(status));
}

std::shared_ptr<cublasLtContext> cublas_handle(const Queue& queue) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<cublasLtContext>> handles;
  static_cast<void>(stream_of(queue));  // its GPU is then the one that the handle is for
  const std::lock_guard lock(mutex);
  std::weak_ptr<cublasLtContext>& known = handles[device_of(queue)];
  if (auto handle = known.lock()) return handle;
  cublasLtHandle_t made = nullptr;
  check(cublaslt().create(&made), "starting cuBLASLt");
  std::shared_ptr<cublasLtContext> handle(made,
                                          [](cublasLtHandle_t old) { static_cast<void>(cublaslt().destroy(old)); });
  known = handle;
  return handle;
}

Matmul::Layout Matmul::layout(std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublaslt().layout_create(&made, CUDA_R_32F, static_cast<std::uint64_t>(rows),
                                 static_cast<std::uint64_t>(columns), rows),
        "describing a matrix to cuBLASLt");
  return Layout(made);
}

template <typename T>
void Matmul::set(cublasLtMatmulDescAttributes_t name, const T& value) {
  check(cublaslt().desc_set(operation_.get(), name, &value, sizeof(value)),
        "describing a product of matrices to cuBLASLt");
}

Matmul::Matmul(const Queue& queue, const MatmulShape& shape, Precision precision)
    : queue_(queue),
      handle_(cublas_handle(queue)),
      bias_(shape.bias),
      a_(layout(shape.a_rows(), shape.a_columns())),
      b_(layout(shape.b_rows(), shape.b_columns())),
      d_(layout(shape.rows, shape.columns)) {
  cublasLtMatmulDesc_t made = nullptr;
  const cublasComputeType_t compute = precision == Precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  check(cublaslt().desc_create(&made, compute, CUDA_R_32F), "describing a product of matrices to cuBLASLt");
  operation_.reset(made);
  const auto op = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(CUBLASLT_MATMUL_DESC_TRANSA, op(shape.transpose_a));
  set(CUBLASLT_MATMUL_DESC_TRANSB, op(shape.transpose_b));
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, shape.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT);
  aligned_ = algorithm(wide);
  unaligned_ = algorithm(sizeof(float));
}

cublasLtMatmulHeuristicResult_t Matmul::algorithm(std::uint32_t alignment) {
  if (bias_) {
    // The algorithm is chosen by the alignment of an address that is not read.
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<const void*>(static_cast<std::uintptr_t>(alignment)));
  }
  cublasLtMatmulHeuristicResult_t result{};
  int count = 0;
  check(cublaslt().heuristic(handle_.get(), operation_.get(), a_.get(), b_.get(), d_.get(), d_.get(),
                             preference(alignment).get(), 1, &result, &count),
        "asking cuBLASLt for an algorithm");
  if (count == 0) throw ResourceError("cuBLASLt has no algorithm for a dense layer");
  check(result.state, "asking cuBLASLt for an algorithm");
  return result;
}

void Matmul::run(const float* a, const float* b, const float* bias, float* d, void* workspace) {
  const bool all_wide = is_wide(a) && is_wide(b) && is_wide(d) && (!bias_ || is_wide(bias));
  const cublasLtMatmulHeuristicResult_t& chosen = all_wide ? aligned_ : unaligned_;
  if (bias_) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(bias));
  const float one = 1;
  const float zero = 0;
  check(cublaslt().matmul(handle_.get(), operation_.get(), &one, a, a_.get(), b, b_.get(), &zero, d, d_.get(), d,
                          d_.get(), &chosen.algo, workspace, chosen.workspaceSize, stream_of(queue_)),
        "running a dense layer");
}

std::int64_t Matmul::workspace_bytes() const {
  return static_cast<std::int64_t>(std::max(aligned_.workspaceSize, unaligned_.workspaceSize));
}

std::string Matmul::name() const {
  std::int32_t id = -1;
  check(cublaslt().algorithm_get(&aligned_.algo, CUBLASLT_ALGO_CONFIG_ID, &id, sizeof(id), nullptr),
        "asking cuBLASLt for an algorithm's number");
  return fmt::format("cublaslt algorithm {}", id);
}

}  // namespace halograd::cuda
