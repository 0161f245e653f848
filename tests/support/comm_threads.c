#include "support/comm_threads.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/half.h"
#include "comm/transport.h"
#include "comm/worker.h"

enum { WINDOWS = 4 };

/* A rank's block of hidden memory, as it tells the others. */
typedef struct notice {
    char *block;
    int64_t bytes;
    device_share share;
} notice;

struct comm_threads {
    int32_t ranks;
    bool shares;
    pthread_barrier_t barrier;
    const void **posted; /* by rank */
    notice *notices;     /* by rank */
};

/* Blocks that ranks opened together, by rank: as their owners know them, and as this rank does. */
typedef struct window {
    notice *theirs;
    char **seen;
} window;

typedef struct threads_group {
    comm_group group;
    comm_threads *world;
    comm_worker worker;
    window windows[WINDOWS];
} threads_group;

/* --- on the worker's thread --- */

/* Every rank's pointer is known to all between here and `part`. */
static comm_threads *meet(threads_group *g, const void *mine) {
    g->world->posted[g->group.rank] = mine;
    pthread_barrier_wait(&g->world->barrier);
    return g->world;
}

static void part(threads_group *g) {
    pthread_barrier_wait(&g->world->barrier);
}

/* Where this rank's device reaches what rank r posted; NULL: in no window. */
static const void *reach(const threads_group *g, int32_t r) {
    const char *at = g->world->posted[r];
    for (int w = 0; w < WINDOWS && g->windows[w].seen; w++) {
        const notice *theirs = &g->windows[w].theirs[r];
        if (at >= theirs->block && at < theirs->block + theirs->bytes)
            return g->windows[w].seen[r] + (at - theirs->block);
    }
    return NULL;
}

static sifr_status gather_on_device(threads_group *g, comm_task *task, sifr_error *error) {
    for (int32_t r = 0; r < g->world->ranks; r++) {
        char *to = (char *)task->to + r * task->bytes;
        if (r == g->group.rank && to == task->from) continue;
        BASE_TRY(
            device_start_copy(g->group.dev, DEVICE_EXCHANGE, to, reach(g, r), task->bytes, error));
    }
    task->delivered = (uint64_t)task->bytes * (uint64_t)(g->world->ranks - 1);
    return SIFR_OK;
}

static sifr_status reduce_on_device(threads_group *g, comm_task *task, sifr_error *error) {
    int64_t bytes = task->elements * base_dtype_bytes(task->type);
    const void *slices[DEVICE_MOST_SLICES];
    for (int32_t r = 0; r < g->world->ranks; r++)
        slices[r] = (const char *)reach(g, r) + g->group.rank * bytes;
    device_sum sum = {task->type, task->sum, slices, g->world->ranks, task->elements, task->to};
    task->delivered = (uint64_t)bytes * (uint64_t)(g->world->ranks - 1);
    return device_start_sum(g->group.dev, DEVICE_EXCHANGE, &sum, error);
}

/* Operands are computed before they are posted, and read before `run` parts. */
static sifr_status run_on_device(threads_group *g, comm_task *task, sifr_error *error) {
    device *dev = g->group.dev;
    BASE_TRY(device_finish(dev, task->after, error));
    meet(g, task->from);
    BASE_TRY(task->kind == COMM_TASK_REDUCE ? reduce_on_device(g, task, error)
                                            : gather_on_device(g, task, error));
    return device_finish_queue(dev, DEVICE_EXCHANGE, error);
}

static void gather(threads_group *g, comm_task *task) {
    comm_threads *world = meet(g, task->from);
    for (int32_t r = 0; r < world->ranks; r++) {
        char *to = (char *)task->to + r * task->bytes;
        if (to != world->posted[r]) memcpy(to, world->posted[r], (size_t)task->bytes);
    }
    task->delivered = (uint64_t)task->bytes * (uint64_t)(world->ranks - 1);
}

static float read_one(base_dtype type, const void *row, int64_t element) {
    if (type == BASE_FP32) return ((const float *)row)[element];
    uint16_t half = ((const uint16_t *)row)[element];
    return type == BASE_FP16 ? base_half_to_float(half)
                             : base_float_from_bits((uint32_t)half << 16);
}

static uint16_t to_half(base_dtype type, float value) {
    return type == BASE_FP16 ? base_half_from_float(value) : base_bf16_from_float(value);
}

