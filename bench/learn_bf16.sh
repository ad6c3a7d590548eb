#!/usr/bin/env bash
# learn_bf16.sh [DIR]: trains the networks of learn.sh and learn_segmentation.sh in float32 and in bf16 (some fifteen
# minutes on two cores) and prints the losses of their epochs side by side. Everything goes to DIR (default:
# data/learn_bf16); what is done already is not done again.
set -euo pipefail
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
dir=$(realpath -m "${1:-$root/data/learn_bf16}")
mkdir -p "$dir"

for precision in f32 bf16; do
  "$root/bench/learn.sh" "$dir/cosmoflow-$precision" --set train.precision=$precision
  "$root/bench/learn_segmentation.sh" "$dir/unet3d-$precision" --set train.precision=$precision
done

# losses RUN: "epoch training validation" a line
losses() {
  sed -nE '/"event":"epoch"/ s/.*"epoch":([0-9]+).*"train_loss":([^,}]+).*"validation_loss":([^,}]+).*/\1 \2 \3/p' \
    "$1/metrics.jsonl"
}
for network in cosmoflow unet3d; do
  run=$([[ $network == unet3d ]] && echo /run || echo "")
  printf '\n%s\n%5s  %12s  %12s  %14s  %14s\n' "$network" epoch 'training f32' bf16 'validation f32' bf16
  paste -d ' ' <(losses "$dir/$network-f32$run") <(losses "$dir/$network-bf16$run") |
    while read -r epoch training validation _ training16 validation16; do
      printf '%5d  %12.5f  %12.5f  %14.5f  %14.5f\n' "$epoch" "$training" "$training16" "$validation" "$validation16"
    done
done
