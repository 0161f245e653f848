/* Ranks and their collectives. What moves their bytes is a transport (transports.c). A collective
 * is started and later waited for; its operands must stay alive and untouched until the wait
 * returns. Delivered bytes are counted where they move.
 *
 * A group is used by one thread at a time. All its ranks start the same collectives in the same
 * order; waits may come in any order. Nothing is allocated after opening.
 *
 * comm_split makes groups of some of a group's ranks. Each group has a lane. The collectives of a
 * lane run one after the other, in the order in which this rank started them, also where they are
 * of different groups. Lanes do not wait for each other. So two ranks that share several groups of
 * a lane must start the collectives of those groups in the same order. Sends and receives have a
 * lane of their own, in which order is kept only between the same two ranks of a group. A rank that
 * fails in one group ends the ranks of all groups.
 */
#ifndef COMM_COMM_H
#define COMM_COMM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/errors.h"
#include "device/device.h"

typedef struct comm_group comm_group;

typedef enum comm_operation {
    COMM_ALL_GATHER,
    COMM_REDUCE_SCATTER,
    COMM_CONTROL, /* small agreements: counts, norms, hashes */
    COMM_SEND,    /* point to point: its receiver counts the bytes */
    COMM_RECEIVE,
    COMM_ALL_TO_ALL,
    COMM_ALL_REDUCE,
    COMM_OPERATIONS
} comm_operation;

const char *comm_operation_name(comm_operation operation);

/* Bytes received by a rank since the group was opened, by operation. A gather delivers (N - 1) x
 * bytes; a reduction (N - 1) x elements x size of the type that is sent, that is, (N - 1) / N of
 * the padded whole; an all-to-all the parts of the others, (N - 1) / N of all where parts are
 * equal; an all-reduce 2 x (N - 1) / N of all. */
typedef struct comm_ledger {
    struct {
        int64_t calls;
        uint64_t bytes;   /* delivered to this rank by others, by any path */
        uint64_t crossed; /* of them, from other hosts */
        double seconds;   /* from start to the end of the wait; of followed ones to their own end */
    } operation[COMM_OPERATIONS];
} comm_ledger;

/* The purpose of a collective in error reports: "step 7, unit 3". */
typedef struct comm_label {
    int64_t step;     /* 0: of no step */
    const char *noun; /* a string that outlives the group: "unit"; NULL: no label */
    int32_t number;   /* number of the noun; -1: none */
} comm_label;

/* A collective that is over; times are by base_seconds. */
typedef struct comm_event {
    comm_operation operation;
    int64_t bytes;       /* size of one rank's part: a slice, or a control message; of an
                            all-to-all what this rank gets, its own part too; of an
                            all-reduce the whole */
    uint64_t delivered;  /* delivered to this rank by others, as the ledger counts */
    uint64_t crossed;    /* of them, from other hosts */
    double asked;        /* when this rank started it */
    double begun, ended; /* when the communication queue began and finished it */
    bool followed;       /* the host did not wait for its end (comm_follow) */
} comm_event;

typedef void comm_watcher(void *user, const comm_event *event);

/* A collective in progress; `id` is opaque. Each is waited for exactly once. */
typedef struct comm_handle {
    comm_group *group;
    int32_t id;
} comm_handle;

/* A group of this process only. */
sifr_status comm_open_self(comm_group **out, sifr_error *error) SIFR_MUST_CHECK;

/* A group of all processes that one MPI launcher started (launcher.h). Starts MPI if the program
 * has not, and comm_close then ends it; this is possible once in a process. Its ranks are then
 * numbered host by host and switch by switch, however they were placed. The group has a thread
 * of its own that moves the bytes, so collectives progress beside other work. SIFR_FAILED if no
 * MPI can be opened. */
sifr_status comm_open_mpi(comm_group **out, sifr_error *error) SIFR_MUST_CHECK;

/* Limits of the start, whose calls of MPI come back only when all ranks are there. */
typedef struct comm_start {
    double limit;  /* seconds, also of collectives until comm_set_timeout; 0: none */
    double notice; /* seconds after which a line says that it takes long; 0: COMM_START_NOTICE */
    /* Called on a thread of its own, with who is missing, as far as that can be seen, or with ""
     * where another rank of the host says it. `last`: the limit has passed. Nothing else can end
     * the wait: the callback then has to end the process. NULL: the start has no limit. */
    void (*late)(void *user, bool last, const char *line);
    void *user;
} comm_start;

enum { COMM_START_NOTICE = 30 };

