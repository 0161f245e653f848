# Parts from outside, all from Debian's packages: scripts/install-deps.sh installs them.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson>=2.10)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
find_library(DNNL_LIBRARY dnnl REQUIRED)
find_path(DNNL_INCLUDE dnnl.h REQUIRED)

# gomp: oneDNN takes its threads from it, and each of ours tells it to use one.
add_library(sifr_dependencies INTERFACE)
target_include_directories(sifr_dependencies SYSTEM INTERFACE ${DNNL_INCLUDE})
target_link_libraries(sifr_dependencies INTERFACE PkgConfig::JANSSON PkgConfig::PCRE2
  PkgConfig::UTF8PROC PkgConfig::XXHASH PkgConfig::HWLOC ${DNNL_LIBRARY} gomp Threads::Threads m)

# Ranks need an MPI, Open MPI or MPICH; without one sifr trains on one rank.
option(SIFR_MPI "Build the MPI transport where an MPI is found" ON)
if(SIFR_MPI)
  find_package(MPI COMPONENTS C)
endif()
if(MPI_C_FOUND)
  target_link_libraries(sifr_dependencies INTERFACE MPI::MPI_C)
  foreach(library ${MPI_C_LIBRARIES})
    get_filename_component(name ${library} NAME_WE)
    string(REGEX REPLACE "^lib" "" name ${name})
    string(APPEND SIFR_PC_MPI " -l${name}")
  endforeach()
else()
  message(STATUS "no MPI (libopenmpi-dev and openmpi-bin, or libmpich-dev and mpich): one rank only")
endif()
