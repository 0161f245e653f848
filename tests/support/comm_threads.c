#include "support/comm_threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/half.h"
#include "comm/followed.h"

enum { WINDOWS = 4 };

/* A rank's block of hidden memory, as it tells the others. */
typedef struct notice {
    char *block;
    int64_t bytes;
    device_share share;
} notice;

/* Ranks that meet: all, or those of a group that was split off. */
struct comm_threads {
    int32_t ranks;
    bool shares;
    pthread_barrier_t barrier;
    const void **posted;  /* by rank */
    notice *notices;      /* by rank */
    comm_member *members; /* by rank: in a split */
    comm_threads **parts; /* by rank: the group that it gets in a split */
    pthread_mutex_t lock; /* of the sends */
    comm_task **sends;    /* rank x COMM_LINE: posted, by their sender; NULL: free */
    atomic_int users;     /* of a group that was split off: its ranks that have it open */
};

/* Blocks that ranks opened together, by rank: as their owners know them, and as this rank does. */
typedef struct window {
    notice *theirs;
    char **seen;
} window;

/* What a rank's groups share: they are moved by one thread, and find operands in the windows that
 * the group of all ranks opened. */
typedef struct process {
    int groups;
    comm_worker workers[COMM_LANES], peers;
    pthread_mutex_t device; /* held while a lane gives it work */
    window windows[WINDOWS];
    comm_words words; /* of what is followed */
} process;

typedef struct threads_group {
    comm_group group;
    comm_threads *world;
    process *process;
    comm_worker *worker;              /* of its lane */
    uint32_t *sent, *asked, *engaged; /* by rank, with peers */
} threads_group;

enum { BEHIND = 1 }; /* elements of a control message that is behind what was computed */

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

