# cmake -D SCRIPT=<gpu-check.sh> -D PROGRAM=<halograd> -D MPIRUN=<mpirun> -D WORK=<folder> -P training_check_test.cmake: the
# part `training` of gpu-check.sh with HaloGrad itself, on the processor in place of a GPU: it passes, and finds a resumed
# run that is another.
cmake_minimum_required(VERSION 3.25)

include(${CMAKE_CURRENT_LIST_DIR}/../support/run.cmake)

file(REMOVE_RECURSE ${WORK})
set(bundle ${WORK}/bundle)
file(MAKE_DIRECTORY ${bundle}/bin ${WORK}/path ${WORK}/temporary)
file(COPY_FILE ${CMAKE_CURRENT_LIST_DIR}/on_processor.sh ${bundle}/bin/halograd)
file(COPY_FILE ${CMAKE_CURRENT_LIST_DIR}/stand_in.sh ${WORK}/path/nvidia-smi)
file(CREATE_LINK ${MPIRUN} ${bundle}/bin/mpirun SYMBOLIC)
cmake_path(GET SCRIPT PARENT_PATH scripts)
file(COPY ${scripts}/gpu-check.sh ${scripts}/gpu-check-tests.sh ${scripts}/train-and-resume.sh DESTINATION ${bundle})

run(env PATH=${WORK}/path:$ENV{PATH} STAND_IN_PROGRAM=${PROGRAM} TMPDIR=${WORK}/temporary
        bash ${bundle}/gpu-check.sh --out ${WORK}/out --quick --parts training)
file(READ ${WORK}/out/gpu-report.md report)
foreach(row "cosmoflow in bf16, 1 rank" "cosmoflow in bf16, 2 ranks" "cosmoflow in f32, 1 rank" "cosmoflow in f32, 2 ranks"
            "unet3d in bf16, 2 ranks")
  if(NOT report MATCHES "\\| training and resuming ${row} \\| passed \\|")
    message(FATAL_ERROR "should report that ${row} passed, but reports:\n${report}")
  endif()
endforeach()
file(GLOB left ${WORK}/temporary/*)
if(left)
  message(FATAL_ERROR "leaves ${left} behind")
endif()

run(${PROGRAM} synth lits --out ${WORK}/scans --count 8 --width 32)
run(${PROGRAM} convert lits --volumes ${WORK}/scans --out ${WORK}/cases --width 16)
# finds(<fault of on_processor.sh> <what the script must say>)
function(finds fault expected)
  execute_process(COMMAND env STAND_IN_PROGRAM=${PROGRAM} STAND_IN_FAULT=${fault} bash ${bundle}/train-and-resume.sh
                          ${WORK}/${fault} unet3d ${WORK}/cases f32 1x1x1 ${bundle}/bin/halograd
                  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(result EQUAL 0 OR NOT output MATCHES "train-and-resume.sh: ${expected}")
    message(FATAL_ERROR "a run that ${fault}: exit status ${result}, should say '${expected}', but prints:\n${output}")
  endif()
endfunction()
finds(loses "the resumed run \\(>\\) has other losses")
finds(chooses "the resumed run has other algorithms than these: --- rank 0 --- shape 0")
