/* Sends and receives of MPI, and waiting for them. Waiting never spins without yielding, since
 * ranks may share a core. */
#include <sched.h>
#include <time.h>

#include "base/assert.h"
#include "base/clock.h"
#include "comm/mpi/mpi_ways.h"

enum { LOOK_EVERY = 256 }; /* polls between two checks of the clock and of ranks that left */

static const double brisk = 1; /* seconds of waiting after which polls become rare */

static void doze(double seconds) {
    struct timespec time = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&time, NULL);
}

/* Between two polls. */
static sifr_status pause_polls(mpi_group *g, uint32_t polls, double begun, double *left,
                               sifr_error *error) {
    sched_yield();
    if (polls % LOOK_EVERY) return SIFR_OK;
    BASE_TRY(comm_mpi_look(g, begun, left, error));
    if (base_seconds() - begun > brisk) doze(1e-4);
    return SIFR_OK;
}

sifr_status comm_mpi_finish(mpi_group *g, mpi_request *requests, int count, sifr_error *error) {
    const mpi_library *mpi = &g->process->mpi;
    double begun = base_seconds(), left = 0;
    for (uint32_t polls = 1;; polls++) {
        int done;
        pthread_mutex_lock(&g->process->calls);
        int code = mpi->calls.test_all(mpi, count, requests, &done);
        pthread_mutex_unlock(&g->process->calls);
        BASE_TRY(comm_mpi_check_group(g, code, error));
        if (done) return SIFR_OK;
        BASE_TRY(pause_polls(g, polls, begun, &left, error));
    }
}

static sifr_status test_part(mpi_group *g, mpi_part *part, bool *over, sifr_error *error) {
    const mpi_library *mpi = &g->process->mpi;
    mpi_status status = {.bytes = 0};
    int done = 1;
    *over = true;
    if (!part->request.handle) return SIFR_OK;
    pthread_mutex_lock(&g->process->calls);
    int code = mpi->calls.test(mpi, &part->request, &done, part->from < 0 ? NULL : &status);
    pthread_mutex_unlock(&g->process->calls);
    BASE_TRY(comm_mpi_check_group(g, code, error));
    *over = done;
    if (!done || part->from < 0) return SIFR_OK;
    return comm_check_part(&g->base, part->from, status.bytes, part->bytes, error);
}

sifr_status comm_mpi_finish_parts(mpi_group *g, mpi_part *parts, int count, sifr_error *error) {
    double begun = base_seconds(), left = 0;
    for (uint32_t polls = 1;; polls++) {
        bool done = true;
        for (int i = 0; i < count; i++) {
            bool over;
            BASE_TRY(test_part(g, &parts[i], &over, error));
            done = done && over;
        }
        if (done) return SIFR_OK;
        BASE_TRY(pause_polls(g, polls, begun, &left, error));
    }
}

static int tag_of(const mpi_group *g, int kind) {
    return g->slot * COMM_TAGS + kind;
}

sifr_status comm_mpi_start_receive(mpi_group *g, const comm_task *task, int kind, void *to,
                                   int32_t from, int64_t bytes, mpi_request *request,
                                   sifr_error *error) {
    const mpi_library *mpi = &g->process->mpi;
    base_assert(from != g->base.rank && bytes >= 0 && bytes <= INT32_MAX);
    pthread_mutex_lock(&g->process->calls);
    int code = mpi->calls.receive(mpi, to, (int)bytes, comm_mpi_world(g, from), tag_of(g, kind),
                                  g->process->world, request);
    pthread_mutex_unlock(&g->process->calls);
    return comm_mpi_check_task(g->lane, task, code, error);
}

sifr_status comm_mpi_start_send(mpi_group *g, const comm_task *task, int kind, const void *from,
                                int32_t to, int64_t bytes, mpi_request *request,
                                sifr_error *error) {
    const mpi_library *mpi = &g->process->mpi;
    base_assert(to != g->base.rank && bytes >= 0 && bytes <= INT32_MAX);
    pthread_mutex_lock(&g->process->calls);
    int code = mpi->calls.send(mpi, from, (int)bytes, comm_mpi_world(g, to), tag_of(g, kind),
                               g->process->world, request);
    pthread_mutex_unlock(&g->process->calls);
    return comm_mpi_check_task(g->lane, task, code, error);
}

sifr_status comm_mpi_exchange(mpi_group *g, const comm_task *task, int kind, const void *send,
                              int32_t to, void *receive, int32_t from, int64_t bytes,
                              mpi_request *two, sifr_error *error) {
    BASE_TRY(comm_mpi_start_receive(g, task, kind, receive, from, bytes, &two[0], error));
    return comm_mpi_start_send(g, task, kind, send, to, bytes, &two[1], error);
}

/* Bytes received from rank `from`. */
void comm_mpi_count(const mpi_group *g, comm_task *task, int32_t from, int64_t bytes) {
    task->delivered += (uint64_t)bytes;
    if (comm_mpi_is_far(g, from)) task->crossed += (uint64_t)bytes;
}
