#include "train/report/queue.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/thread.h"

#define ROW(sink) &(sink),
static const train_sink *const rows[] = {TRAIN_ASKED_SINKS(ROW)};
enum { ROWS = sizeof rows / sizeof *rows, CAPACITY = 256 };

/* A sink, as the thread sees it. */
typedef struct served {
    const train_sink *row; /* NULL: it is not asked for */
    void *handle;
    int64_t lost;     /* records */
    sifr_error first; /* why the first was lost */
    bool said;        /* of the first, by the caller's thread */
} served;

struct train_queue {
    train_report_settings settings; /* a copy, which the sinks point to */
    served served[ROWS];
    pthread_t thread;
    pthread_mutex_t lock; /* of all below, and of what `served` counts */
    pthread_cond_t changed;
    bool started, ends;
    size_t first, count; /* of `ring`, in the order of their coming */
    int64_t taken, dropped;
    bool said;   /* of the first that was dropped */
    bool unkept; /* metrics.jsonl may lack what a sink lacks */
    train_record ring[CAPACITY];
};

static void serve(train_queue *q, const train_record *record) {
    for (int i = 0; i < ROWS; i++) {
        served *s = &q->served[i];
        sifr_error error = {0};
        if (!s->row || s->row->record(s->handle, record, &error) == SIFR_OK) continue;
        pthread_mutex_lock(&q->lock);
        if (s->lost++ == 0) s->first = error;
        pthread_mutex_unlock(&q->lock);
    }
}

static void *run(void *queue) {
    train_queue *q = queue;
    train_record record;
    pthread_mutex_lock(&q->lock);
    while (q->count || !q->ends) {
        if (!q->count) {
            pthread_cond_wait(&q->changed, &q->lock);
            continue;
        }
        record = q->ring[q->first];
        q->first = (q->first + 1) % CAPACITY;
        q->count--;
        pthread_mutex_unlock(&q->lock);
        serve(q, &record);
        pthread_mutex_lock(&q->lock);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

static sifr_status open_sinks(train_queue *q, int *opened, sifr_error *error) {
    for (int i = 0; i < ROWS; i++) {
        if (!rows[i]->asked(q->settings.config)) continue;
        BASE_TRY(rows[i]->open(&q->settings, &q->served[i].handle, error));
        q->served[i].row = rows[i];
        ++*opened;
    }
    return SIFR_OK;
}

static sifr_status start(train_queue *q, sifr_error *error) {
    int failed = base_thread_start(&q->thread, run, q);
    if (failed) return base_fail_errno(error, failed, "metrics: cannot start the thread of sinks");
    q->started = true;
    return SIFR_OK;
}

sifr_status train_queue_open(const train_report_settings *settings, train_queue **out,
                             sifr_error *error) {
    train_queue *q;
    int opened = 0;
    *out = NULL;
    BASE_TRY(base_alloc(1, sizeof *q, &q, error));
    q->settings = *settings;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->changed, NULL);
    sifr_status status = open_sinks(q, &opened, error);
    if (status == SIFR_OK && opened) status = start(q, error);
    if (status == SIFR_OK && opened)
        *out = q;
    else
        train_queue_close(q);
    return status;
}

/* Said once of each sink, by the caller's thread: a host's log need not take lines of others. */
static void say_first(train_queue *q) {
    for (int i = 0; i < ROWS; i++) {
        served *s = &q->served[i];
        pthread_mutex_lock(&q->lock);
        bool due = s->lost && !s->said;
        s->said |= due;
        pthread_mutex_unlock(&q->lock);
        if (due)
            base_log(q->settings.host->log, SIFR_LOG_WARNING,
                     "%s: %s; the run goes on without these records there", s->row->name,
                     s->first.message);
    }
}

/* Likewise, where the queue was full: all sinks lack the same records. */
static void say_dropped(train_queue *q, int64_t step) {
    char names[128] = "";
    size_t used = 0;
    if (!q->dropped || q->said) return;
    q->said = true;
    for (int i = 0; i < ROWS && used < sizeof names; i++)
        if (q->served[i].row)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                     q->served[i].row->name);
    base_log(
        q->settings.host->log, SIFR_LOG_WARNING,
        "step %lld: records come faster than they are written (%s), and the first is lost; the "
        "run goes on, and counts them at its end",
        (long long)step, names);
}

/* What sinks have to say themselves. */
static void say_news(const train_queue *q) {
    char line[SIFR_ERROR_LENGTH];
    for (int i = 0; i < ROWS; i++) {
        const served *s = &q->served[i];
        while (s->row && s->row->news && s->row->news(s->handle, line))
            base_log(q->settings.host->log, SIFR_LOG_WARNING, "%s", line);
    }
}

void train_queue_put(train_queue *q, const train_record *record) {
    pthread_mutex_lock(&q->lock);
    if (q->count < CAPACITY) {
        train_record *at = &q->ring[(q->first + q->count++) % CAPACITY];
        *at = *record;
        at->json = NULL; /* borrowed */
        q->taken++;
        pthread_cond_signal(&q->changed);
    } else {
        q->dropped++;
    }
    pthread_mutex_unlock(&q->lock);
    say_first(q);
    say_dropped(q, record->step);
    say_news(q);
}

static void say_lost(const train_queue *q) {
    for (int i = 0; i < ROWS; i++) {
        const served *s = &q->served[i];
        if (s->lost + q->dropped == 0 || !s->row) continue;
        base_log(q->settings.host->log, SIFR_LOG_WARNING, "%s lacks %lld of %lld records%s%s%s",
                 s->row->name, (long long)(s->lost + q->dropped),
                 (long long)(q->taken + q->dropped),
                 s->lost ? ": " : ": it was slower than the steps", s->lost ? s->first.message : "",
                 q->unkept ? "" : "; metrics.jsonl has them");
    }
}

/* Backwards: the first, a server's, may take its time, and a file is not to say meanwhile that the
 * run goes on. */
static void finish(const train_queue *q) {
    for (int i = ROWS - 1; i >= 0; i--)
        if (q->served[i].row && q->served[i].row->finish)
            q->served[i].row->finish(q->served[i].handle);
}

void train_queue_failed(train_queue *q) {
    if (q) q->settings.failed = true;
}

void train_queue_unkept(train_queue *q) {
    if (q) q->unkept = true;
}

void train_queue_close(train_queue *q) {
    if (!q) return;
    pthread_mutex_lock(&q->lock);
    q->ends = true;
    pthread_cond_signal(&q->changed);
    pthread_mutex_unlock(&q->lock);
    if (q->started) {
        pthread_join(q->thread, NULL);
        finish(q);
        say_first(q);
        say_news(q);
        say_lost(q);
    }
    for (int i = 0; i < ROWS; i++)
        if (q->served[i].row) q->served[i].row->close(q->served[i].handle);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    free(q);
}
