#!/usr/bin/env bash
# build.sh [CMAKE-OPTION...]: configures and builds the release preset in build/, with ccache where there is one, and
# CUDA kernels for the GPUs of this machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

options=("$@")
if command -v ccache >/dev/null; then
  options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache
            -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
fi
if [[ ! -f build/CMakeCache.txt && " $* " != *CMAKE_CUDA_ARCHITECTURES* ]]; then
  # One architecture compiles in a fraction of the time that all take.
  nvidia-smi -L >/dev/null 2>&1 && architectures=native || architectures=90
  options+=("-DCMAKE_CUDA_ARCHITECTURES=$architectures")
fi
cmake --preset release "${options[@]}"
cmake --build --preset release
