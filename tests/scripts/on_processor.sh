#!/usr/bin/env bash
# Plays halograd on a GPU, for gpu-check.sh's part `training`: runs STAND_IN_PROGRAM on the processor, says that it was a GPU
# and leaves algorithms as ranks on GPUs choose them, which a resumed run then reads. STAND_IN_FAULT changes what a resumed run
# leaves: loses (a loss's last digit), chooses (another algorithm).
set -euo pipefail
arguments=("$@")
resumes='' folder=''
while [[ $# -gt 0 ]]; do
  case "$1" in
    --run-dir) folder="$2" ;;
    --resume) resumes=yes ;;
  esac
  shift
done
[[ ! "${arguments[0]}" =~ ^(train|evaluate)$ ]] || arguments+=(--set parallel.device=cpu)
"$STAND_IN_PROGRAM" "${arguments[@]}" 2> >(sed 's/ on cpu/ on cuda 0: Stand-in/' >&2)
[[ -n "$folder" && "${OMPI_COMM_WORLD_RANK:-0}" == 0 ]] || exit 0
if [[ -z "$resumes" ]]; then
  chosen='--- rank %d ---\nhalograd algorithms 1\nshape %d\tengine 3 pieces 1\n'
  for ((rank = 0; rank < ${OMPI_COMM_WORLD_SIZE:-1}; ++rank)); do
    # shellcheck disable=SC2059
    printf -- "$chosen" "$rank" "$rank"
  done >"$folder/algorithms.txt"
fi
case "${resumes:+${STAND_IN_FAULT:-}}" in
  loses) sed -Ei '/"step":4,/s/("loss":[0-9.]*)[0-9]/\1x/' "$folder/metrics.jsonl" ;;
  chooses) sed -i 's/engine 3/engine 5/' "$folder/algorithms.txt" ;;
esac
