#include "engine/store/staging.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/heap.h"
#include "base/thread.h"

enum { READS, WRITES, DIRECTIONS };

typedef struct staged_transfer {
    char *memory;                    /* the device's */
    int64_t offset, bytes;           /* in the file */
    int64_t at;                      /* in the direction's host memory */
    device_mark before;              /* of a read: its copy follows this */
    device_mark copied;              /* end of its copy */
    int64_t order;                   /* among all transfers */
    engine_io_handle io;             /* -1: none was started */
    engine_io_times times, *written; /* of a read's file; where those of a write's go */
    bool taken, given, over, waited; /* given: its copy was, or will not be after a failure */
} staged_transfer;

/* Transfers of one direction in their order. Places count all that ever came; those from `first` on
 * are in progress, and those before `placed` have host memory, which is used in turn. */
typedef struct staged_line {
    char *memory;
    int64_t bytes, end; /* of the memory; where the next transfer's begins, if there is room */
    int32_t *transfers; /* `capacity`, by place */
    int64_t first;      /* those before it are over */
    int64_t moved;      /* before it: the copy of a read was given, the file's write begun */
    int64_t placed;     /* before it: the file's read has begun; of writes all */
    int64_t last;
} staged_line;

typedef struct staged_thread {
    pthread_t thread;
    bool running;
} staged_thread;

struct engine_staging {
    device *dev;
    engine_io *io;
    const engine_io_file *file;
    pthread_mutex_t in;   /* of giving work to DEVICE_IN; taken after no other */
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t changed;
    staged_transfer *transfers;
    int32_t capacity;
    staged_line lines[DIRECTIONS];
    int64_t started;
    staged_thread threads[DIRECTIONS];
    bool stop;
    bool ending;  /* a thread waits for the copy of the oldest read */
    bool starved; /* all of `transfers` are taken, and one is wanted */
    sifr_status status;
    sifr_error error; /* of the first failure */
};

/* --- with the lock held --- */

static staged_transfer *transfer_at(const engine_staging *s, int line, int64_t place) {
    base_assert(place >= 0 && place < s->lines[line].last);
    return &s->transfers[s->lines[line].transfers[place % s->capacity]];
}

static bool is_dropping(const engine_staging *s) {
    return s->stop || s->status != SIFR_OK;
}

static void note_failure(engine_staging *s, sifr_status status, const sifr_error *error) {
    if (status == SIFR_OK || s->status != SIFR_OK) return;
    s->status = status;
    s->error = *error;
}

static sifr_status failure_of(const engine_staging *s, sifr_error *error) {
    if (s->status != SIFR_OK && error) *error = s->error;
    return s->status;
}

static void leave(staged_transfer *t) {
    if (t->over && t->waited) t->taken = false;
}

/* Ends the oldest transfer of a line. */
static void retire(engine_staging *s, int line) {
    base_assert(s->lines[line].first < s->lines[line].moved);
    staged_transfer *t = transfer_at(s, line, s->lines[line].first++);
    t->over = true;
    leave(t);
    pthread_cond_broadcast(&s->changed);
}

/* Gives the transfer memory behind the newest that has some, or at the start. */
static bool place(const engine_staging *s, int line, staged_line *l, staged_transfer *t) {
    if (l->first == l->placed) {
        t->at = 0;
    } else {
        int64_t oldest = transfer_at(s, line, l->first)->at;
        bool ahead = l->end > oldest;
        t->at = l->end;
        if (ahead && t->bytes > l->bytes - l->end) t->at = 0;
        if (t->bytes > (ahead && t->at > 0 ? l->bytes : oldest) - t->at) return false;
    }
    base_assert(t->at >= 0 && t->at + t->bytes <= l->bytes);
    l->end = t->at + t->bytes;
    return true;
}

/* Whether an unfinished write that was started before `t`, up to the place `end`, has bytes of it.
 */
static bool follows_write(const engine_staging *s, const staged_transfer *t, int64_t end) {
    for (int64_t p = s->lines[WRITES].first; p < end; p++) {
        const staged_transfer *w = transfer_at(s, WRITES, p);
        if (w->order < t->order && w->offset < t->offset + t->bytes &&
            t->offset < w->offset + w->bytes)
            return true;
    }
    return false;
}

