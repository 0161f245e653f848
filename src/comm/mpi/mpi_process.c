/* What the groups of a process share: MPI, the host's memory, the queue. */
#include <sched.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/heap.h"
#include "comm/launcher.h"
#include "comm/mpi/mpi_group.h"
#include "comm/mpi_library/mpi_signals.h"
#include "comm/start_watch.h"

static sifr_status start_mpi(mpi_process *p, sifr_error *error) {
    const mpi_library *mpi = &p->mpi;
    int there, over;
    bool serves_threads;
    BASE_TRY(mpi_library_open(&p->mpi, error));
    mpi->calls.finalized(mpi, &over);
    if (over)
        return base_fail(
            error, SIFR_FAILED,
            "ranks: MPI has already been ended in this process and cannot be started again");
    mpi->calls.initialized(mpi, &there);
    p->started_mpi = !there;
    if (there) {
        mpi->calls.serves_threads(mpi, &serves_threads);
    } else {
        mpi_signals before = mpi_signals_of_program();
        comm_mpi_prepare_environment();
        int code = mpi->calls.init(mpi, &serves_threads);
        mpi_signals_restore(&before);
        if (code != 0) return base_fail(error, SIFR_FAILED, "ranks: MPI_Init_thread failed");
    }
    if (!serves_threads)
        return base_fail(error, SIFR_FAILED,
                         "ranks: MPI must be started with MPI_THREAD_SERIALIZED or more");
    return SIFR_OK;
}

/* The ranks on this rank's host, or on the hosts that a test sets. */
static sifr_status split_hosts(mpi_process *p, const comm_options *options, mpi_comm *local,
                               sifr_error *error) {
    const mpi_library *mpi = &p->mpi;
    int32_t blocks = options->ranks_a_host, hosts = options->cyclic_hosts;
    int code = blocks > 0  ? mpi->calls.split(mpi, p->world, p->rank / blocks, 0, local)
               : hosts > 0 ? mpi->calls.split(mpi, p->world, p->rank % hosts, 0, local)
                           : mpi->calls.split_hosts(mpi, p->world, local);
    return comm_mpi_check(mpi, code, "ranks", error);
}

static sifr_status find_ranks(mpi_process *p, const comm_options *options, sifr_error *error) {
    const mpi_library *mpi = &p->mpi;
    mpi_comm local;
    int asked, code = mpi->calls.duplicate(mpi, mpi->world, &p->world);
    BASE_TRY(comm_mpi_check(mpi, code, "ranks", error));
    mpi->calls.return_errors(mpi, p->world);
    mpi->calls.rank(mpi, p->world, &p->rank);
    mpi->calls.size(mpi, p->world, &p->size);
    if (p->started_mpi && comm_under_launcher(&asked) && asked != p->size)
        return base_fail(error, SIFR_USAGE,
                         "ranks: %s says that a launcher started %d, but MPI sees %d; start them "
                         "with the mpirun of the MPI that sifr opened (%s, %s), or with `%s`; if "
                         "nothing started ranks, the variable is left over: unset it",
                         comm_launcher_variable(), asked, (int)p->size, comm_mpi_name(mpi->kind),
                         mpi->path, comm_srun());
    BASE_TRY(split_hosts(p, options, &local, error));
    /* A program that has started MPI by itself knows its ranks by MPI's numbers. */
    sifr_status status = p->started_mpi ? comm_mpi_order_ranks(p, local, error) : SIFR_OK;
    if (status == SIFR_OK) {
        code = mpi->calls.duplicate(mpi, p->world, &p->farewell);
        status = comm_mpi_check(mpi, code, "ranks", error);
    }
    if (status == SIFR_OK) status = comm_mpi_open_host(p, local, options, error);
    mpi->calls.release(mpi, &local);
    return status == SIFR_OK ? comm_mpi_open_lookout(p, error) : status;
}

