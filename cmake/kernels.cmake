# src/device/cpu/*/kernels_*.c hold each kernel once; they are compiled once for each instruction set
# and chosen at run time (src/device/cpu/sets.c). KERNEL_ISA names the set inside the file; what is written
# for a set (KERNEL_ISA_avx2, KERNEL_ISA_avx512) holds for those above it, KERNEL_BF16 for products of bf16.
file(GLOB_RECURSE SIFR_KERNEL_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/device/cpu/kernels_*.c)
list(REMOVE_ITEM SIFR_SOURCES ${SIFR_KERNEL_SOURCES} "")
set(SIFR_ISA_FLAGS_plain "")
set(SIFR_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(SIFR_ISA_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c
    -mprefer-vector-width=512)
set(SIFR_ISA_FLAGS_avx512_bf16 ${SIFR_ISA_FLAGS_avx512} -mavx512bf16 -DKERNEL_ISA_avx512=1 -DKERNEL_BF16=1)
set(SIFR_KERNEL_SETS plain avx2 avx512 avx512_bf16 CACHE STRING
  "Instruction sets that kernels are compiled for; plain must be one of them")
foreach(isa ${SIFR_KERNEL_SETS})
  list(APPEND SIFR_KERNEL_DEFINITIONS SIFR_KERNELS_${isa}=1)
  if(SIFR_KERNEL_SOURCES)
    add_library(sifr_kernels_${isa} OBJECT ${SIFR_KERNEL_SOURCES})
    target_link_libraries(sifr_kernels_${isa} PUBLIC sifr_flags sifr_dependencies)
    target_compile_definitions(sifr_kernels_${isa} PRIVATE KERNEL_ISA=${isa} KERNEL_ISA_${isa}=1)
    target_compile_options(sifr_kernels_${isa} PRIVATE ${SIFR_ISA_FLAGS_${isa}})
    if(SIFR_SANITIZE) # also where the rest has none: tests take most of their time in kernels
      target_compile_options(sifr_kernels_${isa} PRIVATE -O1)
    endif()
    list(APPEND SIFR_KERNEL_OBJECTS $<TARGET_OBJECTS:sifr_kernels_${isa}>)
  endif()
endforeach()
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/device/cpu/sets.c PROPERTIES
  COMPILE_DEFINITIONS "${SIFR_KERNEL_DEFINITIONS}")
