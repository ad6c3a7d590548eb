#!/usr/bin/env bash
# learn.sh: makes 640 synthetic universes, trains a small CosmoFlow on them (a few minutes on two cores) and prints its mean
# absolute error on held-out universes beside that of predicting the mean. What is done already is not done again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ ! -f data/learn/done ]]; then
  build/bin/halograd synth cosmoflow --out data/learn --count 640 --width 32 --box 256 --seed 7
  touch data/learn/done
fi
if [[ ! -d runs/learn ]]; then
  time build/bin/halograd train examples/learn.toml --run-dir runs/learn
fi
build/bin/halograd evaluate examples/learn.toml --checkpoint "$(ls runs/learn/checkpoints/checkpoint_*.h5 | tail -n 1)"