/* As the sum is kept. */
static float rounded(base_dtype sum, float value) {
    uint16_t half = to_half(sum, value);
    return sum == BASE_FP32 ? value : read_one(sum, &half, 0);
}

static float tree(const comm_task *task, const void *const *posted, int32_t first, int32_t count,
                  int64_t element) {
    if (count == 1) return read_one(task->type, posted[first], element);
    if (count % 2 == 0) {
        return rounded(task->sum, tree(task, posted, first, count / 2, element) +
                                      tree(task, posted, first + count / 2, count / 2, element));
    }
    float sum = read_one(task->type, posted[first], element);
    for (int32_t i = 1; i < count; i++)
        sum = rounded(task->sum, sum + read_one(task->type, posted[first + i], element));
    return sum;
}

static void put_one(base_dtype type, void *row, int64_t element, float value) {
    if (type == BASE_FP32)
        ((float *)row)[element] = value;
    else
        ((uint16_t *)row)[element] = to_half(type, value);
}

static void reduce(threads_group *g, comm_task *task) {
    comm_threads *world = meet(g, task->from);
    size_t bytes = (size_t)task->elements * (size_t)base_dtype_bytes(task->sum);
    void *sum = malloc(bytes ? bytes : 1);
    for (int64_t i = 0; i < task->elements; i++) {
        int64_t element = g->group.rank * task->elements + i;
        put_one(task->sum, sum, i, tree(task, world->posted, 0, world->ranks, element));
    }
    part(g); /* the slice may lie in what others read */
    memcpy(task->to, sum, bytes);
    free(sum);
    task->delivered =
        (uint64_t)(task->elements * base_dtype_bytes(task->type)) * (uint64_t)(world->ranks - 1);
}

static void broadcast(threads_group *g, comm_task *task) {
    comm_threads *world = meet(g, task->to);
    if (g->group.rank == task->root) return;
    memcpy(task->to, world->posted[task->root], (size_t)task->bytes);
    task->delivered = (uint64_t)task->bytes;
}

static void sleep_until(double time) {
    double rest = time - base_seconds();
    if (rest <= 0) return;
    struct timespec span = {.tv_sec = (time_t)rest,
                            .tv_nsec = (long)(1e9 * (rest - (double)(time_t)rest))};
    nanosleep(&span, NULL);
}

static sifr_status run(void *user, comm_task *task, sifr_error *error) {
    threads_group *g = user;
    sifr_status status = SIFR_OK;
    bool data = task->kind == COMM_TASK_GATHER || task->kind == COMM_TASK_REDUCE;
    double begun = base_seconds();
    if (data && g->group.dev)
        status = run_on_device(g, task, error);
    else if (task->kind == COMM_TASK_REDUCE)
        reduce(g, task);
    else if (task->kind == COMM_TASK_BROADCAST)
        broadcast(g, task);
    else
        gather(g, task);
    part(g);
    if (data) {
        double least = g->group.call_seconds + (double)task->delivered * g->group.byte_seconds;
        sleep_until(begun + least);
    }
    return status;
}

/* --- on the rank's thread --- */

static sifr_status start(comm_group *group, comm_task task, comm_handle *out, sifr_error *error) {
    out->group = group;
    if (group->dev) BASE_TRY(device_mark_here(group->dev, DEVICE_COMPUTE, &task.after, error));
    return comm_worker_start(&((threads_group *)group)->worker, &task, &out->id, error);
}

static sifr_status wait(comm_group *group, int32_t id, sifr_error *error) {
    comm_task task = {0};
    BASE_TRY(comm_worker_wait(&((threads_group *)group)->worker, id, &task, error));
    comm_worker_count(group, &task);
    return SIFR_OK;
}

static sifr_status now(comm_group *group, comm_task task, sifr_error *error) {
    comm_handle handle;
    BASE_TRY(start(group, task, &handle, error));
    return wait(group, handle.id, error);
}

static sifr_status start_gather(comm_group *group, const void *slice, int64_t bytes, void *whole,
                                comm_handle *out, sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_GATHER, .from = slice, .to = whole, .bytes = bytes};
    return start(group, task, out, error);
}

static sifr_status start_reduce(comm_group *group, const void *whole, base_dtype type,
                                base_dtype sum, int64_t elements, void *slice, comm_handle *out,
                                sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_REDUCE,
                      .from = whole,
                      .to = slice,
                      .elements = elements,
                      .type = type,
                      .sum = sum};
    return start(group, task, out, error);
}

