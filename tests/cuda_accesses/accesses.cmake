# cmake -D NVCC=<nvcc> -D CCBIN=<host compiler, or empty> -D SOURCE=<src> -D WORK=<folder> -P accesses.cmake: fails where
# a kernel that should move memory 16 bytes at a time does not, by the loads and stores in its PTX.
cmake_minimum_required(VERSION 3.25)

# file | kernels (mangled) | 16-byte loads and stores that each must have | whether it may have narrower ones too
set(rules
  "region_copy|MoveUnits(IfLi4|INS_4Bf16ELi8)ELb0|1|1|no"
  "region_copy|MoveUnits(IfLi4|INS_4Bf16ELi8)ELb1|2|1|no"
  "upsample|Upsample(Forward|Backward)(IfLi4|INS_4Bf16ELi8)|1|1|no"
  "optimizer|AdamRange|4|3|yes"
  "optimizer|SgdRange|3|2|yes"
  "loss|SquaredErrorGradientIf|2|1|yes"
  "convert|ConvertUnitsI(t|s|NS_4Bf16E|S3_)(f|NS_4Bf16E|S._)Li8|1|1|yes"
  "convert|ConvertUnitsIf(f|NS_4Bf16E)Li8|2|1|yes"
  "segmentation_loss|SegmentationChunkSums(If|INS_4Bf16E)Li3|3|0|yes"
  "segmentation_loss|SegmentationChunkGradient(If|INS_4Bf16E)Li3|3|3|yes"
  "segmentation_loss|SegmentationChunkGradient(If|INS_4Bf16E)Li8|8|8|yes"
  "segmentation_loss|lane_sumsIfLi[0-9]+ELi4|2|0|yes"
  "segmentation_loss|lane_gradientIfLi[0-9]+ELi4|2|2|yes"
  "segmentation_loss|lane_sumsINS_4Bf16ELi[0-9]+ELi8|1|0|yes"
  "segmentation_loss|lane_gradientINS_4Bf16ELi[0-9]+ELi8|1|1|yes")
set(whole "\\.global\\.(v4\\.[bfu]32|v2\\.[bfu]64)")

set(environment "")
if(CCBIN)
  set(environment NVCC_CCBIN=${CCBIN})
endif()
set(violations "")
set(compiled "")
foreach(rule ${rules})
  string(REPLACE "|" ";" fields "${rule}")
  # A regular expression's own bars came apart too.
  list(POP_FRONT fields file)
  list(POP_BACK fields narrower stores loads)
  list(JOIN fields "|" kernels)
  if(NOT file IN_LIST compiled)
    execute_process(COMMAND ${CMAKE_COMMAND} -E env ${environment} ${NVCC} -std=c++20 --expt-relaxed-constexpr -O3
                            -DNDEBUG -arch=sm_90 -I${SOURCE} -ptx -o ${WORK}/${file}.ptx
                            ${SOURCE}/halograd/kernels/cuda/${file}.cu
                    COMMAND_ERROR_IS_FATAL ANY)
    list(APPEND compiled ${file})
  endif()
  # One string an entry, without the characters that lists and regular expressions take amiss.
  file(READ ${WORK}/${file}.ptx text)
  string(REGEX REPLACE "[][;\\]" "" text "${text}")
  string(REPLACE ".entry" ";" entries "${text}")
  list(POP_FRONT entries)
  set(seen 0)
  foreach(entry ${entries})
    string(REGEX MATCH "^ *[A-Za-z0-9_]+" name "${entry}")
    if(NOT name MATCHES "${kernels}")
      continue()
    endif()
    math(EXPR seen "${seen} + 1")
    foreach(kind ld st)
      string(REGEX MATCHALL "${kind}\\.global\\.[a-z0-9.]+" all "${entry}")
      set(wide ${all})
      list(FILTER wide INCLUDE REGEX "${whole}")
      list(LENGTH all all_${kind})
      list(LENGTH wide wide_${kind})
    endforeach()
    if(wide_ld LESS loads OR wide_st LESS stores)
      string(APPEND violations "\n  ${name}: ${wide_ld} loads and ${wide_st} stores of 16 bytes instead of ${loads} and ${stores}")
    elseif(narrower STREQUAL "no" AND NOT "${wide_ld} ${wide_st}" STREQUAL "${all_ld} ${all_st}")
      string(APPEND violations "\n  ${name} has narrower accesses too")
    endif()
  endforeach()
  message("${file}.cu: ${seen} kernels like ${kernels}")
  if(seen EQUAL 0)
    string(APPEND violations "\n  ${file}.cu has no kernel like ${kernels}")
  endif()
endforeach()
if(violations)
  message(FATAL_ERROR "Accesses of less than 16 bytes:${violations}")
endif()