/* Where this rank's device reaches rank r's `at`; NULL: in no window. */
static const void *reach(const threads_group *g, int32_t r, const char *at) {
    int32_t all = comm_world_rank(&g->group, r);
    for (int w = 0; w < WINDOWS && g->process->windows[w].seen; w++) {
        const notice *theirs = &g->process->windows[w].theirs[all];
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

/* Operands are computed before they are posted, and read before `run` parts. */
static sifr_status run_on_device(threads_group *g, comm_task *task, sifr_error *error) {
    device *dev = g->group.dev;
    BASE_TRY(device_finish(dev, task->after, error));
    meet(g, task->from);
    pthread_mutex_lock(&g->process->device);
    sifr_status status = task->kind == COMM_TASK_REDUCE ? reduce_on_device(g, task, error)
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
    threads_group *g = (threads_group *)task->group;
    sifr_status status = SIFR_OK;
    (void)user;
    bool data = task->kind == COMM_TASK_GATHER || task->kind == COMM_TASK_REDUCE;
    double begun = base_seconds();
    if (task->kind == COMM_TASK_GATHER_CONTROL && task->elements == BEHIND)
        status = device_finish(g->group.dev, task->after, error);
    if (status != SIFR_OK) return status;
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

/* --- on the thread of sends and receives --- */

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
    pthread_mutex_lock(&g->process->device);
    sifr_status status = device_start_copy(dev, DEVICE_EXCHANGE, task->to,
                                           reach(g, task->root, send->from), task->bytes, error);
    if (status == SIFR_OK) status = device_finish_queue(dev, DEVICE_EXCHANGE, error);
    pthread_mutex_unlock(&g->process->device);
    return status;
}

static sifr_status turn(void *user, comm_task *task, bool *over, sifr_error *error) {
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

static void rest(void *user) {
    struct timespec time = {.tv_nsec = 50000};
    (void)user;
    nanosleep(&time, NULL);
}

/* --- on the rank's thread --- */

static sifr_status start(comm_group *group, comm_task task, comm_handle *out, sifr_error *error) {
    out->group = task.group = group;
    BASE_TRY(comm_followed_make_room(((threads_group *)group)->worker, error));
    if (group->dev) BASE_TRY(device_mark_here(group->dev, DEVICE_COMPUTE, &task.after, error));
    return comm_worker_start(((threads_group *)group)->worker, &task, &out->id, error);
}

enum { PEER_HANDLE = 1 << 16 };

static sifr_status start_peer(comm_group *group, comm_task task, uint32_t *count, comm_handle *out,
                              sifr_error *error) {
    threads_group *g = (threads_group *)group;
    out->group = task.group = group;
    task.number = *count + 1;
    if (group->dev) BASE_TRY(device_mark_here(group->dev, DEVICE_COMPUTE, &task.after, error));
    BASE_TRY(comm_worker_start(&g->process->peers, &task, &out->id, error));
    out->id |= PEER_HANDLE;
    ++*count;
    return SIFR_OK;
}

static sifr_status start_send(comm_group *group, int32_t to, const void *data, int64_t bytes,
                              comm_handle *out, sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_SEND, .from = data, .bytes = bytes, .root = to};
    return start_peer(group, task, &((threads_group *)group)->sent[to], out, error);
}

static sifr_status start_receive(comm_group *group, int32_t from, void *data, int64_t bytes,
                                 comm_handle *out, sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_RECEIVE, .to = data, .bytes = bytes, .root = from};
    return start_peer(group, task, &((threads_group *)group)->asked[from], out, error);
}

static sifr_status wait(comm_group *group, int32_t id, sifr_error *error) {
    threads_group *g = (threads_group *)group;
    comm_task task = {0};
    comm_worker *worker = id & PEER_HANDLE ? &g->process->peers : g->worker;
    BASE_TRY(comm_worker_wait(worker, id & ~PEER_HANDLE, &task, error));
    comm_worker_count(&task);
    return SIFR_OK;
}

static sifr_status follow(comm_group *group, int32_t id, sifr_error *error) {
    threads_group *g = (threads_group *)group;
    process *p = g->process;
    if (!p->words.work || id & PEER_HANDLE) return wait(group, id, error);
    return comm_followed_start(&p->words, (comm_lane)(g->worker - p->workers), g->worker, id,
                               error);
}

static sifr_status catch_up(comm_group *group, sifr_error *error) {
    process *p = ((threads_group *)group)->process;
    for (int i = 0; i < COMM_LANES; i++) BASE_TRY(comm_followed_catch_up(&p->workers[i], error));
    return SIFR_OK;
}

static sifr_status take_words(comm_group *group, sifr_error *error) {
    process *p = ((threads_group *)group)->process;
    return group->world_of ? SIFR_OK : comm_words_take(&p->words, group->dev, error);
}

static void give_stage(comm_group *group) {
    process *p = ((threads_group *)group)->process;
    if (!group->world_of) comm_words_give(&p->words);
}

static sifr_status start_control(comm_group *group, const void *mine, int64_t bytes, void *all,
                                 comm_handle *out, sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_GATHER_CONTROL,
                      .from = mine,
                      .to = all,
                      .bytes = bytes,
                      .elements = group->dev ? BEHIND : 0};
    return start(group, task, out, error);
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
    window *w = g->process->windows;
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
        window *w = &g->process->windows[i];
        if (!w->seen || w->seen[group->rank] != block) continue;
        for (int32_t r = 0; r < g->world->ranks; r++)
            if (r != group->rank) device_close_shared(group->dev, w->seen[r], w->theirs[r].bytes);
        w->theirs[group->rank].bytes = 0;
        w->seen[group->rank] = NULL;
    }
}

static void free_world(comm_threads *world) {
    pthread_barrier_destroy(&world->barrier);
    free(world->posted);
    free(world->notices);
    pthread_mutex_destroy(&world->lock);
    free(world->sends);
    free(world->members);
    free(world->parts);
    free(world);
}

static void close_group(comm_group *group) {
    threads_group *g = (threads_group *)group;
    process *p = g->process;
    (void)comm_worker_finish(g->worker, group, 1e6);
    if (group->peers) (void)comm_worker_finish(&p->peers, group, 1e6);
    if (--p->groups == 0) {
        for (int i = 0; i < WINDOWS; i++) {
            free(p->windows[i].theirs);
            free(p->windows[i].seen);
        }
        for (int i = 0; i < COMM_LANES; i++) comm_worker_close(&p->workers[i]);
        comm_worker_close(&p->peers);
        pthread_mutex_destroy(&p->device);
        free(p);
    }
    if (group->world_of && atomic_fetch_sub(&g->world->users, 1) == 1) free_world(g->world);
    free(group->world_of);
    free(g->sent);
    free(g->asked);
    free(g->engaged);
    free(group);
}

