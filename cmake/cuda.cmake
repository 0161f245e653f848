# Kernels for GPUs: nvcc compiles each src/device/cuda/*/*.cu to a fatbin.
#   SIFR_CUDA=AUTO  where nvcc is found and the machine has a GPU, as ON; else as OFF, but that the
#                   target cuda_kernels compiles them where nvcc is found
#   SIFR_CUDA=ON    the program contains them; there must be an nvcc
#   SIFR_CUDA=OFF   nvcc is not looked for
# Without a GPU AUTO leaves them out because they take longer than all the rest: one file is compiled
# seven times.
# In every build with tests the host's compiler takes their text (tests/support/cuda).
set(SIFR_CUDA AUTO CACHE STRING "Kernels for GPUs: AUTO (a target of their own), ON or OFF")
set_property(CACHE SIFR_CUDA PROPERTY STRINGS AUTO ON OFF)
string(TOUPPER "${SIFR_CUDA}" SIFR_CUDA_WANTED)
if(NOT SIFR_CUDA_WANTED MATCHES "^(AUTO|ON|OFF|1|0|YES|NO|TRUE|FALSE)$")
  message(FATAL_ERROR "SIFR_CUDA=${SIFR_CUDA}: it is AUTO, ON or OFF")
endif()
if(SIFR_CUDA_WANTED MATCHES "^(OFF|0|NO|FALSE)$")
  return()
endif()

# scripts/install-deps.sh puts the toolkit there where the system has none.
find_program(SIFR_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATH_SUFFIXES bin
  PATHS /usr/local/cuda ${CMAKE_SOURCE_DIR}/build/cuda-toolkit/nvidia/cu13)
if(NOT SIFR_NVCC)
  if(SIFR_CUDA_WANTED STREQUAL AUTO)
    return()
  endif()
  message(FATAL_ERROR "SIFR_CUDA=ON: there is no nvcc; `make CUDA=1` fetches one, or -DSIFR_NVCC= "
    "names it")
endif()
execute_process(COMMAND ${SIFR_NVCC} --version OUTPUT_VARIABLE text ERROR_QUIET)
set(SIFR_CUDA_VERSION 0)
if(text MATCHES "release ([0-9]+)\\.([0-9]+)")
  math(EXPR SIFR_CUDA_VERSION "${CMAKE_MATCH_1} * 1000 + ${CMAKE_MATCH_2} * 10")
endif()
if(SIFR_CUDA_VERSION LESS 12000)
  if(SIFR_CUDA_WANTED STREQUAL AUTO)
    return()
  endif()
  message(FATAL_ERROR "SIFR_CUDA=ON: ${SIFR_NVCC} --version does not tell a release from 12.0 on: "
    "${text}")
endif()

# NVIDIA's driver has this where there is a GPU, and WSL's the other.
set(SIFR_GPU_NODES /dev/nvidiactl /dev/dxg CACHE STRING "What is there on a machine with a GPU")
foreach(node ${SIFR_GPU_NODES})
  if(SIFR_CUDA_WANTED STREQUAL AUTO AND EXISTS ${node})
    message(STATUS "${node} is there: kernels for GPUs are built (SIFR_CUDA=OFF leaves them out)")
    set(SIFR_CUDA_WANTED ON)
  endif()
endforeach()

# A GPU that is not listed takes the code of the latest one before it of the same generation, or
# the driver compiles PTX for it. 12.8 is the first that knows Blackwell. Who chooses knows the GPU:
# no PTX then, and another GPU is refused (cuda_device.c says what the program was built for).
set(SIFR_CUDA_TARGETS "" CACHE STRING
  "GPUs that have code of their own, as nvcc names them (\"80 90a\"); empty: all, and PTX")
string(REGEX REPLACE "[ ,;]+" ";" targets "${SIFR_CUDA_TARGETS}")
set(SIFR_NVCC_TARGETS "")
if("${targets}" STREQUAL "")
  set(SIFR_NVCC_TARGETS -gencode arch=compute_80,code=compute_80)
  set(targets 80 86 89 90a)
  if(SIFR_CUDA_VERSION GREATER_EQUAL 12080)
    list(APPEND targets 100a 120a)
  endif()
