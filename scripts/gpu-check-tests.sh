#!/usr/bin/env bash
# What gpu-check.sh runs to see what is right: its parts `tests`, `training` and `sanitizer`. It sources this file.
# shellcheck disable=SC2154,SC2034 # variables are gpu-check.sh's

check_kernels_and_ranks() {
  local precision
  for precision in f32 tf32 bf16; do
    check "a small step of CosmoFlow in $precision" "$bin/halograd" bench step cosmoflow --width 32 --batch-norm \
      --device cuda --precision "$precision" --steps 3 --no-floor
    check "a small step of the U-Net in $precision" "$bin/halograd" bench step unet3d --width 32 \
      --device cuda --precision "$precision" --steps 3 --no-floor
  done
  check_tests "device: memory, queues, recording" "$bin/test_device" --gtest_filter='*OnGpu*:*CudaDevice*'
  check_tests "kernels against the reference in each precision" "$bin/test_kernels_cuda"
  check_tests "NCCL by itself" "$bin/test_comm" --gtest_filter='Nccl*'
  local ranks
  for ranks in 2 4; do check_ranks test_comm_mpi "messages and sums between GPUs" "$ranks" '*gpu*'; done
  if ! grep -q HALOGRAD_TEST_DEVICE "$code/test_exec_mpi"; then
    took=0
    failures=$((failures + 1))
    row "networks against one rank" "**not run**: these tests know the processor alone" – –
    return
  fi
  for ranks in 1 2 4; do
    check_networks "networks against one rank" "$ranks"
    HALOGRAD_TEST_DEVICE=cuda check_ranks test_exec_mpi "loading beside steps, no allocations" "$ranks" \
      '*InputSlots*:*SteadyState*'
  done
  check_transports
}
check_ranks() { # PROGRAM NAME RANKS FILTER
  # shellcheck disable=SC2046
  check_tests "$2, $(in_words "$3")" $(on_ranks "$3") "$bin/$1" --gtest_filter="$4"
}
check_networks() { # NAME RANKS
  HALOGRAD_TEST_DEVICE=cuda check_ranks test_exec_mpi "$1" "$2" \
    '*Cosmoflow*:*Unet3d*:*Layers*:*LowPrecision*:-*Reference*:*reference*'
}
# The ways of messages that this machine would not take by itself: without NCCL where each rank has a GPU, and without
# memory shared between ranks, as between nodes.
check_transports() {
  local ranks
  for ranks in 2 4; do
    [[ "$gpus" -lt "$ranks" ]] || HALOGRAD_NCCL=0 \
      check_networks "networks by pinned and shared memory" "$ranks"
    HALOGRAD_NCCL=0 HALOGRAD_SHARED_MEMORY=0 check_networks "networks by pinned memory and MPI" "$ranks"
    [[ -z "$quick" ]] || break
  done
}

# From files to a checkpoint and on from it (train-and-resume.sh says what is compared).
check_training() {
  local universes="$work/universes" scans="$work/scans" cases="$work/cases" precision ranks
  check "synthetic universes" "$bin/halograd" synth cosmoflow --out "$universes" --count 8 --width 32 --box 128
  check "synthetic scans" "$bin/halograd" synth lits --out "$scans" --count 8 --width 32
  check "scans become samples" "$bin/halograd" convert lits --volumes "$scans" --out "$cases" --width 16
  for precision in bf16 f32; do
    for ranks in 1 2; do
      check_resuming cosmoflow "$universes" "$precision" "$ranks"
      [[ -n "$quick" && "$precision$ranks" != bf162 ]] || check_resuming unet3d "$cases" "$precision" "$ranks"
    done
  done
}
check_resuming() { # MODEL DATA PRECISION RANKS
  # shellcheck disable=SC2046
  check "training and resuming $1 in $3, $(in_words "$4")" bash "$here/train-and-resume.sh" "$work/run" \
    "$1" "$2" "$3" "$4x1x1" $([[ "$4" == 1 ]] || on_ranks "$4") "$bin/halograd"
  rm -rf "$work/run"  # one that failed is there still: a gigabyte
}

check_with_sanitizer() {
  local tool network precision
  if ! command -v compute-sanitizer >/dev/null; then
    unsanitized="compute-sanitizer was not found"
    return
  fi
  for tool in memcheck racecheck; do
    for network in "cosmoflow --width 32 --batch-norm" "unet3d --width 16"; do
      for precision in f32 bf16; do
        [[ -z "$quick" || "$precision$network" == bf16cosmoflow* ]] || continue
        sanitize 1 "$tool" "$network" "$precision" || return
        # Parts of a sample on one GPU: halos are packed, pass through pinned memory and are unpacked.
        [[ "$precision" == f32 ]] || sanitize 2 "$tool" "$network" "$precision" || return
      done
    done
  done
}
sanitize() { # RANKS TOOL NETWORK PRECISION; 1 where the tool refuses the machine
  local name="compute-sanitizer $2, ${3%% *} $4" ranks=()
  if [[ "$1" != 1 ]]; then
    name+=", $(in_words "$1")"
    read -ra ranks <<<"$(on_ranks "$1")"
    ranks+=(env CUDA_VISIBLE_DEVICES="$first_gpu")
  fi
  # shellcheck disable=SC2086
  run "$sanitizer_limit" "${ranks[@]}" compute-sanitizer --tool "$2" --error-exitcode 99 --target-processes all \
    "$bin/halograd" bench step $3 --grid "$1x1x1" --device cuda --precision "$4" --steps 1 --warm-up 1 --no-floor
  if grep -q 'Device not supported' "$work/output"; then
    unsanitized="compute-sanitizer does not support this machine"
    return 1
  fi
  [[ "$status" == 0 ]] || fail "$name"
  row "$name" "$(outcome)" – –
}
