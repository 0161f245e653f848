/* A lane: a thread that moves the bytes of a process's groups. Collectives are queued and run one
 * after the other, in the order in which they were started. Every rank starts the same list, so the
 * queues agree. The thread sleeps while the queue is empty. A worker of transfers between two ranks
 * lets all tasks take turns instead: each gets on as far as it can.
 */
#ifndef COMM_WORKER_H
#define COMM_WORKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "comm/comm.h"
#include "device/flag.h"

enum { COMM_LINE = 64 }; /* most collectives in progress at a time */

typedef enum comm_task_kind {
    COMM_TASK_GATHER,
    COMM_TASK_REDUCE,
    COMM_TASK_GATHER_CONTROL,
    COMM_TASK_BROADCAST,
    COMM_TASK_SUM,
    COMM_TASK_ALL_TO_ALL,
    COMM_TASK_ALL_REDUCE,
    COMM_TASK_SEND,
    COMM_TASK_RECEIVE
} comm_task_kind;

/* Whether operands of that kind lie in a device's memory, where a group has one: of a collective,
 * but no control message. */
bool comm_task_has_data(comm_task_kind kind);

/* One collective. `bytes` is a rank's part in a gather, the whole in a broadcast, what a rank gets
 * in an all-to-all, the whole in an all-reduce; `elements` are those of a slice. */
typedef struct comm_task {
    comm_task_kind kind;
    comm_group *group;
    const void *from;
    void *to;
    int64_t bytes, elements;
    const comm_run *sent, *received; /* of an all-to-all, by rank */
    base_dtype type, sum;            /* type of the operands, and of the sum */
    bool once;                       /* sums are FP32, and rounded at the end alone */
    int32_t root;                    /* of a broadcast; the other rank of a send or receive */
    int32_t entry; /* of the transport: where a send is posted, from 0; -1: nowhere */
    bool engaged;  /* of the transport: a send or receive has begun */
    comm_label label;
    device_mark after; /* of DEVICE_COMPUTE, for operands in a device's memory */
    uint32_t
        number; /* number among the group's collectives, or among transfers to or from a rank */
    uint64_t delivered;           /* set by `run`: bytes received from other ranks */
    uint64_t crossed;             /* of them, from other hosts */
    double started, begun, ended; /* put in line; run from, to */
    bool taken, done;             /* in use: started and not yet waited for */
    bool followed;                /* a device waits for it; the host has not waited yet */
    device_flag *flag;            /* comes to `number` when the task is over; NULL: none */
    uint32_t turn;                /* of the line: how many tasks were started */
    sifr_status status;
    sifr_error error;
} comm_task;

typedef struct comm_worker {
    sifr_status (*run)(void *user, comm_task *task, sifr_error *error);
    sifr_status (*turn)(void *user, comm_task *task, bool *over, sifr_error *error);
    void (*rest)(void *user);
    void *user;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t first, next; /* of the oldest task not yet run, and of the next new one, from 0 */
    bool stop, running;
    comm_task line[COMM_LINE];
} comm_worker;

/* `run` is called by the thread alone. The worker must not move while it lives. */
sifr_status comm_worker_open(comm_worker *worker,
                             sifr_status (*run)(void *user, comm_task *task, sifr_error *error),
                             void *user, sifr_error *error) SIFR_MUST_CHECK;

/* A worker whose tasks take turns, in the order in which they were started, over and over: `turn`
 * does what can be done without waiting and tells whether the task is over (a failed one is).
 * `rest` is called when no task got to its end; it waits a little, or until there is cause to go
 * on. */
sifr_status comm_worker_open_turns(comm_worker *worker,
                                   sifr_status (*turn)(void *user, comm_task *task, bool *over,
                                                       sifr_error *error),
                                   void (*rest)(void *user), void *user,
                                   sifr_error *error) SIFR_MUST_CHECK;
void comm_worker_close(
    comm_worker *worker); /* finishes queued tasks; harmless on a zeroed worker */

/* Waits at most `seconds` until all tasks of a group have been run; returns whether they have. */
bool comm_worker_finish(comm_worker *worker, const comm_group *group, double seconds);

/* The oldest task that is not over; NULL: none. On the worker's thread only. */
comm_task *comm_worker_oldest(comm_worker *worker);

/* *id is for one comm_worker_wait. SIFR_FAILED if COMM_LINE tasks are in progress. */
sifr_status comm_worker_start(comm_worker *worker, const comm_task *task, int32_t *id,
                              sifr_error *error) SIFR_MUST_CHECK;

/* Copies the finished task to *task, without its error. */
sifr_status comm_worker_wait(comm_worker *worker, int32_t id, comm_task *task,
                             sifr_error *error) SIFR_MUST_CHECK;

/* In place of the wait: *flag comes to *value when the task is over, whatever became of it. Each
 * place in line has a flag of its own. The task keeps its place until it is waited for. */
void comm_worker_follow(comm_worker *worker, int32_t id, device_flag *flag, uint32_t *value);

/* The followed task that was started first; false: none. `in_the_way`: only if its place is that of
 * the next task. */
bool comm_worker_followed(comm_worker *worker, bool in_the_way, int32_t *id);

/* No flag of the group's followed tasks, or of any for NULL, is written from now on. Tasks that are
 * over need no wait. */
void comm_worker_forget(comm_worker *worker, const comm_group *group);

comm_operation comm_task_operation(comm_task_kind kind); /* as the ledger counts it */

/* Counts a task that succeeded, in its group. */
void comm_worker_count(const comm_task *task);

#endif
