#include "base/parallel.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/thread.h"

enum { THREAD_LIMIT = 64 };

typedef struct parallel_job {
    base_parallel_run *run;
    void *argument;
    size_t count;
    atomic_size_t next;
} parallel_job;

static void *work(void *argument) {
    parallel_job *job = argument;
    for (size_t i; (i = atomic_fetch_add(&job->next, 1)) < job->count;) job->run(job->argument, i);
    return NULL;
}

void base_parallel(int threads, size_t count, base_parallel_run *run, void *argument) {
    pthread_t workers[THREAD_LIMIT];
    parallel_job job = {.run = run, .argument = argument, .count = count};
    int started = 0;
    if (threads > THREAD_LIMIT) threads = THREAD_LIMIT;
    while (started + 1 < threads && (size_t)started + 1 < count &&
           base_thread_start(&workers[started], work, &job) == 0)
        started++;
    work(&job);
    for (int i = 0; i < started; i++) pthread_join(workers[i], NULL);
}
