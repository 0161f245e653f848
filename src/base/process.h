/* The memory of this process, as the system counts it, read without allocating. */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/errors.h"

typedef struct base_process {
    uint64_t own;    /* private resident bytes (RssAnon) */
    uint64_t shared; /* this process's share of resident bytes that several processes map, mostly
                        windows */
} base_process;

/* False, with *out untouched, if the system does not report it. */
bool base_process_read(base_process *out);

/* The sum of both; 0: not known. */
uint64_t base_process_memory(void);

/* SIFR_FAILED, with the reason, where the system does not say which pages are in memory, or says it
 * of pages that nobody has touched. */
sifr_status base_process_tells_pages(sifr_error *error) SIFR_MUST_CHECK;

/* Adds to *resident how many of `bytes` from `at` on are in memory now. This process has mapped
 * them. Of pages that lie only partly there, that part counts. Pages of a file in memory count if
 * anybody has touched them. SIFR_FAILED where the system does not say. */
sifr_status base_process_count_resident(const void *at, int64_t bytes, int64_t *resident,
                                        sifr_error *error) SIFR_MUST_CHECK;

/* Gives freed memory of the heap back to the system, so that what is only used in preparation is
 * not held during a run. Does nothing where the C library has no call for it. */
void base_process_trim(void);

#endif
