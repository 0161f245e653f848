#include "device/cpu/sets.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define SET(set, has_bf16)                                                                         \
    {                                                                                              \
        .name = #set, .bf16 = has_bf16, .vectors = &cpu_kernels_##set,                             \
        .matrix = &cpu_matrix_kernels_##set, .attention = &cpu_attention_kernels_##set,            \
        .delta = &cpu_delta_kernels_##set, .loss = &cpu_loss_kernels_##set,                        \
        .limits = &cpu_limit_kernels_##set                                                         \
    }

/* Best first; of those that the build has (cmake/kernels.cmake). */
static const cpu_set sets[] = {
#if defined(SIFR_KERNELS_avx512_bf16)
    SET(avx512_bf16, true),
#endif
#if defined(SIFR_KERNELS_avx512)
    SET(avx512, false),
#endif
#if defined(SIFR_KERNELS_avx2)
    SET(avx2, false),
#endif
    SET(plain, false),
};

#if defined(__x86_64__)
/* __builtin_cpu_supports of some compilers does not know the name. */
static bool has_f16c(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool has_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}

static bool has_avx512(void) {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

static bool supported(const char *name) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!strcmp(name, "avx512_bf16")) return has_avx512() && __builtin_cpu_supports("avx512bf16");
    if (!strcmp(name, "avx512")) return has_avx512();
    if (!strcmp(name, "avx2")) return has_avx2();
#endif
    return !strcmp(name, "plain");
}

const cpu_set *cpu_set_find(const char *name) {
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        if (name && strcmp(name, sets[i].name) != 0) continue;
        if (supported(sets[i].name)) return &sets[i];
    }
    return NULL;
}
