#include "comm/worker.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/float_mode.h"
#include "base/thread.h"
#include "comm/transport.h"

/* Under the lock. What the task wrote comes before the flag. */
static void end_task(comm_task *task, sifr_status status) {
    base_assert(!task->done);
    task->status = status;
    task->done = true;
    if (task->flag) device_flag_set(task->flag, task->turn);
}

/* Whether a task of those before `end` came to its end. */
static bool take_turns(comm_worker *worker, uint32_t end) {
    base_assert(end - worker->first <= COMM_LINE);
    bool any = false;
    for (uint32_t i = worker->first; i != end; i++) {
        comm_task *task = &worker->line[i % COMM_LINE];
        bool over = false;
        if (task->done) continue;
        if (!task->engaged) task->begun = base_seconds();
        sifr_status status = worker->turn(worker->user, task, &over, &task->error);
        if (!over && status == SIFR_OK) continue;
        pthread_mutex_lock(&worker->lock);
        task->ended = base_seconds();
        end_task(task, status);
        any = true;
        pthread_cond_broadcast(&worker->changed);
        pthread_mutex_unlock(&worker->lock);
    }
    return any;
}

static void *work_in_turns(void *argument) {
    comm_worker *worker = argument;
    pthread_mutex_lock(&worker->lock);
    for (;;) {
        while (worker->first == worker->next && !worker->stop)
            pthread_cond_wait(&worker->changed, &worker->lock);
        if (worker->first == worker->next) break;
        uint32_t end = worker->next;
        pthread_mutex_unlock(&worker->lock);
        bool any = take_turns(worker, end);
        if (!any) worker->rest(worker->user);
        pthread_mutex_lock(&worker->lock);
        while (worker->first != end && worker->line[worker->first % COMM_LINE].done)
            worker->first++;
        if (any) pthread_cond_broadcast(&worker->changed);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

comm_task *comm_worker_oldest(comm_worker *worker) {
    comm_task *oldest = NULL;
    pthread_mutex_lock(&worker->lock);
    for (uint32_t i = worker->first; i != worker->next && !oldest; i++)
        if (!worker->line[i % COMM_LINE].done) oldest = &worker->line[i % COMM_LINE];
    pthread_mutex_unlock(&worker->lock);
    return oldest;
}

static void *work(void *argument) {
    comm_worker *worker = argument;
    base_flush_floats(); /* subnormals count as zero, as in sums within a rank */
    pthread_mutex_lock(&worker->lock);
    for (;;) {
        while (worker->first == worker->next && !worker->stop)
            pthread_cond_wait(&worker->changed, &worker->lock);
        if (worker->first == worker->next) break;
        comm_task *task = &worker->line[worker->first % COMM_LINE];
        pthread_mutex_unlock(&worker->lock);
        task->begun = base_seconds();
        sifr_status status = worker->run(worker->user, task, &task->error);
        task->ended = base_seconds();
        pthread_mutex_lock(&worker->lock);
        end_task(task, status);
        worker->first++;
        pthread_cond_broadcast(&worker->changed);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

static sifr_status start_thread(comm_worker *worker, void *(*loop)(void *), sifr_error *error) {
    base_assert(!worker->running);
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->changed, NULL);
    int result = base_thread_start(&worker->thread, loop, worker);
    if (result != 0) {
        pthread_cond_destroy(&worker->changed);
        pthread_mutex_destroy(&worker->lock);
        return base_fail_errno(error, result, "communication: its thread could not be started");
    }
    worker->running = true;
    return SIFR_OK;
}

sifr_status comm_worker_open(comm_worker *worker,
                             sifr_status (*run)(void *user, comm_task *task, sifr_error *error),
                             void *user, sifr_error *error) {
    worker->run = run;
    worker->user = user;
    return start_thread(worker, work, error);
}

sifr_status comm_worker_open_turns(comm_worker *worker,
                                   sifr_status (*turn)(void *user, comm_task *task, bool *over,
                                                       sifr_error *error),
                                   void (*rest)(void *user), void *user, sifr_error *error) {
    worker->turn = turn;
    worker->rest = rest;
    worker->user = user;
    return start_thread(worker, work_in_turns, error);
}

void comm_worker_close(comm_worker *worker) {
    if (!worker->running) return;
    pthread_mutex_lock(&worker->lock);
    worker->stop = true;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
    pthread_join(worker->thread, NULL);
    base_assert(worker->first == worker->next); /* all have been run */
    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->lock);
    worker->running = false;
}

static bool has_tasks(const comm_worker *worker, const comm_group *group) {
    for (uint32_t i = worker->first; i != worker->next; i++)
        if (worker->line[i % COMM_LINE].group == group) return true;
    return false;
}

bool comm_worker_finish(comm_worker *worker, const comm_group *group, double seconds) {
    struct timespec until;
    int result = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)seconds;
    pthread_mutex_lock(&worker->lock);
    while (has_tasks(worker, group) && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&worker->changed, &worker->lock, &until);
    bool finished = !has_tasks(worker, group);
    pthread_mutex_unlock(&worker->lock);
    return finished;
}

sifr_status comm_worker_start(comm_worker *worker, const comm_task *task, int32_t *id,
                              sifr_error *error) {
    sifr_status status = SIFR_OK;
    double now = base_seconds();
    pthread_mutex_lock(&worker->lock);
    comm_task *place = &worker->line[worker->next % COMM_LINE];
    while (worker->next - worker->first == COMM_LINE && place->done && !place->taken)
        pthread_cond_wait(&worker->changed, &worker->lock); /* its turn is not quite over */
    if (place->taken || worker->next - worker->first >= COMM_LINE) {
        status =
            base_fail(error, SIFR_FAILED,
                      "communication: more than %d collectives in progress; wait for some first",
                      (int)COMM_LINE);
    } else {
        *place = *task;
        place->started = now;
        place->taken = true;
        place->done = place->engaged = place->followed = false;
        place->flag = NULL;
        place->turn = worker->next + 1;
        place->entry = -1;
        place->error.message[0] = '\0';
        *id = (int32_t)(worker->next % COMM_LINE);
        worker->next++;
        pthread_cond_broadcast(&worker->changed);
    }
    pthread_mutex_unlock(&worker->lock);
    return status;
}

sifr_status comm_worker_wait(comm_worker *worker, int32_t id, comm_task *task, sifr_error *error) {
    base_assert(id >= 0 && id < COMM_LINE);
    sifr_status status;
    pthread_mutex_lock(&worker->lock);
    comm_task *place = &worker->line[id % COMM_LINE];
    if (!place->taken) {
        status = base_fail(error, SIFR_FAILED, "communication: a collective waited for twice");
    } else {
        while (!place->done) pthread_cond_wait(&worker->changed, &worker->lock);
        place->taken = place->followed = false;
        status = place->status;
        *task = *place;
        if (error && status != SIFR_OK) *error = place->error;
    }
    pthread_mutex_unlock(&worker->lock);
    return status;
}

/* The flag stays less than 2^31 behind, however long nothing was followed. */
void comm_worker_follow(comm_worker *worker, int32_t id, device_flag *flag, uint32_t *value) {
    base_assert(id >= 0 && id < COMM_LINE);
    comm_task *place = &worker->line[id % COMM_LINE];
    pthread_mutex_lock(&worker->lock);
    base_assert(place->taken && !place->followed);
    *value = place->turn;
    place->followed = true;
    place->flag = flag;
    device_flag_set(flag, place->done ? place->turn : place->turn - 1);
    pthread_mutex_unlock(&worker->lock);
}

bool comm_worker_followed(comm_worker *worker, bool in_the_way, int32_t *id) {
    bool found = false;
    uint32_t count = in_the_way ? 1 : COMM_LINE;
    pthread_mutex_lock(&worker->lock);
    for (uint32_t i = 0; i < count && !found; i++) {
        *id = (int32_t)((worker->next + i) % COMM_LINE); /* from the oldest on */
        found = worker->line[*id].taken && worker->line[*id].followed;
    }
    pthread_mutex_unlock(&worker->lock);
    return found;
}

void comm_worker_forget(comm_worker *worker, const comm_group *group) {
    pthread_mutex_lock(&worker->lock);
    for (int i = 0; i < COMM_LINE; i++) {
        comm_task *task = &worker->line[i];
        if ((group && task->group != group) || !task->taken || !task->followed) continue;
        task->flag = NULL;
        if (task->done) task->taken = task->followed = false;
    }
    pthread_mutex_unlock(&worker->lock);
}

bool comm_task_has_data(comm_task_kind kind) {
    return kind == COMM_TASK_GATHER || kind == COMM_TASK_REDUCE || kind == COMM_TASK_ALL_TO_ALL ||
           kind == COMM_TASK_ALL_REDUCE;
}

comm_operation comm_task_operation(comm_task_kind kind) {
    base_assert((int)kind >= 0 && kind <= COMM_TASK_RECEIVE);
    static const comm_operation operations[] = {[COMM_TASK_GATHER] = COMM_ALL_GATHER,
                                                [COMM_TASK_REDUCE] = COMM_REDUCE_SCATTER,
                                                [COMM_TASK_GATHER_CONTROL] = COMM_CONTROL,
                                                [COMM_TASK_BROADCAST] = COMM_CONTROL,
                                                [COMM_TASK_SUM] = COMM_CONTROL,
                                                [COMM_TASK_ALL_TO_ALL] = COMM_ALL_TO_ALL,
                                                [COMM_TASK_ALL_REDUCE] = COMM_ALL_REDUCE,
                                                [COMM_TASK_SEND] = COMM_SEND,
                                                [COMM_TASK_RECEIVE] = COMM_RECEIVE};
    return operations[kind];
}

/* Size of a rank's part; for a reduction in the type that is sent, as in the plan. */
static int64_t part_bytes(const comm_task *task) {
    if (task->kind != COMM_TASK_REDUCE) return task->bytes;
    return task->elements * base_dtype_bytes(task->type);
}

void comm_worker_count(const comm_task *task) {
    comm_event event = {.operation = comm_task_operation(task->kind),
                        .bytes = part_bytes(task),
                        .delivered = task->delivered,
                        .crossed = task->crossed,
                        .asked = task->started,
                        .begun = task->begun,
                        .ended = task->ended,
                        .followed = task->followed};
    comm_count(task->group, &event);
}
