#!/usr/bin/env bash
# gpu-check.sh [--out DIR] [--bundle DIR] [--quick] [--parts LIST] [--limit SECONDS]: what HaloGrad does on this machine's
# GPUs, in one report. Builds the preset `cuda` (in build-cuda/) or takes a bundle of scripts/bundle.sh: DIR, or the one that
# this file lies in. docs/gpu.md says how to read the report.
#   --out DIR        gets gpu-report.md, gpu-check.log (all that was printed) and gpu-steps.json (default: gpu-check)
#   --quick          fewer sizes, and an end after 9 minutes
#   --parts LIST     of tests, training, sanitizer and steps, with commas between (default: all)
#   --limit SECONDS  an end after so long, the build not counted: what has no time left is listed as not run
# Exit status: 0 all passed (the first line says where compute-sanitizer did not run); 1 something failed or did not run; 2
# usage; 5 there is no GPU.
set -uo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

out=gpu-check bundle='' quick='' parts=tests,training,sanitizer,steps limit=''
refuse() { echo "gpu-check.sh: error: $1" >&2; exit "${2:-2}"; }
while [[ $# -gt 0 ]]; do
  case "$1" in
    --out | --bundle | --parts | --limit)
      [[ $# -ge 2 ]] || refuse "$1 needs a value"
      printf -v "${1#--}" %s "$2"
      shift 2 ;;
    --quick) quick=yes; shift ;;
    --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) refuse "unknown option $1 (--out, --bundle, --quick, --parts or --limit)" ;;
  esac
done
[[ "$parts" =~ ^((tests|training|sanitizer|steps)(,|$))+$ ]] ||
  refuse "--parts $parts: tests, training, sanitizer or steps, with commas between"
[[ "$limit" =~ ^[0-9]*$ ]] || refuse "--limit $limit: a number of seconds"
# shellcheck disable=SC2034 # some are for gpu-check-tests.sh
if [[ -n "$quick" ]]; then
  limit="${limit:-540}"
  test_limit=150 sanitizer_limit=60 step_limit=60
else
  test_limit=600 sanitizer_limit=300 step_limit=300
fi
[[ -n "$bundle" || ! -x "$here/bin/halograd" ]] || bundle="$here"

# Where containers have the driver's programs and CUDA's, if nowhere else.
PATH="$PATH:/usr/local/nvidia/bin:/usr/local/cuda/bin"
if command -v nvidia-smi >/dev/null; then
  gpus="$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')"
else
  gpus="$(compgen -G '/dev/nvidia[0-9]*' | wc -l)"
fi
[[ "$gpus" -gt 0 ]] || refuse "no NVIDIA GPU here: nothing can be checked" 5

# shellcheck disable=SC2034
if [[ -n "$bundle" ]]; then
  bundle="$(cd "$bundle" && pwd)" || refuse "$bundle is no folder"
  [[ -x "$bundle/bin/halograd" ]] || refuse "$bundle/bin/halograd is not there: is it a bundle of scripts/bundle.sh?"
  bin="$bundle/bin" peers="$bundle/peers" mpirun="$bundle/bin/mpirun" code="$bundle/libexec"
  version="$(cat "$bundle/VERSION" 2>/dev/null)"
else
  root="$(dirname "$here")"
  bin="$root/build-cuda/bin" peers="$root/bench/peers" mpirun="$(command -v mpirun)" code="$bin"
  version="$(git -C "$root" describe --always --dirty 2>/dev/null)"
  options=()
  [[ -f "$root/build-cuda/CMakeCache.txt" ]] || options=(-DCMAKE_CUDA_ARCHITECTURES=native)
  (cd "$root" && cmake --preset cuda "${options[@]}" && cmake --build --preset cuda --target halograd_cli \
    test_device test_kernels_cuda test_comm test_comm_mpi test_exec_mpi) || refuse "the build failed" 1
  SECONDS=0
fi
mkdir -p "$out" || refuse "$out can't be made"
out="$(cd "$out" && pwd)"
: >"$out/gpu-check.log"
: >"$out/gpu-steps.json"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
touch "$work"/{tests,failures,steps,notes}
python="$(command -v python3)"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
  OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_base_warn_component_unused=0 OMP_WAIT_POLICY=passive GTEST_COLOR=no
first_gpu="${CUDA_VISIBLE_DEVICES:-0}" first_gpu="${first_gpu%%,*}"
cores="$(nproc)"
failures=0 unsanitized=''

seconds_left() { # AT_MOST: so many, or fewer where the end is near
  local left="$1"
  if [[ -n "$limit" && $((limit - SECONDS)) -lt "$left" ]]; then left=$((limit - SECONDS)); fi
  echo "$left"
}
# run AT_MOST COMMAND...: its output goes to $work/output and the log, its exit status to `status`, its time to `took`.
run() {
  local at_most begin="$SECONDS"
  at_most="$(seconds_left "$1")"
  shift
  if [[ "$at_most" -lt 5 ]]; then
    : >"$work/output"
    status=late took=0
    return
  fi
  timeout --kill-after=10 "$at_most" "$@" >"$work/output" 2>&1 </dev/null
  status=$?
  took=$((SECONDS - begin))
  { printf '\n$ %s\n' "$*"; cat "$work/output"; echo "[exit status $status, $took s]"; } >>"$out/gpu-check.log"
}
in_words() { if [[ "$1" == 1 ]]; then echo "1 rank"; else echo "$1 ranks"; fi; }
on_ranks() { echo env OMP_NUM_THREADS=$((cores > $1 ? cores / $1 : 1)) "$mpirun" -n "$1"; }

# In words, of `status` after `run`.
outcome() {
  case "$status" in
    0) echo passed ;;
    late) echo "**not run**: out of time" ;;
    124 | 137) echo "**stopped** after $took s" ;;
    *) echo "**failed** (exit status $status)" ;;
  esac
}
fail() { # NAME: counts it and keeps the end of what it printed
  failures=$((failures + 1))
  [[ -s "$work/output" ]] || return 0
  { printf '\n### %s\n\n' "$1"; tail -n 25 "$work/output" | cut -c1-300 | sed 's/^/    /'; } >>"$work/failures"
}
row() { # NAME RESULT TESTS SKIPPED
  echo "| $1 | $2 | $3 | $4 | $took |" >>"$work/tests"
  printf '%-60s %s\n' "$1" "$2"
  write_report
}
# Tests that see no GPU skip themselves; those beside them that need none may well pass.
no_gpu_seen='^(no NVIDIA (driver|GPU)|the NVIDIA driver is too old|CUDA does not start|built without (CUDA|NCCL))'
check_tests() { # NAME COMMAND...
  local name="$1" passed skipped result
  shift
  run "$test_limit" "$@"
  passed="$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$work/output" | tail -n 1)"
  skipped="$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) test.*/\1/p' "$work/output" | tail -n 1)"
  result="$(outcome)"
  [[ "$result" != passed || "${passed:-0}" -gt 0 ]] || result="**nothing ran**"
  ! grep -Eq "$no_gpu_seen" "$work/output" || result="**no GPU seen**"
  [[ "$result" == passed ]] || fail "$name"
  row "$name" "$result" "${passed:-–}" "${skipped:-0}"
}
check() { # NAME COMMAND...
  local name="$1"
  shift
  run "$test_limit" "$@"
  [[ "$status" == 0 ]] || fail "$name"
  row "$name" "$(outcome)" – –
}

