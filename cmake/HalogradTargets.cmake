# halograd_library(<folder> [DEPENDS <folder>...] [LINK <target>...]): one library per folder of src/halograd. DEPENDS
# names the folders whose headers it may include; tests/architecture checks the includes against this very list.
add_library(halograd_options INTERFACE)
target_compile_features(halograd_options INTERFACE cxx_std_20)
add_library(halograd_warnings INTERFACE)
target_compile_options(halograd_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
  # Options structs are made with designated initialisers that leave the defaults alone.
  -Wno-missing-field-initializers)
set_property(GLOBAL PROPERTY HALOGRAD_LIBRARIES halograd_options)

function(halograd_library folder)
  cmake_parse_arguments(arg "" "" "DEPENDS;LINK;LINK_PRIVATE" ${ARGN})
  string(REPLACE "/" "_" name "halograd_${folder}")
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
  add_library(${name} STATIC ${sources} ${PROJECT_SOURCE_DIR}/cmake/empty.cpp)
  string(REPLACE "/" "_" export "${folder}")
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME ${export})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  foreach(dependency ${arg_DEPENDS})
    string(REPLACE "/" "_" target "halograd_${dependency}")
    target_link_libraries(${name} PUBLIC ${target})
  endforeach()
  target_link_libraries(${name} PUBLIC halograd_options ${arg_LINK}
    PRIVATE ${arg_LINK_PRIVATE} $<BUILD_INTERFACE:halograd_warnings>)
  set_property(GLOBAL APPEND PROPERTY HALOGRAD_LIBRARIES ${name})
endfunction()
