/* The executor's members: executor_memory.c makes it and its memory, executor.c runs it. */
#ifndef ENGINE_EXECUTOR_PRIVATE_H
#define ENGINE_EXECUTOR_PRIVATE_H

#include "engine/executor/executor.h"
#include "plan/numbers.h"

struct engine_executor {
    plan_schedule *schedule;
    engine_groups groups;
    comm_group *world; /* of them: all ranks */
    char **base;       /* by buffer */
    void *block;
    int64_t block_bytes; /* 0: the block is the owner's */
    int file;            /* file of a block that is not a window yet; -1: none */
    bool opens_window;   /* of hidden memory, which has no file; not done yet */
    bool shared;         /* the owner's, overwritten by each of its runs */
    float *seconds;
    bool times_each;            /* engine_time_each */
    bool has_run;               /* each instruction, once */
    engine_span *spans;         /* the caller's; NULL: not wanted */
    comm_handle *transfers;     /* by the instruction that started them */
    double sum_begun;           /* of the last sum waited for: when its first half began */
    engine_swap *swap;          /* borrowed; NULL: nothing is on disk */
    char *host;                 /* block of separate host memory; NULL: no state is there */
    int64_t host_bytes;         /* 0: it is the owner's */
    char *window;               /* host's view of buffers of a separate device; otherwise NULL */
    int32_t *moves;             /* disk transfers, by the instruction that started them; -1: none */
    device_mark *copies;        /* ends of copies from and to host memory, likewise */
    int64_t copied[2];          /* bytes so far: to the device, from it */
    engine_io_times move_times; /* times of the last transfer waited for */
    device_mark move_mark;      /* end of it, if it was a copy */
    engine_io_times *written;   /* of hidden memory: of files' writes, by instruction */
    /* Of schedule->numbers: in place where the host reaches it, otherwise a copy, which the host
     * writes before the device begins a step and reads at its end. */
    plan_numbers *numbers;
    int64_t number_bytes; /* that the host reads: all but the parts of all ranks */
    /* Of hidden memory: what the host put into inputs since the last run, which is copied when the
     * device gets to it; by buffer: where, or -1. */
    char *staged;
    int64_t staged_bytes;
    int64_t *staged_at;
    void *parts;       /* hidden memory, several ranks: what all bring to the decision; else NULL */
    bool skip;         /* the update of this step is skipped */
    bool defers;       /* some of the schedule's instructions are deferred */
    bool pending;      /* deferred instructions are still to run ... */
    bool skip_last;    /* ... whose update is skipped, ... */
    int64_t last_step; /* ... of this step */
    int64_t length;    /* of the sequence, for rotary tables; 0: the plan's */
    engine_kernel kernel; /* NULL: the device's own */
    void *kernel_user;
};

static inline bool executor_is_move(const plan_instruction *i) {
    return i->action == PLAN_READ || i->action == PLAN_WRITE;
}

/* Bytes of the parts that come before those of the last stage, of all ranks' in their order. */
int64_t executor_before_last(const engine_executor *executor);
/* Makes them those of the decision, a part for each rank with a batch of its own, from there on. */
void executor_join_parts(const engine_executor *executor, void *parts);

/* Writes rotary tables, and positions unless they come with each batch. */
sifr_status executor_fill_tables(engine_executor *executor, sifr_error *error) SIFR_MUST_CHECK;

#endif
