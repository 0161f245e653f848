/* Collectives of GPUs of several hosts: NCCL carries what crosses, from device memory to device
 * memory, and MPI the control messages. Rank i of a host has a communicator with ranks i of the
 * others. Within a host operands are read in place, as in mpi_shared.c, and sums are the device's,
 * in the order of the tree; NCCL adds nothing.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/heap.h"
#include "comm/mpi/mpi_group.h"
#include "comm/mpi/mpi_ways.h"
#include "comm/nccl/nccl_link.h"
#include "comm/reduce.h"

enum {
    PIECE_BYTES = 4 << 20, /* of a part that is sent to another host at a time in a reduction */
    ALIGNMENT = 256
};

static const double brisk = 1e-3;   /* seconds of waiting after which polls become rare */
static const double patience = 120; /* seconds in which NCCL connects the hosts */

struct comm_link {
    nccl_library library;
    nccl_link *nccl;
    int32_t hosts, local, host; /* ranks of a host; the number of this one */
    void *stream;               /* of DEVICE_EXCHANGE */
    int64_t part_bytes;         /* of a place */
    char *places;               /* device memory: `local` places to send and to receive a host */
    int64_t bytes;
    nccl_part *parts;  /* 2 x local x (hosts - 1) */
    const void **rows; /* size */
};

/* What a rank tells the others before they begin. */
typedef struct link_notice {
    nccl_name name; /* of the first host's ranks */
    int32_t local_size, version;
    bool ready;
    char why[400]; /* it is not */
} link_notice;

/* --- opening --- */

static void note_why(link_notice *notice, const char *text) {
    size_t length = strnlen(text, sizeof notice->why - 1);
    memcpy(notice->why, text, length);
    notice->why[length] = '\0';
}

static void free_link(mpi_group *g) {
    struct comm_link *link = g->link;
    if (!link) return;
    nccl_link_close(link->nccl);
    if (link->places) device_give(g->base.dev, link->places, link->bytes);
    free(link->parts);
    free(link->rows);
    free(link);
    g->link = NULL;
    base_assert(g->process->links > 0);
    g->process->links--;
}

void comm_mpi_close_link(mpi_group *g) {
    void *stream;
    if (!g->link) return;
    (void)!device_enter(g->base.dev, DEVICE_EXCHANGE, &stream, NULL);
    free_link(g);
}

/* What this rank has by itself. */
static sifr_status look_for(mpi_group *g, link_notice *mine, sifr_error *error) {
    struct comm_link *link = g->link;
    mine->local_size = g->base.local_size;
    BASE_TRY(device_enter(g->base.dev, DEVICE_EXCHANGE, &link->stream, error));
    if (g->process->nccl)
        link->library = *g->process->nccl;
    else
        BASE_TRY(nccl_library_open(&link->library, error));
    mine->version = link->library.major * 10000 + link->library.minor * 100 + link->library.patch;
    if (link->host == 0) BASE_TRY(nccl_link_name(&link->library, &mine->name, error));
    mine->ready = true;
    return SIFR_OK;
}

/* All ranks find the same. */
static bool may_begin(const mpi_group *g, const link_notice *all, char *why, size_t size) {
    for (int32_t r = 0; r < g->base.size; r++) {
        if (!all[r].ready) {
            snprintf(why, size, "%s%s", r ? "another rank: " : "", all[r].why);
            return false;
        }
        if (all[r].version != all[0].version) {
            snprintf(why, size, "rank %d has NCCL %d.%d.%d, and rank 0 %d.%d.%d", (int)r,
                     all[r].version / 10000, all[r].version / 100 % 100, all[r].version % 100,
                     all[0].version / 10000, all[0].version / 100 % 100, all[0].version % 100);
            return false;
        }
    }
    return true;
}

/* Until what NCCL was given last is in the stream; within `most` seconds, 0: any time. */
static sifr_status settle(mpi_group *g, double most, sifr_error *error) {
    double begun = base_seconds(), left = 0;
    for (bool done = false;;) {
        BASE_TRY(nccl_link_poll(g->link->nccl, &done, error));
        if (done) return SIFR_OK;
        BASE_TRY(comm_mpi_look(g, begun, &left, error));
        if (most > 0 && base_seconds() - begun > most)
            return base_fail(error, SIFR_FAILED, "NCCL: hosts are not connected after %.0f s",
                             most);
        struct timespec nap = {.tv_nsec = 50000};
        if (base_seconds() - begun > brisk)
            nanosleep(&nap, NULL);
        else
            sched_yield();
    }
}

