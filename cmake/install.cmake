# What `make install` lays down: the program, both libraries, the headers, and how pkg-config and
# CMake find them. Nothing holds an absolute path, so that a prefix can be chosen when installing.
include(CMakePackageConfigHelpers)

add_library(sifr_shared SHARED $<TARGET_OBJECTS:sifr_objects> ${SIFR_KERNEL_OBJECTS}
  ${SIFR_PARQUET_OBJECTS})
target_link_libraries(sifr_shared PRIVATE sifr_flags sifr_dependencies)
target_link_options(sifr_shared PRIVATE -Wl,--exclude-libs,ALL)
if(NOT SIFR_SANITIZE) # their run time is the program's to bring
  target_link_options(sifr_shared PRIVATE -Wl,--no-undefined)
endif()
# Before 1.0 any minor version may change the interface.
set_target_properties(sifr_shared PROPERTIES OUTPUT_NAME sifr EXPORT_NAME sifr
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_include_directories(sifr_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(sifr_static PROPERTIES OUTPUT_NAME sifr)

install(TARGETS sifr_shared EXPORT sifrTargets)
install(FILES $<TARGET_FILE:sifr_static> DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/sifr DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(SIFR_CMAKE_DIRECTORY ${CMAKE_INSTALL_LIBDIR}/cmake/sifr)
install(EXPORT sifrTargets NAMESPACE sifr:: DESTINATION ${SIFR_CMAKE_DIRECTORY})
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/sifrConfig.cmake.in
  ${CMAKE_BINARY_DIR}/sifrConfig.cmake INSTALL_DESTINATION ${SIFR_CMAKE_DIRECTORY})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/sifrConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/sifrConfig.cmake ${CMAKE_BINARY_DIR}/sifrConfigVersion.cmake
  DESTINATION ${SIFR_CMAKE_DIRECTORY})

file(RELATIVE_PATH SIFR_PC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_SOURCE_DIR}/cmake/sifr.pc.in ${CMAKE_BINARY_DIR}/sifr.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/sifr.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
