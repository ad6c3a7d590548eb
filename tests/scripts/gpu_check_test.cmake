# cmake -D SCRIPT=<gpu-check.sh> -D WORK=<folder> -P gpu_check_test.cmake: what gpu-check.sh reports and how it ends, with
# stand-ins for the programs, the GPU, PyTorch and the sanitizer.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE ${WORK})
set(bundle ${WORK}/bundle)
file(MAKE_DIRECTORY ${bundle}/bin ${bundle}/libexec ${bundle}/peers ${WORK}/path)
foreach(name halograd mpirun test_device test_kernels_cuda test_comm test_comm_mpi test_exec_mpi)
  file(COPY_FILE ${CMAKE_CURRENT_LIST_DIR}/stand_in.sh ${bundle}/bin/${name})
endforeach()
foreach(name nvidia-smi compute-sanitizer python3)
  file(COPY_FILE ${CMAKE_CURRENT_LIST_DIR}/stand_in.sh ${WORK}/path/${name})
endforeach()
file(COPY_FILE ${CMAKE_CURRENT_LIST_DIR}/stand_in.sh ${bundle}/libexec/test_exec_mpi)
file(WRITE ${bundle}/VERSION "1.2.3-stand-in\n")
cmake_path(GET SCRIPT PARENT_PATH scripts)
file(COPY ${scripts}/gpu-check.sh ${scripts}/gpu-check-tests.sh DESTINATION ${bundle})
file(COPY_FILE ${CMAKE_CURRENT_LIST_DIR}/stand_in.sh ${bundle}/train-and-resume.sh)

# check(<exit status> SETTING <name=value>... OPTIONS <option>... REPORT <expression>... ABSENT <expression>...
#       LOG <expression>... OUTPUT <expression>...)
function(check status)
  cmake_parse_arguments(arg "" "" "SETTING;OPTIONS;REPORT;ABSENT;LOG;OUTPUT" ${ARGN})
  file(REMOVE_RECURSE ${WORK}/out)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=CUDA_VISIBLE_DEVICES PATH=${WORK}/path:$ENV{PATH} STAND_IN_FOLDER=${WORK} ${arg_SETTING}
                          bash ${bundle}/gpu-check.sh --out ${WORK}/out ${arg_OPTIONS}
                  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  set(report "")
  if(EXISTS ${WORK}/out/gpu-report.md)
    file(READ ${WORK}/out/gpu-report.md report)
    file(READ ${WORK}/out/gpu-check.log log)
  endif()
  if(NOT result STREQUAL status)
    message(FATAL_ERROR "${arg_SETTING} ${arg_OPTIONS}: exit status ${result} instead of ${status}:\n${output}\n${report}")
  endif()
  foreach(expected ${arg_OUTPUT})
    if(NOT output MATCHES "${expected}")
      message(FATAL_ERROR "${arg_SETTING} ${arg_OPTIONS}: should print '${expected}', but prints:\n${output}")
    endif()
  endforeach()
  foreach(expected ${arg_REPORT})
    if(NOT report MATCHES "${expected}")
      message(FATAL_ERROR "${arg_SETTING} ${arg_OPTIONS}: should report '${expected}', but reports:\n${report}")
    endif()
  endforeach()
  foreach(expected ${arg_LOG})
    if(NOT log MATCHES "${expected}")
      message(FATAL_ERROR "${arg_SETTING} ${arg_OPTIONS}: should have run '${expected}', but ran:\n${log}")
    endif()
  endforeach()
  foreach(unwanted ${arg_ABSENT})
    if(report MATCHES "${unwanted}")
      message(FATAL_ERROR "${arg_SETTING} ${arg_OPTIONS}: should not report '${unwanted}', but reports:\n${report}")
    endif()
  endforeach()
endfunction()

# Without a GPU: one line, nothing written.
check(5 SETTING STAND_IN_nvidia_smi=none OUTPUT "^gpu-check.sh: error: no NVIDIA GPU here[^\n]*\n$")
if(EXISTS ${WORK}/out)
  message(FATAL_ERROR "without a GPU there is nothing to write")
endif()
check(2 OPTIONS --parts tests,speed OUTPUT "error: --parts tests,speed: tests, training, sanitizer or steps")
check(2 OPTIONS --fast OUTPUT "unknown option --fast")

# 40 ms a step for PyTorch's 100 with convolutions of 25 and a floor of 10, 2 GiB in use above what there was.
check(0 REPORT
  "\n\\*\\*All passed\\*\\*" "1\\.2\\.3-stand-in" "Stand-in, 81920 MiB, 580.00"
  "\\| the program starts \\| passed \\|"
  "\\| a small step of the U-Net in tf32 \\| passed \\|" "\\| kernels against the reference in each precision \\| passed \\| 7 \\| 2 \\|"
  "\\| messages and sums between GPUs, 4 ranks \\| passed \\| 7 "
  "\\| networks against one rank, 1 rank \\| passed \\| 9 \\| 0 \\|" "against one rank, 4 ranks \\| passed"
  "\\| loading beside steps, no allocations, 2 ranks \\| passed \\| 9 "
  "\\| networks by pinned memory and MPI, 2 ranks \\| passed \\| 7 " "pinned memory and MPI, 4 ranks \\| passed \\| 7 "
  "\\| scans become samples \\| passed \\|" "\\| training and resuming cosmoflow in f32, 1 rank \\| passed \\|"
  "\\| training and resuming unet3d in bf16, 2 ranks \\| passed \\|"
  "\\| compute-sanitizer racecheck, unet3d f32 \\| passed \\|"
  "\\| compute-sanitizer memcheck, cosmoflow bf16, 2 ranks \\| passed \\|"
  "\\| cosmoflow 512 \\| bf16 \\| 40\\.00 \\| 30\\.00 \\| 25\\.00 \\| 2\\.00 \\| 100\\.00 \\| 2\\.00 \\| 2\\.50 \\| 10\\.00 \\| 25 % \\|"
  "\\| unet3d 256 \\| tf32 \\| 40\\.00"
  "f32 50\\.0 TFlop/s, tf32 400\\.0 TFlop/s, bf16 800\\.0 TFlop/s, 4\\.00 TB/s"
  ABSENT "failed" "not run" "not checked" "Unfinished" "pinned and shared" "## Notes"
  LOG "mpirun -n 2 env CUDA_VISIBLE_DEVICES=0 compute-sanitizer --tool racecheck [^\n]*unet3d [^\n]*--grid 2x1x1 "
      "train-and-resume.sh [^\n]*cosmoflow [^\n]*bf16 2x1x1 env [^\n]*mpirun -n 2 [^\n]*bin/halograd\n")
