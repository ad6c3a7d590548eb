# cmake -D SCRIPT=<bundle.sh> -D BUILD=<build folder> -D WORK=<folder> -P bundle_test.cmake: the bundle of what is built here
# runs elsewhere, with an empty environment, on one rank and on two, and takes its libraries from itself.
cmake_minimum_required(VERSION 3.25)

include(${CMAKE_CURRENT_LIST_DIR}/../support/run.cmake)

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
run(bash ${SCRIPT} --build ${BUILD} --out ${WORK}/made.tar.gz)
if(NOT output MATCHES "made.tar.gz: ([0-9]+) MiB" OR CMAKE_MATCH_1 GREATER_EQUAL 60)
  message(FATAL_ERROR "the bundle should take less than 60 MiB: ${output}")
endif()
file(ARCHIVE_EXTRACT INPUT ${WORK}/made.tar.gz DESTINATION ${WORK})
set(bundle ${WORK}/halograd-gpu)

# NVIDIA's libraries stay where this build has them.
file(STRINGS ${bundle}/lib/vendor-libraries vendor)
list(TRANSFORM vendor REPLACE " .*" "")
set(folders "")
run(ldd ${BUILD}/bin/halograd)
foreach(name ${vendor})
  if(output MATCHES "${name} => ([^ \n]*)/[^/]* ")
    list(APPEND folders ${CMAKE_MATCH_1})
  endif()
endforeach()
list(JOIN folders ":" folders)

set(bare env -i PATH=/usr/bin:/bin HOME=${WORK} LD_LIBRARY_PATH=${folders} OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
         OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
         OMPI_MCA_mpi_yield_when_idle=1)
run(${bare} ${bundle}/bin/halograd info)
if(NOT output MATCHES "HaloGrad +[0-9]")
  message(FATAL_ERROR "`info` of the bundle prints:\n${output}")
endif()
run(${bare} ${bundle}/bin/mpirun -n 2 ${bundle}/bin/halograd bench step cosmoflow --width 32 --grid 2x1x1 --device cpu
            --steps 1 --no-floor)
if(NOT output MATCHES "grid 2x1x1 on 2 rank\\(s\\)")
  message(FATAL_ERROR "two ranks of the bundle print:\n${output}")
endif()

# What gpu-check.sh takes from beside it, with a training as it does one there.
if(NOT EXISTS ${bundle}/gpu-check-tests.sh)
  message(FATAL_ERROR "gpu-check.sh of the bundle lacks gpu-check-tests.sh")
endif()
run(${bare} ${bundle}/bin/halograd synth lits --out ${WORK}/scans --count 8 --width 32)
run(${bare} ${bundle}/bin/halograd convert lits --volumes ${WORK}/scans --out ${WORK}/cases --width 16)
run(${bare} STAND_IN_PROGRAM=${bundle}/bin/halograd
            bash ${bundle}/train-and-resume.sh ${WORK}/run unet3d ${WORK}/cases bf16 2x1x1
            ${bundle}/bin/mpirun -n 2 ${CMAKE_CURRENT_LIST_DIR}/on_processor.sh)

run(env LD_LIBRARY_PATH=${bundle}/lib ldd ${bundle}/libexec/halograd ${bundle}/libexec/mpirun
        ${bundle}/lib/openmpi/mca_pml_ob1.so ${bundle}/lib/openmpi/mca_pmix_ext3x.so)
string(REGEX MATCHALL "[^ \t\n]+ => [^ \n]+" linked "${output}")
foreach(line ${linked})
  string(REGEX REPLACE " => .*" "" name "${line}")
  if(NOT line MATCHES " => ${bundle}/lib/" AND NOT name IN_LIST vendor AND
     NOT name MATCHES "^lib(c|m|dl|rt|pthread|resolv)\\.so")
    message(FATAL_ERROR "the bundle takes ${line}, which another machine may lack")
  endif()
endforeach()
list(LENGTH linked count)
if(count LESS 20)
  message(FATAL_ERROR "only ${count} libraries were looked at:\n${output}")
endif()
