/* Two-level reductions, used if the ranks of each host are a node of the sum tree: the parts of a
 * host's ranks for a rank of another host are added locally first and sent once. Rank i of a host
 * exchanges with ranks i of the other hosts.
 */
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "comm/mpi/mpi_ways.h"
#include "comm/reduce.h"

/* Sums over this host's ranks: `length` elements from `at` of the slice owned by rank `target`. */
static void sum_host(mpi_group *g, const comm_task *task, int32_t target, int64_t at,
                     int64_t length, float *out) {
    base_assert(target >= 0 && target < g->base.size && at + length <= task->elements);
    const void **rows = g->lane->rows;
    for (int32_t i = 0; i < g->base.local_size; i++)
        rows[i] = (const float *)comm_mpi_operand(g, i, task) + target * task->elements + at;
    comm_reduce(&(device_sum){BASE_FP32, BASE_FP32, rows, g->base.local_size, length, out});
}

/* Elements that are sent to another host at a time: two halves, each of sums to send and to receive
 * for each of them. */
static int64_t piece_of(const mpi_group *g) {
    base_assert(g->base.size > g->base.local_size && g->base.size % g->base.local_size == 0);
    return COMM_PIECES_BYTES / (int64_t)sizeof(float) /
           (4 * (g->base.size / g->base.local_size - 1));
}

static int64_t piece_length(const mpi_group *g, const comm_task *task, int64_t number) {
    return base_min_i64(piece_of(g), task->elements - number * piece_of(g));
}

static sifr_status send_sums(mpi_group *g, comm_task *task, int64_t number, sifr_error *error) {
    int32_t local = g->base.local_size, hosts = g->base.size / local, host = g->base.rank / local;
    int32_t half = (int32_t)(number % 2);
    int64_t piece = piece_of(g), length = piece_length(g, task, number);
    for (int32_t d = 1; d < hosts; d++) {
        int32_t to = (host + d) % hosts * local + g->base.local_rank;
        int32_t from = (host + hosts - d) % hosts * local + g->base.local_rank;
        int32_t place = half * (hosts - 1) + d - 1;
        float *out = g->lane->pieces + 2 * place * piece;
        sum_host(g, task, to, number * piece, length, out);
        BASE_TRY(comm_mpi_exchange(g, task, COMM_TAG_REDUCE, out, to, out + piece, from, 4 * length,
                                   g->lane->requests + 2 * place, error));
        task->delivered += (uint64_t)(4 * length) * (uint64_t)local;
        task->crossed += (uint64_t)(4 * length);
    }
    return SIFR_OK;
}

static void add_hosts(mpi_group *g, comm_task *task, int64_t number) {
    int32_t local = g->base.local_size, hosts = g->base.size / local, host = g->base.rank / local;
    int32_t half = (int32_t)(number % 2);
    int64_t piece = piece_of(g), length = piece_length(g, task, number);
    float *slice = (float *)task->to + number * piece;
    sum_host(g, task, g->base.rank, number * piece, length, slice);
    task->delivered += (uint64_t)(4 * length) * (uint64_t)(local - 1);
    for (int32_t d = 1; d < hosts; d++) {
        int32_t place = half * (hosts - 1) + d - 1;
        g->lane->rows[(host + hosts - d) % hosts] = g->lane->pieces + (2 * place + 1) * piece;
    }
    g->lane->rows[host] = slice;
    comm_reduce(&(device_sum){BASE_FP32, BASE_FP32, g->lane->rows, hosts, length, slice});
}

static void sum_part(mpi_group *g, const comm_task *task, int32_t target, int64_t at,
                     int64_t length, void *out) {
    sum_host(g, task, target, at, length, out);
}

static sifr_status reduce_hosts(mpi_group *g, comm_task *task, sifr_error *error) {
    int32_t local = g->base.local_size;
    comm_adders adders = {g->base.local_rank, local, local, sum_part};
    task->delivered += (uint64_t)(4 * task->elements) * (uint64_t)(local - 1);
    return comm_mpi_reduce_many(g, task, &adders, error);
}

/* Piece by piece: the next piece is received while this one is added. */
sifr_status comm_mpi_reduce_levels(mpi_group *g, comm_task *task, sifr_error *error) {
    base_assert(task->type == BASE_FP32 && task->sum == BASE_FP32);
    int32_t others = g->base.size / g->base.local_size - 1;
    int64_t piece = piece_of(g);
    if (others >= g->process->direct_sums) return reduce_hosts(g, task, error);
    base_assert(4 * others <= COMM_REQUESTS);
    int64_t count = (task->elements + piece - 1) / piece;
    if (count) BASE_TRY(send_sums(g, task, 0, error));
    for (int64_t number = 0; number < count; number++) {
        mpi_request *requests = g->lane->requests + 2 * (number % 2) * others;
        if (number + 1 < count) BASE_TRY(send_sums(g, task, number + 1, error));
        BASE_TRY(comm_mpi_finish(g, requests, 2 * others, error));
        add_hosts(g, task, number);
    }
    return SIFR_OK;
}

sifr_status comm_mpi_gather_levels(mpi_group *g, comm_task *task, sifr_error *error) {
    base_assert(g->two_levels);
    int32_t local = g->base.local_size, hosts = g->base.size / local;
    char *all = task->to;
    BASE_TRY(comm_mpi_gather(g, task, COMM_TAG_GATHER, g->base.local_rank, local, error));
    comm_host_advance(comm_mpi_own_slot(g), &comm_mpi_own_slot(g)->arrived, task->number);
    for (int32_t d = 1; d < local; d++) {
        int32_t s = (g->base.local_rank + d) % local;
        BASE_TRY(comm_mpi_await(g, s, &comm_mpi_slot(g, s)->arrived, task->number, error));
        const char *theirs = comm_mpi_target(g, s, task);
        for (int32_t h = 0; h < hosts && task->bytes; h++) {
            int64_t at = (h * local + s) * task->bytes;
            memcpy(all + at, theirs + at, (size_t)task->bytes);
            task->delivered += (uint64_t)task->bytes;
        }
    }
    return SIFR_OK;
}
