/* How far long work is. */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

#include <stdint.h>

/* Called from time to time, on the thread that asked for the work. */
typedef struct base_progress {
    void (*tell)(void *user, uint64_t bytes, uint64_t total, double seconds);
    void *user;
} base_progress;

#endif
