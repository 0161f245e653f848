/* Collectives of many ranks by messages: a rank sends about log N of them, and keeps no more for
 * them than for a few ranks. The bytes delivered are those of direct exchanges.
 */
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "comm/mpi/mpi_ways.h"
#include "comm/reduce.h"

/* --- gathers --- */

/* Blocks first … first + count - 1 of all, modulo the ranks: two runs where they go round. */
typedef struct run {
    int64_t at, bytes;
} run;

static void find_runs(const mpi_group *g, const comm_task *task, int32_t first, int32_t count,
                      run runs[2]) {
    base_assert(count >= 1 && count <= g->base.size);
    int32_t size = g->base.size, straight;
    first %= size;
    straight = first + count > size ? size - first : count;
    runs[0] = (run){first * task->bytes, straight * task->bytes};
    runs[1] = (run){0, (count - straight) * task->bytes};
}

static int64_t next_bytes(const run *r, int64_t done) {
    return base_min_i64(r->bytes - done, COMM_MESSAGE_BYTES);
}

/* Both sides cut the same runs into the same messages. */
static sifr_status exchange_runs(mpi_group *g, const comm_task *task, int kind, int32_t to,
                                 const run out[2], int32_t from, const run in[2],
                                 sifr_error *error) {
    mpi_request *requests = g->lane->requests;
    char *all = task->to;
    int64_t longest = 0;
    for (int i = 0; i < 2; i++)
        longest = base_max_i64(longest, base_max_i64(out[i].bytes, in[i].bytes));
    for (int64_t done = 0; done < longest; done += COMM_MESSAGE_BYTES) {
        int count = 0;
        for (int i = 0; i < 2; i++)
            if (done < in[i].bytes)
                BASE_TRY(comm_mpi_start_receive(g, task, kind, all + in[i].at + done, from,
                                                next_bytes(&in[i], done), &requests[count++],
                                                error));
        for (int i = 0; i < 2; i++)
            if (done < out[i].bytes)
                BASE_TRY(comm_mpi_start_send(g, task, kind, all + out[i].at + done, to,
                                             next_bytes(&out[i], done), &requests[count++], error));
        BASE_TRY(comm_mpi_finish(g, requests, count, error));
    }
    return SIFR_OK;
}

/* Bruck's algorithm in place: with `have` blocks from its own on, a rank gets as many that follow
 * from the rank `have` places ahead. */
sifr_status comm_mpi_gather_many(mpi_group *g, comm_task *task, int kind, sifr_error *error) {
    int32_t size = g->base.size, rank = g->base.rank;
    char *own = (char *)task->to + rank * task->bytes;
    run in[2], out[2];
    if (task->from != own && task->bytes) memmove(own, task->from, (size_t)task->bytes);
    for (int32_t have = 1, count; have < size; have += count) {
        int32_t to = (rank + size - have) % size, from = (rank + have) % size;
        count = have < size - have ? have : size - have;
        find_runs(g, task, rank, count, out);
        find_runs(g, task, from, count, in);
        BASE_TRY(exchange_runs(g, task, kind, to, out, from, in, error));
        comm_mpi_count(g, task, from, count * task->bytes);
    }
    return SIFR_OK;
}

/* --- broadcasts --- */

/* A binomial tree: `place` counts from the root, and a rank gets its data from the rank without its
 * lowest bit. */
static sifr_status pass_on(mpi_group *g, comm_task *task, char *data, int64_t bytes,
                           sifr_error *error) {
    int32_t size = g->base.size, place = (g->base.rank + size - task->root) % size, bit = 1;
    mpi_request *requests = g->lane->requests;
    int count = 0;
    while (bit < size && !(place & bit)) bit *= 2;
    if (place) {
        int32_t from = (place - bit + task->root) % size;
        BASE_TRY(comm_mpi_start_receive(g, task, COMM_TAG_BROADCAST, data, from, bytes, requests,
                                        error));
        BASE_TRY(comm_mpi_finish(g, requests, 1, error));
        comm_mpi_count(g, task, from, bytes);
    }
    for (bit /= 2; bit > 0; bit /= 2)
        if (place + bit < size)
            BASE_TRY(comm_mpi_start_send(g, task, COMM_TAG_BROADCAST, data,
                                         (place + bit + task->root) % size, bytes,
                                         &requests[count++], error));
    return comm_mpi_finish(g, requests, count, error);
}

