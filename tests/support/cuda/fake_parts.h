/* What the files of the fake driver share. */
#ifndef FAKE_PARTS_H
#define FAKE_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "support/cuda/fake_driver.h"

enum { FAKE_DEVICES = 8 };

typedef struct fake_block {
    struct fake_block *next;
    char *seen; /* what was handed out, without rights */
    char *real; /* the same memory for kernels and copies; NULL: freed */
    size_t bytes;
    char *seen_map, *real_map; /* both with their guard pages */
    size_t map_bytes;          /* of one mapping, without guard pages */
    int file, device;
    bool imported;
    _Atomic int32_t *opened; /* by how many other processes; a page behind the file's memory */
} fake_block;

typedef struct fake_host {
    struct fake_host *next;
    char *data;
    size_t bytes;
    bool registered; /* the caller's own memory */
} fake_host;

struct CUctx_st {
    int retained;
};

/* Of an event: shared with other processes if it is an interprocess one. */
typedef struct fake_mark {
    _Atomic uint32_t recorded, reached; /* numbers of records */
    _Atomic int64_t time_ns;
} fake_mark;

struct CUevent_st {
    struct CUevent_st *next;
    fake_mark *mark;
    cuda_graph capture; /* recorded while this was captured */
    unsigned flags;
    int file;
    bool dead; /* destroyed; work may still use the mark */
};

typedef enum fake_kind {
    FAKE_KERNEL,
    FAKE_COPY,
    FAKE_FILL,
    FAKE_RECORD,
    FAKE_WAIT,
    FAKE_WRITE_VALUE,
    FAKE_WAIT_VALUE,
    FAKE_STOP
} fake_kind;

typedef struct fake_work {
    fake_kind kind;
    fake_launch launch;
    void *arguments; /* its own block */
    void *to;
    const void *from;
    size_t bytes;
    fake_mark *mark;
    _Atomic uint32_t *word;
    uint32_t number; /* of a record, or a value */
    unsigned flags;
    unsigned char byte;
    cuda_result fails;
} fake_work;

typedef struct fake_node {
    _Atomic(struct fake_node *) next;
    fake_work work;
} fake_node;

/* The caller's threads append to `tail`, the stream's own takes from the other end. Nothing that
 * the stream's thread writes is read by callers but `done` and marks: a caller that only enqueues
 * is not ordered behind the stream's work. */
struct CUstream_st {
    struct CUstream_st *next;
    pthread_t thread;
    fake_node *tail, *at;
    _Atomic uint32_t queued, done;
    cuda_graph capture;
    uint64_t random;
    int device;
};

struct CUgraph_st {
    struct CUgraph_st *next;
    fake_work *work;
    size_t count, capacity;
};

struct CUgraphExec_st {
    struct CUgraph_st graph;
};

struct CUfunc_st {
    struct CUfunc_st *next;
    const fake_kernel *kernel;
    uint32_t shared_bytes;
};

struct CUmod_st {
    struct CUmod_st *next;
    const char *image; /* the caller's */
    cuda_function functions;
};

typedef struct fake_state {
    pthread_mutex_t lock; /* of all but what streams' threads use */
    bool open, started;
    fake_driver_options options;
    fake_driver_counts counts;
    struct CUctx_st contexts[FAKE_DEVICES];
    uint64_t held[FAKE_DEVICES]; /* bytes that libraries took */
    fake_block *blocks;
    char *seen_next, *seen_end; /* addresses for the next blocks; kept when the fake closes */
    fake_host *hosts;
    cuda_stream streams;
    cuda_event events;
    cuda_module modules;
    int64_t fail_after; /* launches; negative: never */
    cuda_result fail_with;
    _Atomic uint32_t lost; /* the result of every call; 0: none */
    _Atomic bool closing;
} fake_state;

extern fake_state fake;

/* Locks and returns CUDA_OK, or says why the call fails. fake_leave unlocks and returns `result`.
 */
cuda_result fake_enter(bool context);
cuda_result fake_leave(cuda_result result);
int fake_device(void); /* of the current context */
void *fake_take(size_t bytes);
cuda_context fake_current(void);

/* Memory that kernels and copies reach, of the device or pinned; NULL: unknown. */
void *fake_resolve(cuda_address address, size_t bytes);
bool fake_is_pinned(const void *host, size_t bytes);
void fake_translate(void *arguments, size_t bytes);
void fake_free_memory(void);
/* With the lock: takes so much of the current device until its context is released. */
bool fake_hold(uint64_t bytes);

/* Appends to the stream, or to the graph that it is captured into. */
void fake_submit(cuda_stream stream, const fake_work *work);
void fake_drain(cuda_stream stream); /* without the lock */
void fake_drain_all(void);           /* with the lock, which it gives up meanwhile */
void fake_free_streams(void);

void fake_fill_memory(cuda_driver *out);
void fake_fill_streams(cuda_driver *out);
void fake_fill_graphs(cuda_driver *out);

#endif
