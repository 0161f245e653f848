/* Threads of the library: in its surroundings (base/inside.h), and with signals blocked, which only
 * the program's own threads handle. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/* Like pthread_create; returns its error number. The new thread blocks all signals except those
 * that its own instructions raise (SIGBUS of a truncated file, SIGSEGV ...). Reason: oneDNN's
 * kernels for long sums point the stack at a buffer on the heap. A handler on such a thread's stack
 * would write its frame over the memory in front of that buffer. */
int base_thread_start(pthread_t *out, void *(*run)(void *), void *argument);

#endif
