#include "halograd/kernels/cuda/cublaslt.hpp"

#include "halograd/core/error.hpp"

#include <dlfcn.h>

namespace halograd::cuda {
namespace {

/// As the program's own search finds it, else where it was when the program was built. Never unloaded.
void* load_library() {
  void* library = dlopen(HALOGRAD_CUBLASLT_NAME, RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  const std::string why = dlerror();
  library = dlopen(HALOGRAD_CUBLASLT_FILE, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw ResourceError("cuBLASLt can't be loaded: {}", why);
  return library;
}

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw ResourceError("{} lacks {}", HALOGRAD_CUBLASLT_NAME, name);
}

CublasLt load() {
  void* const library = load_library();
  CublasLt found{};
  find(library, "cublasLtGetVersion", found.get_version);
  find(library, "cublasLtGetStatusName", found.status_name);
  find(library, "cublasLtGetStatusString", found.status_string);
  find(library, "cublasLtCreate", found.create);
  find(library, "cublasLtDestroy", found.destroy);
  find(library, "cublasLtMatrixLayoutCreate", found.layout_create);
  find(library, "cublasLtMatrixLayoutDestroy", found.layout_destroy);
  find(library, "cublasLtMatmulDescCreate", found.desc_create);
  find(library, "cublasLtMatmulDescDestroy", found.desc_destroy);
  find(library, "cublasLtMatmulDescSetAttribute", found.desc_set);
  find(library, "cublasLtMatmulPreferenceCreate", found.preference_create);
  find(library, "cublasLtMatmulPreferenceDestroy", found.preference_destroy);
  find(library, "cublasLtMatmulPreferenceSetAttribute", found.preference_set);
  find(library, "cublasLtMatmulAlgoGetHeuristic", found.heuristic);
  find(library, "cublasLtMatmulAlgoConfigGetAttribute", found.algorithm_get);
  find(library, "cublasLtMatmul", found.matmul);
  return found;
}

}  // namespace

const CublasLt& cublaslt() {
  static const CublasLt functions = load();
  return functions;
}

}  // namespace halograd::cuda
