/* Collectives made of sends and receives. Waiting never spins without yielding, since ranks may
 * share a core.
 */
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "comm/mpi/mpi_private.h"
#include "device/tree_sum.h"

enum {
    MESSAGE_BYTES = 1 << 28, /* MPI counts in int */
    LOOK_EVERY = 256         /* polls between two checks of the clock and of ranks that left */
};

static const double brisk = 1; /* seconds of waiting after which polls become rare */

static void doze(double seconds) {
    struct timespec time = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&time, NULL);
}

sifr_status comm_mpi_finish(mpi_group *g, MPI_Request *requests, int count, sifr_error *error) {
    double begun = base_seconds(), left = 0;
    for (uint32_t polls = 1;; polls++) {
        int done;
        BASE_TRY(comm_mpi_check(MPI_Testall(count, requests, &done, g->statuses), "ranks", error));
        if (done) return SIFR_OK;
        sched_yield();
        if (polls % LOOK_EVERY) continue;
        BASE_TRY(comm_mpi_look(g, begun, &left, error));
        if (base_seconds() - begun > brisk) doze(1e-4);
    }
}

sifr_status comm_mpi_exchange(mpi_group *g, const comm_task *task, int tag, const void *send,
                              int32_t to, void *receive, int32_t from, int64_t bytes,
                              MPI_Request *two, sifr_error *error) {
    BASE_TRY(comm_mpi_check(MPI_Irecv(receive, (int)bytes, MPI_BYTE, from, tag, g->world, &two[0]),
                            comm_mpi_task_name(task), error));
    return comm_mpi_check(MPI_Isend(send, (int)bytes, MPI_BYTE, to, tag, g->world, &two[1]),
                          comm_mpi_task_name(task), error);
}

/* Bytes received from rank `from`. */
static void count(const mpi_group *g, comm_task *task, int32_t from, int64_t bytes) {
    task->delivered += (uint64_t)bytes;
    if (g->seat_of[from] < 0) task->crossed += (uint64_t)bytes;
}

/* Round d: send to the rank d places ahead, receive from the rank d places back; long slices in
 * several messages. */
sifr_status comm_mpi_gather(mpi_group *g, comm_task *task, int tag, int32_t first, int32_t stride,
                            sifr_error *error) {
    int32_t size = g->base.size / stride, place = g->base.rank / stride;
    char *all = task->to, *own = all + g->base.rank * task->bytes;
    int used = 0;
    if (task->from != own && task->bytes) memmove(own, task->from, (size_t)task->bytes);
    for (int i = 0; i < 2 * COMM_ROUNDS; i++) g->requests[i] = MPI_REQUEST_NULL;
    for (int32_t d = 1; d < size; d++) {
        int32_t to = first + (place + d) % size * stride;
        int32_t from = first + (place + size - d) % size * stride;
        for (int64_t at = 0; at < task->bytes; at += MESSAGE_BYTES) {
            int64_t bytes = base_min_i64(task->bytes - at, MESSAGE_BYTES);
            MPI_Request *two = g->requests + 2 * (used++ % COMM_ROUNDS);
            BASE_TRY(comm_mpi_finish(g, two, 2, error));
            BASE_TRY(comm_mpi_exchange(g, task, tag, own + at, to, all + from * task->bytes + at,
                                       from, bytes, two, error));
            count(g, task, from, bytes);
        }
    }
    return comm_mpi_finish(g, g->requests, 2 * COMM_ROUNDS, error);
}

/* Where piece number `number` of rank r's part begins, and how long it is. */
static int64_t piece_length(const mpi_group *g, const comm_task *task, int64_t number) {
    return base_min_i64(g->piece, task->elements - number * g->piece);
}

static sifr_status post_pieces(mpi_group *g, comm_task *task, int64_t number, sifr_error *error) {
    int32_t size = g->base.size, rank = g->base.rank, half = (int32_t)(number % 2);
    const char *whole = task->from;
    int64_t size_of = base_dtype_bytes(task->type), at = number * g->piece;
    int64_t bytes = size_of * piece_length(g, task, number);
    for (int32_t d = 1; d < size; d++) {
        int32_t to = (rank + d) % size, from = (rank + size - d) % size;
        float *place = g->pieces + (half * (int64_t)(size - 1) + d - 1) * g->piece;
        BASE_TRY(comm_mpi_exchange(g, task, COMM_TAG_REDUCE,
                                   whole + (to * task->elements + at) * size_of, to, place, from,
                                   bytes, g->requests + 2 * (half * (size - 1) + d - 1), error));
        count(g, task, from, bytes);
    }
    return SIFR_OK;
}

/* Piece by piece: the next piece is received while this one is added. */
static sifr_status reduce(mpi_group *g, comm_task *task, sifr_error *error) {
    int32_t size = g->base.size, rank = g->base.rank;
    int64_t size_of = base_dtype_bytes(task->type);
    const char *own = (const char *)task->from + rank * task->elements * size_of;
    char *slice = task->to;
    int64_t pieces = (task->elements + g->piece - 1) / g->piece;
    if (pieces) BASE_TRY(post_pieces(g, task, 0, error));
    for (int64_t number = 0; number < pieces; number++) {
        int64_t half = number % 2 * (size - 1);
        if (number + 1 < pieces) BASE_TRY(post_pieces(g, task, number + 1, error));
        BASE_TRY(comm_mpi_finish(g, g->requests + 2 * half, 2 * (size - 1), error));
        for (int32_t d = 1; d < size; d++)
            g->rows[(rank + size - d) % size] = g->pieces + (half + d - 1) * g->piece;
        g->rows[rank] = own + number * g->piece * size_of;
        device_tree_sum_typed(task->type, task->sum, g->rows, size, piece_length(g, task, number),
                              slice + number * g->piece * base_dtype_bytes(task->sum));
    }
    return SIFR_OK;
}

static sifr_status broadcast(mpi_group *g, comm_task *task, sifr_error *error) {
    char *data = task->to;
    for (int64_t at = 0; at < task->bytes; at += MESSAGE_BYTES) {
        int64_t bytes = base_min_i64(task->bytes - at, MESSAGE_BYTES);
        BASE_TRY(comm_mpi_check(
            MPI_Ibcast(data + at, (int)bytes, MPI_BYTE, task->root, g->world, g->requests),
            comm_mpi_task_name(task), error));
        BASE_TRY(comm_mpi_finish(g, g->requests, 1, error));
    }
    if (g->base.rank != task->root) count(g, task, task->root, task->bytes);
    return SIFR_OK;
}

sifr_status comm_mpi_move(mpi_group *g, comm_task *task, sifr_error *error) {
    switch (task->kind) {
    case COMM_TASK_GATHER:
        return comm_mpi_gather(g, task, COMM_TAG_GATHER, 0, 1, error);
    case COMM_TASK_GATHER_CONTROL:
        return comm_mpi_gather(g, task, COMM_TAG_CONTROL, 0, 1, error);
    case COMM_TASK_REDUCE:
        return reduce(g, task, error);
    case COMM_TASK_BROADCAST:
        return broadcast(g, task, error);
    }
    return SIFR_OK;
}
