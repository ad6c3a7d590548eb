# cmake -D NVCC=<nvcc> -D CCBIN=<host compiler, or empty> -D SOURCE=<src> -D WORK=<folder> -P accesses.cmake: fails where
# a kernel that should move memory 16 bytes at a time does not, by the loads and stores in its PTX.
cmake_minimum_required(VERSION 3.25)

# file | kernels (mangled) | 16-byte loads and stores that each must have | bytes of the narrower loads and of the narrower
# stores that it may have too. What these are: a channel's numbers (4, in double 8; of bf16 2), dropout's step (4),
# winners (1 a channel), blocks' sums (8), the ends of ranges that are no whole packets.
set(rules
  "region_copy|MoveUnits(IfLi4|INS_4Bf16ELi8)ELb0|1|1|no|no"
  "region_copy|MoveUnits(IfLi4|INS_4Bf16ELi8)ELb1|2|1|no|no"
  "upsample|Upsample(Forward|Backward)(IfLi4|INS_4Bf16ELi8)|1|1|no|no"
  "optimizer|AdamRange|4|3|4 8|4"
  "optimizer|SgdRange|3|2|4 8|4"
  "loss|SquaredErrorGradientIf|2|1|4|4"
  "convert|ConvertUnitsI(t|s|NS_4Bf16E)fLi8|1|2|no|4"
  "convert|ConvertUnitsI(tNS_4Bf16E|sNS_4Bf16E|NS_4Bf16ES._)Li8|1|1|no|4"
  "convert|ConvertUnitsIffLi8|2|2|no|4"
  "convert|ConvertUnitsIfNS_4Bf16ELi8|2|1|no|4"
  "segmentation_loss|SegmentationChunkSumsIfLi3|3|0|1 4|8"
  "segmentation_loss|SegmentationChunkSumsINS_4Bf16ELi3|3|0|1 2 8|8"
  "segmentation_loss|SegmentationChunkGradientIfLi3|3|3|1 4 8|4"
  "segmentation_loss|SegmentationChunkGradientINS_4Bf16ELi3|3|3|1 2 8|2"
  "segmentation_loss|SegmentationChunkGradientIfLi8|8|8|1 4 8|4"
  "segmentation_loss|SegmentationChunkGradientINS_4Bf16ELi8|8|8|1 2 8|2"
  "segmentation_loss|lane_sumsIfLi[0-9]+ELi4|2|0|1 4 8|8"
  "segmentation_loss|lane_gradientIfLi[0-9]+ELi4|2|2|1 4 8|4"
  "segmentation_loss|lane_sumsINS_4Bf16ELi[0-9]+ELi8|1|0|1 2 8|8"
  "segmentation_loss|lane_gradientINS_4Bf16ELi[0-9]+ELi8|1|1|1 2 8|2"
  "chain_f32|7MomentsIfLi4|4|0|4|8"
  "chain_f32|ForwardPlainIfLi4|2|2|4|no"
  "chain_f32|ForwardPooledIfLi4ELi2ELb0|8|1|4|no"
  "chain_f32|ForwardPooledIfLi4ELi2ELb1|8|1|4|4"
  "chain_f32|ForwardPooledIfLi4ELi3ELb0|27|1|4|no"
  "chain_f32|ForwardPooledIfLi4ELi3ELb1|27|1|4|4"
  "chain_f32|ForwardAnyIfLi4ELb0|1|1|4|no"
  "chain_f32|ForwardAnyIfLi4ELb1|1|1|4|4"
  "chain_f32|BackwardFacesIfLi4|1|1|4|no"
  "chain_f32|BackwardSumsIfLi4ENS1_11GatherPlain|8|0|4 8|8"
  "chain_f32|BackwardSumsIfLi4ENS1_11GatherPairsIfLi4ELi2|7|0|4 8|8"
  "chain_f32|BackwardSumsIfLi4ENS1_11GatherPairsIfLi4ELi3|10|0|4 8|8"
  "chain_f32|BackwardSumsIfLi4ENS1_9GatherAny|4|0|4 8|8"
  "chain_f32|BackwardDataIfLi4ENS1_11GatherPlain|10|2|4 8|no"
  "chain_f32|BackwardDataIfLi4ENS1_11GatherPairsIfLi4ELi2|9|2|4 8|no"
  "chain_f32|BackwardDataIfLi4ENS1_11GatherPairsIfLi4ELi3|12|2|4 8|no"
  "chain_f32|BackwardDataIfLi4ENS1_9GatherAny|5|1|4 8|no"
  "chain_bf16|7MomentsINS1_10DeviceBf16ELi8|4|0|2|8"
  "chain_bf16|ForwardPlainINS1_10DeviceBf16ELi8|3|3|4|no"
  "chain_bf16|ForwardPooledINS1_10DeviceBf16ELi8ELi2ELb0|8|1|4|no"
  "chain_bf16|ForwardPooledINS1_10DeviceBf16ELi8ELi2ELb1|8|1|4|8"
  "chain_bf16|ForwardPooledINS1_10DeviceBf16ELi8ELi3ELb0|27|1|4|no"
  "chain_bf16|ForwardPooledINS1_10DeviceBf16ELi8ELi3ELb1|27|1|4|8"
  "chain_bf16|ForwardAnyINS1_10DeviceBf16ELi8ELb0|1|1|4|no"
  "chain_bf16|ForwardAnyINS1_10DeviceBf16ELi8ELb1|1|1|4|8"
  "chain_bf16|BackwardFacesINS1_10DeviceBf16ELi8|1|1|4 8|no"
  "chain_bf16|BackwardSumsINS1_10DeviceBf16ELi8ENS1_11GatherPlain|6|0|4 8|8"
  "chain_bf16|BackwardSumsINS1_10DeviceBf16ELi8ENS1_11GatherPairsIS4_Li8ELi2|5|0|4 8|8"
  "chain_bf16|BackwardSumsINS1_10DeviceBf16ELi8ENS1_11GatherPairsIS4_Li8ELi3|8|0|4 8|8"
  "chain_bf16|BackwardSumsINS1_10DeviceBf16ELi8ENS1_9GatherAny|3|0|4 8|8"
  "chain_bf16|BackwardDataINS1_10DeviceBf16ELi8ENS1_11GatherPlain|8|2|4 8|no"
  "chain_bf16|BackwardDataINS1_10DeviceBf16ELi8ENS1_11GatherPairsIS4_Li8ELi2|7|2|4 8|no"
  "chain_bf16|BackwardDataINS1_10DeviceBf16ELi8ENS1_11GatherPairsIS4_Li8ELi3|10|2|4 8|no"
  "chain_bf16|BackwardDataINS1_10DeviceBf16ELi8ENS1_9GatherAny|4|1|4 8|no")

