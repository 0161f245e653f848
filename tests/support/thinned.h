/* Sanitizers look at memory and races, not at numbers, and make references slow: under them op
 * tests run every shape in one of three types or forms, the next shape in the next one, and tests
 * of ZeRO one of three runs. */
#ifndef SUPPORT_THINNED_H
#define SUPPORT_THINNED_H

#include <stdbool.h>
#include <stddef.h>

static inline bool thinned_out(size_t index) {
#ifdef SIFR_SANITIZED
    return index % 3 != 0;
#else
    (void)index;
    return false;
#endif
}

#endif
