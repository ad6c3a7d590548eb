#!/usr/bin/env bash
# cuda-report.sh [-a ARCHITECTURE] [FILE...]: what each CUDA kernel of these .cu files (of all in src/, where none is
# named) takes on one architecture (sm_90): registers, stack, spills, static shared memory. Fails where one spills.
# NVCC names the compiler, JOBS how many files are compiled at a time.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

architecture=sm_90
if [[ "${1:-}" == -a ]]; then
  architecture="$2"
  shift 2
fi
files=("$@")
if [[ ${#files[@]} -eq 0 ]]; then
  mapfile -t files < <(find "$root/src" -name '*.cu' | sort)
fi
if [[ ${#files[@]} -eq 0 ]]; then
  echo "no .cu file to report on"
  exit 0
fi
nvcc="${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
# The options that change a kernel's code are those of cmake/HalogradTargets.cmake.
compile() {
  local log="$work/$(basename "$1").$(cksum <<<"$1" | cut -d' ' -f1)"
  "$nvcc" -std=c++20 -O3 -DNDEBUG --expt-relaxed-constexpr -I"$root/src" -arch="$architecture" -cubin -Xptxas -v \
    -o "$log.cubin" "$1" >"$log.log" 2>&1 || { cat "$log.log" >&2; return 255; }
}
export -f compile
export work nvcc architecture root
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "${JOBS:-$(nproc)}" bash -c 'compile "$1"' _

name() { if command -v c++filt >/dev/null; then c++filt; else cat; fi; }
# ptxas prints three lines a kernel: its name, its stack and spills, its registers and shared memory. Functions that
# were not inlined have the first two.
cat "$work"/*.log | awk '
  function flush() {
    if (kernel == "") return
    printf "%9s %6d %13d %12d %13d  %s\n", registers, stack, stores, loads, shared, kernel
    if (stores + loads > 0) spilling++
    count++
    kernel = ""
  }
  /Function properties for/ { flush(); kernel = $NF; registers = "-"; stack = stores = loads = shared = 0 }
  /bytes stack frame/ { stack = $1; stores = $5; loads = $9 }
  /: Used [0-9]+ registers/ {
    registers = $5
    if (match($0, /[0-9]+ bytes smem/)) shared = substr($0, RSTART, RLENGTH) + 0
  }
  BEGIN { print "registers  stack  spill stores  spill loads  shared memory  function (bytes)" }
  END {
    flush()
    printf "%d functions, %d of them spill\n", count, spilling
    exit spilling > 0
  }' | name
