#!/usr/bin/env bash
# segment_ch2.sh: converts a real scan and its labels (Debian's mricron-data), trains a small U-Net on it (minutes on two
# cores), predicts its labels, and prints their Dice and where the picture is. What is done already is not done again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

templates=/usr/share/mricron/templates
if [[ ! -f $templates/ch2.nii.gz ]]; then
  echo "segment_ch2.sh: no $templates/ch2.nii.gz; install it first: apt-get install mricron-data" >&2
  exit 3
fi
mkdir -p data/ch2/scans
ln -sf $templates/ch2.nii.gz data/ch2/scans/volume-0.nii.gz
ln -sf $templates/aal.nii.gz data/ch2/scans/segmentation-0.nii.gz

# The atlas has 116 labels. 1: cortex; 2: deep grey matter (hippocampus, amygdala, caudate, putamen, pallidum, thalamus);
# 3: cerebellum.
groups=1:1-36,39-40,43-70,79-90,2:37-38,41-42,71-78,3:91-116
build/bin/halograd convert lits --volumes data/ch2/scans --out data/ch2/cases --width 64 --classes 4 --group $groups

if [[ ! -d runs/ch2 ]]; then
  time build/bin/halograd train examples/ch2.toml --run-dir runs/ch2
fi
checkpoint=$(ls runs/ch2/checkpoints/checkpoint_*.h5 | tail -n 1)
build/bin/halograd evaluate examples/ch2.toml --checkpoint "$checkpoint" --split train
build/bin/halograd predict examples/ch2.toml --checkpoint "$checkpoint" --input $templates/ch2.nii.gz \
  --output runs/ch2/labels.nii.gz --preview runs/ch2/labels.png