static sifr_status begin(mpi_group *g, const link_notice *all, sifr_error *error) {
    struct comm_link *link = g->link;
    const comm_operands *operands = &g->base.operands;
    int32_t others = link->hosts - 1;
    int64_t largest = base_max_i64(operands->largest, operands->parts);
    void *places;
    link->part_bytes = base_ceil_to(base_min_i64(largest, PIECE_BYTES), ALIGNMENT);
    link->bytes = 2 * others * link->local * link->part_bytes;
    size_t parts = 2 * (size_t)(others * link->local);
    BASE_TRY(base_alloc(parts, sizeof *link->parts, &link->parts, error));
    BASE_TRY(base_alloc((size_t)g->base.size, sizeof *link->rows, &link->rows, error));
    BASE_TRY(device_take(g->base.dev, link->bytes, &places, error));
    link->places = places;
    BASE_TRY(nccl_link_begin(&link->library, &all[g->base.rank % link->local].name, link->hosts,
                             link->host, &link->nccl, error));
    return settle(g, patience, error); /* a rank that failed cannot tell yet */
}

/* Whether every host has one rank, or hosts are nodes of the tree, and each reads in windows. Not
 * in several lanes: all ranks must begin what NCCL does in the same order. */
static bool has_levels(const mpi_group *g, const link_notice *all) {
    if (g->lane != &g->process->lanes[COMM_BULK]) return false;
    if (g->two_levels) return !g->process->apart;
    for (int32_t r = 0; r < g->base.size; r++)
        if (all[r].local_size != 1) return false;
    return true;
}

sifr_status comm_mpi_open_link(comm_group *group, bool *opened, char *why, size_t size,
                               sifr_error *error) {
    mpi_group *g = (mpi_group *)group;
    link_notice mine = {.why = ""}, *all = NULL;
    sifr_error reason = {.message = ""};
    sifr_status status;
    *opened = false;
    if (size) why[0] = '\0';
    BASE_TRY(base_alloc(1, sizeof *g->link, &g->link, error));
    g->process->links++;
    g->link->local = g->two_levels ? group->local_size : 1;
    g->link->hosts = group->size / g->link->local;
    g->link->host = group->rank / g->link->local;
    BASE_TRY_GOTO(status, base_alloc((size_t)group->size, sizeof *all, &all, error), done);
    if (group->size > DEVICE_MOST_SLICES)
        snprintf(mine.why, sizeof mine.why, "more than %d ranks are not supported yet",
                 DEVICE_MOST_SLICES);
    else if (group->operands.parts && g->two_levels && group->size > COMM_MOST_RUNS)
        snprintf(mine.why, sizeof mine.why,
                 "all-to-alls of more than %d ranks are not supported yet", (int)COMM_MOST_RUNS);
    else if (look_for(g, &mine, &reason) != SIFR_OK)
        note_why(&mine, reason.message);
    BASE_TRY_GOTO(status, comm_mpi_tell(g, &mine, sizeof mine, all, error), done);
    if (!has_levels(g, all)) goto done;
    if (!may_begin(g, all, why, size)) goto done;
    status = begin(g, all, &reason);
    mine.ready = status == SIFR_OK;
    note_why(&mine, reason.message);
    if (status == SIFR_LOST_RANK) { /* the others cannot be told */
        base_set_error(error, status, "%s", reason.message);
        goto done;
    }
    BASE_TRY_GOTO(status, comm_mpi_tell(g, &mine, sizeof mine, all, error), done);
    *opened = may_begin(g, all, why, size);
done:
    free(all);
    if (!*opened && g->link && g->link->nccl) nccl_link_abort(g->link->nccl);
    if (!*opened) free_link(g);
    return status;
}

/* --- moving --- */

static void *sent_place(const struct comm_link *link, int32_t number) {
    base_assert(number >= 0 && number < (link->hosts - 1) * link->local);
    return link->places + 2 * number * link->part_bytes;
}

