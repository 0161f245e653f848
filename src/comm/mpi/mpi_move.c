/* Collectives made of sends and receives. */
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "comm/mpi/mpi_ways.h"
#include "comm/reduce.h"

/* Round d: send to the rank d places ahead, receive from the rank d places back; long slices in
 * several messages. */
sifr_status comm_mpi_gather(mpi_group *g, comm_task *task, int tag, int32_t first, int32_t stride,
                            sifr_error *error) {
    base_assert(g->base.size % stride == 0 && first >= 0 && first < stride);
    int32_t size = g->base.size / stride, place = g->base.rank / stride;
    char *all = task->to, *own = all + g->base.rank * task->bytes;
    int used = 0;
    if (stride == 1 && size > g->process->direct) return comm_mpi_gather_many(g, task, tag, error);
    if (task->from != own && task->bytes) memmove(own, task->from, (size_t)task->bytes);
    for (int i = 0; i < 2 * COMM_ROUNDS; i++) g->lane->requests[i] = (mpi_request){0};
    for (int32_t d = 1; d < size; d++) {
        int32_t to = first + (place + d) % size * stride;
        int32_t from = first + (place + size - d) % size * stride;
        for (int64_t at = 0; at < task->bytes; at += COMM_MESSAGE_BYTES) {
            int64_t bytes = base_min_i64(task->bytes - at, COMM_MESSAGE_BYTES);
            mpi_request *two = g->lane->requests + 2 * (used++ % COMM_ROUNDS);
            BASE_TRY(comm_mpi_finish(g, two, 2, error));
            BASE_TRY(comm_mpi_exchange(g, task, tag, own + at, to, all + from * task->bytes + at,
                                       from, bytes, two, error));
            comm_mpi_count(g, task, from, bytes);
        }
    }
    return comm_mpi_finish(g, g->lane->requests, 2 * COMM_ROUNDS, error);
}

/* Elements that are sent to another rank at a time: two halves of all ranks' pieces. */
static int64_t piece_of(const mpi_group *g) {
    return COMM_PIECES_BYTES / (int64_t)sizeof(float) / (2 * base_max_i64(g->base.size - 1, 1));
}

static sifr_status post_pieces(mpi_group *g, comm_task *task, int64_t number, sifr_error *error) {
    int32_t size = g->base.size, rank = g->base.rank, half = (int32_t)(number % 2);
    const char *whole = task->from;
    int64_t piece = piece_of(g), size_of = base_dtype_bytes(task->type), at = number * piece;
    int64_t bytes = size_of * base_min_i64(piece, task->elements - number * piece);
    for (int32_t d = 1; d < size; d++) {
        int32_t to = (rank + d) % size, from = (rank + size - d) % size;
        float *place = g->lane->pieces + (half * (int64_t)(size - 1) + d - 1) * piece;
        BASE_TRY(comm_mpi_exchange(
            g, task, COMM_TAG_REDUCE, whole + (to * task->elements + at) * size_of, to, place, from,
            bytes, g->lane->requests + 2 * (half * (size - 1) + d - 1), error));
        comm_mpi_count(g, task, from, bytes);
    }
    return SIFR_OK;
}

/* Piece by piece: the next piece is received while this one is added. */
static sifr_status reduce_directly(mpi_group *g, comm_task *task, sifr_error *error) {
    base_assert(4 * (g->base.size - 1) <= COMM_REQUESTS);
    int32_t size = g->base.size, rank = g->base.rank;
    int64_t piece = piece_of(g), size_of = base_dtype_bytes(task->type);
    const char *own = (const char *)task->from + rank * task->elements * size_of;
    char *slice = task->to;
    int64_t pieces = (task->elements + piece - 1) / piece;
    if (pieces) BASE_TRY(post_pieces(g, task, 0, error));
    for (int64_t number = 0; number < pieces; number++) {
        int64_t half = number % 2 * (size - 1);
        if (number + 1 < pieces) BASE_TRY(post_pieces(g, task, number + 1, error));
        BASE_TRY(comm_mpi_finish(g, g->lane->requests + 2 * half, 2 * (size - 1), error));
        for (int32_t d = 1; d < size; d++)
            g->lane->rows[(rank + size - d) % size] = g->lane->pieces + (half + d - 1) * piece;
        g->lane->rows[rank] = own + number * piece * size_of;
        device_sum sum = {task->type,
                          task->sum,
                          g->lane->rows,
                          size,
                          base_min_i64(piece, task->elements - number * piece),
                          slice + number * piece * base_dtype_bytes(task->sum)};
        comm_mpi_add(task, &sum);
    }
    return SIFR_OK;
}

