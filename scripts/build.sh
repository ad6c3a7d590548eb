#!/usr/bin/env bash
# build.sh [CMAKE-OPTION...]: configures and builds the release preset in build/, with ccache where there is one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

options=("$@")
if command -v ccache >/dev/null; then
  options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
fi
cmake --preset release "${options[@]}"
cmake --build --preset release
