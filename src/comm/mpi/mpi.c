/* The ranks of an MPI launcher. */
#include <sched.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/heap.h"
#include "comm/launcher.h"
#include "comm/mpi/mpi_private.h"

enum {
    PIECES_BYTES =
        512 << 10,     /* bytes of a group's pieces: they stay in the cache while they are added */
    LEAST_PIECE = 4096 /* elements; very many ranks take more memory rather than tiny messages */
};

static sifr_status all_gather(comm_group *group, const void *slice, int64_t bytes, void *whole,
                              comm_handle *out, sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_GATHER, .from = slice, .to = whole, .bytes = bytes};
    return comm_mpi_start(group, &task, out, error);
}

static sifr_status reduce_scatter(comm_group *group, const void *whole, base_dtype type,
                                  base_dtype sum, int64_t elements, void *slice, comm_handle *out,
                                  sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_REDUCE,
                      .from = whole,
                      .to = slice,
                      .elements = elements,
                      .type = type,
                      .sum = sum};
    return comm_mpi_start(group, &task, out, error);
}

static sifr_status run_now(comm_group *group, const comm_task *task, sifr_error *error) {
    comm_handle handle;
    BASE_TRY(comm_mpi_start(group, task, &handle, error));
    return comm_mpi_wait(group, handle.id, error);
}

static sifr_status all_gather_control(comm_group *group, const void *mine, int64_t bytes, void *all,
                                      sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_GATHER_CONTROL, .from = mine, .to = all, .bytes = bytes};
    return run_now(group, &task, error);
}

static sifr_status broadcast(comm_group *group, int32_t root, void *data, int64_t bytes,
                             sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_BROADCAST, .to = data, .bytes = bytes, .root = root};
    return run_now(group, &task, error);
}

static sifr_status sum(comm_group *group, int64_t *values, int32_t count, sifr_error *error) {
    mpi_group *g = (mpi_group *)group;
    for (int32_t at = 0; at < count; at += COMM_SUM_VALUES) {
        int32_t part = (int32_t)base_min_i64(count - at, COMM_SUM_VALUES);
        BASE_TRY(
            all_gather_control(group, values + at, part * (int64_t)sizeof *values, g->sums, error));
        for (int32_t i = 0; i < part; i++) {
            uint64_t total = 0; /* unsigned, since it may wrap around */
            for (int32_t r = 0; r < group->size; r++) total += (uint64_t)g->sums[r * part + i];
            values[at + i] = (int64_t)total;
        }
    }
    return SIFR_OK;
}

/* Tells all ranks that this one leaves, and waits until they leave too. True: MPI may be ended.
 * False: a rank left because of a failure, so the launcher will end the others. */
static bool say_farewell(mpi_group *g) {
    int32_t size = g->base.size, rank = g->base.rank;
    char mine = (char)g->broken, *theirs = (char *)g->sums; /* room enough, and free by now */
    double begun = base_seconds();
    bool well = !g->broken;
    if (g->host.seats)
        atomic_store(&comm_host_own(&g->host)->leaving,
                     g->broken ? COMM_LEFT_FAILED : COMM_LEFT_WELL);
    for (int32_t r = 0; r < size; r++) {
        g->requests[2 * r] = g->requests[2 * r + 1] = MPI_REQUEST_NULL;
        if (r == rank) continue;
        if (MPI_Irecv(theirs + r, 1, MPI_BYTE, r, 0, g->farewell, &g->requests[2 * r]) ||
            MPI_Isend(&mine, 1, MPI_BYTE, r, 0, g->farewell, &g->requests[2 * r + 1]))
            return false;
    }
    for (;;) {
        int done = 0;
        if (MPI_Testall(2 * size, g->requests, &done, g->statuses)) return false;
        double waited = base_seconds() - begun;
        if (done) break;
        if (g->broken && waited > 5) return false;
        struct timespec nap = {.tv_nsec = 200000};
        if (waited > 0.01)
            nanosleep(&nap, NULL);
        else
            sched_yield();
    }
    for (int32_t r = 0; r < size; r++) well = well && (r == rank || !theirs[r]);
    if (g->broken) { /* the rank that failed exits first, since the launcher returns the first exit
                        code */
        struct timespec pause = {.tv_nsec = 500000000};
        nanosleep(&pause, NULL);
    }
    return well;
}

static void release(mpi_group *g) {
    for (int i = 0; g->seen_blocks && i < COMM_WINDOWS; i++)
        comm_mpi_close_window(&g->base, g->windows[i].block);
    free(g->seen_blocks);
    free(g->mapped_bytes);
    comm_host_close(&g->host);
    free(g->seat_of);
    free(g->rank_of);
    free(g->seen);
    free(g->pieces);
    free(g->rows);
    free(g->sums);
    free(g->requests);
    free(g->statuses);
    free(g);
}

static void close_group(comm_group *group) {
    mpi_group *g = (mpi_group *)group;
    comm_worker_close(&g->worker);
    if (say_farewell(g)) {
        MPI_Comm_free(&g->world);
        MPI_Comm_free(&g->farewell);
        if (g->started_mpi) MPI_Finalize();
    }
    if (!g->broken) release(g); /* otherwise MPI may still write to it until the process exits */
}

