#include "support/cuda/fake_nccl.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/cuda/fake_parts.h"

enum { MOST_RANKS = 8, RING = 1 << 14, MOST_PARTS = 128, POLLS = 3, REMOTE_ERROR = 6 };
enum { INVALID_ARGUMENT = 4, INVALID_USAGE = 5 };

/* Bytes of one rank for another; both count all that ever went. */
typedef struct mailbox {
    _Atomic uint64_t put, taken;
    char ring[RING];
} mailbox;

typedef struct meeting {
    _Atomic int joined, finalized;
    _Atomic bool failed;
    mailbox boxes[MOST_RANKS][MOST_RANKS]; /* from, to */
} meeting;

typedef struct id {
    char kind[16];
    int64_t process, file;
} id;
static const char id_kind[16] = "fake NCCL";

typedef struct part {
    const char *from; /* where the host reaches them; one of both */
    char *to;
    size_t bytes, done;
    int peer;
} part;

typedef struct group {
    nccl_communicator communicator;
    int count;
    part parts[MOST_PARTS];
} group;

struct ncclComm {
    meeting *all;
    int ranks, rank, groups;
    int polls; /* to come until the pending group is in the stream */
    bool waits, leaves;
    group pending;
    cuda_stream stream;
    nccl_result failed;
    _Atomic bool aborted;
    _Atomic int running; /* groups in the stream */
};

static struct {
    fake_nccl_trouble trouble;
    fake_nccl_counts counts;
} nccl;

/* The calling thread's group. */
static _Thread_local int depth;
static _Thread_local nccl_communicator grouped;

static nccl_result get_id(nccl_name *out) {
    id name = {.process = getpid(), .file = memfd_create("fake NCCL", MFD_CLOEXEC)};
    if (name.file < 0 || ftruncate((int)name.file, sizeof(meeting)) != 0) abort();
    memcpy(name.kind, id_kind, sizeof name.kind);
    memset(out, 0, sizeof *out);
    memcpy(out, &name, sizeof name);
    return NCCL_OK; /* the file is open until the process ends */
}

static nccl_result begin(nccl_communicator *out, int ranks, nccl_name name, int rank,
                         nccl_settings *settings) {
    id from;
    char path[64];
    memcpy(&from, &name, sizeof from);
    if (nccl.trouble.init) return nccl.trouble.init;
    if (settings->size != sizeof *settings || settings->magic != 0xcafebeef ||
        settings->version < 21400 || settings->blocking != 0 || ranks > MOST_RANKS || rank < 0 ||
        rank >= ranks || memcmp(from.kind, id_kind, sizeof id_kind) != 0)
        return INVALID_ARGUMENT;
    if (!fake_current()) return INVALID_USAGE;
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)from.process,
             (long long)from.file);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return INVALID_ARGUMENT;
    nccl_communicator c = fake_take(sizeof *c);
    c->all = mmap(NULL, sizeof *c->all, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (c->all == MAP_FAILED) abort();
    c->ranks = ranks, c->rank = rank;
    atomic_fetch_add(&c->all->joined, 1);
    nccl.counts.communicators++;
    *out = c;
    return NCCL_IN_PROGRESS;
}

/* As much of a part as its mailbox takes or has; whether it moved. */
static bool move(nccl_communicator c, part *p) {
    mailbox *box = p->from ? &c->all->boxes[c->rank][p->peer] : &c->all->boxes[p->peer][c->rank];
    uint64_t put = atomic_load_explicit(&box->put, memory_order_acquire);
    uint64_t taken = atomic_load_explicit(&box->taken, memory_order_acquire);
    size_t capacity = p->from ? RING - (size_t)(put - taken) : (size_t)(put - taken);
    size_t at = (size_t)((p->from ? put : taken) % RING), count = p->bytes - p->done;
    if (count > capacity) count = capacity;
    if (count > RING - at) count = RING - at;
    if (count == 0) return false;
    if (p->from)
        memcpy(box->ring + at, p->from + p->done, count);
    else
        memcpy(p->to + p->done, box->ring + at, count);
    atomic_store_explicit(p->from ? &box->put : &box->taken, (p->from ? put : taken) + count,
                          memory_order_release);
    p->done += count;
    return true;
}

