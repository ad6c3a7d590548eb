#!/usr/bin/env bash
# check.sh [FILE...]: style (clang-format) and clang-tidy over the sources, or over these files only.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/install-packages.sh build test check
files=("$@")
if [[ ${#files[@]} -eq 0 ]]; then
  mapfile -t files < <(find src tests examples -name '*.cpp' -o -name '*.hpp' -o -name '*.inc' \
    -o -name '*.cu' -o -name '*.cuh' | sort)
fi
clang-format --dry-run -Werror "${files[@]}"
echo "clang-format: ${#files[@]} files are well-formed"

cmake --preset release >/dev/null
sources=()
for file in "${files[@]}"; do
  [[ "$file" == *.cpp ]] && sources+=("^$PWD/$file\$")
done
[[ ${#sources[@]} -eq 0 ]] && exit 0
# GCC's own flags mean nothing to clang.
run-clang-tidy -quiet -p build -extra-arg=-Wno-unknown-warning-option -extra-arg=-Wno-ignored-optimization-argument \
  "${sources[@]}"