static const comm_transport mpi_transport = {.all_gather = all_gather,
                                             .reduce_scatter = reduce_scatter,
                                             .wait = comm_mpi_wait,
                                             .sum = sum,
                                             .all_gather_control = all_gather_control,
                                             .broadcast = broadcast,
                                             .open_window = comm_mpi_open_window,
                                             .close_window = comm_mpi_close_window,
                                             .take_stage = comm_mpi_take_stage,
                                             .give_stage = comm_mpi_give_stage,
                                             .close = close_group};

static sifr_status start_mpi(bool *started, sifr_error *error) {
    int there, over, level;
    MPI_Finalized(&over);
    if (over)
        return base_fail(
            error, SIFR_FAILED,
            "ranks: MPI has already been ended in this process and cannot be started again");
    MPI_Initialized(&there);
    *started = !there;
    if (there) {
        MPI_Query_thread(&level);
    } else {
        comm_mpi_prepare_environment();
        if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS)
            return base_fail(error, SIFR_FAILED, "ranks: MPI_Init_thread failed");
    }
    if (level < MPI_THREAD_SERIALIZED)
        return base_fail(error, SIFR_FAILED,
                         "ranks: MPI must be started with MPI_THREAD_SERIALIZED or more");
    return SIFR_OK;
}

/* The ranks on this rank's host, or on the hosts that a test sets. */
static sifr_status split(mpi_group *g, const comm_options *options, MPI_Comm *local,
                         sifr_error *error) {
    int code = options->ranks_a_host > 0
                   ? MPI_Comm_split(g->world, g->base.rank / options->ranks_a_host, 0, local)
                   : MPI_Comm_split_type(g->world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, local);
    return comm_mpi_check(code, "ranks", error);
}

static sifr_status describe(mpi_group *g, const comm_options *options, sifr_error *error) {
    MPI_Comm local;
    int rank, size, asked;
    BASE_TRY(comm_mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &g->world), "ranks", error));
    MPI_Comm_set_errhandler(g->world, MPI_ERRORS_RETURN);
    BASE_TRY(comm_mpi_check(MPI_Comm_dup(g->world, &g->farewell), "ranks", error));
    MPI_Comm_rank(g->world, &rank);
    MPI_Comm_size(g->world, &size);
    if (g->started_mpi && comm_under_launcher(&asked) && asked != size)
        return base_fail(error, SIFR_USAGE,
                         "ranks: the launcher started %d, but MPI sees %d; start with the mpirun "
                         "of the MPI that sifr was built with, or with `srun --mpi=pmix`",
                         asked, size);
    g->base.rank = rank;
    g->base.size = size;
    BASE_TRY(split(g, options, &local, error));
    sifr_status status = comm_mpi_open_host(g, local, options, error);
    MPI_Comm_free(&local);
    return status;
}

static sifr_status take_buffers(mpi_group *g, sifr_error *error) {
    size_t size = (size_t)g->base.size, others = size > 1 ? size - 1 : 1;
    g->piece = base_max_i64(PIECES_BYTES / (int64_t)(2 * others * sizeof *g->pieces), LEAST_PIECE);
    g->request_count = (int32_t)base_max_i64((int64_t)(4 * size), 2 * COMM_ROUNDS);
    BASE_TRY(base_alloc(2 * others * (size_t)g->piece, sizeof *g->pieces, &g->pieces, error));
    BASE_TRY(base_alloc(size, sizeof *g->rows, &g->rows, error));
    BASE_TRY(base_alloc(size * COMM_SUM_VALUES, sizeof *g->sums, &g->sums, error));
    BASE_TRY(base_alloc((size_t)g->request_count, sizeof *g->requests, &g->requests, error));
    BASE_TRY(base_alloc((size_t)g->request_count, sizeof *g->statuses, &g->statuses, error));
    g->base.buffer_bytes +=
        (int64_t)(2 * others * (size_t)g->piece * sizeof *g->pieces +
                  size * (COMM_SUM_VALUES * sizeof *g->sums + sizeof *g->rows) +
                  (size_t)g->request_count * (sizeof *g->requests + sizeof *g->statuses) +
                  sizeof *g);
    return SIFR_OK;
}

sifr_status comm_open_mpi(comm_group **out, sifr_error *error) {
    return comm_open_mpi_with(&(comm_options){0}, out, error);
}

sifr_status comm_open_mpi_with(const comm_options *options, comm_group **out, sifr_error *error) {
    mpi_group *g;
    sifr_status status;
    *out = NULL;
    BASE_TRY(base_alloc(1, sizeof *g, &g, error));
    g->base.transport = &mpi_transport;
    g->world = g->farewell = MPI_COMM_NULL;
    g->gone = -1;
    g->log = options->log;
    BASE_TRY_GOTO(status, start_mpi(&g->started_mpi, error), fail);
    BASE_TRY_GOTO(status, describe(g, options, error), fail);
    BASE_TRY_GOTO(status, take_buffers(g, error), fail);
    BASE_TRY_GOTO(status, comm_worker_open(&g->worker, comm_mpi_run, g, error), fail);
    *out = &g->base;
    return SIFR_OK;
fail: /* MPI is not ended: that would wait for ranks that did not fail */
    release(g);
    return status;
}

bool comm_has_mpi(void) {
    return true;
}
