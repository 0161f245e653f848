/* Runs a function over many items, on threads that live for the duration of the call. */
#ifndef BASE_PARALLEL_H
#define BASE_PARALLEL_H

#include <stddef.h>

typedef void base_parallel_run(void *argument, size_t index);

/* Calls run(argument, i) for each i below `count`, on at most `threads` threads including the
 * caller's, and returns when all items are done. The assignment of items to threads is unspecified.
 * If the system refuses a thread, the others take its share. */
void base_parallel(int threads, size_t count, base_parallel_run *run, void *argument);

#endif