sifr_status comm_mpi_broadcast_many(mpi_group *g, comm_task *task, sifr_error *error) {
    char *data = task->to;
    for (int64_t at = 0; at < task->bytes; at += COMM_MESSAGE_BYTES)
        BASE_TRY(
            pass_on(g, task, data + at, base_min_i64(task->bytes - at, COMM_MESSAGE_BYTES), error));
    return SIFR_OK;
}

/* --- sums of whole numbers, whose order does not matter --- */

static sifr_status add_theirs(mpi_group *g, comm_task *task, int32_t rank, bool send,
                              sifr_error *error) {
    base_assert(rank != g->base.rank && task->bytes <= COMM_SUM_VALUES * (int64_t)sizeof(int64_t));
    int64_t theirs[COMM_SUM_VALUES];
    uint64_t *mine = task->to;
    mpi_request two[2];
    int count = 1;
    BASE_TRY(comm_mpi_start_receive(g, task, COMM_TAG_CONTROL, theirs, rank, task->bytes, &two[0],
                                    error));
    if (send)
        BASE_TRY(comm_mpi_start_send(g, task, COMM_TAG_CONTROL, mine, rank, task->bytes,
                                     &two[count++], error));
    BASE_TRY(comm_mpi_finish(g, two, count, error));
    comm_mpi_count(g, task, rank, task->bytes);
    for (int64_t i = 0; i < task->bytes / 8; i++) mine[i] += (uint64_t)theirs[i];
    return SIFR_OK;
}

static sifr_status move_sum(mpi_group *g, comm_task *task, int32_t rank, bool receive,
                            sifr_error *error) {
    mpi_request request;
    BASE_TRY(receive ? comm_mpi_start_receive(g, task, COMM_TAG_CONTROL, task->to, rank,
                                              task->bytes, &request, error)
                     : comm_mpi_start_send(g, task, COMM_TAG_CONTROL, task->to, rank, task->bytes,
                                           &request, error));
    if (receive) comm_mpi_count(g, task, rank, task->bytes);
    return comm_mpi_finish(g, &request, 1, error);
}

/* Recursive doubling over the largest power of two of ranks. Of the first 2 x `rest` ranks the odd
 * ones give their values to the even ones, and get the sums from them. */
sifr_status comm_mpi_sum_many(mpi_group *g, comm_task *task, sifr_error *error) {
    int32_t size = g->base.size, rank = g->base.rank, power = 1;
    while (power <= size / 2) power *= 2;
    int32_t rest = size - power;
    bool paired = rank < 2 * rest;
    if (paired && rank % 2) {
        BASE_TRY(move_sum(g, task, rank - 1, false, error));
        return move_sum(g, task, rank - 1, true, error);
    }
    if (paired) BASE_TRY(add_theirs(g, task, rank + 1, false, error));
    int32_t place = paired ? rank / 2 : rank - rest;
    for (int32_t bit = 1; bit < power; bit *= 2) {
        int32_t other = place ^ bit;
        BASE_TRY(add_theirs(g, task, other < rest ? 2 * other : other + rest, true, error));
    }
    return paired ? move_sum(g, task, rank + 1, false, error) : SIFR_OK;
}

/* --- reductions --- */

/* Ranks first, first + stride … of the group add; their number is `odd` x 2^`levels`, as the tree
 * of sums has it: runs of `odd` ranks are added from left to right, the rest by pairs. */
