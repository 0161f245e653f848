/* The same for many things, on several threads that last as long as the call. */
#ifndef BASE_PARALLEL_H
#define BASE_PARALLEL_H

#include <stddef.h>

typedef void base_parallel_run(void *argument, size_t index);

/* Calls run(argument, i) for each i below `count`, on at most so many threads, the caller's own
 * included, and returns when all are done. Which thread does which is left open. Where the system
 * refuses a thread, the others do its share. */
void base_parallel(int threads, size_t count, base_parallel_run *run, void *argument);

#endif
