/* Flushing of subnormal floats (below 2^-126) to zero. Arithmetic with subnormals takes some
 * hundred times as long on many processors, and training makes more of them as a model becomes more
 * certain. All threads that compute or add up flush them, so no result depends on which thread made
 * it. */
#ifndef BASE_FLOAT_MODE_H
#define BASE_FLOAT_MODE_H

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* From now on this thread flushes subnormals to zero. Returns the mode before, for
 * base_restore_floats. */
static inline unsigned base_flush_floats(void) {
#if defined(__x86_64__)
    const unsigned flush = 0x8040; /* results (FTZ) and operands (DAZ) */
    unsigned before = _mm_getcsr();
    if ((before & flush) != flush) _mm_setcsr(before | flush);
    return before;
#else
    return 0;
#endif
}

static inline void base_restore_floats(unsigned before) {
#if defined(__x86_64__)
    if (_mm_getcsr() != before) _mm_setcsr(before);
#else
    (void)before;
#endif
}

#endif
