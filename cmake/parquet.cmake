# Parquet through carquet (C, MIT), an optional part. scripts/install-deps.sh parquet fetches its
# source distribution into build/; only this very file is taken, and only what reads. Where
# SIFR_CARQUET is a folder, somebody else has unpacked and checked it (packaging/debian).
#   SIFR_PARQUET=AUTO  where the file is there
#   SIFR_PARQUET=ON    it must be there
#   SIFR_PARQUET=OFF   it is not looked for
set(SIFR_PARQUET AUTO CACHE STRING "Parquet by carquet: AUTO (where its source is there), ON or OFF")
set_property(CACHE SIFR_PARQUET PROPERTY STRINGS AUTO ON OFF)
set(SIFR_CARQUET_VERSION 0.7.2)
set(SIFR_CARQUET_SHA256 5d57c00217906e672fe8b569d8a24c6cbd6d1ab7736d56057e9b884f1a043e7d)
set(SIFR_CARQUET ${CMAKE_SOURCE_DIR}/build/carquet/carquet-${SIFR_CARQUET_VERSION}.tar.gz
  CACHE FILEPATH "The source distribution of carquet, or the folder that it was unpacked into")
string(TOUPPER "${SIFR_PARQUET}" SIFR_PARQUET_WANTED)
if(NOT SIFR_PARQUET_WANTED MATCHES "^(AUTO|ON|OFF|1|0|YES|NO|TRUE|FALSE)$")
  message(FATAL_ERROR "SIFR_PARQUET=${SIFR_PARQUET}: it is AUTO, ON or OFF")
endif()

pkg_check_modules(LZ4 IMPORTED_TARGET liblz4)
set(SIFR_PARQUET_LACKS "")
if(SIFR_PARQUET_WANTED MATCHES "^(OFF|0|NO|FALSE)$")
  set(SIFR_PARQUET_LACKS "it is switched off")
elseif(NOT EXISTS ${SIFR_CARQUET})
  set(SIFR_PARQUET_LACKS "${SIFR_CARQUET} is not there")
elseif(NOT LZ4_FOUND)
  set(SIFR_PARQUET_LACKS "liblz4-dev is not there")
elseif(NOT IS_DIRECTORY ${SIFR_CARQUET})
  file(SHA256 ${SIFR_CARQUET} hash)
  if(NOT hash STREQUAL SIFR_CARQUET_SHA256)
    message(FATAL_ERROR "${SIFR_CARQUET} is not carquet ${SIFR_CARQUET_VERSION}: its SHA-256 is "
      "${hash}, not ${SIFR_CARQUET_SHA256}; remove it, and run scripts/install-deps.sh parquet")
  endif()
endif()
if(SIFR_PARQUET_LACKS)
  if(SIFR_PARQUET_WANTED MATCHES "^(ON|1|YES|TRUE)$")
    message(FATAL_ERROR "SIFR_PARQUET=ON: ${SIFR_PARQUET_LACKS}; `make PARQUET=1` fetches it")
  endif()
  message(STATUS "no Parquet: ${SIFR_PARQUET_LACKS}")
  list(FILTER SIFR_SOURCES EXCLUDE REGEX "/data/parquet/parquet(_schema|_column|_row|_time)?\\.c$")
  set(SIFR_PARQUET_OBJECTS "")
  return()
endif()

set(SIFR_CARQUET_ROOT ${CMAKE_BINARY_DIR}/carquet-${SIFR_CARQUET_VERSION})
if(IS_DIRECTORY ${SIFR_CARQUET})
  set(SIFR_CARQUET_ROOT ${SIFR_CARQUET})
elseif(NOT EXISTS ${SIFR_CARQUET_ROOT}/native/include/carquet/carquet.h)
  file(ARCHIVE_EXTRACT INPUT ${SIFR_CARQUET} DESTINATION ${CMAKE_BINARY_DIR})
endif()
set(SIFR_CARQUET_SOURCES
  core/allocator core/arena core/bitpack core/buffer core/endian core/error
  thrift/parquet_types thrift/thrift_decode thrift/thrift_encode
  encoding/byte_stream_split encoding/delta encoding/delta_length encoding/delta_strings
  encoding/dictionary encoding/plain encoding/rle
  compression/brotli compression/custom compression/gzip compression/lz4 compression/snappy
  compression/zstd
  simd/detect simd/dispatch
  metadata/bloom_filter metadata/page_index metadata/schema util/crc32 util/xxhash
  reader/arrow_schema_read reader/batch_reader reader/column_reader reader/file_reader
  reader/mmap_reader reader/page_filter reader/page_reader reader/row_group_reader
  reader/statistics reader/worker_pool)
list(TRANSFORM SIFR_CARQUET_SOURCES PREPEND ${SIFR_CARQUET_ROOT}/native/src/)
list(TRANSFORM SIFR_CARQUET_SOURCES APPEND .c)
add_library(sifr_carquet OBJECT ${SIFR_CARQUET_SOURCES})
set_target_properties(sifr_carquet PROPERTIES C_STANDARD 11)
target_compile_definitions(sifr_carquet PRIVATE _GNU_SOURCE)
target_compile_options(sifr_carquet PRIVATE -w)
if(SIFR_SANITIZE)
  target_compile_options(sifr_carquet PRIVATE -fsanitize=${SIFR_SANITIZE} -fno-omit-frame-pointer)
endif()
target_include_directories(sifr_carquet SYSTEM PUBLIC ${SIFR_CARQUET_ROOT}/native/include
  ${SIFR_CARQUET_ROOT}/native/src)
target_link_libraries(sifr_carquet PUBLIC PkgConfig::LZ4 PkgConfig::ZLIB PkgConfig::ZSTD)
target_link_libraries(sifr_dependencies INTERFACE PkgConfig::LZ4)
set(SIFR_PC_PARQUET " -llz4")
list(FILTER SIFR_SOURCES EXCLUDE REGEX "/data/parquet/parquet_none\\.c$")
set(SIFR_PARQUET_OBJECTS $<TARGET_OBJECTS:sifr_carquet>)