static threads_group *make_group(comm_threads *world, process *p, int32_t rank, comm_lane lane,
                                 bool peers) {
    sifr_error error;
    threads_group *g = calloc(1, sizeof *g);
    g->worker = &p->workers[lane];
    if (!g->worker->running && comm_worker_open(g->worker, run, p, &error) != SIFR_OK) abort();
    if (peers && !p->peers.running &&
        comm_worker_open_turns(&p->peers, turn, rest, p, &error) != SIFR_OK)
        abort();
    g->sent = calloc((size_t)world->ranks, sizeof *g->sent);
    g->asked = calloc((size_t)world->ranks, sizeof *g->asked);
    g->engaged = calloc((size_t)world->ranks, sizeof *g->engaged);
    g->world = world;
    g->process = p;
    g->group.rank = rank;
    g->group.size = g->group.local_size = world->ranks;
    g->group.shares_memory = world->shares;
    p->groups++;
    return g;
}

/* Called while no collective is under way. The first rank of a group makes what its ranks meet at.
 */
static sifr_status split(comm_group *parent, const comm_part *part, comm_group **out,
                         sifr_error *error) {
    threads_group *p = (threads_group *)parent;
    comm_threads *world = p->world, *mine = NULL;
    int32_t me = comm_world_rank(parent, parent->rank), place = 0, count = 0;
    int32_t *world_of = calloc((size_t)parent->size, sizeof *world_of);
    (void)error;
    world->members[parent->rank] = (comm_member){part->color, part->key, me};
    pthread_barrier_wait(&world->barrier);
    if (part->color >= 0) {
        count = comm_choose_members(world->members, parent->size, part->color, world_of);
        while (world_of[place] != me) place++;
    }
    world->parts[parent->rank] = NULL;
    if (count && place == 0) {
        mine = world->parts[parent->rank] = comm_threads_create(count);
        mine->shares = world->shares;
        atomic_store(&mine->users, count);
    }
    pthread_barrier_wait(&world->barrier);
    for (int32_t r = 0; r < parent->size && count; r++)
        if (world->members[r].world == world_of[0]) mine = world->parts[r];
    pthread_barrier_wait(&world->barrier);
    if (!count) {
        free(world_of);
        return SIFR_OK;
    }
    threads_group *g = make_group(mine, p->process, place, part->lane, part->peers);
    comm_inherit(&g->group, parent, part);
    g->group.world_of = world_of;
    *out = &g->group;
    return SIFR_OK;
}

static const comm_transport transport = {.all_gather = start_gather,
                                         .reduce_scatter = start_reduce,
                                         .send = start_send,
                                         .receive = start_receive,
                                         .wait = wait,
                                         .follow = follow,
                                         .catch_up = catch_up,
                                         .start_control = start_control,
                                         .take_words = take_words,
                                         .give_stage = give_stage,
                                         .sum = sum,
                                         .all_gather_control = gather_control,
                                         .broadcast = broadcast_now,
                                         .open_window = open_window,
                                         .close_window = close_window,
                                         .split = split,
                                         .close = close_group};

comm_threads *comm_threads_create(int32_t ranks) {
    comm_threads *world = calloc(1, sizeof *world);
    world->ranks = ranks;
    world->posted = calloc((size_t)ranks, sizeof *world->posted);
    world->notices = calloc((size_t)ranks, sizeof *world->notices);
    world->members = calloc((size_t)ranks, sizeof *world->members);
    world->parts = calloc((size_t)ranks, sizeof *world->parts);
    world->sends = calloc((size_t)ranks * COMM_LINE, sizeof *world->sends);
    pthread_mutex_init(&world->lock, NULL);
    pthread_barrier_init(&world->barrier, NULL, (unsigned)ranks);
    return world;
}

void comm_threads_free(comm_threads *world) {
    free_world(world);
}

void comm_threads_share(comm_threads *world) {
    world->shares = true;
}

comm_group *comm_threads_group(comm_threads *world, int32_t rank) {
    process *p = calloc(1, sizeof *p);
    pthread_mutex_init(&p->device, NULL);
    threads_group *g = make_group(world, p, rank, COMM_BULK, false);
    g->group.transport = &transport;
    return &g->group;
}
