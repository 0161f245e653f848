/* The memory of this process, as the system counts it, read without allocating. */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct base_process {
    uint64_t own;    /* private resident bytes (RssAnon) */
    uint64_t shared; /* this process's share of resident bytes that several processes map, mostly
                        windows */
} base_process;

/* False, with *out untouched, if the system does not report it. */
bool base_process_read(base_process *out);

/* The sum of both; 0: not known. */
uint64_t base_process_memory(void);

/* Gives freed memory of the heap back to the system, so that what is only used in preparation is
 * not held during a run. Does nothing where the C library has no call for it. */
void base_process_trim(void);

#endif
