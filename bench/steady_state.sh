#!/usr/bin/env bash
# steady_state.sh [WIDTH [GRID [ROUNDS [SAMPLES]]]]: what feeding costs once the store is warm. On two ranks, in turn, a
# step of `bench step`, which reads nothing, and the steps of a training run behind its first epoch, at the same grid,
# mini-batch and thread count. Prints the medians of each round, their ratio, and the wait for samples as a share of the
# steps' time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

width=${1:-128} grid=${2:-2x1x1} rounds=${3:-5} samples=${4:-24}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
batch=1
[[ $grid == 1x1x1 ]] && batch=2 # two groups

build/bin/halograd synth cosmoflow --out "$work/set" --count "$samples" --width "$width" 2>/dev/null
cat >"$work/config.toml" <<TOML
[model]
width = $width
[data]
path = "$work/set"
split = [1.0, 0.0, 0.0]
[train]
epochs = 3
batch_size = $batch
checkpoint_every_epochs = 0
TOML

# The values of a member in the steps behind the first epoch.
values() { sed -n "/\"event\":\"step\",\"epoch\":[^0]/s/.*\"$1\":\([-0-9.e]*\).*/\1/p" "$work/run/metrics.jsonl"; }
median() { sort -g | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
sum() { awk '{s += $1} END {print s}'; }

printf 'width %s, grid %s on 2 ranks, mini-batch %s\n' "$width" "$grid" "$batch"
printf '%12s %12s %8s %12s\n' 'bench step' 'training' 'ratio' 'io_seconds'
for ((round = 0; round < rounds; ++round)); do
  bench=$(mpirun -n 2 build/bin/halograd bench step cosmoflow --width "$width" --batch-norm --batch "$batch" --grid "$grid" \
    --steps 20 --no-floor --json 2>/dev/null | sed -n 's/.*"step_seconds": \([-0-9.e]*\).*/\1/p')
  rm -rf "$work/run"
  mpirun -n 2 build/bin/halograd train "$work/config.toml" --grid "$grid" --run-dir "$work/run" >/dev/null 2>&1
  train=$(values seconds | median)
  awk -v b="$bench" -v t="$train" -v i="$(values io_seconds | sum)" -v s="$(values seconds | sum)" \
    'BEGIN {printf "%10.4f s %10.4f s %8.3f %10.2f %%\n", b, t, t / b, 100 * i / s}'
done
