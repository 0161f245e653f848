# What `sifr --version --verbose` says of this build. The commit is looked up when a source has
# changed or git has moved, so that no build starts git in vain.
set(SIFR_COMMIT_H ${CMAKE_BINARY_DIR}/commit/cli/commit.h)
file(GLOB_RECURSE inputs CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*.[ch] ${CMAKE_SOURCE_DIR}/src/*.inc
  ${CMAKE_SOURCE_DIR}/src/*.def ${CMAKE_SOURCE_DIR}/include/sifr/*.h)
execute_process(COMMAND git -C ${CMAKE_SOURCE_DIR} rev-parse --git-path logs/HEAD
  OUTPUT_VARIABLE moves ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT moves STREQUAL "")
  get_filename_component(moves ${moves} ABSOLUTE BASE_DIR ${CMAKE_SOURCE_DIR})
  if(EXISTS ${moves})
    list(APPEND inputs ${moves})
  endif()
endif()
add_custom_command(OUTPUT ${SIFR_COMMIT_H} DEPENDS ${inputs} ${CMAKE_SOURCE_DIR}/cmake/commit.cmake
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DOUT=${SIFR_COMMIT_H}
    -P ${CMAKE_SOURCE_DIR}/cmake/commit.cmake
  COMMENT "The commit" VERBATIM)

string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
set(built "${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${type}}")
# Of this machine, and no matter to anybody else.
string(REGEX REPLACE "-f[a-z]+-prefix-map=[^ ]*" "" built "${built}")
string(REGEX REPLACE " +" " " built "${built}")
string(STRIP "${built}" built)
set(built "${CMAKE_BUILD_TYPE}, ${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}, ${built}")
if(SIFR_SANITIZE)
  string(APPEND built ", sanitizers ${SIFR_SANITIZE}")
endif()
string(REPLACE ";" " " sets "${SIFR_KERNEL_SETS}")
set(SIFR_VERSION_TEXT ${CMAKE_SOURCE_DIR}/src/cli/version_text.c)
set_source_files_properties(${SIFR_VERSION_TEXT} PROPERTIES OBJECT_DEPENDS ${SIFR_COMMIT_H}
  INCLUDE_DIRECTORIES ${CMAKE_BINARY_DIR}/commit COMPILE_DEFINITIONS
  "SIFR_BUILT=\"${built}\";SIFR_BUILT_SETS=\"${sets}\";SIFR_BUILT_URING=\"${URING_VERSION}\"")