/* Begins to read what can be, oldest first. */
static void start_reads(engine_staging *s) {
    staged_line *l = &s->lines[READS];
    sifr_error error;
    for (; l->placed < l->last; l->placed++) {
        staged_transfer *t = transfer_at(s, READS, l->placed);
        if (!is_dropping(s)) {
            if (follows_write(s, t, s->lines[WRITES].last) || !place(s, READS, l, t)) return;
            sifr_status status = engine_io_start_read(s->io, s->file, t->offset, l->memory + t->at,
                                                      t->bytes, &t->io, &error);
            if (status != SIFR_OK) t->io = -1;
            note_failure(s, status, &error);
        }
        pthread_cond_broadcast(&s->changed);
    }
}

/* --- the thread of reads; its functions leave the lock while they wait --- */

static sifr_status give_copy(engine_staging *s, staged_transfer *t, sifr_error *error) {
    pthread_mutex_lock(&s->in);
    sifr_status status = device_queue_wait(s->dev, DEVICE_IN, t->before, error);
    if (status == SIFR_OK)
        status = device_start_copy(s->dev, DEVICE_IN, t->memory, s->lines[READS].memory + t->at,
                                   t->bytes, error);
    if (status == SIFR_OK) status = device_mark_here(s->dev, DEVICE_IN, &t->copied, error);
    pthread_mutex_unlock(&s->in);
    return status;
}

/* Waits for the file of the oldest read that has not been copied, and gives its copy. */
static void bring_oldest(engine_staging *s) {
    base_assert(s->lines[READS].moved < s->lines[READS].placed);
    staged_transfer *t = transfer_at(s, READS, s->lines[READS].moved);
    bool dropping = is_dropping(s);
    sifr_status status = SIFR_OK;
    sifr_error error;
    pthread_mutex_unlock(&s->lock);
    if (t->io >= 0) status = engine_io_wait(s->io, t->io, &t->times, &error);
    if (t->io >= 0 && status == SIFR_OK && !dropping) status = give_copy(s, t, &error);
    pthread_mutex_lock(&s->lock);
    note_failure(s, status, &error);
    t->given = true;
    s->lines[READS].moved++;
    pthread_cond_broadcast(&s->changed);
}

/* Waits for the copy of the oldest read, whose memory is then free. */
static void end_oldest_copy(engine_staging *s) {
    sifr_error error;
    device_mark copied = transfer_at(s, READS, s->lines[READS].first)->copied;
    s->ending = true;
    pthread_mutex_unlock(&s->lock);
    sifr_status status = device_finish(s->dev, copied, &error);
    pthread_mutex_lock(&s->lock);
    s->ending = false;
    note_failure(s, status, &error);
    retire(s, READS);
}

/* Whether the next read waits for memory and for nothing else, or any transfer for its place, and
 * the oldest read can give some. */
static bool is_wanted(const engine_staging *s) {
    const staged_line *l = &s->lines[READS];
    if (l->first == l->moved) return false;
    if (s->starved) return true;
    if (l->placed == l->last) return false;
    return !follows_write(s, transfer_at(s, READS, l->placed), s->lines[WRITES].last);
}

