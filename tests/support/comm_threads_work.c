#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/half.h"
#include "support/comm_threads_private.h"

/* --- collectives --- */

/* Every rank's pointer is known to all between here and `part`. */
static comm_threads *meet(threads_group *g, const void *mine) {
    g->world->posted[g->group.rank] = mine;
    pthread_barrier_wait(&g->world->barrier);
    return g->world;
}

static void part(threads_group *g) {
    pthread_barrier_wait(&g->world->barrier);
}

/* Where this rank's device reaches rank r's `at`; NULL: in no window. */
static const void *reach(const threads_group *g, int32_t r, const char *at) {
    int32_t all = comm_world_rank(&g->group, r);
    for (int w = 0; w < WINDOWS && g->process->windows[w].seen; w++) {
        const threads_notice *theirs = &g->process->windows[w].theirs[all];
        if (at >= theirs->block && at < theirs->block + theirs->bytes)
            return g->process->windows[w].seen[all] + (at - theirs->block);
    }
    return NULL;
}

static sifr_status gather_on_device(threads_group *g, comm_task *task, sifr_error *error) {
    for (int32_t r = 0; r < g->world->ranks; r++) {
        char *to = (char *)task->to + r * task->bytes;
        if (r == g->group.rank && to == task->from) continue;
        BASE_TRY(device_start_copy(g->group.dev, DEVICE_EXCHANGE, to,
                                   reach(g, r, g->world->posted[r]), task->bytes, error));
    }
    task->delivered = (uint64_t)task->bytes * (uint64_t)(g->world->ranks - 1);
    return SIFR_OK;
}

static sifr_status reduce_on_device(threads_group *g, comm_task *task, sifr_error *error) {
    int64_t bytes = task->elements * base_dtype_bytes(task->type);
    const void *slices[DEVICE_MOST_SLICES];
    for (int32_t r = 0; r < g->world->ranks; r++)
        slices[r] = (const char *)reach(g, r, g->world->posted[r]) + g->group.rank * bytes;
    device_sum sum = {task->type, task->sum, slices, g->world->ranks, task->elements, task->to};
    task->delivered = (uint64_t)bytes * (uint64_t)(g->world->ranks - 1);
    return device_start_sum(g->group.dev, DEVICE_EXCHANGE, &sum, error);
}

/* What is posted is each rank's task. */
static sifr_status all_to_all(threads_group *g, comm_task *task, sifr_error *error) {
    for (int32_t r = 0; r < g->world->ranks; r++) {
        const comm_task *theirs = g->world->posted[r];
        const comm_run *sent = &theirs->sent[g->group.rank], *received = &task->received[r];
        const char *from = (const char *)theirs->from + sent->at;
        char *to = (char *)task->to + received->at;
        BASE_TRY(comm_check_part(&g->group, r, sent->bytes, received->bytes, error));
        if (!sent->bytes) continue;
        if (r != g->group.rank) task->delivered += (uint64_t)sent->bytes;
        if (g->group.dev)
            BASE_TRY(device_start_copy(g->group.dev, DEVICE_EXCHANGE, to, reach(g, r, from),
                                       sent->bytes, error));
        else
            memcpy(to, from, (size_t)sent->bytes);
    }
    return SIFR_OK;
}

/* Each rank sums its slice in place, and reads those of the others when all have. */
static sifr_status all_reduce_on_device(threads_group *g, comm_task *task, sifr_error *error) {
    device *dev = g->group.dev;
    comm_task slice = *task;
    int64_t bytes = task->elements * base_dtype_bytes(task->type);
    slice.sum = task->type;
    slice.to = (char *)task->to + g->group.rank * bytes;
    pthread_mutex_lock(&g->process->device);
    sifr_status status = reduce_on_device(g, &slice, error);
    if (status == SIFR_OK) status = device_finish_queue(dev, DEVICE_EXCHANGE, error);
    pthread_mutex_unlock(&g->process->device);
    part(g);
    pthread_mutex_lock(&g->process->device);
    for (int32_t r = 0; r < g->world->ranks && status == SIFR_OK; r++) {
        if (r == g->group.rank) continue;
        const char *theirs = reach(g, r, g->world->posted[r]);
        status = device_start_copy(dev, DEVICE_EXCHANGE, (char *)task->to + r * bytes,
                                   theirs + r * bytes, bytes, error);
    }
    if (status == SIFR_OK) status = device_finish_queue(dev, DEVICE_EXCHANGE, error);
    pthread_mutex_unlock(&g->process->device);
    task->delivered = 2 * (uint64_t)bytes * (uint64_t)(g->world->ranks - 1);
    return status;
}