/* Parts of one direction and peer go one after the other. */
static bool is_behind(const group *g, int i) {
    for (int j = 0; j < i; j++) {
        const part *p = &g->parts[j], *q = &g->parts[i];
        if (!p->from == !q->from && p->peer == q->peer && p->done < p->bytes) return true;
    }
    return false;
}

static void run_group(const fake_launch *launch, const void *arguments) {
    group *g = *(group *const *)arguments;
    nccl_communicator c = g->communicator;
    (void)launch;
    for (int left = 1; left > 0;) {
        bool moved = false;
        left = 0;
        for (int i = 0; i < g->count; i++) {
            if (!is_behind(g, i)) moved |= move(c, &g->parts[i]);
            left += g->parts[i].done < g->parts[i].bytes;
        }
        if (atomic_load(&c->aborted) || atomic_load(&c->all->failed)) break;
        if (!moved) sched_yield();
    }
    free(g);
    atomic_fetch_sub(&c->running, 1);
}

static const fake_kernel group_kernel = {"a group of NCCL", sizeof(group *), 0, run_group, NULL};

static nccl_result submit(nccl_communicator c) {
    group *own = fake_take(sizeof *own);
    *own = c->pending;
    own->communicator = c;
    c->waits = false;
    fake_work work = {.kind = FAKE_KERNEL,
                      .launch = {&group_kernel, {1, 1, 1}, {1, 1, 1}, 0},
                      .arguments = fake_take(sizeof own)};
    memcpy(work.arguments, &own, sizeof own);
    if (fake_enter(true) != CUDA_OK) return INVALID_USAGE;
    atomic_fetch_add(&c->running, 1);
    fake_submit(c->stream, &work);
    fake_leave(CUDA_OK);
    c->pending.count = 0;
    return NCCL_OK;
}

static nccl_result get_state(nccl_communicator c, nccl_result *state) {
    *state = c->failed;
    if (c->failed) return NCCL_OK;
    if (atomic_load(&c->all->failed)) *state = c->failed = REMOTE_ERROR;
    if (c->failed) return NCCL_OK;
    *state = NCCL_IN_PROGRESS;
    if (atomic_load(&c->all->joined) < c->ranks) return NCCL_OK;
    if (c->leaves) {
        if (atomic_load(&c->all->finalized) == c->ranks && !atomic_load(&c->running))
            *state = NCCL_OK;
        return NCCL_OK;
    }
    if (c->waits && --c->polls > 0) return NCCL_OK;
    *state = NCCL_OK;
    return c->waits ? submit(c) : NCCL_OK;
}

static nccl_result add(nccl_communicator c, const void *from, void *to, size_t count, int type,
                       int peer, nccl_stream stream) {
    const void *data = from ? from : to;
    if (!c || c->failed || c->waits || type != NCCL_BYTES || peer < 0 || peer >= c->ranks ||
        peer == c->rank || c->pending.count == MOST_PARTS || depth == 0 || !stream)
        return INVALID_ARGUMENT;
    if (fake_enter(true) != CUDA_OK) return INVALID_USAGE;
    char *real = fake_resolve((cuda_address)(uintptr_t)data, count);
    fake_leave(CUDA_OK);
    if (!real) return INVALID_ARGUMENT;
    c->pending.parts[c->pending.count++] =
        (part){.from = from ? real : NULL, .to = from ? NULL : real, .bytes = count, .peer = peer};
    if (from) nccl.counts.bytes_sent += (int64_t)count;
    c->stream = stream;
    grouped = c;
    return NCCL_OK;
}

static nccl_result send_part(const void *from, size_t count, int type, int peer,
                             nccl_communicator c, nccl_stream stream) {
    return add(c, from, NULL, count, type, peer, stream);
}

static nccl_result receive_part(void *to, size_t count, int type, int peer, nccl_communicator c,
                                nccl_stream stream) {
    return add(c, NULL, to, count, type, peer, stream);
}