check(0 OPTIONS --quick --parts steps REPORT "\\*\\*All passed" "cosmoflow 512 \\| f32 \\| 40" ABSENT "unet3d 256" "kernels against")

# Where NCCL would carry the messages, they go without it too.
check(0 SETTING STAND_IN_nvidia_smi=two OPTIONS --quick --parts tests
  REPORT "\\| networks by pinned and shared memory, 2 ranks \\| passed \\| 8 " "pinned memory and MPI, 2 ranks \\| passed \\| 7 "
  ABSENT "pinned and shared memory, 4 ranks")

# One failure is said, the rest runs, and the status tells.
check(1 SETTING STAND_IN_test_kernels_cuda=fails OPTIONS --quick
  REPORT "\\*\\*1 failed\\*\\*" "in each precision \\| \\*\\*failed\\*\\* \\(exit status 3\\)"
         "### kernels against the reference[^#]*    test_kernels_cuda has found a fault" "cosmoflow 128 \\| bf16 \\| 40")
check(1 SETTING STAND_IN_test_kernels_cuda=skips OPTIONS --parts tests
  REPORT "\\*\\*1 failed\\*\\*" "in each precision \\| \\*\\*nothing ran\\*\\* \\| 0 \\| 4 \\|")
check(1 SETTING STAND_IN_test_kernels_cuda=blind OPTIONS --parts tests
  REPORT "\\*\\*1 failed\\*\\*" "in each precision \\| \\*\\*no GPU seen\\*\\* \\| 5 \\| 4 \\|")
check(1 SETTING STAND_IN_halograd=fails OPTIONS --quick --parts sanitizer,steps
  REPORT "\\*\\*14 failed\\*\\*" "cosmoflow 128 \\| bf16 \\| \\*\\*failed\\*\\* \\(exit status 3\\) \\| – \\| – \\| – \\| 100\\.00")
check(1 SETTING STAND_IN_train_and_resume=fails OPTIONS --quick --parts training
  REPORT "\\*\\*5 failed\\*\\*" "### training and resuming cosmoflow in f32, 2 ranks[^#]*    train-and-resume has found a fault"
         "unet3d in bf16, 2 ranks \\| \\*\\*failed" ABSENT "unet3d in f32")
# Of 8 seconds one program takes all that are left; what comes after has none.
check(1 SETTING STAND_IN_test_kernels_cuda=hangs OPTIONS --limit 8 --parts tests
  REPORT "in each precision \\| \\*\\*stopped\\*\\* after [78] s" "1 rank \\| \\*\\*not run\\*\\*: out of time" ABSENT "Unfinished")
# What is not there is no failure of HaloGrad's, and is said.
check(0 SETTING STAND_IN_python3=fails OPTIONS --parts steps
  REPORT "No PyTorch that sees the GPU" "cosmoflow 128 \\| f32 \\| 40\\.00 \\| 30\\.00 \\| 25\\.00 \\| 2\\.00 \\| – \\| – \\| – \\| – \\| – \\|")
check(0 SETTING STAND_IN_halograd=no-floor OPTIONS --parts steps --quick
  REPORT "unet3d 128 \\| bf16 \\| 40\\.00 \\| 30\\.00 \\| – \\| 2\\.00 \\| 100" "- unet3d 128 in bf16: [^\n]*not timed alone: there is no memory")
set(unchecked "\n\n\\*\\*All passed\\*\\*; memory accesses and races were \\*\\*not checked\\*\\*: compute-sanitizer")
check(0 SETTING STAND_IN_compute_sanitizer=refuses OPTIONS --parts sanitizer
  REPORT "# HaloGrad on GPUs${unchecked} does not support this machine" ABSENT "\\| compute-sanitizer")
check(1 SETTING STAND_IN_compute_sanitizer=refuses STAND_IN_test_device=fails OPTIONS --parts tests,sanitizer
  REPORT "\\*\\*1 failed\\*\\* or did not run; memory accesses and races were \\*\\*not checked")
file(REMOVE ${WORK}/path/compute-sanitizer)
find_program(sanitizer compute-sanitizer PATHS /usr/local/nvidia/bin /usr/local/cuda/bin)
if(NOT sanitizer)  # which gpu-check.sh would find
  check(0 OPTIONS --parts sanitizer REPORT "# HaloGrad on GPUs${unchecked} was not found")
endif()
# Tests that would run on the processor whatever the variable says are no proof.
file(WRITE ${bundle}/libexec/test_exec_mpi "tests of old")
check(1 OPTIONS --parts tests REPORT "\\*\\*1 failed\\*\\*" "against one rank \\| \\*\\*not run\\*\\*: these tests know the processor alone")
