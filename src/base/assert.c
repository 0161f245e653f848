#include "base/assert.h"

#ifdef SIFR_ASSERTS
#include <stdio.h>
#include <stdlib.h>

void base_assert_failed(const char *file, int line, const char *condition) {
    fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
    abort();
}
#endif