static nccl_result group_start(void) {
    depth++;
    return NCCL_OK;
}

static nccl_result group_end(void) {
    nccl_communicator c = grouped;
    if (depth == 0) return INVALID_USAGE;
    if (--depth > 0 || !c) return NCCL_OK;
    grouped = NULL;
    c->waits = true;
    c->polls = POLLS;
    nccl.counts.groups++;
    if (nccl.trouble.fail_after && ++c->groups > nccl.trouble.fail_after) c->failed = 3;
    return NCCL_IN_PROGRESS;
}

static nccl_result gather(const void *from, void *to, size_t count, int type, nccl_communicator c,
                          nccl_stream stream) {
    char *all = to, *own = all + (size_t)c->rank * count;
    group_start();
    nccl_result result = NCCL_OK;
    for (int d = 1; d < c->ranks && result == NCCL_OK; d++) {
        int peer = (c->rank + d) % c->ranks;
        result = add(c, from, NULL, count, type, peer, stream);
        if (result == NCCL_OK)
            result = add(c, NULL, all + (size_t)peer * count, count, type, peer, stream);
    }
    if (result == NCCL_OK && from != own) {
        if (fake_enter(true) != CUDA_OK) return INVALID_USAGE;
        const fake_work work = {.kind = FAKE_COPY,
                                .to = fake_resolve((cuda_address)(uintptr_t)own, count),
                                .from = fake_resolve((cuda_address)(uintptr_t)from, count),
                                .bytes = count};
        if (work.to && work.from) fake_submit(stream, &work);
        fake_leave(CUDA_OK);
        if (!work.to || !work.from) result = INVALID_ARGUMENT;
    }
    nccl_result end = group_end();
    return result == NCCL_OK ? end : result;
}

static nccl_result finalize(nccl_communicator c) {
    if (c->failed || c->waits) return INVALID_USAGE;
    c->leaves = true;
    atomic_fetch_add(&c->all->finalized, 1);
    return NCCL_IN_PROGRESS;
}

static void release(nccl_communicator c) {
    while (atomic_load(&c->running)) sched_yield();
    munmap(c->all, sizeof *c->all);
    free(c);
    nccl.counts.communicators--;
}

static nccl_result destroy(nccl_communicator c) {
    if (!c->leaves) return INVALID_USAGE;
    release(c);
    return NCCL_OK;
}

static nccl_result abort_all(nccl_communicator c) {
    atomic_store(&c->aborted, true);
    atomic_store(&c->all->failed, true);
    nccl.counts.aborted++;
    release(c);
    return NCCL_OK;
}

static const char *words(nccl_result result) {
    static const char *const all[] = {"no error",
                                      "unhandled cuda error",
                                      "system error",
                                      "internal error",
                                      "invalid argument",
                                      "invalid usage",
                                      "remote process exited or there was a network error",
                                      "NCCL operation in progress"};
    return result >= 0 && result <= NCCL_IN_PROGRESS ? all[result] : "unknown result code";
}

void fake_nccl_open(const fake_nccl_trouble *trouble, nccl_library *out) {
    int version = trouble->version ? trouble->version : 22809;
    nccl.trouble = *trouble;
    nccl.counts = (fake_nccl_counts){0};
    *out = (nccl_library){.ncclGetUniqueId = get_id,
                          .ncclCommInitRankConfig = begin,
                          .ncclCommGetAsyncError = get_state,
                          .ncclCommFinalize = finalize,
                          .ncclCommDestroy = destroy,
                          .ncclCommAbort = abort_all,
                          .ncclGroupStart = group_start,
                          .ncclGroupEnd = group_end,
                          .ncclSend = send_part,
                          .ncclRecv = receive_part,
                          .ncclAllGather = gather,
                          .ncclGetErrorString = words,
                          .major = version / 10000,
                          .minor = version / 100 % 100,
                          .patch = version % 100};
}

fake_nccl_counts fake_nccl_count(void) {
    return nccl.counts;
}
