/* Streams of the fake as threads, and events. Memory order carries what a real driver promises, and
 * no more: a caller's writes before it enqueues are seen by the stream, and a stream's writes are
 * seen by whom an event or synchronising lets go on. */
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/float_mode.h"
#include "support/cuda/fake_parts.h"

static void sleep_at_most(_Atomic uint32_t *word, uint32_t value, long ns) {
    const struct timespec most = {0, ns};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &most, NULL, 0);
}

/* While the word is `value`; 50 ms at most, so that a lost GPU is noticed. */
static void sleep_while(_Atomic uint32_t *word, uint32_t value) {
    sleep_at_most(word, value, 50000000);
}

static void wake(_Atomic uint32_t *word) {
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static bool is_before(uint32_t a, uint32_t b) {
    return (int32_t)(a - b) < 0;
}

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void rest(int64_t ns) {
    const struct timespec t = {ns / 1000000000, ns % 1000000000};
    nanosleep(&t, NULL);
}

static bool is_over(void) {
    return atomic_load_explicit(&fake.lost, memory_order_acquire) != 0 ||
           atomic_load_explicit(&fake.closing, memory_order_relaxed);
}

static void reach(fake_mark *mark, uint32_t number) {
    uint32_t before = atomic_load_explicit(&mark->reached, memory_order_relaxed);
    atomic_store_explicit(&mark->time_ns, now(), memory_order_relaxed);
    while (is_before(before, number) &&
           !atomic_compare_exchange_weak_explicit(&mark->reached, &before, number,
                                                  memory_order_acq_rel, memory_order_relaxed)) {
    }
    wake(&mark->reached);
}

static bool has_reached(fake_mark *mark, uint32_t number) {
    return !is_before(atomic_load_explicit(&mark->reached, memory_order_acquire), number);
}

static void wait_mark(fake_mark *mark, uint32_t number) {
    while (!has_reached(mark, number) && !is_over())
        sleep_while(&mark->reached, atomic_load_explicit(&mark->reached, memory_order_relaxed));
}

/* Another process, or the host, may write the word without a wake-up. */
static void wait_value(const fake_work *work) {
    while (!is_over()) {
        uint32_t value = atomic_load_explicit(work->word, memory_order_acquire);
        if (work->flags == CUDA_WAIT_EQUAL ? value == work->number
                                           : !is_before(value, work->number))
            return;
        rest(20000);
    }
}

static void run(const fake_work *work) {
    const bool lost = atomic_load_explicit(&fake.lost, memory_order_acquire) != 0;
    if (lost && work->kind != FAKE_RECORD) return;
    switch (work->kind) {
    case FAKE_KERNEL:
        if (work->fails)
            atomic_store_explicit(&fake.lost, work->fails, memory_order_release);
        else
            work->launch.kernel->run(&work->launch, work->arguments);
        return;
    case FAKE_COPY:
        memmove(work->to, work->from, work->bytes);
        return;
    case FAKE_FILL:
        memset(work->to, work->byte, work->bytes);
        return;
    case FAKE_RECORD:
        reach(work->mark, work->number);
        return;
    case FAKE_WAIT:
        wait_mark(work->mark, work->number);
        return;
    case FAKE_WRITE_VALUE:
        atomic_store_explicit(work->word, work->number, memory_order_release);
        return;
    case FAKE_WAIT_VALUE:
        wait_value(work);
        return;
    case FAKE_STOP:
        return;
    }
}

static void rest_a_while(cuda_stream stream) {
    if (fake.options.pause_us == 0) return;
    stream->random = stream->random * 6364136223846793005u + 1442695040888963407u;
    rest((int64_t)((stream->random >> 33) % ((uint64_t)fake.options.pause_us * 1000 + 1)));
}

static void *work_off(void *argument) {
    cuda_stream stream = argument;
    base_flush_floats(); /* kernels are compiled so for GPUs */
    for (bool stop = false; !stop;) {
        uint32_t queued = atomic_load_explicit(&stream->queued, memory_order_acquire);
        fake_node *next = atomic_load_explicit(&stream->at->next, memory_order_acquire);
        if (!next) {
            sleep_while(&stream->queued, queued);
            continue;
        }
        rest_a_while(stream);
        run(&next->work);
        stop = next->work.kind == FAKE_STOP;
        free(next->work.arguments);
        free(stream->at);
        stream->at = next;
        atomic_fetch_add_explicit(&stream->done, 1, memory_order_release);
        wake(&stream->done);
    }
    return NULL;
}

static void push(cuda_stream stream, const fake_work *work) {
    fake_node *node = fake_take(sizeof *node);
    node->work = *work;
    atomic_store_explicit(&stream->tail->next, node, memory_order_release);
    stream->tail = node;
    uint32_t before = atomic_fetch_add_explicit(&stream->queued, 1, memory_order_release);
    int64_t depth = before + 1 - atomic_load_explicit(&stream->done, memory_order_relaxed);
    if (depth > fake.counts.deepest) fake.counts.deepest = depth;
    wake(&stream->queued);
}

static void keep(cuda_graph graph, const fake_work *work) {
    if (graph->count == graph->capacity) {
        graph->capacity = graph->capacity ? 2 * graph->capacity : 64;
        graph->work = realloc(graph->work, graph->capacity * sizeof *work);
        if (!graph->work) abort();
    }
    graph->work[graph->count++] = *work;
}

void fake_submit(cuda_stream stream, const fake_work *work) {
    if (stream->capture)
        keep(stream->capture, work);
    else
        push(stream, work);
}

void fake_drain(cuda_stream stream) {
    const uint32_t queued = atomic_load_explicit(&stream->queued, memory_order_relaxed);
    for (;;) {
        uint32_t done = atomic_load_explicit(&stream->done, memory_order_acquire);
        if (!is_before(done, queued)) return;
        sleep_while(&stream->done, done);
    }
}

/* Streams are freed in fake_driver_close alone, so the list stays whole without the lock. */
void fake_drain_all(void) {
    cuda_stream first = fake.streams;
    pthread_mutex_unlock(&fake.lock);
    for (cuda_stream s = first; s; s = s->next) fake_drain(s);
    pthread_mutex_lock(&fake.lock);
}

static cuda_result create(cuda_stream *out, unsigned flags, int priority) {
    (void)priority;
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    /* One that waits for the default stream would hide an order that is missing. */
    if (flags != CUDA_STREAM_NON_BLOCKING) return fake_leave(CUDA_INVALID_VALUE);
    cuda_stream stream = fake_take(sizeof *stream);
    stream->tail = stream->at = fake_take(sizeof *stream->at);
    stream->device = fake_device();
    stream->random = fake.options.seed + 0x9E3779B97F4A7C15u * (uint64_t)++fake.counts.streams;
    stream->next = fake.streams;
    fake.streams = stream;
    if (pthread_create(&stream->thread, NULL, work_off, stream) != 0) abort();
    *out = stream;
    return fake_leave(CUDA_OK);
}

/* The work that it has is done first, as with a driver, which does not wait for it, however. */
static cuda_result destroy(cuda_stream stream) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    if (!stream || !stream->tail) return fake_leave(CUDA_INVALID_HANDLE);
    const fake_work stop = {.kind = FAKE_STOP};
    stream->capture = NULL;
    push(stream, &stop);
    stream->tail = NULL;
    fake.counts.streams--;
    fake_leave(CUDA_OK);
    pthread_join(stream->thread, NULL);
    return CUDA_OK;
}

