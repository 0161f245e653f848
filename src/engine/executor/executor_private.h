/* The executor's members: executor_memory.c makes it and its memory, executor.c runs it. */
#ifndef ENGINE_EXECUTOR_PRIVATE_H
#define ENGINE_EXECUTOR_PRIVATE_H

#include "engine/executor/executor.h"

struct engine_executor {
    plan_schedule *schedule;
    comm_group *group;
    char **base; /* by buffer */
    void *block;
    int64_t block_bytes; /* 0: the block is the owner's */
    int file;            /* file of a block that is not a window yet; -1: none */
    bool shared;         /* the owner's, overwritten by each of its runs */
    float *seconds;
    engine_span *spans;      /* the caller's; NULL: not wanted */
    comm_handle *transfers;  /* by the instruction that started them */
    engine_swap *swap;       /* borrowed; NULL: nothing is on disk */
    engine_host_store *host; /* NULL: no state in separate host memory */
    bool borrows_host;       /* it is the owner's */
    char *window;            /* host's view of buffers of a separate device; otherwise NULL */
    engine_io_handle *moves; /* transfers of both, by the instruction that started them; -1: none */
    engine_io_times move_times; /* times of the last transfer waited for */
    bool skip;                  /* the update of this step is skipped */
    bool defers;                /* some of the schedule's instructions are deferred */
    bool pending;               /* deferred instructions are still to run ... */
    device_step last;           /* ... with the numbers of the step before */
    double *losses;             /* by micro batch of this rank */
    double *all_losses,
        *ordered_losses; /* of all ranks: in gathered order, and by global micro batch */
    device_step step;
    int64_t length;       /* of the sequence, for rotary tables; 0: the plan's */
    engine_kernel kernel; /* NULL: the device's own */
    void *kernel_user;
};

static inline bool executor_is_move(const plan_instruction *i) {
    return i->action == PLAN_READ || i->action == PLAN_WRITE;
}

/* In the first run, opens the windows of all ranks together; later does nothing. */
sifr_status executor_open_window(engine_executor *executor, sifr_error *error) SIFR_MUST_CHECK;

/* Writes rotary tables and positions. */
sifr_status executor_fill_tables(engine_executor *executor, sifr_error *error) SIFR_MUST_CHECK;

/* A whole buffer for the host to read: in place, or in the executor's window until its next use. */
sifr_status executor_look(const engine_executor *executor, int32_t buffer, const void **out,
                          sifr_error *error) SIFR_MUST_CHECK;

#endif
