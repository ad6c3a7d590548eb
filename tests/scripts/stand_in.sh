#!/usr/bin/env bash
# Plays each program that gpu-check.sh starts, by the name it is called with. STAND_IN_<NAME>, with _ for -, changes what it
# does: fails, skips, blind (sees no GPU), hangs, refuses (the machine); of nvidia-smi, none and two; of
# halograd, no-floor. STAND_IN_FOLDER: where they leave word for each other.
name="$(basename "$0" .sh)"
variable="STAND_IN_${name//-/_}"
case "${!variable:-}" in
  fails) echo "$name has found a fault"; exit 3 ;;
  skips) echo "[  PASSED  ] 0 tests."; echo "[  SKIPPED ] 4 tests, listed below:"; exit 0 ;;
  blind) echo "no NVIDIA driver"; echo "[  PASSED  ] 5 tests."; echo "[  SKIPPED ] 4 tests, listed below:"; exit 0 ;;
  hangs) exec sleep 60 ;;
  refuses) echo "========= Error: Device not supported"; exit 1 ;;
  none) echo "No devices were found"; exit 6 ;;
  two) [[ "$*" != -L ]] || echo "GPU 1: Stand-in (UUID: GPU-1)" ;;
esac
# A step lasts until its memory has been looked at.
last_until_watched() {
  for ((i = 0; i < 200; ++i)); do
    [[ ! -e "$STAND_IN_FOLDER/watched" ]] || break
    sleep 0.05
  done
  rm -f "$STAND_IN_FOLDER/watched"
}
case "$name" in
  nvidia-smi)
    case "$*" in
      -L) echo "GPU 0: Stand-in (UUID: GPU-0)" ;;
      *memory.used*-lms*) echo 300; echo 2348; touch "$STAND_IN_FOLDER/watched"; exec sleep 30 ;;  # MiB
      *memory.used*) echo 300 ;;
      *) echo "Stand-in, 81920 MiB, 580.00" ;;
    esac ;;
  mpirun) [[ "$1" == -n ]] && shift 2 && exec "$@" ;;
  compute-sanitizer) while [[ "$1" == --* ]]; do shift; [[ "$1" == --* ]] || shift; done; exec "$@" ;;
  halograd)
    case "$*" in
      info) echo "HaloGrad  stand-in" ;;
      *--json*)
        last_until_watched
        alone=0.025
        if [[ "${!variable:-}" == no-floor ]]; then
          alone=null
          echo "the convolutions are not timed alone: there is no memory for it" >&2
        fi
        printf '{\n  "model": "m",\n  "step_seconds": 0.04,\n  "fastest_step_seconds": 0.03'
        [[ "$*" == *--no-floor* ]] || printf ',\n  "conv_floor_seconds": %s' "$alone"
        [[ "$*" != *--machine* ]] || printf ',\n  "predicted": {\n    "step_seconds": 0.01\n  }'
        printf '\n}\n' ;;
    esac ;;
  python3)
    case "$*" in
      *--ceilings*)
        printf '{\n  "name": "Stand-in",\n  "f32_flops_per_second": 5e13,\n  "tf32_flops_per_second": 4e14,\n'
        printf '  "bf16_flops_per_second": 8e14,\n  "bytes_per_second": 4e12\n}\n' ;;
      *step_torch_cuda*)
        last_until_watched
        printf '{\n  "step_seconds": 0.1,\n  "version": "2"\n}\n' ;;
    esac ;;
  test_exec_mpi)  # the number of tests tells which ways of messages were open
    passed=9
    [[ "${HALOGRAD_NCCL:-}" != 0 ]] || passed=8
    [[ "${HALOGRAD_NCCL:-} ${HALOGRAD_SHARED_MEMORY:-}" != "0 0" ]] || passed=7
    [[ "$HALOGRAD_TEST_DEVICE" == cuda ]] && echo "[  PASSED  ] $passed tests." ;;
  test_*) echo "[  PASSED  ] 7 tests."; echo "[  SKIPPED ] 2 tests, listed below:" ;;
esac