static void *received_place(const struct comm_link *link, int32_t number) {
    base_assert(number >= 0 && number < (link->hosts - 1) * link->local);
    return link->places + (2 * number + 1) * link->part_bytes;
}

/* Waits for the stream, and leaves it when it cannot end any more. */
static sifr_status finish(mpi_group *g, sifr_error *error) {
    double begun = base_seconds(), left = 0;
    device_mark end;
    BASE_TRY(device_mark_here(g->base.dev, DEVICE_EXCHANGE, &end, error));
    for (bool reached = false, done;;) {
        BASE_TRY(device_reached(g->base.dev, end, &reached, error));
        if (reached) return SIFR_OK;
        BASE_TRY(nccl_link_poll(g->link->nccl, &done, error));
        BASE_TRY(comm_mpi_look(g, begun, &left, error));
        struct timespec nap = {.tv_nsec = 50000};
        if (base_seconds() - begun > brisk)
            nanosleep(&nap, NULL);
        else
            sched_yield();
    }
}

static sifr_status copy(const mpi_group *g, void *to, const void *from, int64_t bytes,
                        sifr_error *error) {
    if (!bytes) return SIFR_OK;
    return device_start_copy(g->base.dev, DEVICE_EXCHANGE, to, from, bytes, error);
}

static sifr_status exchange(mpi_group *g, int32_t count, sifr_error *error) {
    struct comm_link *link = g->link;
    BASE_TRY(nccl_link_exchange(link->nccl, link->parts, count, link->stream, error));
    return settle(g, 0, error);
}

/* Slices of the other hosts' ranks i, then those that neighbours have got. */
static sifr_status gather_levels(mpi_group *g, comm_task *task, sifr_error *error) {
    struct comm_link *link = g->link;
    int32_t local = link->local, hosts = link->hosts, mine = g->base.local_rank;
    char *all = task->to, *own = all + g->base.rank * task->bytes;
    if (task->from != own) BASE_TRY(copy(g, own, task->from, task->bytes, error));
    for (int32_t d = 1; d < hosts; d++) {
        int32_t to = (link->host + d) % hosts, from = (link->host + hosts - d) % hosts;
        link->parts[d - 1] = (nccl_part){
            .send = own, all + (from * local + mine) * task->bytes, task->bytes, to, from};
    }
    BASE_TRY(exchange(g, hosts - 1, error));
    BASE_TRY(finish(g, error));
    comm_host_advance(comm_mpi_own_slot(g), &comm_mpi_own_slot(g)->arrived, task->number);
    for (int32_t d = 1; d < local; d++) {
        int32_t s = (mine + d) % local;
        BASE_TRY(comm_mpi_await(g, s, &comm_mpi_slot(g, s)->arrived, task->number, error));
        const char *theirs = comm_mpi_target(g, s, task);
        for (int32_t h = 0; h < hosts; h++) {
            int64_t at = (h * local + s) * task->bytes;
            BASE_TRY(copy(g, all + at, theirs + at, task->bytes, error));
        }
    }
    return SIFR_OK;
}

static sifr_status gather(mpi_group *g, comm_task *task, sifr_error *error) {
    struct comm_link *link = g->link;
    task->delivered = (uint64_t)task->bytes * (uint64_t)(g->base.size - 1);
    task->crossed = (uint64_t)task->bytes * (uint64_t)(link->hosts - 1);
    if (!task->bytes) return SIFR_OK;
    if (link->local > 1) return gather_levels(g, task, error);
    BASE_TRY(nccl_link_gather(link->nccl, task->from, task->bytes, task->to, link->stream, error));
    return settle(g, 0, error);
}

/* A reduction, piece by piece, from element `at` of each slice on. */
typedef struct link_piece {
    int64_t at, length, element; /* elements; bytes of one as it is sent */
    bool sums;                   /* a host's sum is sent instead of its ranks' parts */
} link_piece;

/* The part of this host's rank in `seat` for rank `target`. */
static const char *part_of(const mpi_group *g, const comm_task *task, int32_t seat, int32_t target,
                           int64_t at) {
    base_assert(seat >= 0 && seat < g->link->local && target >= 0 && target < g->base.size);
    const char *whole = g->link->local > 1 ? comm_mpi_operand(g, seat, task) : task->from;
    return whole + (target * task->elements + at) * base_dtype_bytes(task->type);
}