/* A rank's own part of a slice: nothing is to be added. */
static void copy_part(mpi_group *g, const comm_task *task, int32_t target, int64_t at,
                      int64_t length, void *out) {
    base_assert(target >= 0 && target < g->base.size && at + length <= task->elements);
    int64_t size_of = base_dtype_bytes(task->type);
    const char *part = (const char *)task->from + (target * task->elements + at) * size_of;
    (void)g;
    memcpy(out, part, (size_t)(length * size_of));
}

static sifr_status reduce(mpi_group *g, comm_task *task, sifr_error *error) {
    static const comm_adders all = {.first = 0, .stride = 1, .weight = 1, .part = copy_part};
    if (g->base.size <= g->process->direct_sums) return reduce_directly(g, task, error);
    return task->type == task->sum && (!task->once || task->type == BASE_FP32)
               ? comm_mpi_reduce_many(g, task, &all, error)
               : comm_mpi_reduce_apart(g, task, error);
}

/* Each rank's slice is summed where it lies, and gathered there. */
sifr_status
comm_mpi_all_reduce(mpi_group *g, comm_task *task,
                    sifr_status (*sum)(mpi_group *g, comm_task *part, sifr_error *error),
                    sifr_status (*join)(mpi_group *g, comm_task *part, sifr_error *error),
                    sifr_error *error) {
    comm_task part = *task;
    int64_t bytes = task->elements * base_dtype_bytes(task->type);
    char *own = (char *)task->to + g->base.rank * bytes;
    part.kind = COMM_TASK_REDUCE;
    part.to = own;
    BASE_TRY(sum(g, &part, error));
    task->delivered = part.delivered, task->crossed = part.crossed;
    part.kind = COMM_TASK_GATHER;
    part.from = own, part.to = task->to, part.bytes = bytes;
    part.delivered = part.crossed = 0;
    BASE_TRY(join(g, &part, error));
    task->delivered += part.delivered, task->crossed += part.crossed;
    return SIFR_OK;
}

static sifr_status gather_all(mpi_group *g, comm_task *task, sifr_error *error) {
    return comm_mpi_gather(g, task, COMM_TAG_GATHER, 0, 1, error);
}

static sifr_status send_to_all(mpi_group *g, const comm_task *task, const char *data, int64_t bytes,
                               sifr_error *error) {
    base_assert(g->base.size - 1 <= COMM_REQUESTS);
    mpi_request *requests = g->lane->requests;
    int count = 0;
    for (int32_t d = 1; d < g->base.size; d++) {
        int32_t to = (task->root + d) % g->base.size;
        BASE_TRY(comm_mpi_start_send(g, task, COMM_TAG_BROADCAST, data, to, bytes,
                                     &requests[count++], error));
    }
    return comm_mpi_finish(g, requests, count, error);
}

static sifr_status broadcast(mpi_group *g, comm_task *task, sifr_error *error) {
    char *data = task->to;
    bool sends = g->base.rank == task->root;
    for (int64_t at = 0; at < task->bytes; at += COMM_MESSAGE_BYTES) {
        int64_t bytes = base_min_i64(task->bytes - at, COMM_MESSAGE_BYTES);
        if (sends) {
            BASE_TRY(send_to_all(g, task, data + at, bytes, error));
            continue;
        }
        BASE_TRY(comm_mpi_start_receive(g, task, COMM_TAG_BROADCAST, data + at, task->root, bytes,
                                        g->lane->requests, error));
        BASE_TRY(comm_mpi_finish(g, g->lane->requests, 1, error));
    }
    if (!sends) comm_mpi_count(g, task, task->root, task->bytes);
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
        return g->base.size > g->process->direct ? comm_mpi_broadcast_many(g, task, error)
                                                 : broadcast(g, task, error);
    case COMM_TASK_SUM:
        return comm_mpi_sum_many(g, task, error);
    case COMM_TASK_ALL_TO_ALL:
        return comm_mpi_send_all_to_all(g, task, error);
    case COMM_TASK_ALL_REDUCE:
        return comm_mpi_all_reduce(g, task, reduce, gather_all, error);
    case COMM_TASK_SEND:
    case COMM_TASK_RECEIVE:
        break; /* in a lane of their own */
    }
    return SIFR_OK;
}
