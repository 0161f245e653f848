#include "device/separate/queue_set.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/float_mode.h"
#include "base/heap.h"
#include "base/thread.h"

enum { LINE = 256 }; /* pieces of work that a queue holds */

typedef struct queue_piece {
    queue_work *work;
    void *user;
    _Alignas(16) unsigned char payload[QUEUE_PAYLOAD];
} queue_piece;

typedef struct one_queue {
    queue_set *set;
    pthread_t thread;
    bool running, stop;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    queue_piece *line;   /* LINE; NULL: no thread */
    int64_t given, done; /* pieces: numbers of marks */
    double begun[LINE], ended[LINE];
    uint64_t random;
} one_queue;

struct queue_set {
    one_queue queues[DEVICE_QUEUES];
    uint32_t pause_us;
    pthread_mutex_t lock; /* of what follows */
    sifr_status status;
    sifr_error error; /* of the first piece that failed */
};

static sifr_status failure_of(queue_set *set, sifr_error *error) {
    pthread_mutex_lock(&set->lock);
    sifr_status status = set->status;
    if (status != SIFR_OK && error) *error = set->error;
    pthread_mutex_unlock(&set->lock);
    return status;
}

static sifr_status do_work(queue_set *set, const queue_piece *piece) {
    sifr_error error;
    sifr_status status = failure_of(set, NULL);
    if (status != SIFR_OK) return status;
    status = piece->work(piece->user, piece->payload, &error);
    if (status == SIFR_OK) return status;
    pthread_mutex_lock(&set->lock);
    if (set->status == SIFR_OK) {
        set->status = status;
        set->error = error;
    }
    pthread_mutex_unlock(&set->lock);
    return status;
}

static void rest(one_queue *q) {
    if (q->set->pause_us == 0) return;
    q->random = q->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    struct timespec time = {.tv_nsec = (long)((q->random >> 33) % q->set->pause_us) * 1000};
    nanosleep(&time, NULL);
}

static void *serve(void *argument) {
    one_queue *q = argument;
    base_flush_floats(); /* as the device's own threads */
    pthread_mutex_lock(&q->lock);
    for (;;) {
        while (q->done == q->given && !q->stop) pthread_cond_wait(&q->changed, &q->lock);
        if (q->done == q->given) break;
        int64_t place = q->done % LINE;
        base_assert(q->done < q->given && q->given - q->done <= LINE);
        pthread_mutex_unlock(&q->lock);
        rest(q);
        double begun = base_seconds();
        (void)do_work(q->set, &q->line[place]); /* kept for device_finish */
        double ended = base_seconds();
        pthread_mutex_lock(&q->lock);
        q->begun[place] = begun, q->ended[place] = ended;
        q->done++;
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

static void wait_for(one_queue *q, int64_t number) {
    pthread_mutex_lock(&q->lock);
    while (q->done < number) pthread_cond_wait(&q->changed, &q->lock);
    pthread_mutex_unlock(&q->lock);
}

sifr_status queue_set_open(const queue_options *options, queue_set **out, sifr_error *error) {
    queue_set *set;
    sifr_status status = SIFR_OK;
    BASE_TRY(base_alloc(1, sizeof *set, &set, error));
    set->pause_us = options->pause_us;
    pthread_mutex_init(&set->lock, NULL);
    for (int i = 0; i < DEVICE_QUEUES; i++) {
        one_queue *q = &set->queues[i];
        q->set = set;
        q->random = options->seed + (uint64_t)i;
        pthread_mutex_init(&q->lock, NULL);
        pthread_cond_init(&q->changed, NULL);
    }
    for (int i = 0; i < DEVICE_QUEUES && status == SIFR_OK; i++) {
        one_queue *q = &set->queues[i];
        if (!options->threads[i]) continue;
        status = base_alloc(LINE, sizeof *q->line, &q->line, error);
        int result = status == SIFR_OK ? base_thread_start(&q->thread, serve, q) : 0;
        q->running = status == SIFR_OK && result == 0;
        if (result != 0) status = base_fail_errno(error, result, "device: cannot start a queue");
    }
    if (status == SIFR_OK)
        *out = set;
    else
        queue_set_close(set);
    return status;
}

void queue_set_close(queue_set *set) {
    if (!set) return;
    for (int i = 0; i < DEVICE_QUEUES; i++) {
        one_queue *q = &set->queues[i];
        pthread_mutex_lock(&q->lock);
        q->stop = true;
        pthread_cond_broadcast(&q->changed);
        pthread_mutex_unlock(&q->lock);
        if (q->running) pthread_join(q->thread, NULL);
    }
    for (int i = 0; i < DEVICE_QUEUES; i++) { /* threads wait on each other's */
        pthread_cond_destroy(&set->queues[i].changed);
        pthread_mutex_destroy(&set->queues[i].lock);
        free(set->queues[i].line);
    }
    pthread_mutex_destroy(&set->lock);
    free(set);
}

sifr_status queue_set_give(queue_set *set, device_queue queue, queue_work *work, void *user,
                           const void *payload, size_t bytes, sifr_error *error) {
    one_queue *q = &set->queues[queue];
    if (!q->running) {
        BASE_TRY(failure_of(set, error));
        return work(user, payload, error);
    }
    if (bytes > QUEUE_PAYLOAD)
        return base_fail(error, SIFR_FAILED, "device: a queue's work has %zu bytes", bytes);
    pthread_mutex_lock(&q->lock);
    while (q->given - q->done == LINE) pthread_cond_wait(&q->changed, &q->lock);
    queue_piece *piece = &q->line[q->given % LINE];
    piece->work = work;
    piece->user = user;
    memcpy(piece->payload, payload, bytes);
    q->given++;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    return SIFR_OK;
}

void queue_set_mark(queue_set *set, device_queue queue, device_mark *out) {
    one_queue *q = &set->queues[queue];
    pthread_mutex_lock(&q->lock);
    *out = (device_mark){.queue = queue, .number = q->given};
    pthread_mutex_unlock(&q->lock);
}

typedef struct wait_payload {
    one_queue *other;
    int64_t number;
} wait_payload;

static sifr_status follow(void *user, const void *payload, sifr_error *error) {
    const wait_payload *p = payload;
    (void)user, (void)error;
    wait_for(p->other, p->number);
    return SIFR_OK;
}

sifr_status queue_set_wait(queue_set *set, device_queue queue, device_mark mark,
                           sifr_error *error) {
    wait_payload payload = {&set->queues[mark.queue], mark.number};
    if (mark.number == 0 || mark.queue == queue) return SIFR_OK;
    if (!set->queues[queue].running) return queue_set_finish(set, mark, error);
    return queue_set_give(set, queue, follow, NULL, &payload, sizeof payload, error);
}

sifr_status queue_set_finish(queue_set *set, device_mark mark, sifr_error *error) {
    wait_for(&set->queues[mark.queue], mark.number);
    return failure_of(set, error);
}

void queue_set_times(queue_set *set, device_mark mark, double *begun, double *ended) {
    one_queue *q = &set->queues[mark.queue];
    *begun = *ended = 0;
    if (mark.number == 0) return;
    pthread_mutex_lock(&q->lock);
    base_assert(mark.number <= q->given);
    if (q->done >= mark.number && q->given - mark.number < LINE) {
        *begun = q->begun[(mark.number - 1) % LINE];
        *ended = q->ended[(mark.number - 1) % LINE];
    }
    pthread_mutex_unlock(&q->lock);
}