# shellcheck source=/dev/null
source "$here/gpu-check-tests.sh"

field() { # NAME [FILE]: of a JSON object printed one key a line, the first of that name
  sed -n "s/^ *\"$1\": *\"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "${2:-$work/output}" | head -n 1
}
scaled() { # VALUE FACTOR FORMAT
  [[ -n "$1" ]] && awk -v value="$1" -v factor="$2" -v format="$3" 'BEGIN { printf format, value * factor }' || echo –
}
quotient() { # A B FACTOR FORMAT
  [[ -n "$1" && -n "$2" ]] || { echo –; return; }
  awk -v a="$1" -v b="$2" -v factor="$3" -v format="$4" 'BEGIN { printf format, factor * a / b }'
}
# As `run`; besides, the most memory in use on the first GPU meanwhile, in MiB, goes to `most`.
run_watching_memory() {
  local before watcher
  local query=(nvidia-smi -i "$first_gpu" --query-gpu=memory.used "--format=csv,noheader,nounits")
  before="$("${query[@]}" 2>/dev/null | head -n 1)"
  "${query[@]}" -lms 100 >"$work/memory" 2>/dev/null &
  watcher=$!
  run "$@"
  kill "$watcher" 2>/dev/null
  wait "$watcher" 2>/dev/null
  most="$(awk -v before="${before:-0}" '/^[0-9]+/ && $1 > most { most = $1 }
    END { if (most > before) print most - before }' "$work/memory")"
}

