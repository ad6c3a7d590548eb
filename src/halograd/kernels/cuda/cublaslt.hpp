#pragma once

#include <cublasLt.h>

namespace halograd::cuda {

/// Those functions of cuBLASLt that are used. Its library is not linked but loaded when they are first asked for: that
/// takes 50 ms, more than all else of the program's start, and who computes on the processor needs none of it.
struct CublasLt {
  decltype(&cublasLtGetVersion) get_version;
  decltype(&cublasLtGetStatusName) status_name;
  decltype(&cublasLtGetStatusString) status_string;
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtMatrixLayoutCreate) layout_create;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&cublasLtMatmulDescCreate) desc_create;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtMatmulAlgoConfigGetAttribute) algorithm_get;
  decltype(&cublasLtMatmul) matmul;
};

/// Any thread may call it. Throws ResourceError, one line, where the library can't be loaded.
const CublasLt& cublaslt();

}  // namespace halograd::cuda