/* With options; zeroed ones give comm_open_mpi. COMM_SELF reads none. */
typedef struct comm_options {
    const sifr_log *log; /* must outlive the group; may be NULL */
    int32_t
        ranks_a_host; /* for tests: treat this many consecutive ranks as a host; 0: real hosts */
    int32_t cyclic_hosts; /* for tests: rank r is on host r modulo so many; 0: real hosts */
    bool only_mpi;        /* for tests and comparisons: share no memory */
    int32_t direct;       /* for tests: up to so many ranks, at most 16, each sends to each; 0: 8 */
    const struct nccl_library *nccl; /* for tests: NCCL's functions; NULL: those that are found */
    comm_start start;
} comm_options;

/* What moves the bytes of a group. */
typedef enum comm_transport_kind { COMM_SELF, COMM_MPI, COMM_TRANSPORTS } comm_transport_kind;

/* A group of all ranks that the transport reaches. */
sifr_status comm_open(comm_transport_kind kind, const comm_options *options, comm_group **out,
                      sifr_error *error) SIFR_MUST_CHECK;
bool comm_is_there(comm_transport_kind kind); /* whether one can be opened */

/* Host memory that comm_use_device takes for comm_follow, if the device hides its own. */
enum { COMM_WORD_BYTES = 512 };

typedef enum comm_lane {
    COMM_BULK, /* of the first group */
    COMM_NEAR, /* short collectives that a step waits for: they overtake those in bulk */
    COMM_LANES
} comm_lane;

/* The place of a rank in a split; all ranks give the same name, lane and peers. */
typedef struct comm_part {
    const char *name; /* of the group, in messages: "shard"; at most COMM_NAME - 1 bytes */
    int32_t color;    /* ranks of one color form a group; negative: this rank is in none */
    int32_t key;      /* ranks of a group are in order of their keys, then of their old ranks */
    comm_lane lane;
    bool peers; /* ranks of the group send to each other */
} comm_part;

enum { COMM_NAME = 16 };

/* Makes a group of the parent's ranks that give the same color. All ranks of the parent call it,
 * with none of its collectives in progress. *out is NULL for a negative color. The group has the
 * parent's timeout, but a label, a watcher, a ledger and a device (comm_use_device) of its own.
 * Only the group of all ranks opens windows; operands of other groups lie in them, too. All ranks
 * of a group close it, before or after its parent. */
sifr_status comm_split(comm_group *parent, const comm_part *part, comm_group **out,
                       sifr_error *error) SIFR_MUST_CHECK;

/* Waits until all ranks close. A rank that has failed closes too; the others then fail with
 * SIFR_LOST_RANK and its number instead of waiting for it. A group in which a collective failed is
 * closed without ending MPI: the process must then exit with a code other than 0. NULL is harmless.
 */
void comm_close(comm_group *group);

int32_t comm_rank(const comm_group *group);
int32_t comm_size(const comm_group *group);
const char *comm_name(const comm_group *group); /* "": the group of all ranks */

/* The number of rank `rank` in the group of all ranks, by which messages name it. */
int32_t comm_world_rank(const comm_group *group, int32_t rank);

int32_t comm_local_size(const comm_group *group); /* ranks on this host */
int32_t comm_local_rank(const comm_group *group); /* the number of this one among them */
/* Ranks of each host, where all hosts have as many, numbered one behind the other; else 0. All
 * ranks of the group find the same. */
int32_t comm_ranks_per_host(const comm_group *group);
int64_t
comm_buffer_bytes(const comm_group *group); /* memory that the group took when it was opened */
const comm_ledger *comm_get_ledger(const comm_group *group);

/* Whether ranks of this host read each other's windows in place. Then operands inside a window are
 * not copied on the way, and their memory should be taken with device_take_shared, so that other
 * ranks can map it. */
bool comm_shares_memory(const comm_group *group);

/* Operands that lie in a device's memory. */
typedef struct comm_operands {
    int64_t
        largest;   /* bytes of the largest one of gathers, reductions and sums; 0: there are none */
    int64_t parts; /* of what a rank sends to others and gets from them in an all-to-all, most
                      bytes together; 0: there are none */
    int64_t sent;  /* of sends, in a group with peers, which has ... */
    int32_t sends; /* ... so many sends and receives in progress at a time; 0: none */
} comm_operands;