typedef struct halving {
    mpi_group *g;
    comm_task *task;
    const comm_adders *adders;
    int32_t place, odd, levels;
    int64_t piece;   /* elements of each slice that are added at a time */
    int64_t size_of; /* bytes of an element of a sum */
    char *sums;      /* a piece of each slice that this rank still adds, then room for others' */
} halving;

/* Slices lie in an order in which each level keeps one half: by the bits of their number in
 * reverse. */
static int32_t reverse(int32_t number, int32_t bits) {
    base_assert(number >> bits == 0);
    int32_t result = 0;
    for (int32_t i = 0; i < bits; i++) result |= (number >> i & 1) << (bits - 1 - i);
    return result;
}

static int32_t rank_at(const halving *h, int32_t place) {
    base_assert(place >= 0 && place < h->odd << h->levels);
    return h->adders->first + place * h->adders->stride;
}

/* This rank's own parts of the slices that member `member` of its run keeps. */
static void put_parts(const halving *h, int32_t member, int64_t at, int64_t length, char *out) {
    int32_t runs = 1 << h->levels;
    for (int32_t i = 0; i < runs; i++) {
        int32_t target = rank_at(h, reverse(i, h->levels) * h->odd + member);
        h->adders->part(h->g, h->task, target, at, length, out + i * length * h->size_of);
    }
}

static void count_sums(const halving *h, int32_t from, int64_t bytes) {
    h->task->delivered += (uint64_t)bytes * (uint64_t)h->adders->weight;
    if (comm_mpi_is_far(h->g, from)) h->task->crossed += (uint64_t)bytes;
}

static void add(const halving *h, const void **rows, int32_t count, int64_t elements, void *out) {
    comm_reduce(&(device_sum){h->task->sum, h->task->sum, rows, count, elements, out});
}

/* Within a run of an odd number of ranks each sends directly to each. */
static sifr_status add_run(const halving *h, int64_t at, int64_t length, sifr_error *error) {
    int32_t mine = h->place % h->odd, others = h->odd - 1;
    int64_t elements = length << h->levels, bytes = elements * h->size_of;
    base_assert((others + 2) * bytes <= COMM_PIECES_BYTES);
    char *in = h->sums + bytes, *out = in + others * bytes;
    const void **rows = h->g->lane->rows;
    put_parts(h, mine, at, length, h->sums);
    for (int32_t d = 1; d <= others; d++) {
        int32_t to = (mine + d) % h->odd, from = (mine + h->odd - d) % h->odd;
        int32_t sender = rank_at(h, h->place - mine + from);
        mpi_request two[2];
        put_parts(h, to, at, length, out);
        BASE_TRY(comm_mpi_exchange(h->g, h->task, COMM_TAG_REDUCE, out,
                                   rank_at(h, h->place - mine + to), in + (d - 1) * bytes, sender,
                                   bytes, two, error));
        BASE_TRY(comm_mpi_finish(h->g, two, 2, error));
        count_sums(h, sender, bytes);
    }
    for (int32_t d = 1; d <= others; d++) /* now: `part` may use the rows */
        rows[(mine + h->odd - d) % h->odd] = in + (d - 1) * bytes;
    rows[mine] = h->sums;
    if (others) add(h, rows, h->odd, elements, h->sums);
    return SIFR_OK;
}

/* Runs that differ in one bit of their number exchange halves of what they hold. */
static sifr_status add_halves(const halving *h, int64_t length, char **sums, sifr_error *error) {
    int32_t number = h->place / h->odd;
    char *held = h->sums, *in = h->sums + (length << h->levels) * h->size_of;
    for (int32_t level = 0; level < h->levels; level++) {
        int32_t bit = number >> level & 1;
        int32_t other = rank_at(h, h->place + (bit ? -1 : 1) * h->odd * (1 << level));
        int64_t elements = length << (h->levels - 1 - level), bytes = elements * h->size_of;
        char *kept = held + bit * bytes, *given = held + !bit * bytes;
        mpi_request two[2];
        BASE_TRY(comm_mpi_exchange(h->g, h->task, COMM_TAG_REDUCE, given, other, in, other, bytes,
                                   two, error));
        BASE_TRY(comm_mpi_finish(h->g, two, 2, error));
        count_sums(h, other, bytes);
        const void *rows[2] = {bit ? in : kept, bit ? kept : in};
        add(h, rows, 2, elements, kept);
        held = kept;
    }
    *sums = held;
    return SIFR_OK;
}