# bytes_of(<result> <access>): of "ld.global.nc.v4.u16" 8.
function(bytes_of result access)
  string(REGEX MATCH "(v([24])\\.)?[bfsu]([0-9]+)$" matched "${access}")
  set(count 1)
  if(CMAKE_MATCH_2)
    set(count ${CMAKE_MATCH_2})
  endif()
  math(EXPR bytes "${count} * ${CMAKE_MATCH_3} / 8")
  set(${result} ${bytes} PARENT_SCOPE)
endfunction()

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
  list(POP_BACK fields narrower_st narrower_ld at_least_st at_least_ld)
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
      string(REGEX MATCHALL "[^a-z]${kind}\\.global\\.[a-z0-9.]+" accesses "${entry}")
      string(REPLACE " " ";" allowed "${narrower_${kind}}")
      set(whole 0)
      foreach(access ${accesses})
        bytes_of(bytes "${access}")
        if(bytes EQUAL 16)
          math(EXPR whole "${whole} + 1")
        elseif(NOT bytes IN_LIST allowed)
          string(APPEND violations "\n  ${name}: ${access}, ${bytes} bytes")
        endif()
      endforeach()
      if(whole LESS at_least_${kind})
        string(APPEND violations "\n  ${name}: ${whole} ${kind} of 16 bytes instead of ${at_least_${kind}}")
      endif()
    endforeach()
  endforeach()
  message("${file}.cu: ${seen} kernels like ${kernels}")
  if(seen EQUAL 0)
    string(APPEND violations "\n  ${file}.cu has no kernel like ${kernels}")
  endif()
endforeach()
if(violations)
  message(FATAL_ERROR "Accesses of less than 16 bytes:${violations}")
endif()