static sifr_status take_buffers(mpi_lane *lane, size_t size, sifr_error *error) {
    size_t pieces = COMM_PIECES_BYTES / sizeof *lane->pieces;
    BASE_TRY(base_alloc(pieces, sizeof *lane->pieces, &lane->pieces, error));
    BASE_TRY(base_alloc(size, sizeof *lane->rows, &lane->rows, error));
    BASE_TRY(base_alloc(size, sizeof *lane->seen, &lane->seen, error));
    return base_alloc(COMM_REQUESTS, sizeof *lane->requests, &lane->requests, error);
}

static int64_t lane_bytes(const mpi_lane *lane, int64_t size) {
    return COMM_PIECES_BYTES + size * (int64_t)(sizeof *lane->rows + sizeof *lane->seen) +
           COMM_REQUESTS * (int64_t)sizeof *lane->requests;
}

int64_t comm_mpi_process_bytes(const mpi_process *p) {
    return (p->host.seats ? comm_host_seat_bytes() : 0) + comm_lookout_bytes(p->lookout) +
           (int64_t)sizeof *p;
}

sifr_status comm_mpi_open_lane(mpi_process *p, comm_lane which, int64_t *bytes, sifr_error *error) {
    base_assert((int)which >= 0 && which < COMM_LANES);
    mpi_lane *lane = &p->lanes[which];
    if (lane->worker.running) return SIFR_OK;
    lane->process = p;
    lane->gone = -1;
    if (!lane->requests) BASE_TRY(take_buffers(lane, (size_t)p->size, error));
    *bytes += lane_bytes(lane, p->size);
    return comm_worker_open(&lane->worker, comm_mpi_run, lane, error);
}

sifr_status comm_mpi_open_peers(mpi_process *p, int64_t *bytes, sifr_error *error) {
    mpi_lane *lane = &p->peers;
    if (lane->worker.running) return SIFR_OK;
    lane->process = p;
    lane->gone = -1;
    if (!lane->requests)
        BASE_TRY(base_alloc(COMM_LINE, sizeof *lane->requests, &lane->requests, error));
    if (!lane->seen) BASE_TRY(base_alloc(1, sizeof *lane->seen, &lane->seen, error));
    for (int i = 0; i < COMM_LINE; i++) lane->requests[i] = (mpi_request){0};
    *bytes += (int64_t)(COMM_LINE * sizeof *lane->requests);
    return comm_worker_open_turns(&lane->worker, comm_mpi_turn, comm_mpi_rest, lane, error);
}

static void free_lane(mpi_lane *lane) {
    free(lane->pieces);
    free(lane->rows);
    free(lane->seen);
    free(lane->requests);
}

static void release(mpi_process *p) {
    comm_lookout_close(p->lookout);
    comm_host_close(&p->host);
    for (int i = 0; i < COMM_LANES; i++) free_lane(&p->lanes[i]);
    free_lane(&p->peers);
    pthread_mutex_destroy(&p->calls);
    pthread_mutex_destroy(&p->device);
    free(p->seen_blocks);
    free(p->mapped_bytes);
    free(p->host_of);
    free(p->seat_of);
    free(p->rank_of);
    free(p);
}

sifr_status comm_mpi_open_process(const comm_options *options, mpi_process **out,
                                  sifr_error *error) {
    mpi_process *p;
    comm_start_watch watch;
    sifr_status status;
    BASE_TRY(base_alloc(1, sizeof *p, &p, error));
    p->log = options->log;
    p->nccl = options->nccl;
    p->groups = 1;
    p->direct = options->direct > 0 ? options->direct : COMM_DIRECT;
    p->direct_sums = options->direct > 0 ? options->direct : COMM_DIRECT_SUMS;
    pthread_mutex_init(&p->calls, NULL);
    pthread_mutex_init(&p->device, NULL);
    BASE_TRY_GOTO(status, comm_start_watch_open(&watch, &options->start, error), fail);
    status = start_mpi(p, error);
    if (status == SIFR_OK) status = find_ranks(p, options, error);
    comm_start_watch_close(&watch);
    if (status != SIFR_OK) goto fail;
    *out = p;
    return SIFR_OK;
fail: /* MPI is not ended: that would wait for ranks that did not fail */
    release(p);
    return status;
}

/* The farewells of all other ranks, a few at a time. */
typedef struct farewells {
    mpi_request receive, sends[8];
    comm_leaving mine;
    int32_t received, sent; /* `sent`: begun */
    bool failed;            /* a rank left because of a failure */
    bool lost;              /* MPI could not send one */
} farewells;