/* From now on the operands of gathers, reductions, all-to-alls, sends and receives lie in memory of
 * `dev` that the host does not reach (device_is_hidden), within windows. Such a transfer starts
 * after all work that DEVICE_COMPUTE was given, and has ended when comm_wait returns. Between hosts
 * NCCL moves the operands of GPUs in collectives, for groups in COMM_BULK, if each host has one
 * rank or the hosts are nodes of the sum tree. Without NCCL, in sends, or if ranks of a host cannot
 * read each other's windows, operands go through host memory; this is logged once. Control messages
 * stay in host memory. All ranks of a group call it: of the group of all ranks before its windows
 * are opened, of other groups after that. Called again for the same device, it keeps the larger
 * sizes. The device must live until this is called with NULL: operands are host memory again. */
sifr_status comm_use_device(comm_group *group, device *dev, const comm_operands *operands,
                            sifr_error *error) SIFR_MUST_CHECK;

/* How what ranks of a group gather, reduce and send gets from one to the other; later ones are what
 * is taken where earlier ones cannot be. */
typedef enum comm_exchange {
    COMM_EXCHANGE_NONE,   /* one rank, or nothing of this group's moves */
    COMM_EXCHANGE_SHARED, /* ranks of one host read it in place */
    COMM_EXCHANGE_MPI,    /* messages, between some or all */
    COMM_EXCHANGE_IPC,    /* likewise in memory of a device, in windows */
    COMM_EXCHANGE_NCCL,   /* NCCL between hosts, windows within each */
    COMM_EXCHANGE_HOST    /* from a device through host memory */
} comm_exchange;

/* "none", "shared memory", "MPI", "IPC", "NCCL", "host memory" */
const char *comm_exchange_name(comm_exchange exchange);

/* Of the windows that are open. *why: of COMM_EXCHANGE_HOST, else ""; belongs to the group. */
comm_exchange comm_exchange_of(const comm_group *group, const char **why);

/* Makes `bytes` at `block`, a mapping of the start of `file`, readable by the other ranks of this
 * host. All ranks of the group call it, each with its own block and size. Host memory needs
 * comm_shares_memory, without which nothing is done. If the other ranks cannot map the block, that
 * is logged and its operands go through MPI. Close the window before giving the block back, while
 * no collective is in progress; the file may be closed at once. A block of hidden memory needs no
 * file (-1). All ranks close its window: that returns when none has it open any more, or a rank has
 * failed. */
sifr_status comm_open_window(comm_group *group, void *block, int64_t bytes, int file,
                             sifr_error *error) SIFR_MUST_CHECK;
void comm_close_window(comm_group *group, void *block); /* harmless without a window */

/* From now on, `watcher` is called for each collective when the ledger counts it: at the end of its
 * wait, on the waiting thread. There is one watcher at a time; NULL: none. */
void comm_watch(comm_group *group, comm_watcher *watcher, void *user);

/* The last collective that this rank waited for; owned by the group and valid until the next one.
 */
const comm_event *comm_last(const comm_group *group);

/* All-gather: slice r of `whole` (size x `bytes` long) becomes rank r's `slice`, which may already
 * lie there. */
sifr_status comm_start_all_gather(comm_group *group, const void *slice, int64_t bytes, void *whole,
                                  comm_handle *out, sifr_error *error) SIFR_MUST_CHECK;

/* Reduce-scatter: `slice` (`elements` long, FP32) becomes the sum, in tree order over the ranks, of
 * this rank's slice of every `whole`. It may lie inside `whole`. */
sifr_status comm_start_reduce_scatter(comm_group *group, const float *whole, int64_t elements,
                                      float *slice, comm_handle *out,
                                      sifr_error *error) SIFR_MUST_CHECK;

/* The same for a `whole` in another type, FP32, BF16 or FP16: every element is widened and added in
 * FP32, including this rank's own. `sum` is the type of the slice: FP32, or `type`, in which case
 * every sum of the tree is rounded to it. Between several hosts each rank's part is sent
 * separately. */
sifr_status comm_start_reduce_typed(comm_group *group, const void *whole, base_dtype type,
                                    base_dtype sum, int64_t elements, void *slice, comm_handle *out,
                                    sifr_error *error) SIFR_MUST_CHECK;

/* All-reduce, in place: `elements` at `values`, FP32, BF16 or FP16, become the sum over the ranks
 * in tree order, on every rank. Sums are made in FP32 and rounded to `type` once, so how ranks
 * exchange changes no bit. `elements` are a multiple of the ranks. In a device's memory BF16 and
 * FP16 are summed over two ranks at most; SIFR_FAILED says so. */
