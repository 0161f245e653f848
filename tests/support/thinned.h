/* Sanitizers look at memory and races, not at numbers, and make references slow: under them op
 * tests run every shape in one of three types or forms, the next shape in the next one, and tests
 * of ZeRO one of six runs. */
#ifndef SUPPORT_THINNED_H
#define SUPPORT_THINNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline bool thinned_out(size_t index) {
#if defined(__SANITIZE_THREAD__)
    return index % 9 != 0; /* threads share work the same way whatever the shape */
#elif defined(SIFR_SANITIZED)
    return index % 3 != 0;
#else
    (void)index;
    return false;
#endif
}

/* Of cases in instructions that are slow under sanitizers and run the same source as others. */
static inline bool thinned_large(int64_t size, int64_t limit) {
    return thinned_out(1) && size > limit;
}

/* How often something is done of which each time is the same path. */
#if defined(SIFR_SANITIZED)
#define THINNED(count) ((count) / 8)
#else
#define THINNED(count) (count)
#endif

/* Of training runs, which are one path each, one of six. */
static inline bool thinned_run(size_t index) {
#if defined(SIFR_SANITIZED) && !defined(__SANITIZE_THREAD__)
    return index % 6 != 0;
#else
    return thinned_out(index);
#endif
}

/* The same source as another set, in other vectors. */
static inline bool thinned_set(const char *isa) {
#if defined(SIFR_SANITIZED) && defined(__x86_64__)
    return strcmp(isa, "avx2") == 0 && __builtin_cpu_supports("avx512bw");
#else
    (void)isa;
    return false;
#endif
}

#endif
