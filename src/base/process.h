/* What this process holds, as the system counts it. Read without the allocator. */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct base_process {
    uint64_t own;    /* bytes in memory that are its alone (RssAnon) */
    uint64_t shared; /* its part of those that several processes map, windows above all */
} base_process;

/* False, and *out untouched, where the system does not say it. */
bool base_process_read(base_process *out);

/* Both together; 0: not known. */
uint64_t base_process_memory(void);

#endif
