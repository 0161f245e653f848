#include <string.h>

#include "device/cpu/kernels_loss.h"
#include "device/cpu/kernels_matrix.h"

const cpu_matrix_kernels *cpu_matrix_kernels_of(const char *isa) {
#if defined(__x86_64__)
    if (strcmp(isa, "avx512") == 0) return &cpu_matrix_kernels_avx512;
    if (strcmp(isa, "avx2") == 0) return &cpu_matrix_kernels_avx2;
#endif
    (void)isa;
    return &cpu_matrix_kernels_plain;
}

const cpu_loss_kernels *cpu_loss_kernels_of(const char *isa) {
#if defined(__x86_64__)
    if (strcmp(isa, "avx512") == 0) return &cpu_loss_kernels_avx512;
    if (strcmp(isa, "avx2") == 0) return &cpu_loss_kernels_avx2;
#endif
    (void)isa;
    return &cpu_loss_kernels_plain;
}
