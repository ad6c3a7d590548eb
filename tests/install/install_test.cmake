# cmake -D BUILD=<build folder> -D WORK=<folder> -D GENERATOR=... -P install_test.cmake: installs into WORK, then builds
# and runs the project in downstream/ on what was installed.
include(${CMAKE_CURRENT_LIST_DIR}/../support/run.cmake)

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/downstream -B ${WORK}/build -G ${GENERATOR}
    -D CMAKE_BUILD_TYPE=Release -D CMAKE_CXX_COMPILER=${COMPILER} "-DCMAKE_CXX_FLAGS=${FLAGS}"
    -D CMAKE_PREFIX_PATH=${WORK}/prefix ${ROOTS})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/downstream)
if(NOT output MATCHES "parameters 9437636\n" OR NOT output MATCHES "outputs 4\n")
  message(FATAL_ERROR "the downstream program printed:\n${output}")
endif()
if(CUDA)
  set(versions "CUDA runtime 1[0-9.]+, driver [a-z0-9.]+; cuDNN 9[0-9.]+, cuBLASLt 1[0-9.]+; NCCL 2[0-9.]+\n")
else()
  set(versions "built without CUDA; built without CUDA; NCCL built without CUDA\n")
endif()
if(NOT output MATCHES "${versions}")
  message(FATAL_ERROR "the downstream program should name ${versions}:\n${output}")
endif()
file(GLOB_RECURSE leaked ${WORK}/prefix/lib*/cmake/halograd/*.cmake)
foreach(file ${leaked})
  file(READ ${file} text)
  if(text MATCHES "${SOURCE}/" OR text MATCHES "${BUILD}/")
    message(FATAL_ERROR "${file} names the source or build folder: an installed package must stand alone")
  endif()
endforeach()