/* This host's parts for rank `target`, as rows in the order of its ranks. */
static void list_parts(const mpi_group *g, const comm_task *task, int32_t target, int64_t at,
                       const void **rows) {
    for (int32_t s = 0; s < g->link->local; s++) rows[s] = part_of(g, task, s, target, at);
}

static sifr_status add(const mpi_group *g, base_dtype type, base_dtype sum, int32_t count,
                       int64_t elements, void *out, sifr_error *error) {
    device_sum call = {type, sum, g->link->rows, count, elements, out};
    return comm_reduce_on(g->base.dev, &call, error);
}

/* Puts what goes to the host `to` into places from `first` on, and lists the exchange with it. */
static sifr_status prepare(mpi_group *g, const comm_task *task, const link_piece *piece, int32_t d,
                           sifr_error *error) {
    struct comm_link *link = g->link;
    int32_t hosts = link->hosts, local = link->local;
    int32_t to = (link->host + d) % hosts, from = (link->host + hosts - d) % hosts;
    int32_t target = to * local + (local > 1 ? g->base.local_rank : 0);
    int32_t count = piece->sums ? 1 : local, first = (d - 1) * count;
    int64_t bytes = piece->length * piece->element;
    base_assert(bytes <= link->part_bytes);
    list_parts(g, task, target, piece->at, link->rows);
    if (piece->sums)
        BASE_TRY(
            add(g, BASE_FP32, BASE_FP32, local, piece->length, sent_place(link, first), error));
    for (int32_t c = 0; c < count; c++) {
        nccl_part *part = &link->parts[first + c];
        *part = (nccl_part){.receive = received_place(link, first + c), .bytes = bytes};
        part->to = to, part->from = from;
        part->send = local > 1 ? sent_place(link, first + c) : link->rows[0];
        if (local > 1 && !piece->sums)
            BASE_TRY(copy(g, sent_place(link, first + c), link->rows[c], bytes, error));
    }
    return SIFR_OK;
}

/* Adds what this host has and what the others sent. */
static sifr_status add_hosts(mpi_group *g, const comm_task *task, const link_piece *piece,
                             sifr_error *error) {
    struct comm_link *link = g->link;
    int32_t hosts = link->hosts, local = link->local, count = piece->sums ? 1 : local;
    char *out = (char *)task->to + piece->at * base_dtype_bytes(task->sum);
    if (piece->sums) {
        list_parts(g, task, g->base.rank, piece->at, link->rows);
        BASE_TRY(add(g, BASE_FP32, BASE_FP32, local, piece->length, out, error));
        link->rows[link->host] = out;
    } else {
        list_parts(g, task, g->base.rank, piece->at, link->rows + link->host * local);
    }
    for (int32_t d = 1; d < hosts; d++) {
        int32_t from = (link->host + hosts - d) % hosts;
        for (int32_t c = 0; c < count; c++)
            link->rows[from * count + c] = received_place(link, (d - 1) * count + c);
    }
    return add(g, task->type, task->sum, hosts * count, piece->length, out, error);
}

static sifr_status reduce(mpi_group *g, comm_task *task, sifr_error *error) {
    struct comm_link *link = g->link;
    link_piece piece = {.element = base_dtype_bytes(task->type),
                        .sums = link->local > 1 && task->type == BASE_FP32};
    int32_t count = piece.sums ? 1 : link->local, others = link->hosts - 1;
    uint64_t slice = (uint64_t)(task->elements * piece.element);
    task->delivered = slice * (uint64_t)(g->base.size - 1);
    task->crossed = slice * (uint64_t)(others * count);
    for (; piece.at < task->elements; piece.at += piece.length) {
        piece.length = base_min_i64(link->part_bytes / piece.element, task->elements - piece.at);
        for (int32_t d = 1; d < link->hosts; d++) BASE_TRY(prepare(g, task, &piece, d, error));
        BASE_TRY(exchange(g, others * count, error));
        BASE_TRY(add_hosts(g, task, &piece, error));
    }
    return SIFR_OK;
}

