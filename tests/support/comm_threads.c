#include "support/comm_threads_private.h"

#include <stdlib.h>
#include <string.h>

static sifr_status start(comm_group *group, comm_task task, comm_handle *out, sifr_error *error) {
    out->group = task.group = group;
    BASE_TRY(comm_followed_reserve(((threads_group *)group)->worker, error));
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
    threads_process *p = g->process;
    if (!p->flags.work || id & PEER_HANDLE) return wait(group, id, error);
    return comm_followed_start(&p->flags, (comm_lane)(g->worker - p->workers), g->worker, id,
                               error);
}

static sifr_status catch_up(comm_group *group, sifr_error *error) {
    threads_process *p = ((threads_group *)group)->process;
    for (int i = 0; i < COMM_LANES; i++) BASE_TRY(comm_followed_catch_up(&p->workers[i], error));
    return SIFR_OK;
}

static sifr_status take_words(comm_group *group, sifr_error *error) {
    threads_process *p = ((threads_group *)group)->process;
    return group->world_of ? SIFR_OK : comm_flags_take(&p->flags, group->dev, error);
}

static void give_stage(comm_group *group) {
    threads_process *p = ((threads_group *)group)->process;
    if (!group->world_of) comm_flags_give(&p->flags);
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

static sifr_status start_all_reduce(comm_group *group, void *values, base_dtype type,
                                    int64_t elements, comm_handle *out, sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_ALL_REDUCE,
                      .from = values,
                      .to = values,
                      .bytes = elements * group->size * base_dtype_bytes(type),
                      .elements = elements,
                      .type = type,
                      .sum = BASE_FP32};
    return start(group, task, out, error);
}

static sifr_status start_all_to_all(comm_group *group, const void *from, const comm_run *sent,
                                    void *to, const comm_run *received, comm_handle *out,
                                    sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_ALL_TO_ALL,
                      .from = from,
                      .to = to,
                      .bytes = comm_runs_bytes(received, group->size),
                      .sent = sent,
                      .received = received};
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
        uint64_t total = 0; /* unsigned, since it may wrap around */
        for (int32_t r = 0; r < group->size; r++) total += (uint64_t)all[r * count + i];
        values[i] = (int64_t)total;
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
    threads_window *w = g->process->windows;
    (void)file;
    if (!group->dev) return SIFR_OK;
    while (w->seen) w++;
    threads_notice *mine = &world->notices[group->rank];
    *mine = (threads_notice){.block = block, .bytes = bytes};
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
        threads_window *w = &g->process->windows[i];
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
    threads_process *p = g->process;
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

static threads_group *make_group(comm_threads *world, threads_process *p, int32_t rank,
                                 comm_lane lane, bool peers) {
    sifr_error error;
    threads_group *g = calloc(1, sizeof *g);
    g->worker = &p->workers[lane];
    if (!g->worker->running && comm_worker_open(g->worker, comm_threads_run, p, &error) != SIFR_OK)
        abort();
    if (peers && !p->peers.running &&
        comm_worker_open_turns(&p->peers, comm_threads_turn, comm_threads_rest, p, &error) !=
            SIFR_OK)
        abort();
    g->sent = calloc((size_t)world->ranks, sizeof *g->sent);
    g->asked = calloc((size_t)world->ranks, sizeof *g->asked);
    g->engaged = calloc((size_t)world->ranks, sizeof *g->engaged);
    g->world = world;
    g->process = p;
    g->group.rank = rank;
    g->group.size = g->group.local_size = world->ranks;
    g->group.per_host = world->per_host ? world->per_host : world->ranks;
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
                                         .all_to_all = start_all_to_all,
                                         .all_reduce = start_all_reduce,
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

void comm_threads_place(comm_threads *world, int32_t per_host) {
    world->per_host = per_host;
}

comm_group *comm_threads_group(comm_threads *world, int32_t rank) {
    threads_process *p = calloc(1, sizeof *p);
    pthread_mutex_init(&p->device, NULL);
    threads_group *g = make_group(world, p, rank, COMM_BULK, false);
    g->group.transport = &transport;
    return &g->group;
}