static void lose_send(farewells *f, int i) {
    f->sends[i] = (mpi_request){0};
    f->lost = true;
}

/* False: MPI failed. */
static bool go_on(mpi_process *p, farewells *f, bool *done) {
    const mpi_library *mpi = &p->mpi;
    mpi_status status;
    int32_t others = p->size - 1;
    int over;
    *done = f->received == others && f->sent == others;
    for (int i = 0; i < 8; i++) {
        if (!f->sends[i].handle && f->sent < others) {
            int32_t to = (p->rank + 1 + f->sent++) % p->size;
            if (mpi->calls.send(mpi, NULL, 0, to, (int)f->mine, p->farewell, &f->sends[i]))
                lose_send(f, i); /* the others hear it all the same */
        }
        if (!f->sends[i].handle) continue;
        if (mpi->calls.test(mpi, &f->sends[i], &over, NULL))
            lose_send(f, i);
        else
            *done = *done && over;
    }
    if (f->received < others) {
        if (!f->receive.handle &&
            mpi->calls.receive(mpi, NULL, 0, MPI_ANYWHERE, 0, p->farewell, &f->receive))
            return false;
        if (mpi->calls.test(mpi, &f->receive, &over, &status)) return false;
        f->received += over != 0;
        if (over) f->failed = f->failed || status.tag != COMM_LEFT_WELL;
    }
    return !f->lost || f->sent < others;
}

/* Tells all ranks that this one leaves, and waits until they leave too. True: MPI may be ended.
 * False: a rank left because of a failure, so the launcher will end the others. */
static bool say_farewell(mpi_process *p) {
    bool broken = atomic_load(&p->broken), done = false;
    bool bereft = broken && p->failure.status == SIFR_LOST_RANK;
    farewells f = {.mine = bereft   ? COMM_LEFT_BEREFT
                           : broken ? COMM_LEFT_FAILED
                                    : COMM_LEFT_WELL,
                   .failed = broken};
    double begun = base_seconds();
    comm_lost lost;
    if (p->host.seats) atomic_store(&comm_host_own(&p->host)->leaving, (uint32_t)f.mine);
    while (!done) {
        if (!go_on(p, &f, &done)) return false;
        double waited = base_seconds() - begun;
        if (done) break;
        if (broken && waited > 5) return false;
        if (comm_mpi_has_lost(p, &lost)) return false; /* it says no farewell */
        struct timespec nap = {.tv_nsec = 200000};
        if (waited > 0.01)
            nanosleep(&nap, NULL);
        else
            sched_yield();
    }
    /* The rank that failed exits first, since the launcher returns the first exit code. */
    if (bereft) {
        struct timespec pause = {.tv_nsec = 500000000};
        nanosleep(&pause, NULL);
    }
    return !f.failed;
}

/* MPICH's ranks close what they have between hosts each by itself, and one that is done waits for
 * Slurm's PMI-2 without serving the others: those then wait for it (4.0.2 over UCX, two hosts: one
 * run of two or three). All have said farewell, and srun needs no more than the exit code. */
static bool needs_no_end(const mpi_process *p) {
    return p->mpi.kind == COMM_MPICH && comm_started_by_srun() && !getenv("PMIX_NAMESPACE");
}

void comm_mpi_leave_process(mpi_process *p) {
    base_assert(p->groups > 0);
    if (--p->groups > 0) return;
    for (int i = 0; i < COMM_LANES; i++) comm_worker_close(&p->lanes[i].worker);
    comm_worker_close(&p->peers.worker);
    bool together = say_farewell(p);
    comm_lookout_close(p->lookout);
    p->lookout = NULL;
    if (together) {
        p->mpi.calls.release(&p->mpi, &p->world);
        p->mpi.calls.release(&p->mpi, &p->farewell);
        if (p->started_mpi && !needs_no_end(p)) p->mpi.calls.finalize(&p->mpi);
    }
    if (!atomic_load(&p->broken))
        release(p); /* otherwise MPI may still write to it until the process exits */
}
