/* Ranks and what they exchange. A transport is one file (self.c: one rank, nothing moves; mpi.c)
 * behind one table of functions. Collectives start and are waited for; operands must live and stay
 * untouched until the wait returns. What they delivered is counted where it moves.
 *
 * A group is used by one thread at a time, and all its ranks start the same collectives in the same
 * order; they may be waited for in any. Nothing is allocated after opening. */
#ifndef COMM_COMM_H
#define COMM_COMM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/errors.h"

typedef struct comm_group comm_group;

typedef enum comm_operation {
    COMM_ALL_GATHER,
    COMM_REDUCE_SCATTER,
    COMM_CONTROL, /* small agreements: counts, norms, hashes */
    COMM_OPERATIONS
} comm_operation;

const char *comm_operation_name(comm_operation operation);

/* What a rank received, by operation, since the group was opened: of a gather (N - 1) x bytes, of a
 * reduction (N - 1) x elements x size of what travels, that is padded elements x (N - 1) / N x size
 * of the whole. */
typedef struct comm_ledger {
    struct {
        int64_t calls;
        uint64_t bytes;   /* delivered to this rank by others, whatever carried them */
        uint64_t crossed; /* of them, from other hosts */
        double seconds;   /* from start to the end of the wait */
    } operation[COMM_OPERATIONS];
} comm_ledger;

/* What a collective is for, as reports of trouble name it: "step 7, unit 3". */
typedef struct comm_label {
    int64_t step;     /* 0: of no step */
    const char *noun; /* a word that lives as long as the group: "unit"; NULL: nothing to say */
    int32_t number;   /* of the noun; -1: there is only one */
} comm_label;

/* A collective that is over; times are those of base_seconds. */
typedef struct comm_event {
    comm_operation operation;
    int64_t bytes;       /* of one rank's part: a slice, or what a control message holds */
    uint64_t delivered;  /* to this rank by others, as the ledger counts */
    uint64_t crossed;    /* of them, from other hosts */
    double asked;        /* when this rank started it */
    double begun, ended; /* when the communication queue took it up, and was done with it */
} comm_event;

typedef void comm_watcher(void *user, const comm_event *event);

/* A collective under way; `id` says nothing to the caller. Each is waited for exactly once. */
typedef struct comm_handle {
    comm_group *group;
    int32_t id;
} comm_handle;

/* The group of this process alone. */
sifr_status comm_open_self(comm_group **out, sifr_error *error) SIFR_MUST_CHECK;

/* All processes that one MPI launcher started (launcher.h). MPI is started here where the program
 * has not done so, and then ended by comm_close: once in the life of a process. A thread of the
 * group's own moves the bytes, so that what was started goes on beside other work. SIFR_FAILED
 * where the build has no MPI. */
sifr_status comm_open_mpi(comm_group **out, sifr_error *error) SIFR_MUST_CHECK;

/* The same, with more to say; zeroed options are those of comm_open_mpi. */
typedef struct comm_options {
    const sifr_log *log;  /* must outlive the group; may be NULL */
    int32_t ranks_a_host; /* for tests: as if so many ranks in a row were a host; 0: as it is */
    bool only_mpi;        /* for tests and comparisons: no memory is shared */
} comm_options;

sifr_status comm_open_mpi_with(const comm_options *options, comm_group **out,
                               sifr_error *error) SIFR_MUST_CHECK;
bool comm_has_mpi(void); /* is there MPI in this build? */

/* Waits until all ranks close; one that has failed closes too, and the others then fail with
 * SIFR_LOST_RANK, naming it, instead of waiting for it. A group in which a collective failed is
 * left without ending MPI: the process must exit then, not 0. NULL is harmless. */
void comm_close(comm_group *group);

int32_t comm_rank(const comm_group *group);
int32_t comm_size(const comm_group *group);
int32_t comm_local_size(const comm_group *group);   /* ranks on this host */
int64_t comm_buffer_bytes(const comm_group *group); /* what the group itself took when opened */
const comm_ledger *comm_get_ledger(const comm_group *group);

/* Whether ranks of this host read each other's windows in place: then operands in memory that a
 * window holds need no copy on the way, and memory for them should be taken where others can map it
 * (device_take_shared). */
bool comm_shares_memory(const comm_group *group);

