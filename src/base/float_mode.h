/* How a thread's processor treats floats that are too small to be normal numbers (below 2^-126).
 * Arithmetic with them takes some hundred times as long on many processors, and training makes
 * more of them the more certain a model gets. All threads that compute or add up take them for
 * zeros, so that no result depends on which of them made it. */
#ifndef BASE_FLOAT_MODE_H
#define BASE_FLOAT_MODE_H

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* This thread takes them for zeros from now on; returns what base_restore_floats wants. */
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
