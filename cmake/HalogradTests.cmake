# halograd_tests(<folder> LINK <target>... [RANKS <n>...]): see tests/CMakeLists.txt.

# Under the address sanitizer: MPI keeps memory until the process ends, and one test counts allocations with operators
# of its own.
set(HALOGRAD_SANITIZER_ENVIRONMENT ASAN_OPTIONS=detect_leaks=0:alloc_dealloc_mismatch=0)

# Threads that wait must give their core away: tests share the machine with each other and with everything else on it.
set(HALOGRAD_SERIAL_ENVIRONMENT ${HALOGRAD_SANITIZER_ENVIRONMENT}
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_WAIT_POLICY=passive)
set(HALOGRAD_MPI_ENVIRONMENT ${HALOGRAD_SANITIZER_ENVIRONMENT}
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_base_warn_component_unused=0 OMP_NUM_THREADS=1)

function(halograd_tests folder)
  cmake_parse_arguments(arg "" "" "LINK;RANKS" ${ARGN})
  string(REPLACE "/" "_" name "${folder}")
  file(GLOB all CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*_test.cpp)
  set(parallel ${all})
  list(FILTER parallel INCLUDE REGEX "_mpi_test\\.cpp$")
  list(FILTER all EXCLUDE REGEX "_mpi_test\\.cpp$")
  if(all)
    add_executable(test_${name} ${all})
    target_link_libraries(test_${name} PRIVATE halograd_test_support ${arg_LINK} halograd_warnings)
    add_test(NAME ${folder} COMMAND test_${name})
    set_tests_properties(${folder} PROPERTIES TIMEOUT 600 ENVIRONMENT "${HALOGRAD_SERIAL_ENVIRONMENT}")
  endif()
  if(parallel)
    add_executable(test_${name}_mpi ${parallel})
    target_link_libraries(test_${name}_mpi PRIVATE halograd_test_support ${arg_LINK} halograd_warnings)
    foreach(ranks ${arg_RANKS})
      add_test(NAME ${folder}/ranks=${ranks}
               COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} $<TARGET_FILE:test_${name}_mpi>)
      set_tests_properties(${folder}/ranks=${ranks} PROPERTIES TIMEOUT 600 ENVIRONMENT "${HALOGRAD_MPI_ENVIRONMENT}")
      if(ranks GREATER 1)
        set_tests_properties(${folder}/ranks=${ranks} PROPERTIES PROCESSORS 2)
      endif()
    endforeach()
  endif()
endfunction()