static _Thread_local int64_t own_waits;

static void count_wait(void) {
    fake.counts.waits++;
    own_waits++;
}

int64_t fake_driver_waits(void) {
    return own_waits;
}

static cuda_result synchronize(cuda_stream stream) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    if (!stream || !stream->tail) return fake_leave(CUDA_INVALID_HANDLE);
    if (stream->capture) return fake_leave(CUDA_CAPTURE_UNSUPPORTED);
    count_wait();
    fake_leave(CUDA_OK);
    fake_drain(stream);
    return atomic_load_explicit(&fake.lost, memory_order_acquire);
}

static cuda_result put_value(cuda_stream stream, cuda_address address, uint32_t value,
                             unsigned flags, fake_kind kind) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    const fake_work work = {
        .kind = kind, .word = fake_resolve(address, sizeof value), .number = value, .flags = flags};
    if (!stream || !work.word || address % sizeof value != 0 ||
        flags > (kind == FAKE_WAIT_VALUE ? CUDA_WAIT_EQUAL : 0))
        return fake_leave(CUDA_INVALID_VALUE);
    fake_submit(stream, &work);
    return fake_leave(CUDA_OK);
}

static cuda_result write_value(cuda_stream stream, cuda_address address, uint32_t value,
                               unsigned flags) {
    return put_value(stream, address, value, flags, FAKE_WRITE_VALUE);
}