# A machine without overheads, as fast as its best matrix product and copy: what it would take for a step is the floor
# that the step's operations and bytes set.
write_ceiling() { # PRECISION
  local flops bytes
  flops="$(field "$1_flops_per_second" "$work/ceilings")"
  bytes="$(field bytes_per_second "$work/ceilings")"
  cat >"$work/ceiling-$1.json" <<END
{"format": "halograd-machine", "version": 1, "name": "ceilings", "node_memory_bytes": 1000000000000, "settings": [
  {"ranks_on_node": 1, "threads": 1, "overlap": 1, "baseline_bytes": 0, "rates": {
    "load_input": {"overhead_seconds": 0, "bytes_per_second": 1e18},
    "default": {"overhead_seconds": 0, "flops_per_second": $flops, "bytes_per_second": $bytes}}}]}
END
}
measure_ceilings() {
  : >"$work/ceilings"
  torch=''
  if [[ -z "$python" ]] || ! "$python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
    echo "No PyTorch that sees the GPU was found (python3): no comparison, and no floor." >>"$work/notes"
    return
  fi
  torch=yes
  run "$step_limit" "$python" "$peers/step_torch_cuda.py" --ceilings
  if [[ "$status" == 0 ]]; then
    cp "$work/output" "$work/ceilings"
    for precision in f32 tf32 bf16; do write_ceiling "$precision"; done
  fi
}

# One line of the table: our step, its convolutions alone, PyTorch's step, the floor.
measure_step() { # MODEL WIDTH PRECISION
  local network=("$1" --width "$2") machine=() step fastest alone memory floor theirs their_memory problem=''
  [[ "$1" != cosmoflow ]] || network+=(--batch-norm)
  [[ ! -f "$work/ceiling-$3.json" ]] || machine=(--machine "$work/ceiling-$3.json")
  run_watching_memory "$step_limit" "$bin/halograd" bench step "${network[@]}" --batch 1 --device cuda --precision "$3" \
    --json "${machine[@]}" --steps 10
  if [[ "$status" == 0 ]]; then
    cat "$work/output" >>"$out/gpu-steps.json"
    step="$(field step_seconds)" fastest="$(field fastest_step_seconds)" memory="$most"
    alone="$(field conv_floor_seconds)"
    if [[ "$alone" == null ]]; then
      alone=''
      echo "$1 $2 in $3: $(grep -m 1 'not timed alone' "$work/output" | cut -c1-200)" >>"$work/notes"
    fi
    floor="$(sed -n '/"predicted"/,$p' "$work/output" >"$work/predicted" && field step_seconds "$work/predicted")"
  else
    problem="$(outcome)"
    fail "step of $1 $2 in $3"
  fi
  if [[ -n "$torch" ]]; then
    run_watching_memory "$step_limit" "$python" "$peers/step_torch_cuda.py" --model "$1" --width "$2" --precision "$3"
    if [[ "$status" == 0 ]]; then
      cat "$work/output" >>"$out/gpu-steps.json"
      theirs="$(field step_seconds)" their_memory="$most"
    else
      echo "PyTorch, $1 $2 in $3: $(outcome): $(grep . "$work/output" | tail -n 1 | cut -c1-200)" >>"$work/notes"
    fi
  fi
  echo "| $1 $2 | $3 | ${problem:-$(scaled "${step:-}" 1000 %.2f)} | $(scaled "${fastest:-}" 1000 %.2f) |" \
    "$(scaled "${alone:-}" 1000 %.2f) |" \
    "$(scaled "${memory:-}" 0.0009765625 %.2f) | $(scaled "${theirs:-}" 1000 %.2f) |" \
    "$(scaled "${their_memory:-}" 0.0009765625 %.2f) | $(quotient "${theirs:-}" "${step:-}" 1 %.2f) |" \
    "$(scaled "${floor:-}" 1000 %.2f) | $(quotient "${floor:-}" "${step:-}" 100 '%.0f %%') |" >>"$work/steps"
  printf '%-60s %s\n' "step of $1 $2 in $3" "${problem:-$(scaled "${step:-}" 1000 '%.2f ms')}"
  write_report
}
measure_steps() {
  local size precision sizes=(cosmoflow:128 unet3d:128 cosmoflow:512 cosmoflow:256 unet3d:256)
  [[ -z "$quick" ]] || sizes=(cosmoflow:128 unet3d:128 cosmoflow:512)
  measure_ceilings
  for size in "${sizes[@]}"; do
    for precision in bf16 f32 tf32; do measure_step "${size%:*}" "${size#*:}" "$precision"; done
  done
}

