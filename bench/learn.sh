#!/usr/bin/env bash
# learn.sh [RUN] [OPTION...]: makes 640 synthetic universes, trains a small CosmoFlow on them (a few minutes on two cores)
# into RUN (default: runs/learn) and prints its mean absolute error on held-out universes beside that of predicting the
# mean. What is done already is not done again. More options of `halograd train` may follow, as --set train.precision=bf16.
set -euo pipefail
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
run=$(realpath -m "${1:-$root/runs/learn}")
shift $(($# > 0 ? 1 : 0))
cd "$root"
halograd=build/bin/halograd

if [[ ! -f data/learn/done ]]; then
  "$halograd" synth cosmoflow --out data/learn --count 640 --width 32 --box 256 --seed 7
  touch data/learn/done
fi
if [[ ! -d $run ]]; then
  time "$halograd" train examples/learn.toml --run-dir "$run" "$@"
fi
"$halograd" evaluate "$run/config.toml" --checkpoint "$(ls "$run"/checkpoints/checkpoint_*.h5 | tail -n 1)"