static void *serve_reads(void *argument) {
    engine_staging *s = argument;
    staged_line *l = &s->lines[READS];
    pthread_mutex_lock(&s->lock);
    for (;;) {
        start_reads(s);
        if (l->moved < l->placed)
            bring_oldest(s);
        else if (is_wanted(s))
            end_oldest_copy(s);
        else if (s->stop && l->moved == l->last)
            break;
        else
            pthread_cond_wait(&s->changed, &s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* --- the thread of writes, likewise --- */

/* Waits until the oldest write is in the file. */
static void end_oldest_write(engine_staging *s) {
    const staged_transfer *t = transfer_at(s, WRITES, s->lines[WRITES].first);
    sifr_status status = SIFR_OK;
    sifr_error error;
    pthread_mutex_unlock(&s->lock);
    engine_io_times times = {0};
    if (t->io >= 0) status = engine_io_wait(s->io, t->io, &times, &error);
    pthread_mutex_lock(&s->lock);
    *t->written = times;
    note_failure(s, status, &error);
    retire(s, WRITES);
    start_reads(s);
}

/* Waits until the device has copied the next write, and begins to write it to the file. */
static void send_next(engine_staging *s) {
    staged_line *l = &s->lines[WRITES];
    staged_transfer *t = transfer_at(s, WRITES, l->moved);
    sifr_error error;
    pthread_mutex_unlock(&s->lock);
    sifr_status status = device_finish(s->dev, t->copied, &error);
    pthread_mutex_lock(&s->lock);
    note_failure(s, status, &error);
    while (follows_write(s, t, l->moved)) end_oldest_write(s);
    if (!is_dropping(s)) {
        status = engine_io_start_write(s->io, s->file, t->offset, l->memory + t->at, t->bytes,
                                       &t->io, &error);
        if (status != SIFR_OK) t->io = -1;
        note_failure(s, status, &error);
    }
    l->moved++;
}

static bool is_oldest_written(const engine_staging *s) {
    const staged_line *l = &s->lines[WRITES];
    if (l->first == l->moved) return false;
    const staged_transfer *t = transfer_at(s, WRITES, l->first);
    return t->io < 0 || engine_io_is_over(s->io, t->io);
}

static void *serve_writes(void *argument) {
    engine_staging *s = argument;
    staged_line *l = &s->lines[WRITES];
    pthread_mutex_lock(&s->lock);
    for (;;) {
        if (is_oldest_written(s))
            end_oldest_write(s);
        else if (l->moved < l->last)
            send_next(s);
        else if (l->first < l->moved)
            end_oldest_write(s);
        else if (s->stop)
            break;
        else
            pthread_cond_wait(&s->changed, &s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* --- opening and closing --- */

static sifr_status take_line(engine_staging *s, int line, int64_t bytes, sifr_error *error) {
    staged_line *l = &s->lines[line];
    void *memory;
    BASE_TRY(base_alloc((size_t)s->capacity, sizeof *l->transfers, &l->transfers, error));
    if (bytes == 0) return SIFR_OK;
    BASE_TRY(device_take_host(s->dev, bytes, &memory, error));
    l->memory = memory;
    l->bytes = bytes;
    return SIFR_OK;
}

static sifr_status start_threads(engine_staging *s, sifr_error *error) {
    static void *(*const serve[])(void *) = {[READS] = serve_reads, [WRITES] = serve_writes};
    for (int d = 0; d < DIRECTIONS; d++) {
        staged_thread *thread = &s->threads[d];
        int result = base_thread_start(&thread->thread, serve[d], s);
        thread->running = result == 0;
        if (result != 0) return base_fail_errno(error, result, "file I/O: cannot start a thread");
    }
    return SIFR_OK;
}

sifr_status engine_staging_open(device *dev, engine_io *io, const engine_io_file *file,
                                const int64_t bytes[2], int32_t transfers, engine_staging **out,
                                sifr_error *error) {
    base_assert(transfers >= 1);
    engine_staging *s;
    sifr_status status;
    BASE_TRY(base_alloc(1, sizeof *s, &s, error));
    s->dev = dev;
    s->io = io;
    s->file = file;
    s->capacity = ENGINE_STAGED * transfers;
    pthread_mutex_init(&s->in, NULL);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    size_t capacity = (size_t)s->capacity;
    BASE_TRY_GOTO(status, base_alloc(capacity, sizeof *s->transfers, &s->transfers, error), fail);
    for (int d = 0; d < DIRECTIONS; d++)
        BASE_TRY_GOTO(status, take_line(s, d, bytes[d], error), fail);
    BASE_TRY_GOTO(status, start_threads(s, error), fail);
    *out = s;
    return SIFR_OK;
fail:
    engine_staging_close(s);
    return status;
}

void engine_staging_close(engine_staging *s) {
    if (!s) return;
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    for (int d = 0; d < DIRECTIONS; d++)
        if (s->threads[d].running) pthread_join(s->threads[d].thread, NULL);
    staged_line *l = &s->lines[READS];
    for (; l->first < l->moved; l->first++) /* copies that are under way */
        (void)!device_finish(s->dev, transfer_at(s, READS, l->first)->copied, NULL);
    for (int d = 0; d < DIRECTIONS; d++) {
        if (s->lines[d].memory) device_give(s->dev, s->lines[d].memory, s->lines[d].bytes);
        free(s->lines[d].transfers);
    }
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->in);
    free(s->transfers);
    free(s);
}

/* --- transfers --- */

static sifr_status check_size(const engine_staging *s, int line, int64_t bytes, sifr_error *error) {
    if (bytes > 0 && bytes <= s->lines[line].bytes) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s: a transfer of %lld bytes goes through %lld bytes of host memory",
                     s->file->path, (long long)bytes, (long long)s->lines[line].bytes);
}

/* Those that were waited for end by themselves, so one becomes free. With the lock held. */
static staged_transfer *take_transfer(engine_staging *s, staged_transfer t, engine_staged *out) {
    for (;;) {
        for (int32_t i = 0; i < s->capacity; i++) {
            if (s->transfers[i].taken) continue;
            s->starved = false;
            t.taken = true;
            t.order = s->started++;
            s->transfers[i] = t;
            *out = i;
            return &s->transfers[i];
        }
        if (s->status != SIFR_OK) return NULL;
        s->starved = true;
        pthread_cond_broadcast(&s->changed);
        pthread_cond_wait(&s->changed, &s->lock);
    }
}

static void join_line(engine_staging *s, int line, engine_staged transfer) {
    staged_line *l = &s->lines[line];
    base_assert(l->last - l->first < s->capacity);
    l->transfers[l->last++ % s->capacity] = transfer;
    if (line == WRITES) l->placed = l->last;
    pthread_cond_broadcast(&s->changed);
}

sifr_status engine_staging_read(engine_staging *s, int64_t offset, void *memory, int64_t bytes,
                                engine_staged *out, sifr_error *error) {
    staged_transfer t = {.memory = memory, .offset = offset, .bytes = bytes, .io = -1};
    BASE_TRY(check_size(s, READS, bytes, error));
    BASE_TRY(device_mark_here(s->dev, DEVICE_COMPUTE, &t.before, error));
    pthread_mutex_lock(&s->lock);
    if (take_transfer(s, t, out)) {
        join_line(s, READS, *out);
        start_reads(s);
    }
    sifr_status status = failure_of(s, error);
    pthread_mutex_unlock(&s->lock);
    return status;
}

static sifr_status copy_out(engine_staging *s, staged_transfer *t, sifr_error *error) {
    device_mark before;
    BASE_TRY(device_mark_here(s->dev, DEVICE_COMPUTE, &before, error));
    BASE_TRY(device_queue_wait(s->dev, DEVICE_OUT, before, error));
    BASE_TRY(device_start_copy(s->dev, DEVICE_OUT, s->lines[WRITES].memory + t->at, t->memory,
                               t->bytes, error));
    return device_mark_here(s->dev, DEVICE_OUT, &t->copied, error);
}

sifr_status engine_staging_write(engine_staging *s, int64_t offset, const void *memory,
                                 int64_t bytes, engine_io_times *times, engine_staged *out,
                                 sifr_error *error) {
    staged_transfer *t, new = {.memory = (char *)(uintptr_t)memory, /* only read from */
                               .offset = offset,
                               .bytes = bytes,
                               .io = -1,
                               .written = times,
                               .given = true};
    BASE_TRY(check_size(s, WRITES, bytes, error));
    pthread_mutex_lock(&s->lock);
    t = take_transfer(s, new, out);
    while (s->status == SIFR_OK && !place(s, WRITES, &s->lines[WRITES], t))
        pthread_cond_wait(&s->changed, &s->lock);
    sifr_status status = failure_of(s, error);
    pthread_mutex_unlock(&s->lock);
    if (status != SIFR_OK) return status;
    status = copy_out(s, t, error); /* no other thread knows of it yet */
    pthread_mutex_lock(&s->lock);
    if (status == SIFR_OK)
        join_line(s, WRITES, *out);
    else
        t->taken = false;
    pthread_mutex_unlock(&s->lock);
    return status;
}

sifr_status engine_staging_wait(engine_staging *s, engine_staged transfer, engine_io_times *times,
                                sifr_error *error) {
    base_assert(transfer >= 0 && transfer < s->capacity);
    staged_transfer *t = &s->transfers[transfer];
    pthread_mutex_lock(&s->lock);
    base_assert(t->taken && !t->waited); /* it is waited for once */
    while (!t->given) pthread_cond_wait(&s->changed, &s->lock);
    device_mark copied = t->copied;
    *times = t->times;
    t->waited = true;
    leave(t);
    pthread_cond_broadcast(&s->changed);
    sifr_status status = failure_of(s, error);
    pthread_mutex_unlock(&s->lock);
    return status == SIFR_OK ? device_queue_wait(s->dev, DEVICE_COMPUTE, copied, error) : status;
}

sifr_status engine_staging_finish(engine_staging *s, sifr_error *error) {
    staged_line *reads = &s->lines[READS], *writes = &s->lines[WRITES];
    pthread_mutex_lock(&s->lock);
    while (reads->moved < reads->last || writes->first < writes->last || s->ending)
        pthread_cond_wait(&s->changed, &s->lock);
    while (reads->first < reads->moved) end_oldest_copy(s);
    sifr_status status = failure_of(s, error);
    pthread_mutex_unlock(&s->lock);
    return status;
}

void engine_staging_hold_in(engine_staging *s) {
    pthread_mutex_lock(&s->in);
}

void engine_staging_leave_in(engine_staging *s) {
    pthread_mutex_unlock(&s->in);
}

void engine_staging_memory(const engine_staging *s, struct iovec out[2]) {
    for (int d = 0; d < DIRECTIONS; d++)
        out[d] = (struct iovec){s->lines[d].memory, (size_t)s->lines[d].bytes};
}
