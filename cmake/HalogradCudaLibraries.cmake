# The CUDA toolkit, cuDNN and NCCL: the targets CUDA::cudart_static, CUDA::cublasLt, halograd::cudnn and halograd::nccl.
# HALOGRAD_CUDA_MISSING lists, in words, what was not found. The installed package configuration includes this file too.
# CUDAToolkit_ROOT, CUDNN_ROOT and NCCL_ROOT (CMake or environment variables) say where to look first.
set(HALOGRAD_CUDA_MISSING "")

# FindCUDAToolkit looks on PATH and in /usr/local/cuda. CUDA 12 is the first with C++20.
find_package(CUDAToolkit 12.5 QUIET)
if(NOT CUDAToolkit_FOUND OR NOT CUDAToolkit_NVCC_EXECUTABLE)
  list(APPEND HALOGRAD_CUDA_MISSING "the CUDA toolkit, 12.5 or later (nvcc, or set CUDAToolkit_ROOT)")
endif()
foreach(name cudart_static cublasLt)
  if(CUDAToolkit_FOUND AND NOT TARGET CUDA::${name})
    list(APPEND HALOGRAD_CUDA_MISSING "the CUDA toolkit's lib${name}")
  endif()
endforeach()

# halograd_find_vendor_library(<name> <header> <version suffix of the library> <words for messages>)
function(halograd_find_vendor_library name header suffix words)
  string(TOUPPER ${name} upper)
  set(hints ${${upper}_ROOT} $ENV{${upper}_ROOT} ${CUDAToolkit_INCLUDE_DIRS} ${CUDAToolkit_LIBRARY_DIR})
  find_path(HALOGRAD_${upper}_INCLUDE ${header} HINTS ${hints} PATH_SUFFIXES include)
  # Python packages hold the versioned file alone, without the link that the linker looks for.
  find_library(HALOGRAD_${upper}_LIBRARY NAMES ${name} lib${name}.so.${suffix} NAMES_PER_DIR HINTS ${hints}
               PATH_SUFFIXES lib lib64)
  mark_as_advanced(HALOGRAD_${upper}_INCLUDE HALOGRAD_${upper}_LIBRARY)
  set(missing ${HALOGRAD_CUDA_MISSING})
  if(NOT HALOGRAD_${upper}_INCLUDE)
    list(APPEND missing "${words} (${header}, or set ${upper}_ROOT)")
  endif()
  if(NOT HALOGRAD_${upper}_LIBRARY)
    list(APPEND missing "${words} (lib${name}, or set ${upper}_ROOT)")
  endif()
  if(HALOGRAD_${upper}_INCLUDE)
    file(STRINGS ${HALOGRAD_${upper}_INCLUDE}/${header} major REGEX "#define ${upper}_MAJOR ")
    if(NOT major MATCHES " ${suffix}$")
      list(APPEND missing "${words} (${HALOGRAD_${upper}_INCLUDE}/${header} is of another version)")
    endif()
  endif()
  set(HALOGRAD_CUDA_MISSING ${missing} PARENT_SCOPE)
  if(HALOGRAD_${upper}_INCLUDE AND HALOGRAD_${upper}_LIBRARY AND NOT TARGET halograd::${name})
    add_library(halograd::${name} UNKNOWN IMPORTED)
    set_target_properties(halograd::${name} PROPERTIES IMPORTED_LOCATION "${HALOGRAD_${upper}_LIBRARY}"
      INTERFACE_INCLUDE_DIRECTORIES "${HALOGRAD_${upper}_INCLUDE}")
  endif()
endfunction()

halograd_find_vendor_library(cudnn cudnn_version.h 9 "cuDNN 9")
halograd_find_vendor_library(nccl nccl.h 2 "NCCL 2")
