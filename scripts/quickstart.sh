#!/usr/bin/env bash
# quickstart.sh: from a fresh Debian 12 machine to a trained network: packages, build, synthetic universes, training.
# What is done already is not done again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

universes=320
data=data/quickstart
run=runs/quickstart

# Waiting threads give their core away, in case the machine has other work.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"

scripts/install-packages.sh build
if [[ ! -f build/CMakeCache.txt ]]; then
  scripts/build.sh -DHALOGRAD_BUILD_TESTS=OFF
else
  scripts/build.sh  # keeps the tests where they have been asked for
fi

if [[ ! -f "$data/done" ]]; then
  echo "Making $universes synthetic universes in $data"
  build/bin/halograd synth cosmoflow --out "$data" --count "$universes" --width 32 --box 128 --seed 1
  touch "$data/done"
fi

if ! grep -qs '"event":"test"' "$run/metrics.jsonl"; then
  echo "Training CosmoFlow (examples/quickstart.toml)"
  resume=()
  if compgen -G "$run/checkpoints/*" >/dev/null; then
    resume=(--resume)  # it was interrupted
  else
    rm -rf "$run"  # nothing trained: a checkpoint is written before the first step
  fi
  build/bin/halograd train examples/quickstart.toml --run-dir "$run" "${resume[@]}"
fi

cat <<END

The trained network is in $run:
  $run/config.toml     the configuration, every key filled in
  $run/metrics.jsonl   loss and speed of each step and epoch; the last line is the test
  $run/checkpoints/    weights and optimiser state (HDF5)
The test:
  $(grep '"event":"test"' "$run/metrics.jsonl" | tail -n 1)
Next: build/bin/halograd summary cosmoflow --width 128
      mpirun -n 2 build/bin/halograd train examples/quickstart.toml --grid 2x1x1 --run-dir runs/two-ranks
END