/* Operands are computed before they are posted, and read before `run` parts. */
static sifr_status run_on_device(threads_group *g, comm_task *task, sifr_error *error) {
    device *dev = g->group.dev;
    BASE_TRY(device_finish(dev, task->after, error));
    bool parts = task->kind == COMM_TASK_ALL_TO_ALL;
    meet(g, parts ? (const void *)task : task->from);
    if (task->kind == COMM_TASK_ALL_REDUCE) return all_reduce_on_device(g, task, error);
    pthread_mutex_lock(&g->process->device);
    sifr_status status = parts                            ? all_to_all(g, task, error)
                         : task->kind == COMM_TASK_REDUCE ? reduce_on_device(g, task, error)
                                                          : gather_on_device(g, task, error);
    if (status == SIFR_OK) status = device_finish_queue(dev, DEVICE_EXCHANGE, error);
    pthread_mutex_unlock(&g->process->device);
    return status;
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

/* Each rank sums all, before any of them writes. */
static void all_reduce(threads_group *g, comm_task *task) {
    comm_threads *world = meet(g, task->from);
    size_t bytes = (size_t)task->bytes;
    void *sum = malloc(bytes ? bytes : 1);
    for (int64_t i = 0; i < task->elements * world->ranks; i++)
        put_one(task->type, sum, i, tree(task, world->posted, 0, world->ranks, i));
    part(g);
    memcpy(task->to, sum, bytes);
    free(sum);
    task->delivered = 2 * (bytes / (size_t)world->ranks) * (size_t)(world->ranks - 1);
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

sifr_status comm_threads_run(void *user, comm_task *task, sifr_error *error) {
    threads_group *g = (threads_group *)task->group;
    sifr_status status = SIFR_OK;
    (void)user;
    bool data = comm_task_has_data(task->kind);
    double begun = base_seconds();
    if (task->kind == COMM_TASK_GATHER_CONTROL && task->elements == BEHIND)
        status = device_finish(g->group.dev, task->after, error);
    if (status != SIFR_OK) return status;
    if (data && g->group.dev)
        status = run_on_device(g, task, error);
    else if (task->kind == COMM_TASK_REDUCE)
        reduce(g, task);
    else if (task->kind == COMM_TASK_ALL_REDUCE)
        all_reduce(g, task);
    else if (task->kind == COMM_TASK_BROADCAST)
        broadcast(g, task);
    else if (task->kind == COMM_TASK_ALL_TO_ALL)
        meet(g, task), status = all_to_all(g, task, error);
    else
        gather(g, task);
    part(g);
    if (data && status == SIFR_OK) {
        double least = g->group.call_seconds + (double)task->delivered * g->group.byte_seconds;
        sleep_until(begun + least);
    }
    return status;
}

/* --- sends and receives --- */

/* A send stays posted until its receiver, which takes it away, has copied. */
static comm_task **find_send(threads_group *g, int32_t from, int32_t to, uint32_t number) {
    comm_task **line = g->world->sends + from * COMM_LINE;
    for (int i = 0; i < COMM_LINE; i++)
        if (line[i] && line[i]->root == to && line[i]->number == number) return &line[i];
    return NULL;
}

static bool send_on(threads_group *g, comm_task *task) {
    comm_task **line = g->world->sends + g->group.rank * COMM_LINE;
    if (!task->engaged) {
        task->entry = 0;
        while (line[task->entry]) task->entry++;
        line[task->entry] = task;
        task->engaged = true;
        return false;
    }
    return line[task->entry] != task;
}

static sifr_status take(threads_group *g, comm_task *task, const comm_task *send,
                        sifr_error *error) {
    device *dev = g->group.dev;
    if (send->bytes != task->bytes)
        return base_fail(error, SIFR_FAILED, "receive: %lld bytes, but %lld are sent",
                         (long long)task->bytes, (long long)send->bytes);
    task->delivered = (uint64_t)task->bytes;
    if (!dev) {
        if (task->bytes) memcpy(task->to, send->from, (size_t)task->bytes);
        return SIFR_OK;
    }
    BASE_TRY(device_start_copy(dev, DEVICE_SEND, task->to, reach(g, task->root, send->from),
                               task->bytes, error));
    return device_finish_queue(dev, DEVICE_SEND, error);
}

sifr_status comm_threads_turn(void *user, comm_task *task, bool *over, sifr_error *error) {
    threads_group *g = (threads_group *)task->group;
    sifr_status status = SIFR_OK;
    (void)user;
    if (g->group.dev) BASE_TRY(device_finish(g->group.dev, task->after, error));
    pthread_mutex_lock(&g->world->lock);
    if (task->kind == COMM_TASK_SEND) {
        *over = send_on(g, task);
    } else if (g->engaged[task->root] == task->number - 1) {
        comm_task **send = find_send(g, task->root, g->group.rank, task->number);
        if (send) {
            status = take(g, task, *send, error);
            *send = NULL;
            g->engaged[task->root]++;
            *over = true;
        }
    }
    pthread_mutex_unlock(&g->world->lock);
    return status;
}

void comm_threads_rest(void *user) {
    struct timespec time = {.tv_nsec = 50000};
    (void)user;
    nanosleep(&time, NULL);
}