static sifr_status gather_control(comm_group *group, const void *mine, int64_t bytes, void *all,
                                  sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_GATHER_CONTROL, .from = mine, .to = all, .bytes = bytes};
    return now(group, task, error);
}

static sifr_status broadcast_now(comm_group *group, int32_t root, void *data, int64_t bytes,
                                 sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_BROADCAST, .to = data, .bytes = bytes, .root = root};
    return now(group, task, error);
}

static sifr_status sum(comm_group *group, int64_t *values, int32_t count, sifr_error *error) {
    int64_t *all = calloc((size_t)(count * group->size) + 1, sizeof *all);
    sifr_status status = gather_control(group, values, count * 8, all, error);
    for (int32_t i = 0; i < count && status == SIFR_OK; i++) {
        values[i] = 0;
        for (int32_t r = 0; r < group->size; r++) values[i] += all[r * count + i];
    }
    free(all);
    return status;
}

/* Called while no collective is under way. */
static sifr_status open_window(comm_group *group, void *block, int64_t bytes, int file,
                               sifr_error *error) {
    threads_group *g = (threads_group *)group;
    comm_threads *world = g->world;
    size_t ranks = (size_t)world->ranks;
    window *w = g->windows;
    (void)file;
    if (!group->dev) return SIFR_OK;
    while (w->seen) w++;
    notice *mine = &world->notices[group->rank];
    *mine = (notice){.block = block, .bytes = bytes};
    sifr_status status = device_share_block(group->dev, block, &mine->share, error);
    pthread_barrier_wait(&world->barrier);
    w->theirs = calloc(ranks, sizeof *w->theirs);
    w->seen = calloc(ranks, sizeof *w->seen);
    memcpy(w->theirs, world->notices, ranks * sizeof *w->theirs);
    pthread_barrier_wait(&world->barrier);
    for (int32_t r = 0; r < world->ranks && status == SIFR_OK; r++) {
        void *seen = block;
        if (r != group->rank)
            status = device_open_shared(group->dev, &w->theirs[r].share, w->theirs[r].bytes, &seen,
                                        error);
        w->seen[r] = seen;
    }
    return status;
}

static void close_window(comm_group *group, void *block) {
    threads_group *g = (threads_group *)group;
    for (int i = 0; i < WINDOWS && group->dev; i++) {
        window *w = &g->windows[i];
        if (!w->seen || w->seen[group->rank] != block) continue;
        for (int32_t r = 0; r < g->world->ranks; r++)
            if (r != group->rank) device_close_shared(group->dev, w->seen[r], w->theirs[r].bytes);
        w->theirs[group->rank].bytes = 0;
        w->seen[group->rank] = NULL;
    }
}

static void close_group(comm_group *group) {
    threads_group *g = (threads_group *)group;
    for (int i = 0; i < WINDOWS; i++) {
        free(g->windows[i].theirs);
        free(g->windows[i].seen);
    }

    comm_worker_close(&((threads_group *)group)->worker);
    free(group);
}

static const comm_transport transport = {.all_gather = start_gather,
                                         .reduce_scatter = start_reduce,
                                         .wait = wait,
                                         .sum = sum,
                                         .all_gather_control = gather_control,
                                         .broadcast = broadcast_now,
                                         .open_window = open_window,
                                         .close_window = close_window,
                                         .close = close_group};

comm_threads *comm_threads_create(int32_t ranks) {
    comm_threads *world = calloc(1, sizeof *world);
    world->ranks = ranks;
    world->posted = calloc((size_t)ranks, sizeof *world->posted);
    world->notices = calloc((size_t)ranks, sizeof *world->notices);
    pthread_barrier_init(&world->barrier, NULL, (unsigned)ranks);
    return world;
}

void comm_threads_free(comm_threads *world) {
    pthread_barrier_destroy(&world->barrier);
    free(world->posted);
    free(world->notices);
    free(world);
}

void comm_threads_share(comm_threads *world) {
    world->shares = true;
}

comm_group *comm_threads_group(comm_threads *world, int32_t rank) {
    sifr_error error;
    threads_group *g = calloc(1, sizeof *g);
    g->world = world;
    g->group.transport = &transport;
    g->group.rank = rank;
    g->group.size = g->group.local_size = world->ranks;
    g->group.shares_memory = world->shares;
    if (comm_worker_open(&g->worker, run, g, &error) != SIFR_OK) abort();
    return &g->group;
}
