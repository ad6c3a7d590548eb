#!/usr/bin/env bash
# bundle.sh [--out FILE.tar.gz] [--arch ARCHITECTURE] [--build FOLDER]: the program, the tests of gpu-check.sh and the
# libraries that a bare GPU node lacks (MPI, HDF5, oneDNN and the like), in one folder that runs wherever it is unpacked:
#   tar xzf halograd-gpu.tar.gz && halograd-gpu/gpu-check.sh
# Takes from the machine it runs on: glibc (as new as this one's), the NVIDIA driver, CUDA's libraries, cuDNN and NCCL.
# Builds for one architecture (90) in build-bundle/, or takes the programs of FOLDER as they are.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

out=halograd-gpu.tar.gz
arch=90
build=
usage() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; }
while [[ $# -gt 0 ]]; do
  case "$1" in
    --out | --arch | --build)
      [[ $# -ge 2 ]] || { echo "bundle.sh: error: $1 needs a value" >&2; exit 2; }
      printf -v "${1#--}" %s "$2"
      shift 2 ;;
    --help) usage; exit 0 ;;
    *) echo "bundle.sh: error: unknown option $1 (--out, --arch or --build)" >&2; exit 2 ;;
  esac
done

needed=(halograd test_device test_comm test_comm_mpi test_exec_mpi)
if [[ -z "$build" ]]; then
  build="$root/build-bundle"
  launchers=()
  if command -v ccache >/dev/null; then
    launchers=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
  fi
  (cd "$root" && cmake --preset cuda -B "$build" -DCMAKE_CUDA_ARCHITECTURES="$arch" "${launchers[@]}")
  cmake --build "$build" --target halograd_cli "${needed[@]:1}" test_kernels_cuda
fi
programs=("${needed[@]}")
[[ -x "$build/bin/test_kernels_cuda" ]] && programs+=(test_kernels_cuda)  # not in a build without CUDA
for name in "${needed[@]}"; do
  [[ -x "$build/bin/$name" ]] || { echo "bundle.sh: error: $build/bin/$name is not built" >&2; exit 2; }
done
command -v ompi_info >/dev/null || { echo "bundle.sh: error: needs Open MPI (ompi_info is not there)" >&2; exit 2; }
ompi_path() { ompi_info --parsable --path "$1" | sed -n 's/^path:[a-z]*://p' | head -n 1; }

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
bundle="$work/halograd-gpu"
mkdir -p "$bundle"/{bin,libexec,lib/openmpi,lib/pmix,share/openmpi,share/pmix}

put() { # SOURCE FOLDER [NAME]: a copy without symbols, links followed
  install -m 755 "$1" "$2/${3:-$(basename "$1")}"
  strip --strip-unneeded "$2/${3:-$(basename "$1")}"
}
for name in "${programs[@]}"; do put "$build/bin/$name" "$bundle/libexec"; done
put "$(readlink -f "$(command -v mpirun)")" "$bundle/libexec" mpirun
put "$(readlink -f "$(command -v orted)")" "$bundle/libexec" orted
for name in "$bundle"/libexec/*; do install -m 755 "$root/scripts/bundle-launcher.sh" "$bundle/bin/$(basename "$name")"; done

# Plugins for fabrics bring libraries of the fabric's driver, which are of no use without it: TCP and shared memory stay.
plugins() { # FOLDER PATTERN TO
  local plugin linked
  for plugin in "$1"/$2; do
    linked="$(ldd "$plugin")"
    [[ "$linked" =~ libfabric|libuc[pst]\.|libpsm|libinfinipath|libibverbs|liboshmem|"not found" ]] || put "$plugin" "$3"
  done
}
plugins "$(ompi_path pkglibdir)" 'mca_*.so' "$bundle/lib/openmpi"
cp "$(ompi_path pkgdatadir)"/help-*.txt "$bundle/share/openmpi"
pmix="$(ldd "$bundle"/lib/openmpi/mca_pmix_*.so | sed -n 's/.*libpmix[^ ]* => \([^ ]*\) .*/\1/p' | head -n 1)"
if [[ -n "$pmix" ]]; then
  for folder in "$(dirname "$pmix")" "$(dirname "$(readlink -f "$pmix")")"; do
    if [[ -d "$folder/pmix" ]]; then
      plugins "$folder/pmix" '*mca_*.so' "$bundle/lib/pmix"
      break
    fi
  done
fi

# What all of it links, and what that links. The system's C library and NVIDIA's libraries belong to the machine.
system='^(ld-linux.*|lib(c|m|pthread|dl|rt|resolv|util|anl|mvec)\.so\.[0-9]+)$'
vendor='^lib(cuda|cudart|cudnn.*|cublas.*|nccl|nvrtc.*|nvJitLink|nvidia-.*)\.so'
find "$bundle/libexec" "$bundle/lib" -type f -exec ldd {} + 2>/dev/null |
  awk '$2 == "=>" { print $1, $3 }' | sort -u >"$work/linked"
: >"$bundle/lib/vendor-libraries"
while read -r name file; do
  if [[ "$name" =~ $vendor ]]; then
    echo "$name needed" >>"$bundle/lib/vendor-libraries"
  elif [[ "$file" != /* ]]; then
    echo "bundle.sh: error: $name is linked, but not found here" >&2
    exit 2
  elif [[ ! "$name" =~ $system ]]; then
    put "$file" "$bundle/lib" "$name"
  fi
done <"$work/linked"
# The programs open cuBLASLt by themselves when they need it; cuDNN the rest, for kernels that it compiles on the spot.
cublas="$(grep -aohm 1 'libcublasLt\.so\.[0-9]*' "$bundle/libexec/halograd" | head -n 1 || true)"
if [[ -n "$cublas" ]]; then
  major="${cublas##*.}"
  grep -q "^$cublas " "$bundle/lib/vendor-libraries" || echo "$cublas needed" >>"$bundle/lib/vendor-libraries"
  printf '%s useful\n' "libnvrtc.so.$major" "libcublas.so.$major" libcuda.so.1 >>"$bundle/lib/vendor-libraries"
fi

cp "$root"/scripts/{gpu-check,gpu-check-tests,train-and-resume}.sh "$bundle"
cp -r "$root/machines" "$root/examples" "$bundle"
mkdir "$bundle/peers"
cp "$root"/bench/peers/*.py "$bundle/peers"
cp "$root/LICENSE" "$bundle"
git -C "$root" describe --always --dirty >"$bundle/VERSION" 2>/dev/null || echo "unknown" >"$bundle/VERSION"
tar czf "$out" -C "$work" --owner=0 --group=0 halograd-gpu
echo "$out: $(du -m "$out" | cut -f1) MiB, unpacked $(du -sm "$bundle" | cut -f1) MiB, ${#programs[@]} programs," \
  "$(find "$bundle/lib" -name '*.so*' | wc -l) libraries and plugins"