tables() {
  if [[ -s "$work/tests" ]]; then
    printf '\n## Tests\n\n| | result | passed | skipped | seconds |\n| --- | --- | --- | --- | --- |\n'
    cat "$work/tests"
  fi
  if [[ -s "$work/steps" ]]; then
    printf '\n## A training step\n\nMini-batch 1; CosmoFlow with batch norm and dropout. '
    printf 'Times in ms (median of 10; fastest; its convolutions run alone), memory: the most in use on the GPU, in GiB.\n'
    printf 'PyTorch: channels last, cuDNN benchmark, fused Adam; PyTorch / HaloGrad above 1: HaloGrad is faster.\n'
    printf '\n| network | precision | step | fastest | convolutions | memory | PyTorch | its memory | PyTorch / HaloGrad |'
    printf ' floor | floor / step |\n'
    printf '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n'
    cat "$work/steps"
  fi
  if [[ -s "${work}/ceilings" ]]; then
    printf '\nThe floor takes every operation of the plan at the rate of a large matrix product, or its bytes at that of a'
    printf '\nlarge copy, as measured here: '
    for precision in f32 tf32 bf16; do
      printf '%s %s TFlop/s, ' "$precision" \
        "$(scaled "$(field "${precision}_flops_per_second" "$work/ceilings")" 1e-12 %.1f)"
    done
    printf '%s TB/s read and written.\n' "$(scaled "$(field bytes_per_second "$work/ceilings")" 1e-12 %.2f)"
  fi
}
write_report() { # [RESULT]
  {
    printf '# HaloGrad on GPUs\n\n%s\n' "${1:-**Unfinished**: still running, or stopped before its end.}"
    printf '\nVersion %s, %s, ' "${version:-unknown}" "$(date -u +'%Y-%m-%d %H:%M UTC')"
    printf 'parts %s%s\n' "$parts" "${quick:+, quick}"
    tables
    if [[ -s "$work/notes" ]]; then printf '\n## Notes\n\n'; sort -u "$work/notes" | sed 's/^/- /'; fi
    if [[ -s "$work/failures" ]]; then printf '\n## Failures\n'; cat "$work/failures"; fi
    printf '\n## Machine\n\n'
    {
      nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader 2>/dev/null
      uname -srm
      cat "$work/info" 2>/dev/null
      [[ -z "$python" ]] || "$python" -c 'import torch; print("PyTorch", torch.__version__)' 2>/dev/null
    } | sed 's/^/    /'
  } >"$work/report"
  cp "$work/report" "$out/gpu-report.md"
}

check "the program starts" "$bin/halograd" info
cp "$work/output" "$work/info"
[[ ",$parts," != *,tests,* ]] || check_kernels_and_ranks
[[ ",$parts," != *,training,* ]] || check_training
[[ ",$parts," != *,sanitizer,* ]] || check_with_sanitizer
[[ ",$parts," != *,steps,* ]] || measure_steps
if [[ "$failures" == 0 ]]; then
  result="**All passed**"
else
  result="**$failures failed** or did not run"
fi
# What no program has looked at is no failure of HaloGrad's, but must not read as if it had passed.
[[ -z "$unsanitized" ]] || result+="; memory accesses and races were **not checked**: $unsanitized"
write_report "$result ($SECONDS s)."
echo "$out/gpu-report.md"
[[ "$failures" == 0 ]]
