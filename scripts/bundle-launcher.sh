#!/usr/bin/env bash
# Starts the program of this file's name in ../libexec with the libraries of the bundle it lies in (scripts/bundle.sh), and
# with CUDA's, cuDNN's and NCCL's of this machine: the system's, else those of CUDA_HOME, /usr/local/cuda, or the packages
# `nvidia` of the python3 on PATH, as a PyTorch installed by pip has them.
set -uo pipefail
bundle="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

vendor_folders() {
  local folder packages
  for folder in "${CUDA_HOME:-/usr/local/cuda}/lib64" /usr/local/cuda/lib64 /usr/local/nvidia/lib64; do
    [[ -d "$folder" ]] && echo "$folder"
  done
  packages="$(python3 -c 'import nvidia; print(*nvidia.__path__, sep="\n")' 2>/dev/null)" || return 0
  while read -r folder; do
    compgen -G "$folder/*/lib" || true
  done <<<"$packages"
}

# Prints the folders that hold what the system's own does not. Of each library the first found counts.
missing_libraries() {
  local system folders folder name
  system="$(PATH="$PATH:/sbin:/usr/sbin" ldconfig -p 2>/dev/null)"
  mapfile -t folders < <(vendor_folders)
  while read -r name need; do
    [[ "$system" == *"$name "* ]] && continue
    for folder in ${LD_LIBRARY_PATH:+${LD_LIBRARY_PATH//:/ }} "${folders[@]}"; do
      [[ -e "$folder/$name" ]] && break
      folder=
    done
    if [[ -n "${folder:-}" ]]; then
      echo "$folder"
    elif [[ "$need" == needed ]]; then
      echo "$(basename "$0"): error: $name is neither among the system's libraries nor in CUDA_HOME, /usr/local/cuda or" \
        "python3's packages; name its folder in LD_LIBRARY_PATH" >&2
      return 1
    fi
  done <"$bundle/lib/vendor-libraries"
}

# Programs that one of these starts find all of it done.
if [[ "${HALOGRAD_BUNDLE:-}" != "$bundle" ]]; then
  found="$(missing_libraries)" || exit 5
  found="$(awk '!seen[$0]++' <<<"$found" | paste -sd:)"
  export HALOGRAD_BUNDLE="$bundle"
  export LD_LIBRARY_PATH="$bundle/lib${found:+:$found}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  # Open MPI and PMIx look for their plugins and messages where they were installed, unless told otherwise.
  export OPAL_PREFIX="$bundle" OPAL_BINDIR="$bundle/bin" OPAL_LIBDIR="$bundle/lib" OPAL_PKGLIBDIR="$bundle/lib/openmpi" \
    OPAL_DATADIR="$bundle/share" OPAL_PKGDATADIR="$bundle/share/openmpi" OPAL_SYSCONFDIR="$bundle/share/openmpi" \
    PMIX_INSTALL_PREFIX="$bundle" PMIX_LIBDIR="$bundle/lib" PMIX_PKGLIBDIR="$bundle/lib/pmix" \
    PMIX_DATADIR="$bundle/share" PMIX_PKGDATADIR="$bundle/share/pmix" PMIX_SYSCONFDIR="$bundle/share/pmix"
  # Where nothing can start programs on other nodes, mpirun is content with this one only when told so.
  command -v ssh rsh srun >/dev/null || export OMPI_MCA_plm="${OMPI_MCA_plm:-isolated}"
fi
exec "$bundle/libexec/$(basename "$0")" "$@"
