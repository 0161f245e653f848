#include "comm/worker.h"

#include <string.h>

#include "base/clock.h"
#include "base/float_mode.h"
#include "base/thread.h"
#include "comm/transport.h"

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
        task->status = status;
        task->done = true;
        worker->first++;
        pthread_cond_broadcast(&worker->changed);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

sifr_status comm_worker_open(comm_worker *worker,
                             sifr_status (*run)(void *user, comm_task *task, sifr_error *error),
                             void *user, sifr_error *error) {
    worker->run = run;
    worker->user = user;
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->changed, NULL);
    int result = base_thread_start(&worker->thread, work, worker);
    if (result != 0) {
        pthread_cond_destroy(&worker->changed);
        pthread_mutex_destroy(&worker->lock);
        return base_fail_errno(error, result, "communication: its thread could not be started");
    }
    worker->running = true;
    return SIFR_OK;
}

void comm_worker_close(comm_worker *worker) {
    if (!worker->running) return;
    pthread_mutex_lock(&worker->lock);
    worker->stop = true;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
    pthread_join(worker->thread, NULL);
    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->lock);
    worker->running = false;
}

sifr_status comm_worker_start(comm_worker *worker, const comm_task *task, int32_t *id,
                              sifr_error *error) {
    sifr_status status = SIFR_OK;
    double now = base_seconds();
    pthread_mutex_lock(&worker->lock);
    comm_task *place = &worker->line[worker->next % COMM_LINE];
    if (place->taken) {
        status =
            base_fail(error, SIFR_FAILED,
                      "communication: more than %d collectives in progress; wait for some first",
                      (int)COMM_LINE);
    } else {
        *place = *task;
        place->started = now;
        place->taken = true;
        place->done = false;
        place->error.message[0] = '\0';
        *id = (int32_t)(worker->next % COMM_LINE);
        place->number = ++worker->next;
        pthread_cond_broadcast(&worker->changed);
    }
    pthread_mutex_unlock(&worker->lock);
    return status;
}

sifr_status comm_worker_wait(comm_worker *worker, int32_t id, comm_task *task, sifr_error *error) {
    sifr_status status;
    pthread_mutex_lock(&worker->lock);
    comm_task *place = &worker->line[id % COMM_LINE];
    if (!place->taken) {
        status = base_fail(error, SIFR_FAILED, "communication: a collective waited for twice");
    } else {
        while (!place->done) pthread_cond_wait(&worker->changed, &worker->lock);
        place->taken = false;
        status = place->status;
        *task = *place;
        if (error && status != SIFR_OK) *error = place->error;
    }
    pthread_mutex_unlock(&worker->lock);
    return status;
}

comm_operation comm_task_operation(comm_task_kind kind) {
    static const comm_operation operations[] = {[COMM_TASK_GATHER] = COMM_ALL_GATHER,
                                                [COMM_TASK_REDUCE] = COMM_REDUCE_SCATTER,
                                                [COMM_TASK_GATHER_CONTROL] = COMM_CONTROL,
                                                [COMM_TASK_BROADCAST] = COMM_CONTROL};
    return operations[kind];
}

/* Size of a rank's part; for a reduction in the type that is sent, as in the plan. */
static int64_t part_bytes(const comm_task *task) {
    if (task->kind != COMM_TASK_REDUCE) return task->bytes;
    return task->elements * base_dtype_bytes(task->type);
}

void comm_worker_count(comm_group *group, const comm_task *task) {
    comm_event event = {.operation = comm_task_operation(task->kind),
                        .bytes = part_bytes(task),
                        .delivered = task->delivered,
                        .crossed = task->crossed,
                        .asked = task->started,
                        .begun = task->begun,
                        .ended = task->ended};
    comm_count(group, &event);
}