sifr_status comm_start_all_reduce(comm_group *group, void *values, base_dtype type,
                                  int64_t elements, comm_handle *out,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* A run of bytes of a buffer. */
typedef struct comm_run {
    int64_t at, bytes;
} comm_run;

/* All-to-all, with parts of any sizes: the run sent[r] of `from` becomes the run received[this
 * rank] of rank r's `to`. Both lists have an entry for each rank of the group, and are operands
 * too. Two ranks give the same size for what one of them sends to the other; it may be 0. Runs of
 * `sent` may overlap (where all are the same, this is a gather of slices that differ in size);
 * those of `received` do not, nor do `from` and `to`. */
sifr_status comm_start_all_to_all(comm_group *group, const void *from, const comm_run *sent,
                                  void *to, const comm_run *received, comm_handle *out,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* Point to point: `bytes` at `data` of the sender become those at `data` of the receiver. The n-th
 * send of a rank to another rank of the group meets the other's n-th receive from it, and both give
 * the same size. A send may be started before its receive, and does not hold up other transfers.
 * For a group that was split off with `peers`. */
sifr_status comm_send(comm_group *group, int32_t to, const void *data, int64_t bytes,
                      comm_handle *out, sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_receive(comm_group *group, int32_t from, void *data, int64_t bytes,
                         comm_handle *out, sifr_error *error) SIFR_MUST_CHECK;

sifr_status comm_wait(comm_handle handle, sifr_error *error) SIFR_MUST_CHECK;

/* In place of comm_wait: work that DEVICE_COMPUTE of the group's device is given from now on begins
 * after the transfer. If the device cannot wait for it, the host does so here. Otherwise
 * comm_catch_up does, and returns the transfer's error unless an earlier call did. Called by the
 * thread that gives that queue its work. Until the transfer is over the caller must take no memory
 * of the device, and make no other call that waits for all of its queues. */
sifr_status comm_follow(comm_handle handle, sifr_error *error) SIFR_MUST_CHECK;

/* Waits for all transfers that were followed, in any group of the process. */
sifr_status comm_catch_up(comm_group *group, sifr_error *error) SIFR_MUST_CHECK;

/* Sums values over all ranks, in place; returns when done. */
sifr_status comm_sum(comm_group *group, int64_t *values, int32_t count,
                     sifr_error *error) SIFR_MUST_CHECK;

/* Gathers the `bytes` at `mine` of every rank, in rank order, into `all` (size x `bytes`) of every
 * rank; returns when done. For small data: partial norms, hashes. */
sifr_status comm_all_gather_control(comm_group *group, const void *mine, int64_t bytes, void *all,
                                    sifr_error *error) SIFR_MUST_CHECK;

/* Starts such a gather, to be waited for or followed. It begins after all work that DEVICE_COMPUTE
 * of the group's device was given: that work may copy `mine` to the host. */
sifr_status comm_start_control(comm_group *group, const void *mine, int64_t bytes, void *all,
                               comm_handle *out, sifr_error *error) SIFR_MUST_CHECK;

/* Broadcasts the `bytes` at `data` of rank `root` to all other ranks; returns when done. */
sifr_status comm_broadcast(comm_group *group, int32_t root, void *data, int64_t bytes,
                           sifr_error *error) SIFR_MUST_CHECK;

/* SIFR_USAGE on all ranks if the ranks' hashes differ. The message says that `label` differs, and
 * names the ranks whose hash is not the most common one. */
sifr_status comm_agree(comm_group *group, const char *label, uint64_t hash,
                       sifr_error *error) SIFR_MUST_CHECK;

/* Each rank passes its own status and message, and all get the same result: SIFR_OK if every rank
 * succeeded, otherwise the status and message of the lowest rank that failed (with "rank 3: " in
 * front, unless it is rank 0). So no rank enters a collective that the others never reach.
 * SIFR_LOST_RANK is returned at once, since no agreement is possible. `error` should not be NULL,
 * or a rank's reason is lost. Nothing is allocated. */
sifr_status comm_agree_status(comm_group *group, sifr_status status,
                              sifr_error *error) SIFR_MUST_CHECK;

/* Sets the label of all collectives that are started from now on. */
void comm_set_label(comm_group *group, const comm_label *label);

/* A collective that waits longer than this for another rank fails with SIFR_LOST_RANK; the message
 * says where each rank is and which ones are missing. 0 (the default): wait forever. A rank of this
 * host that has died is noticed and named within a second, whatever the timeout. */
void comm_set_timeout(comm_group *group, double seconds);

/* For tests of overlap: makes each gather, reduction and all-to-all take at least this long. */
void comm_slow_down(comm_group *group, double seconds_a_call, double seconds_a_byte);

#endif
