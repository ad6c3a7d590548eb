#!/usr/bin/env bash
# learn_segmentation.sh [DIR]: makes 80 synthetic CT scans, converts them to 64³, trains a small 3D U-Net on 64 of them (a
# few minutes on two cores) and prints its Dice by class on 12 that it never saw: "mean_dice" is of organ and lesion.
# Everything goes to DIR (default: data/learn_unet3d). What is done already is not done again, and a training that was
# ended goes on. More options of `halograd train` may follow DIR, as --set train.epochs=8.
set -euo pipefail
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
dir=$(realpath -m "${1:-$root/data/learn_unet3d}")
shift $(($# > 0 ? 1 : 0))
cd "$root"
halograd=build/bin/halograd
resume=()

if [[ ! -f $dir/done ]]; then
  "$halograd" synth lits --out "$dir/scans" --count 80 --width 64 --seed 7
  "$halograd" convert lits --volumes "$dir/scans" --out "$dir/cases" --width 64
  touch "$dir/done"
fi
if [[ -f $dir/run/config.toml ]]; then resume=(--resume); fi
time "$halograd" train examples/learn_unet3d.toml --run-dir "$dir/run" "${resume[@]}" --set "data.path=$dir/cases" "$@"
"$halograd" evaluate "$dir/run/config.toml" --checkpoint "$(ls "$dir"/run/checkpoints/checkpoint_*.h5 | tail -n 1)"