/* Makes `bytes` at `block`, which is mapped from the start of `file` on, readable by the other
 * ranks of this host. All ranks of the group call it, each with its own block and size. Without
 * comm_shares_memory nothing happens; where the others cannot map it the log says so, and operands
 * there travel as all others do. The window must be closed before the block is given back, when no
 * collective is under way; the file may be closed at once. */
sifr_status comm_open_window(comm_group *group, void *block, int64_t bytes, int file,
                             sifr_error *error) SIFR_MUST_CHECK;
void comm_close_window(comm_group *group, void *block); /* harmless where there is none */

/* From now on `watcher` hears of each collective at the end of its wait, on the thread that waits,
 * when the ledger counts it. One at a time; NULL: none. */
void comm_watch(comm_group *group, comm_watcher *watcher, void *user);

/* The collective that this rank was last done waiting for; the group's own, until the next one. */
const comm_event *comm_last(const comm_group *group);

/* Slice r of `whole` (size x `bytes` long) becomes rank r's `slice`; slice may be that very place.
 */
sifr_status comm_start_all_gather(comm_group *group, const void *slice, int64_t bytes, void *whole,
                                  comm_handle *out, sifr_error *error) SIFR_MUST_CHECK;

/* `slice` becomes the sum over ranks of this rank's slice (`elements` long, FP32) of their `whole`,
 * added in tree order over the ranks; it may be that very place. */
sifr_status comm_start_reduce_scatter(comm_group *group, const float *whole, int64_t elements,
                                      float *slice, comm_handle *out,
                                      sifr_error *error) SIFR_MUST_CHECK;

/* Types in which the operands of a sum may travel. */
/* The same of a `whole` in another type: every element is widened, then added in FP32, this rank's
 * own too. `sum` is the type of the slice: FP32, or `type` again; then every sum of the tree is
 * rounded to it. Where several hosts take part each rank's part crosses by itself. */
sifr_status comm_start_reduce_typed(comm_group *group, const void *whole, base_dtype type,
                                    base_dtype sum, int64_t elements, void *slice, comm_handle *out,
                                    sifr_error *error) SIFR_MUST_CHECK;

sifr_status comm_wait(comm_handle handle, sifr_error *error) SIFR_MUST_CHECK;

/* Sums over all ranks, in place; returns when done. */
sifr_status comm_sum(comm_group *group, int64_t *values, int32_t count,
                     sifr_error *error) SIFR_MUST_CHECK;

/* The `bytes` at `mine` of every rank, one after the other, into `all` (size x `bytes`) of every
 * rank; returns when done. For small things: partial norms, hashes. */
sifr_status comm_all_gather_control(comm_group *group, const void *mine, int64_t bytes, void *all,
                                    sifr_error *error) SIFR_MUST_CHECK;

/* The `bytes` at `data` of rank `root` into those of all others; returns when done. */
sifr_status comm_broadcast(comm_group *group, int32_t root, void *data, int64_t bytes,
                           sifr_error *error) SIFR_MUST_CHECK;

/* SIFR_USAGE, on all ranks alike, where the ranks' hashes differ: the message says that `label`
 * differs, and on which ranks. Those that differ from the most common hash are named. */
sifr_status comm_agree(comm_group *group, const char *label, uint64_t hash,
                       sifr_error *error) SIFR_MUST_CHECK;

/* All ranks hand in how something went on each of them, with its message in `error`, and all get
 * the same back: SIFR_OK where it went well everywhere, else the status and message of the lowest
 * rank that failed ("rank 3: " before it, where that is not rank 0). So none goes on alone into a
 * collective in which the others are not. SIFR_LOST_RANK comes back at once: nobody is left to
 * agree with. `error` should not be NULL, or a rank's reason is lost. Nothing is allocated. */
sifr_status comm_agree_status(comm_group *group, sifr_status status,
                              sifr_error *error) SIFR_MUST_CHECK;

/* The label of all collectives that are started from now on. */
void comm_set_label(comm_group *group, const comm_label *label);

/* A collective that waits longer for another rank fails with SIFR_LOST_RANK, and a message that
 * says where each rank is and who is missing; 0 (as opened): it waits for ever. A rank of this host
 * that has died is noticed and named within a second, whatever the timeout. */
void comm_set_timeout(comm_group *group, double seconds);

/* For tests of overlap: each gather and reduction takes at least this long. */
void comm_slow_down(comm_group *group, double seconds_a_call, double seconds_a_byte);

#endif
