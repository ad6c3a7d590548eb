#!/usr/bin/env bash
# paper_scaling.sh: the paper's results as its system's machine file predicts them: CosmoFlow at 512³ with a mini-batch of
# 64 on 512 and 2,048 GPUs (the paper: 1.77 times as fast), the 3D U-Net at 256³ on 256 and 512 GPUs (1.42; the mini-batch
# is not named: 8, 16 and 32), GPUs a sample by the paper's accounting of memory (8 with batch norm, 4 without). Then the
# same speed-ups with each of the least certain figures at its low and its high end (docs/machines.md). Seconds.
set -euo pipefail
cd "$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")"
halograd=build/bin/halograd
machine=machines/lassen-v100.json

plan() { "$halograd" plan "$@" --machine "$machine"; }
speed_up() { plan "$@" | sed -n 's/^\* best: \(.*\) s, \(.*\) times as fast as.*/\1 \2/p' | tail -n 1; }
cosmoflow=(cosmoflow --width 512 --batch 64 --ranks 512,2048)
unet=(unet3d --width 256 --ranks 256,512)

echo "CosmoFlow 512³, mini-batch 64, from 512 to 2,048 GPUs (the paper: 1.77)"
for norm in "" --batch-norm; do
  read -r seconds times < <(speed_up "${cosmoflow[@]}" $norm)
  plan "${cosmoflow[@]}" $norm | sed -n 's/^The paper.s accounting: /  memory: /p'
  echo "  ${norm:-without batch norm}: $times times as fast, $seconds s on 2,048"
done
echo "U-Net 256³ from 256 to 512 GPUs (the paper: 1.42)"
for batch in 8 16 32; do
  read -r seconds times < <(speed_up "${unet[@]}" --batch $batch)
  echo "  mini-batch $batch: $times times as fast, $seconds s on 512"
done

echo "What separates the paper's program from this one: CosmoFlow with batch norm; U-Net with a mini-batch of 8"
rates=/settings/2/rates
slow=(--change /settings/2/overlap=0 --change /network/0/bytes_per_second=4.8e9 --change /network/0/latency_seconds=45e-6)
for pass in forward backward_data backward_weights; do
  slow+=(--change "$rates/convolution_$pass/overhead_seconds=130e-6" --change "$rates/convolution_$pass/channel_tile=16")
done
both() { # WHAT OPTIONS...
  local what=$1 c u
  shift
  read -r _ c < <(speed_up "${cosmoflow[@]}" --batch-norm "$@")
  read -r _ u < <(speed_up "${unet[@]}" --batch 8 "$@")
  echo "  $what: $c and $u"
}
both "no message overlaps with computing" --change /settings/2/overlap=0
depth=(--grid 8x1x1,16x1x1,32x1x1,64x1x1)
both "samples cut in depth alone" "${depth[@]}"
both "that, and no overlap" "${depth[@]}" --change /settings/2/overlap=0
both "no overlap, slow end of network, overheads and tile" "${slow[@]}"
both "all of that, cut in depth alone" "${slow[@]}" "${depth[@]}"

echo "Sensitivity: CosmoFlow with batch norm; U-Net with a mini-batch of 16"
# what, figures in the setting of four GPUs a node (/settings/2) or of the network, low, high
while read -r what low high keys; do
  [[ -n $what ]] || continue
  line="  $what:"
  for value in $low $high; do
    changes=()
    for key in $keys; do changes+=(--change "$key=$value"); done
    read -r _ c < <(speed_up "${cosmoflow[@]}" --batch-norm "${changes[@]}")
    read -r _ u < <(speed_up "${unet[@]}" --batch 16 "${changes[@]}")
    line+=" $value gives $c and $u;"
  done
  echo "${line%;}"
done <<E2
conv-forward-rate 9.3e12 12.6e12 $rates/convolution_forward/flops_per_second
conv-data-rate 6.3e12 12.6e12 $rates/convolution_backward_data/flops_per_second
conv-weights-rate 3.9e12 11e12 $rates/convolution_backward_weights/flops_per_second
conv-overheads 10e-6 130e-6 $rates/convolution_forward/overhead_seconds $rates/convolution_backward_data/overhead_seconds $rates/convolution_backward_weights/overhead_seconds
channel-tile 16 64 $rates/convolution_forward/channel_tile $rates/convolution_backward_data/channel_tile $rates/convolution_backward_weights/channel_tile
network-bandwidth 4.8e9 19e9 /network/0/bytes_per_second
network-latency 13e-6 45e-6 /network/0/latency_seconds
link-bandwidth 14.5e9 45e9 /settings/2/link/0/bytes_per_second
overlap 0.7 1.0 /settings/2/overlap
E2
