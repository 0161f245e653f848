/* All-to-alls. A part that a neighbour of the host can read where it lies is read there; every
 * other one is sent, in messages. */
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "comm/mpi/mpi_ways.h"

/* Messages in progress at a time; those of round d are with the ranks d places ahead and back. */
typedef struct flights {
    mpi_part parts[2 * COMM_ROUNDS];
    int used;
} flights;

/* Room for a message to and one from a rank; waits for those that had it. */
static sifr_status next_two(mpi_group *g, flights *f, mpi_part **two, sifr_error *error) {
    *two = &f->parts[2 * (f->used++ % COMM_ROUNDS)];
    return comm_mpi_finish_parts(g, *two, 2, error);
}

static sifr_status move_messages(mpi_group *g, const comm_task *task, int32_t to, int64_t out,
                                 int32_t from, int64_t in, flights *f, sifr_error *error) {
    const char *source = (const char *)task->from + task->sent[to].at;
    char *target = (char *)task->to + task->received[from].at;
    int64_t longest = base_max_i64(out, in);
    for (int64_t at = 0; at < longest; at += COMM_MESSAGE_BYTES) {
        mpi_part *two;
        BASE_TRY(next_two(g, f, &two, error));
        if (at < in) {
            two[0].bytes = base_min_i64(in - at, COMM_MESSAGE_BYTES);
            two[0].from = from;
            BASE_TRY(comm_mpi_start_receive(g, task, COMM_TAG_PARTS, target + at, from,
                                            two[0].bytes, &two[0].request, error));
        }
        two[1].from = -1;
        if (at < out)
            BASE_TRY(comm_mpi_start_send(g, task, COMM_TAG_PARTS, source + at, to,
                                         base_min_i64(out - at, COMM_MESSAGE_BYTES),
                                         &two[1].request, error));
    }
    return SIFR_OK;
}

/* Whether the others of the host read what rank near[i] sends. */
static bool gives(const mpi_group *g, int32_t i, const comm_task *task) {
    return comm_mpi_post_of(g, i, task)->window != COMM_NOWHERE;
}

static int32_t near_of(const mpi_group *g, int32_t rank) {
    int32_t i = 0;
    while (g->near[i] != rank) i++;
    base_assert(i < g->base.local_size);
    return i;
}

/* `reads`: but for what neighbours read. */
static sifr_status send_parts(mpi_group *g, comm_task *task, bool reads, sifr_error *error) {
    int32_t size = g->base.size, rank = g->base.rank;
    flights f = {.used = 0};
    for (int32_t d = 1; d < size; d++) {
        int32_t to = (rank + d) % size, from = (rank + size - d) % size;
        bool given = reads && !comm_mpi_is_far(g, to) && gives(g, g->base.local_rank, task);
        bool taken = reads && !comm_mpi_is_far(g, from) && gives(g, near_of(g, from), task);
        int64_t out = given ? 0 : task->sent[to].bytes;
        int64_t in = taken ? 0 : task->received[from].bytes;
        BASE_TRY(move_messages(g, task, to, out, from, in, &f, error));
        comm_mpi_count(g, task, from, in);
    }
    return comm_mpi_finish_parts(g, f.parts, 2 * COMM_ROUNDS, error);
}

sifr_status comm_mpi_send_all_to_all(mpi_group *g, comm_task *task, sifr_error *error) {
    const comm_run *sent = &task->sent[g->base.rank], *received = &task->received[g->base.rank];
    if (sent->bytes)
        memmove((char *)task->to + received->at, (const char *)task->from + sent->at,
                (size_t)sent->bytes);
    return send_parts(g, task, false, error);
}

const comm_run *comm_mpi_runs_of(const mpi_group *g, int32_t i, const comm_task *task) {
    if (i == g->base.local_rank) return task->sent;
    return (const comm_run *)comm_mpi_post_of(g, i, task)->bytes;
}

sifr_status comm_mpi_read_part(mpi_group *g, comm_task *task, int32_t i, sifr_error *error) {
    const comm_run *sent = &comm_mpi_runs_of(g, i, task)[g->base.rank];
    const comm_run *received = &task->received[g->near[i]];
    BASE_TRY(comm_check_part(&g->base, g->near[i], sent->bytes, received->bytes, error));
    if (!sent->bytes) return SIFR_OK;
    if (i != g->base.local_rank) task->delivered += (uint64_t)sent->bytes;
    return comm_mpi_place(g, task, (char *)task->to + received->at,
                          (const char *)comm_mpi_operand(g, i, task) + sent->at, sent->bytes,
                          error);
}

sifr_status comm_mpi_read_all_to_all(mpi_group *g, comm_task *task, sifr_error *error) {
    for (int32_t d = 0; d < g->base.local_size; d++) {
        int32_t i = (g->base.local_rank + d) % g->base.local_size;
        if (d == 0 || gives(g, i, task)) BASE_TRY(comm_mpi_read_part(g, task, i, error));
    }
    return send_parts(g, task, true, error);
}
