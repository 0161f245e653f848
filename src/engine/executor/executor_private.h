/* The executor, as its files see it: executor_memory.c makes it and its memory, executor.c runs it.
 */
#ifndef ENGINE_EXECUTOR_PRIVATE_H
#define ENGINE_EXECUTOR_PRIVATE_H

#include "engine/executor/executor.h"

struct engine_executor {
    plan_schedule *schedule;
    comm_group *group;
    char **base; /* by buffer */
    void *block;
    int64_t block_bytes; /* 0: the block is the owner's */
    int file;            /* of a block that is no window yet; -1: none */
    bool shared;         /* the owner's, and overwritten by each of its runs */
    float *seconds;
    engine_span *spans;      /* the caller's; NULL: not asked for */
    comm_handle *transfers;  /* by the instruction that started them */
    engine_swap *swap;       /* borrowed; NULL: nothing is on disk */
    engine_host_store *host; /* NULL: nothing is in host memory that is not the device's */
    bool borrows_host;       /* it is the owner's */
    char *window;            /* for what the host looks at, of a separate device; else NULL */
    engine_io_handle *moves; /* transfers of both, by the instruction that started them; -1: none */
    engine_io_times move_times;          /* of the last one that was waited for */
    bool skip;                           /* the rest of this step changes nothing */
    bool defers;                         /* some of the schedule's instructions are deferred */
    bool pending;                        /* what is deferred is still to be carried out ... */
    device_step last;                    /* ... with the numbers of the step before */
    double *losses;                      /* by micro batch of this rank */
    double *all_losses, *ordered_losses; /* of all ranks: as gathered, by global micro batch */
    device_step step;
    engine_kernel kernel; /* NULL: the device's own */
    void *kernel_user;
};

static inline bool executor_is_move(const plan_instruction *i) {
    return i->action == PLAN_READ || i->action == PLAN_WRITE;
}

/* In the first run: ranks open their windows together. Nothing afterwards. */
sifr_status executor_open_window(engine_executor *executor, sifr_error *error) SIFR_MUST_CHECK;

/* Writes rotary tables and positions. */
sifr_status executor_fill_tables(engine_executor *executor, sifr_error *error) SIFR_MUST_CHECK;

/* All of a buffer for the host to read: in place, or in the executor's window, until that is asked
 * for again. */
sifr_status executor_look(const engine_executor *executor, int32_t buffer, const void **out,
                          sifr_error *error) SIFR_MUST_CHECK;

#endif