static cuda_result await_value(cuda_stream stream, cuda_address address, uint32_t value,
                               unsigned flags) {
    return put_value(stream, address, value, flags, FAKE_WAIT_VALUE);
}

enum { PAGE = 4096 };

static fake_mark *map_mark(int file) {
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return page == MAP_FAILED ? NULL : page;
}

static cuda_result create_event(cuda_event *out, unsigned flags) {
    const unsigned known = CUDA_EVENT_NO_TIMING | CUDA_EVENT_INTERPROCESS;
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    if (flags & ~known || flags == CUDA_EVENT_INTERPROCESS) return fake_leave(CUDA_INVALID_VALUE);
    cuda_event event = fake_take(sizeof *event);
    event->flags = flags;
    event->file = -1;
    if (flags & CUDA_EVENT_INTERPROCESS) {
        event->file = memfd_create("fake event", MFD_CLOEXEC);
        if (event->file >= 0 && ftruncate(event->file, PAGE) == 0)
            event->mark = map_mark(event->file);
        if (!event->mark) abort();
    } else {
        event->mark = fake_take(sizeof *event->mark);
    }
    event->next = fake.events;
    fake.events = event;
    fake.counts.events++;
    *out = event;
    return fake_leave(CUDA_OK);
}

/* Locked on CUDA_OK. */
static cuda_result enter_event(cuda_event event) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    return event && !event->dead ? CUDA_OK : fake_leave(CUDA_INVALID_HANDLE);
}

/* It stays in the list until fake_driver_close: work that was given may use its mark. */
static cuda_result destroy_event(cuda_event event) {
    cuda_result result = enter_event(event);
    if (result != CUDA_OK) return result;
    event->dead = true;
    fake.counts.events--;
    return fake_leave(CUDA_OK);
}

static cuda_result record(cuda_event event, cuda_stream stream) {
    cuda_result result = enter_event(event);
    if (result != CUDA_OK) return result;
    if (!stream || !stream->tail) return fake_leave(CUDA_INVALID_HANDLE);
    event->capture = stream->capture;
    if (!stream->capture) {
        const fake_work work = {
            .kind = FAKE_RECORD,
            .mark = event->mark,
            .number =
                atomic_fetch_add_explicit(&event->mark->recorded, 1, memory_order_relaxed) + 1};
        push(stream, &work);
    }
    return fake_leave(CUDA_OK);
}

/* A stream that waits for work of a captured one is captured, too. */
static cuda_result follow(cuda_stream stream, cuda_event event, unsigned flags) {
    cuda_result result = enter_event(event);
    if (result != CUDA_OK) return result;
    if (!stream || !stream->tail) return fake_leave(CUDA_INVALID_HANDLE);
    if (flags != 0) return fake_leave(CUDA_INVALID_VALUE);
    if (event->capture) {
        stream->capture = event->capture;
        return fake_leave(CUDA_OK);
    }
    if (stream->capture) return fake_leave(CUDA_CAPTURE_UNSUPPORTED);
    const fake_work work = {.kind = FAKE_WAIT,
                            .mark = event->mark,
                            .number =
                                atomic_load_explicit(&event->mark->recorded, memory_order_relaxed)};
    push(stream, &work);
    return fake_leave(CUDA_OK);
}

/* Sleeps before it says no: a caller that polls would take time from the streams' threads. */
static cuda_result query(cuda_event event) {
    cuda_result result = enter_event(event);
    if (result != CUDA_OK) return result;
    fake_mark *mark = event->mark;
    uint32_t recorded = atomic_load_explicit(&mark->recorded, memory_order_relaxed);
    uint32_t before = atomic_load_explicit(&mark->reached, memory_order_relaxed);
    bool reached = has_reached(mark, recorded);
    if (reached) count_wait();
    result = fake_leave(reached ? CUDA_OK : CUDA_NOT_READY);
    if (result == CUDA_NOT_READY) sleep_at_most(&mark->reached, before, 1000000);
    return result;
}

