# cmake --install: the program, the libraries (one per folder, and halograd::halograd for all of them), the headers, the
# machine files and the package configuration, for find_package(halograd) in a project of one's own.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY HALOGRAD_LIBRARIES)
add_library(halograd_all INTERFACE)
target_link_libraries(halograd_all INTERFACE ${libraries})
set_target_properties(halograd_all PROPERTIES EXPORT_NAME halograd)
set_target_properties(halograd_options PROPERTIES EXPORT_NAME options)

install(TARGETS ${libraries} halograd_all EXPORT halograd-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set_target_properties(halograd_cli PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS halograd_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/halograd DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp" PATTERN "cli" EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/machines DESTINATION ${CMAKE_INSTALL_DATADIR}/halograd
        FILES_MATCHING PATTERN "*.json")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/halograd)
install(EXPORT halograd-targets NAMESPACE halograd:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/halograd-config.cmake.in
  ${PROJECT_BINARY_DIR}/halograd-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/halograd-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/halograd-config.cmake ${PROJECT_BINARY_DIR}/halograd-config-version.cmake
              ${PROJECT_SOURCE_DIR}/cmake/HalogradDependencies.cmake
              ${PROJECT_SOURCE_DIR}/cmake/HalogradCudaLibraries.cmake
        DESTINATION ${package_dir})
