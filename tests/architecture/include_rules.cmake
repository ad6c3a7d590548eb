# cmake -D SOURCE=<src/halograd> -P include_rules.cmake: fails where a file includes what its folder may not.
#   - A folder may include its own headers, those of the folders it DEPENDS on (as SOURCE/CMakeLists.txt has it) and of
#     theirs, and those of the folder it lies in.
#   - The two folders of CUDA_OR_STUB are parts of their library: they include what it may. The CUDA part may also
#     include the CUDA parts of the libraries below; nothing else includes a part that isn't a library's own folder.
#   - What other folders include of a CUDA part reaches no header of CUDA's, not even by way of others.
#   - A vendor's headers stay in their corner.
cmake_minimum_required(VERSION 3.25)

# header's regular expression | regular expression of the files that may include it
set(corners
  "^mpi\\.h$|^comm/mpi_support\\.hpp$"
  "^halograd/comm/mpi_support\\.hpp$|^(comm/|data/hdf5)"
  "^(oneapi/)?dnnl|^kernels/cpu/onednn\\.hpp$"
  "^hdf5\\.h$|^(data/|train/checkpoint)"
  "^fftw3|^data/synthetic/"
  "^nifti|^data/medical/nifti_support\\.hpp$"
  "^png\\.h$|^data/medical/png_file\\.cpp$"
  "^toml\\+\\+/|^train/config"
  "^nlohmann/|^(train|perf|cli)/"
  "^CLI/|^cli/"
  "^(cuda|cooperative_groups|cub/|mma\\.h|driver_types|vector_types)|^(device/cuda|kernels/cuda|comm/nccl)/"
  "^(cudnn|cublas)|^kernels/cuda/"
  "^nccl|^comm/nccl/")

# The headers of CUDA and its libraries.
set(cuda_headers "^(cuda|cooperative_groups|cub/|mma\\.h|driver_types|vector_types|cudnn|cublas|nccl)")

set(violations "")
function(violation text)
  set(violations "${violations}\n  ${text}" PARENT_SCOPE)
endfunction()

# --- the link graph ---------------------------------------------------------------------------------------------------
file(READ ${SOURCE}/CMakeLists.txt text)
string(REGEX REPLACE "#[^\n]*" "" text "${text}")
string(REGEX MATCHALL "halograd_library\\([^)]*\\)" calls "${text}")
set(folders "")
foreach(call ${calls})
  string(REGEX REPLACE "^halograd_library\\(|\\)$" "" call "${call}")
  string(REGEX REPLACE "[ \t\n]+" ";" words "${call}")
  cmake_parse_arguments(arg "" "" "DEPENDS;LINK;LINK_PRIVATE;CUDA_OR_STUB;LINK_CUDA" ${words})
  list(GET arg_UNPARSED_ARGUMENTS 0 folder)
  list(APPEND folders ${folder})
  set(depends_${folder} ${arg_DEPENDS})
  set(parts_${folder} ${arg_CUDA_OR_STUB})
endforeach()
# The program stands above all libraries.
set(depends_cli ${folders})
if(NOT folders)
  message(FATAL_ERROR "${SOURCE}/CMakeLists.txt declares no halograd_library")
endif()

list(APPEND folders cli)

foreach(folder ${folders})
  set(reached "")
  set(open ${depends_${folder}})
  while(open)
    list(POP_FRONT open next)
    if(NOT next IN_LIST folders)
      violation("${folder} depends on ${next}, which is no folder")
    elseif(NOT next IN_LIST reached)
      list(APPEND reached ${next})
      list(APPEND open ${depends_${next}})
    endif()
  endwhile()
  if(folder IN_LIST reached)
    violation("${folder} depends on itself, by way of others")
  endif()
  get_filename_component(parent "${folder}" DIRECTORY)
  set(may_include_${folder} ${folder} ${reached} ${parent})
  set(below_${folder} ${reached})
endforeach()

set(parts "")
set(cuda_parts "")
foreach(folder ${folders})
  if(parts_${folder})
    list(GET parts_${folder} 0 with_cuda)
    list(GET parts_${folder} 1 without_cuda)
    set(cuda_below "")
    foreach(other ${below_${folder}})
      if(parts_${other})
        list(GET parts_${other} 0 part)
        list(APPEND cuda_below ${part})
      endif()
    endforeach()
    set(may_include_${without_cuda} ${may_include_${folder}} ${without_cuda})
    set(may_include_${with_cuda} ${may_include_${folder}} ${with_cuda} ${cuda_below})
    list(APPEND parts ${with_cuda} ${without_cuda})
    list(APPEND cuda_parts ${with_cuda})
  endif()
endforeach()
list(APPEND folders ${parts})
list(REMOVE_DUPLICATES folders)

# --- the includes -----------------------------------------------------------------------------------------------------
file(GLOB_RECURSE files RELATIVE ${SOURCE} ${SOURCE}/*.hpp ${SOURCE}/*.cpp ${SOURCE}/*.inc
     ${SOURCE}/*.cu ${SOURCE}/*.cuh)
set(count 0)
foreach(file ${files})
  get_filename_component(folder "${file}" DIRECTORY)
  if(NOT folder IN_LIST folders)
    violation("${file}: its folder has no halograd_library")
    continue()
  endif()
  file(STRINGS ${SOURCE}/${file} lines REGEX "^[ \t]*#[ \t]*include")
  foreach(line ${lines})
    if(NOT line MATCHES "include[ \t]*([<\"])([^>\"]+)[>\"]")
      violation("${file}: can't read ${line}")
      continue()
    endif()
    set(quote "${CMAKE_MATCH_1}")
    set(header "${CMAKE_MATCH_2}")
    list(APPEND includes_${file} "${header}")
    math(EXPR count "${count} + 1")
    if(header MATCHES "^halograd/(.+)/[^/]+$")
      set(target "${CMAKE_MATCH_1}")
      if(NOT target IN_LIST may_include_${folder})
        violation("${file} includes ${header}: ${folder} does not depend on ${target}")
      endif()
    elseif(quote STREQUAL "\"")
      violation("${file} includes \"${header}\": name it from the root, \"halograd/<folder>/<file>\"")
    endif()
    foreach(corner ${corners})
      string(REPLACE "|^" ";^" pair "${corner}")
      list(GET pair 0 vendor)
      list(GET pair 1 allowed)
      if(header MATCHES "${vendor}" AND NOT file MATCHES "${allowed}")
        violation("${file} includes ${header}, which belongs to ${allowed}")
      endif()
    endforeach()
  endforeach()
endforeach()

# --- what reaches CUDA's headers --------------------------------------------------------------------------------------
set(reaching "")
set(grown YES)
while(grown)
  set(grown NO)
  foreach(file ${files})
    if("halograd/${file}" IN_LIST reaching)
      continue()
    endif()
    foreach(header ${includes_${file}})
      if(header MATCHES "${cuda_headers}" OR header IN_LIST reaching)
        list(APPEND reaching "halograd/${file}")
        set(grown YES)
        get_filename_component(folder "${file}" DIRECTORY)
        if(header IN_LIST reaching AND NOT folder IN_LIST cuda_parts)
          violation("${file} includes ${header}, which includes CUDA's headers")
        endif()
        break()
      endif()
    endforeach()
  endforeach()
endwhile()

if(NOT violations STREQUAL "")
  message(FATAL_ERROR "Include rules broken:${violations}")
endif()
list(LENGTH files number)
message("${count} includes in ${number} files keep the rules")