static cuda_result elapsed(float *milliseconds, cuda_event start, cuda_event end) {
    cuda_result result = enter_event(start);
    if (result != CUDA_OK) return result;
    cuda_event both[2] = {start, end};
    int64_t times[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        if (!both[i] || both[i]->dead || both[i]->flags & CUDA_EVENT_NO_TIMING)
            return fake_leave(CUDA_INVALID_HANDLE);
        fake_mark *mark = both[i]->mark;
        uint32_t recorded = atomic_load_explicit(&mark->recorded, memory_order_relaxed);
        if (recorded == 0) return fake_leave(CUDA_INVALID_HANDLE);
        if (!has_reached(mark, recorded)) return fake_leave(CUDA_NOT_READY);
        times[i] = atomic_load_explicit(&mark->time_ns, memory_order_relaxed);
    }
    *milliseconds = (float)((double)(times[1] - times[0]) * 1e-6);
    return fake_leave(CUDA_OK);
}

typedef struct event_handle {
    char kind[16];
    int64_t process, file;
} event_handle;

static const char event_kind[16] = "fake GPU event";

static cuda_result get_event(cuda_ipc_event *out, cuda_event event) {
    cuda_result result = enter_event(event);
    if (result != CUDA_OK) return result;
    if (!(event->flags & CUDA_EVENT_INTERPROCESS)) return fake_leave(CUDA_INVALID_HANDLE);
    event_handle handle = {.process = getpid(), .file = event->file};
    memcpy(handle.kind, event_kind, sizeof handle.kind);
    memset(out, 0, sizeof *out);
    memcpy(out, &handle, sizeof handle);
    return fake_leave(CUDA_OK);
}

static cuda_result open_event(cuda_event *out, cuda_ipc_event in) {
    event_handle handle;
    char path[64];
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    memcpy(&handle, &in, sizeof handle);
    if (memcmp(handle.kind, event_kind, sizeof event_kind) != 0)
        return fake_leave(CUDA_INVALID_HANDLE);
    if (handle.process == getpid()) return fake_leave(CUDA_INVALID_CONTEXT);
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)handle.process,
             (long long)handle.file);
    int file = open(path, O_RDWR | O_CLOEXEC);
    fake_mark *mark = file >= 0 ? map_mark(file) : NULL;
    if (!mark) {
        if (file >= 0) close(file);
        return fake_leave(CUDA_INVALID_HANDLE);
    }
    cuda_event event = fake_take(sizeof *event);
    *event = (struct CUevent_st){.next = fake.events,
                                 .mark = mark,
                                 .flags = CUDA_EVENT_NO_TIMING | CUDA_EVENT_INTERPROCESS,
                                 .file = file};
    fake.events = event;
    fake.counts.events++;
    *out = event;
    return fake_leave(CUDA_OK);
}

void fake_free_streams(void) {
    atomic_store_explicit(&fake.closing, true, memory_order_relaxed);
    for (cuda_stream s = fake.streams, next; s; s = next) {
        next = s->next;
        if (s->tail) {
            const fake_work stop = {.kind = FAKE_STOP};
            push(s, &stop);
            pthread_join(s->thread, NULL);
        }
        free(s->at);
        free(s);
    }
    for (cuda_event e = fake.events, next; e; e = next) {
        next = e->next;
        if (e->file >= 0) {
            munmap(e->mark, PAGE);
            close(e->file);
        } else {
            free(e->mark);
        }
        free(e);
    }
    fake.streams = NULL;
    fake.events = NULL;
}

void fake_fill_streams(cuda_driver *out) {
    out->cuStreamCreateWithPriority = create;
    out->cuStreamDestroy = destroy;
    out->cuStreamSynchronize = synchronize;
    out->cuStreamWaitEvent = follow;
    out->cuStreamWriteValue32 = write_value;
    out->cuStreamWaitValue32 = await_value;
    out->cuEventCreate = create_event;
    out->cuEventDestroy = destroy_event;
    out->cuEventRecord = record;
    out->cuEventQuery = query;
    out->cuEventElapsedTime = elapsed;
    out->cuIpcGetEventHandle = get_event;
    out->cuIpcOpenEventHandle = open_event;
}
