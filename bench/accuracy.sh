#!/usr/bin/env bash
# accuracy.sh [DIR]: how right the cost model is on this machine. Measures the kernels of each configuration
# (`halograd calibrate`), then its training steps, and prints step and memory, measured and predicted; DIR (default:
# data/accuracy) gets the machine file, a report a configuration and the picture errors.svg. Minutes; wants an idle machine.
# What DIR holds of an earlier run is not measured again.
set -euo pipefail
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
dir=$(realpath -m "${1:-$root/data/accuracy}")
cd "$root"
halograd=build/bin/halograd
machine=$dir/machine.json
mkdir -p "$dir"

# ranks model width batch grid
configurations="
1 cosmoflow  32 1 1x1x1
1 cosmoflow  64 1 1x1x1
1 cosmoflow  64 2 1x1x1
1 cosmoflow 128 1 1x1x1
1 cosmoflow 128 2 1x1x1
1 unet3d     32 1 1x1x1
1 unet3d     32 2 1x1x1
1 unet3d     64 1 1x1x1
2 cosmoflow  64 1 2x1x1
2 cosmoflow  64 2 1x1x1
2 cosmoflow 128 1 2x1x1
2 cosmoflow 128 1 1x2x1
2 cosmoflow 128 1 1x1x2
2 cosmoflow 128 2 1x1x1
2 cosmoflow 128 2 2x1x1
2 unet3d     32 1 2x1x1
2 unet3d     32 2 1x1x1
2 unet3d     64 1 2x1x1
2 unet3d     64 1 1x2x1
2 unet3d     64 1 1x1x2
"

# Ranks share the cores evenly.
on() { # RANKS COMMAND...
  local ranks=$1
  shift
  # mpirun would read the list of configurations
  if [[ $ranks == 1 ]]; then "$@"; else OMP_NUM_THREADS=$(($(nproc) / ranks)) mpirun -n "$ranks" "$@" </dev/null; fi
}

reports=()
while read -r ranks model width batch grid; do
  [[ -n $ranks ]] || continue
  report=$dir/$model-$width-batch$batch-$grid-on-$ranks.json
  reports+=("$report")
  [[ -s $report ]] && continue
  network=("$model" --width "$width" --batch "$batch")
  [[ $model == cosmoflow ]] && network+=(--batch-norm)
  on "$ranks" "$halograd" calibrate "${network[@]}" --grid "$grid" --out "$machine"
  on "$ranks" "$halograd" bench step "${network[@]}" --grid "$grid" --machine "$machine" --no-floor --steps 9 --json >"$report.partial"
  mv "$report.partial" "$report"
done <<<"$configurations"
"$halograd" bench accuracy "${reports[@]}" --chart "$dir/errors.svg"
