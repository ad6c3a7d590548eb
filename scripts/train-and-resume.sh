#!/usr/bin/env bash
# train-and-resume.sh FOLDER MODEL DATA PRECISION GRID COMMAND…: a short training with COMMAND (halograd, or mpirun and it)
# on a GPU, from the files of `synth` in DATA to `evaluate`, in FOLDER, which must not be there yet. A copy of the run that
# has lost all since step 2 is resumed and must come to the same losses, step by step, and the same weights, to the bit.
# Exit status: 0 it did, and FOLDER is gone; 1 not, and says what differs.
set -euo pipefail
[[ $# -ge 6 ]] || { echo "train-and-resume.sh: error: needs FOLDER MODEL DATA PRECISION GRID COMMAND…" >&2; exit 2; }
folder="$1" model="$2" data="$3" precision="$4" grid="$5"
shift 5

case "$model" in
  cosmoflow) width=32 network='batch_norm = true' source='format = "cosmoflow"' ;;
  unet3d)
    width=16 network=$'base_channels = 4\nloss = "cross_entropy+dice"'
    source=$'format = "lits"\ntransform = "window"\nintensity_window = [-100, 200]' ;;
  *) echo "train-and-resume.sh: error: MODEL $model: cosmoflow or unet3d" >&2; exit 2 ;;
esac
mkdir "$folder"
cat >"$folder/config.toml" <<TOML
[model]
name = "$model"
width = $width
$network
[data]
path = "$data"
$source
split = [0.75, 0.125, 0.125]
[train]
precision = "$precision"
epochs = 2
batch_size = 2
learning_rate = 1e-4
checkpoint_every_epochs = 2
checkpoint_every_steps = 2
checkpoints_kept = 9
[parallel]
device = "cuda"
grid = "$grid"
TOML

fail() { echo "train-and-resume.sh: $1"; exit 1; }
# What two runs must have in common: losses of steps, epochs and the test, as written, without times and what was read.
losses() { sed -En 's/,"([a-z_]*seconds|samples_per_second|file_bytes)":[^,}]*//g;/"event":"run"/!p' "$1/metrics.jsonl"; }
loss_of_test() { sed -n 's/.*"event":"test".*"loss":\([^,}]*\).*/\1/p'; }

# The copy has what a run has on disk that was killed in its step 2, the third.
"$@" train "$folder/config.toml" --run-dir "$folder/whole"
[[ "$(losses "$folder/whole" | grep -c '"event":"step"')" == 6 ]] || fail "8 samples should give 6 steps"
mkdir -p "$folder/resumed/checkpoints"
find "$folder/whole" -maxdepth 1 -type f -exec cp -t "$folder/resumed" {} +
sed -i '/"step":2,/,$d' "$folder/resumed/metrics.jsonl"
cp "$folder/whole/checkpoints/checkpoint_00000002.h5" "$folder/resumed/checkpoints"
"$@" train "$folder/config.toml" --run-dir "$folder/resumed" --resume 2>&1 | tee "$folder/resumed.txt"
grep -q 'resuming from .*step 2)' "$folder/resumed.txt" || fail "it should have gone on from step 2"
diff <(losses "$folder/whole") <(losses "$folder/resumed") || fail "the resumed run (>) has other losses"
last=checkpoints/checkpoint_00000006.h5
cmp "$folder/whole/$last" "$folder/resumed/$last" || fail "the resumed run has other weights"

# On a GPU the algorithms were chosen by timing, which a second run must not do again. (Of ranks that read each other's it
# may know more.)
algorithms() { awk '/^--- rank / { rank = $0 } { print rank, $0 }' "$1/algorithms.txt" | sort; }
if grep -q ' on cuda ' "$folder/resumed.txt"; then
  [[ -s "$folder/whole/algorithms.txt" ]] || fail "the run recorded no algorithms"
  forgotten="$(comm -23 <(algorithms "$folder/whole") <(algorithms "$folder/resumed"))"
  [[ -z "$forgotten" ]] || fail "the resumed run has other algorithms than these: $forgotten"
fi

# Alone it may choose other algorithms than the run did, whose sums round otherwise: in bf16, by a hundredth or two.
"$@" evaluate "$folder/config.toml" --checkpoint "$folder/whole/$last" --json | tee "$folder/evaluated.json"
awk -v run="$(loss_of_test <"$folder/whole/metrics.jsonl")" -v alone="$(loss_of_test <"$folder/evaluated.json")" \
  'BEGIN { exit !(run > 0 && alone > 0.9 * run && alone < 1.1 * run) }' || fail "evaluate should find the run's loss"
rm -r "$folder"
echo "6 steps, 4 of them twice, with the same losses and weights"
