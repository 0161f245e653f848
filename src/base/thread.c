#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/inside.h"

typedef struct thread_work {
    void *(*run)(void *);
    void *argument;
} thread_work;

/* A new thread has its creator's floats, which are the library's, but the program's locale. */
static void *run_inside(void *argument) {
    BASE_INSIDE;
    thread_work work = *(thread_work *)argument;
    free(argument);
    return work.run(work.argument);
}

int base_thread_start(pthread_t *out, void *(*run)(void *), void *argument) {
    static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP};
    sigset_t blocked, before;
    thread_work *work = malloc(sizeof *work);
    if (!work) return ENOMEM;
    *work = (thread_work){run, argument};
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) sigdelset(&blocked, own[i]);
    pthread_sigmask(SIG_BLOCK, &blocked, &before); /* the new thread inherits this mask */
    int result = pthread_create(out, NULL, run_inside, work);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result != 0) free(work);
    return result;
}