else()
  execute_process(COMMAND ${SIFR_NVCC} --help OUTPUT_VARIABLE text ERROR_QUIET)
  string(REGEX MATCHALL "sm_([89][0-9]|[1-9][0-9][0-9])[a-z]?" known "${text}")
  string(REPLACE "sm_" "" known "${known}")
  list(REMOVE_DUPLICATES known)
  list(SORT known COMPARE NATURAL)
  string(REPLACE ";" " " known_text "${known}")
  foreach(target ${targets})
    if(NOT target IN_LIST known)
      message(FATAL_ERROR "SIFR_CUDA_TARGETS=${SIFR_CUDA_TARGETS}: ${target} is none of what "
        "${SIFR_NVCC} names and sifr's kernels run on: ${known_text}")
    endif()
  endforeach()
endif()
string(REPLACE ";" " " SIFR_CUDA_TARGETS_TEXT "${targets}")
# Bits: no contraction, IEEE division and square root, and subnormals flushed as the CPU's threads
# flush them (base/float_mode.h).
set(SIFR_NVCC_FLAGS -std=c++17 -O3 -fmad=false -ftz=true -prec-div=true -prec-sqrt=true
  -I${CMAKE_SOURCE_DIR}/src -I${CMAKE_SOURCE_DIR}/include)
foreach(target ${targets})
  list(APPEND SIFR_NVCC_TARGETS -gencode arch=compute_${target},code=sm_${target})
endforeach()

# Beside each fatbin is the list of its kernels, from the PTX of the same compilation.
file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/device/cuda/*.cu)
set(SIFR_CUDA_IMAGES "")
set(SIFR_CUDA_ENTRIES "")
set(SIFR_CUDA_LISTS "")
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  set(fatbin ${CMAKE_BINARY_DIR}/cuda/${name}.fatbin)
  set(list ${CMAKE_BINARY_DIR}/cuda/${name}.kernels)
  set(kept ${CMAKE_BINARY_DIR}/cuda/${name}.kept)
  add_custom_command(OUTPUT ${fatbin} ${list} DEPENDS ${source} DEPFILE ${fatbin}.d
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${kept}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${kept}
    COMMAND ${SIFR_NVCC} ${SIFR_NVCC_FLAGS} ${SIFR_NVCC_TARGETS} -MD -MF ${fatbin}.d -MT ${fatbin}
      -keep -keep-dir ${kept} -fatbin -o ${fatbin} ${source}
    COMMAND ${CMAKE_COMMAND} -DKEPT=${kept} -DLIST=${list}
      -P ${CMAKE_SOURCE_DIR}/cmake/cuda_kernels.cmake
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${kept}
    COMMENT "nvcc ${name}.cu" VERBATIM)
  list(APPEND SIFR_CUDA_FATBINS ${fatbin} ${list})
  string(APPEND SIFR_CUDA_IMAGES "IMAGE(${name}, \"${fatbin}\")\n"
    "static const uint16_t kernels_${name}[] = {\n#include \"${list}\"\n};\n")
  string(APPEND SIFR_CUDA_LISTS "#include \"${list}\"\n")
  string(APPEND SIFR_CUDA_ENTRIES
    "        {\"${name}\", sifr_image_${name}, kernels_${name}, COUNT(kernels_${name})},\n")
endforeach()
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/cuda)
add_custom_target(cuda_kernels DEPENDS ${SIFR_CUDA_FATBINS})
# For tests/device/test_cuda_code.sh.
string(REPLACE ";" " " flags "${SIFR_NVCC_FLAGS}")
file(WRITE ${CMAKE_BINARY_DIR}/cuda/nvcc.flags "${SIFR_NVCC} ${flags}\n")

if(NOT SIFR_CUDA_WANTED STREQUAL AUTO)
  set(images ${CMAKE_BINARY_DIR}/cuda/cuda_images.c)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/cuda_images.c.in ${images} @ONLY)
  set_source_files_properties(${images} PROPERTIES OBJECT_DEPENDS "${SIFR_CUDA_FATBINS}")
  list(FILTER SIFR_SOURCES EXCLUDE REGEX "/cuda_images_none\\.c$")
  list(APPEND SIFR_SOURCES ${images})
endif()