/* Each host sends what its ranks have for ranks i of the others through its own rank i. */
static const char *part_to(const mpi_group *g, const comm_task *task, int32_t seat, int32_t target,
                           int64_t *bytes) {
    const comm_run *run = &comm_mpi_runs_of(g, seat, task)[target];
    *bytes = run->bytes;
    return (const char *)comm_mpi_operand(g, seat, task) + run->at;
}

/* Lists what goes to the host d places ahead, from byte `at` of each part on, and what comes from
 * the one d places back. */
static sifr_status prepare_parts(mpi_group *g, const comm_task *task, int64_t at, int32_t d,
                                 int32_t *count, sifr_error *error) {
    struct comm_link *link = g->link;
    int32_t hosts = link->hosts, local = link->local, mine = local > 1 ? g->base.local_rank : 0;
    int32_t to = (link->host + d) % hosts, from = (link->host + hosts - d) % hosts;
    for (int32_t c = 0; c < local; c++) {
        const comm_run *received = &task->received[from * local + c];
        int64_t bytes, rest = base_min_i64(received->bytes - at, link->part_bytes);
        const char *part = part_to(g, task, c, to * local + mine, &bytes);
        char *place = sent_place(link, (d - 1) * local + c);
        bytes = base_min_i64(bytes - at, link->part_bytes);
        if (bytes > 0) {
            if (local > 1) BASE_TRY(copy(g, place, part + at, bytes, error));
            link->parts[(*count)++] =
                (nccl_part){.send = local > 1 ? place : part + at, .bytes = bytes, .to = to};
        }
        if (rest > 0)
            link->parts[(*count)++] = (nccl_part){
                .receive = (char *)task->to + received->at + at, .bytes = rest, .from = from};
    }
    return SIFR_OK;
}

static sifr_status all_to_all(mpi_group *g, comm_task *task, sifr_error *error) {
    struct comm_link *link = g->link;
    for (int32_t c = 0; c < g->base.local_size; c++)
        BASE_TRY(comm_mpi_read_part(g, task, c, error));
    for (int32_t r = 0; r < g->base.size; r++)
        if (comm_mpi_is_far(g, r)) comm_mpi_count(g, task, r, task->received[r].bytes);
    for (int64_t at = 0;; at += link->part_bytes) {
        int32_t count = 0;
        for (int32_t d = 1; d < link->hosts; d++)
            BASE_TRY(prepare_parts(g, task, at, d, &count, error));
        if (!count) return SIFR_OK;
        BASE_TRY(exchange(g, count, error));
    }
}

static sifr_status move_parts(mpi_group *g, comm_task *task, sifr_error *error) {
    if (task->kind == COMM_TASK_ALL_TO_ALL) return all_to_all(g, task, error);
    if (task->kind == COMM_TASK_ALL_REDUCE)
        return comm_mpi_all_reduce(g, task, reduce, gather, error);
    return task->kind == COMM_TASK_GATHER ? gather(g, task, error) : reduce(g, task, error);
}

static sifr_status move(mpi_group *g, comm_task *task, sifr_error *error) {
    bool usable = true;
    void *stream;
    BASE_TRY(device_enter(g->base.dev, DEVICE_EXCHANGE, &stream, error));
    BASE_TRY(device_finish(g->base.dev, task->after, error));
    if (g->link->local > 1) {
        comm_mpi_post(g, task, task->number);
        BASE_TRY(comm_mpi_see_posts(g, task, &usable, error));
    }
    if (!usable)
        return base_fail(error, SIFR_FAILED,
                         "communication: operands lie outside of what the ranks' GPUs share");
    pthread_mutex_lock(&g->process->device); /* other lanes wait meanwhile; none of them waits for
                                                another rank while it holds this */
    sifr_status status = move_parts(g, task, error);
    if (status == SIFR_OK) status = finish(g, error);
    pthread_mutex_unlock(&g->process->device);
    return status;
}

sifr_status comm_mpi_move_linked(mpi_group *g, comm_task *task, sifr_error *error) {
    sifr_status status = move(g, task, error);
    if (status == SIFR_OK && g->link->local > 1) status = comm_mpi_let_go(g, task, error);
    if (status != SIFR_OK) nccl_link_abort(g->link->nccl);
    return status;
}
