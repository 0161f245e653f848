/* A thread that takes no signals: they are the program's own threads' to take. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/* pthread_create, with its error number as the result. The new thread blocks all signals but those
 * that its own instructions raise (SIGBUS of a file that became shorter, SIGSEGV ...). oneDNN's
 * kernels for long sums point the stack at a buffer on the heap: a handler that ran on such a
 * thread's stack would write its frame over what lies before that buffer. */
int base_thread_start(pthread_t *out, void *(*run)(void *), void *argument);

#endif