sifr_status comm_mpi_reduce_many(mpi_group *g, comm_task *task, const comm_adders *adders,
                                 sifr_error *error) {
    base_assert(task->type == task->sum);
    int32_t count = g->base.size / adders->stride;
    halving h = {.g = g, .task = task, .adders = adders, .odd = count};
    h.place = (g->base.rank - adders->first) / adders->stride;
    h.size_of = base_dtype_bytes(task->sum);
    h.sums = (char *)g->lane->pieces;
    while (h.odd % 2 == 0) h.odd /= 2, h.levels++;
    h.piece = COMM_PIECES_BYTES / (2 * count * h.size_of);
    if (!h.piece)
        return base_fail(error, SIFR_FAILED,
                         "reduce_scatter: %d ranks are too many for one group (at most %lld)",
                         (int)count, (long long)(COMM_PIECES_BYTES / (2 * h.size_of)));
    for (int64_t at = 0; at < task->elements; at += h.piece) {
        int64_t length = base_min_i64(h.piece, task->elements - at);
        char *sums = NULL;
        BASE_TRY(add_run(&h, at, length, error));
        BASE_TRY(add_halves(&h, length, &sums, error));
        memcpy((char *)task->to + at * h.size_of, sums, (size_t)(length * h.size_of));
    }
    return SIFR_OK;
}

/* Parts that are narrower than their sum are sent one by one: partial sums would be longer. */
sifr_status comm_mpi_reduce_apart(mpi_group *g, comm_task *task, sifr_error *error) {
    base_assert(task->type != task->sum || task->once);
    int32_t size = g->base.size, rank = g->base.rank;
    int64_t size_of = base_dtype_bytes(task->type), out_size = base_dtype_bytes(task->sum);
    int64_t piece = COMM_PIECES_BYTES / (size * size_of);
    const char *whole = task->from;
    char *in = (char *)g->lane->pieces;
    const void **rows = g->lane->rows;
    mpi_request *requests = g->lane->requests;
    if (!piece)
        return base_fail(error, SIFR_FAILED,
                         "reduce_scatter: %d ranks are too many for one group (at most %lld)",
                         (int)size, (long long)(COMM_PIECES_BYTES / size_of));
    for (int i = 0; i < 2 * COMM_ROUNDS; i++) requests[i] = (mpi_request){0};
    for (int64_t at = 0; at < task->elements; at += piece) {
        int64_t length = base_min_i64(piece, task->elements - at), bytes = length * size_of;
        for (int32_t d = 1; d < size; d++) {
            int32_t to = (rank + d) % size, from = (rank + size - d) % size;
            mpi_request *two = requests + 2 * (d % COMM_ROUNDS);
            BASE_TRY(comm_mpi_finish(g, two, 2, error));
            rows[from] = in + (d - 1) * bytes;
            BASE_TRY(comm_mpi_exchange(g, task, COMM_TAG_REDUCE,
                                       whole + (to * task->elements + at) * size_of, to,
                                       in + (d - 1) * bytes, from, bytes, two, error));
            comm_mpi_count(g, task, from, bytes);
        }
        BASE_TRY(comm_mpi_finish(g, requests, 2 * COMM_ROUNDS, error));
        rows[rank] = whole + (rank * task->elements + at) * size_of;
        device_sum sum = {task->type, task->sum, rows,
                          size,       length,    (char *)task->to + at * out_size};
        comm_mpi_add(task, &sum);
    }
    return SIFR_OK;
}
