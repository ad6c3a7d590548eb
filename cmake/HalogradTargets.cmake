# halograd_library(<folder> [DEPENDS <folder>...] [LINK <target>...] [LINK_PRIVATE <target>...]
#                  [CUDA_OR_STUB <folder> <folder>] [LINK_CUDA <target>...]): one library per folder of src/halograd.
# DEPENDS names the folders whose headers it may include; tests/architecture checks the includes against this very list.
# CUDA_OR_STUB names the folder that is compiled with CUDA and the one that is compiled without it, besides the
# library's own (which may be the first of them); LINK_CUDA is what the former links.
add_library(halograd_options INTERFACE)
target_compile_features(halograd_options INTERFACE cxx_std_20)

set(warnings -Wall -Wextra -Wshadow -Wnon-virtual-dtor
  # Options structs are made with designated initialisers that leave the defaults alone.
  -Wno-missing-field-initializers)
list(JOIN warnings "," host_warnings)
add_library(halograd_warnings INTERFACE)
# What nvcc hands to the host compiler does not bear -Wpedantic.
target_compile_options(halograd_warnings INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${warnings};-Wpedantic>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=${host_warnings}>")
set_property(GLOBAL PROPERTY HALOGRAD_LIBRARIES halograd_options)

function(halograd_library folder)
  cmake_parse_arguments(arg "" "" "DEPENDS;LINK;LINK_PRIVATE;CUDA_OR_STUB;LINK_CUDA" ${ARGN})
  string(REPLACE "/" "_" name "halograd_${folder}")
  set(parts ${folder})
  if(arg_CUDA_OR_STUB)
    list(GET arg_CUDA_OR_STUB 0 with_cuda)
    list(GET arg_CUDA_OR_STUB 1 without_cuda)
    list(REMOVE_ITEM parts ${with_cuda})
    if(HALOGRAD_WITH_CUDA)
      list(APPEND parts ${with_cuda})
      list(APPEND arg_LINK_PRIVATE ${arg_LINK_CUDA})
    else()
      list(APPEND parts ${without_cuda})
    endif()
  endif()
  set(sources "")
  foreach(part ${parts})
    set(path ${CMAKE_CURRENT_SOURCE_DIR}/${part})
    file(GLOB files CONFIGURE_DEPENDS ${path}/*.cpp ${path}/*.cu)
    list(APPEND sources ${files})
  endforeach()
  add_library(${name} STATIC ${sources} ${PROJECT_SOURCE_DIR}/cmake/empty.cpp)
  string(REPLACE "/" "_" export "${folder}")
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME ${export})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  # Index arithmetic is shared with the host as constexpr functions.
  target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-lineinfo>"
    # Registers that spill to memory cost a kernel most of its speed, and nobody sees it: none does, on any architecture.
    "$<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=--warn-on-spills,--warning-as-error>")
  foreach(dependency ${arg_DEPENDS})
    string(REPLACE "/" "_" target "halograd_${dependency}")
    target_link_libraries(${name} PUBLIC ${target})
  endforeach()
  target_link_libraries(${name} PUBLIC halograd_options ${arg_LINK}
    PRIVATE ${arg_LINK_PRIVATE} $<BUILD_INTERFACE:halograd_warnings>)
  set_property(GLOBAL APPEND PROPERTY HALOGRAD_LIBRARIES ${name})
endfunction()
