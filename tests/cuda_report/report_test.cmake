# cmake -D REPORT=<command> -P report_test.cmake: the report passes a kernel that fits, with its figures, fails on one
# that spills, and fails otherwise on a file that does not compile.
cmake_minimum_required(VERSION 3.25)

function(check file status expected)
  execute_process(COMMAND ${REPORT} ${CMAKE_CURRENT_LIST_DIR}/${file}
                  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result MATCHES "^(${status})$")
    message(FATAL_ERROR "${file}: exit status ${result} instead of ${status}:\n${output}")
  elseif(NOT output MATCHES "${expected}")
    message(FATAL_ERROR "${file}: should say '${expected}', but says:\n${output}")
  endif()
endfunction()

# 32 floats of shared memory, no stack, no spills.
check(fitting.cu 0 "[0-9]+ +0 +0 +0 +128  fitting.*\n1 functions, 0 of them spill")
check(spilling.cu 1 "64 +[1-9][0-9]* +[1-9][0-9]* +[1-9][0-9]* +0  spilling.*\n1 functions, 1 of them spill")
check(missing.cu "12[0-9]" "missing.cu")
