# Parts from outside, all from Debian's packages: scripts/install-deps.sh installs them.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson>=2.14)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd>=1.4)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(URING REQUIRED IMPORTED_TARGET liburing>=2.2)
find_library(DNNL_LIBRARY dnnl REQUIRED)
find_path(DNNL_INCLUDE dnnl.h REQUIRED)

# gomp: oneDNN takes its threads from it, and each of ours tells it to use one.
add_library(sifr_dependencies INTERFACE)
target_include_directories(sifr_dependencies SYSTEM INTERFACE ${DNNL_INCLUDE})
target_link_libraries(sifr_dependencies INTERFACE PkgConfig::JANSSON PkgConfig::YAML PkgConfig::PCRE2
  PkgConfig::UTF8PROC PkgConfig::XXHASH PkgConfig::ZLIB PkgConfig::ZSTD PkgConfig::HWLOC
  PkgConfig::URING ${DNNL_LIBRARY} gomp Threads::Threads ${CMAKE_DL_LIBS} m)

# MPI is opened at run time (src/comm/mpi_library/): no build needs one.
if(DEFINED SIFR_MPI AND NOT SIFR_MPI STREQUAL "auto")
  message(WARNING "-DSIFR_MPI=${SIFR_MPI} does nothing any more: sifr opens either MPI when it runs; \
the environment variable SIFR_MPI chooses one (docs/launching.md)")
endif()
unset(SIFR_MPI CACHE)
