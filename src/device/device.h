/* A device: memory, and kernels with one form of call (device/call.h).
 *
 * The planner makes calls without addresses, device_prepare() checks a call and computes its
 * scratch size, and the executor fills in the addresses and runs the call any number of times.
 * Running a prepared call allocates and creates nothing.
 *
 * Results of a kernel do not depend on the number of threads: work is cut into tiles of fixed size,
 * and no sum is split by thread.
 */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/errors.h"
#include "base/exact_sum.h"
#include "device/call.h"
#include "sifr/settings.h"

typedef struct device device;

/* A rank among those of its host. */
typedef struct device_place {
    int32_t rank;    /* its number there: with n GPUs it has that of this number modulo n */
    int32_t sharers; /* ranks that compute on that GPU; 0 is 1 */
} device_place;

/* Opens a device of a kind; SIFR_DEVICE_AUTO is for callers to settle
 * (engine/check/device_choice.h), and the CPU here. threads and isa as below. With the
 * environment's SIFR_DEVICE_CHECK=1 a GPU finishes each kernel before the next, and an error names
 * the kernel. With SIFR_CUDA_PRODUCTS=own its products are sifr's, with cublaslt NVIDIA's; without
 * it they are NVIDIA's where cuBLASLt is found (device_notice says if not). SIFR_FAILED says what
 * keeps a GPU from being used, SIFR_NO_MEMORY that others have taken its memory. */
sifr_status device_open(sifr_device kind, const device_place *place, int threads, const char *isa,
                        device **out, sifr_error *error) SIFR_MUST_CHECK;

enum { DEVICE_MOST_THREADS = 1024 };

/* Opens the CPU of this process. threads 0: one a core (base_topology_threads). isa: "avx512_bf16",
 * "avx512", "avx2", "plain", or NULL for the best one that this CPU has. */
sifr_status device_open_cpu(int threads, const char *isa, device **out,
                            sifr_error *error) SIFR_MUST_CHECK;

/* Like device_open_cpu, but with separate memory, like an accelerator: for tests of the passes, and
 * for plans of such a device. Blocks from device_take are the device's memory. A kernel with an
 * operand anywhere else fails, and so does a copy that does not cross between the two memories. */
sifr_status device_open_separate(int threads, const char *isa, device **out,
                                 sifr_error *error) SIFR_MUST_CHECK;
bool device_is_separate(const device *dev);

/* Like device_open_separate, but it has only begun what it was given when a call returns, and the
 * host does not reach its memory: a read there ends the program at its line. Queues are threads,
 * which rest up to `pause_us` microseconds before each piece of work, by `seed`. */
sifr_status device_open_queued(int threads, const char *isa, uint32_t pause_us, uint64_t seed,
                               device **out, sifr_error *error) SIFR_MUST_CHECK;

/* Whether its memory is hidden: the host does not reach it but by device_copy. */
bool device_is_hidden(const device *dev);

/* Free bytes of hidden memory, of which each rank on a GPU has its share, less what libraries that
 * the device uses may take; 0: none, or the device takes the host's. */
int64_t device_capacity(const device *dev);

void device_close(device *dev); /* NULL is allowed */

/* Weight gradients sum tokens in chunks of this many, in order: 1,024 on the CPU, 8,192 on GPUs. */
int64_t device_token_chunk(const device *dev);

int device_threads(const device *dev);
const char *device_isa(const device *dev);
/* Writes a line of text about everything that results depend on besides the inputs (instruction
 * set, cache sizes, library versions), for hashing and for people. */
void device_describe(const device *dev, char *out, size_t size);

/* What runs more slowly on the device than it could, why and what to do, for people; "" if nothing
 * does. It may come up when a call runs; then it stays as it is. Belongs to the device. */
const char *device_notice(const device *dev);

/* Checks the operands' shapes and types, makes what the kernel needs (cached for calls of the same
 * shape), sets scratch_bytes and prepared. Addresses may still be missing. Several threads may call
 * it at once. SIFR_USAGE names the kernel and the operand. */
sifr_status device_prepare(device *dev, device_call *call, sifr_error *error) SIFR_MUST_CHECK;

/* For a device that only plans: from here on device_prepare finds the sizes alone and makes nothing
 * (a search prepares calls of hundreds of shapes), and device_run refuses. */
void device_only_plan(device *dev);

/* Gives a prepared call with all addresses set to DEVICE_COMPUTE; call->step is in device memory,
 * too. One call at a time on a device. SIFR_FAILED only if a library reports an error. */
sifr_status device_run(device *dev, const device_call *call, sifr_error *error) SIFR_MUST_CHECK;

/* The first failure of a function of the caller's (DEVICE_OWN_LOSS) since the last call; SIFR_OK:
 * there was none. */
sifr_status device_take_failure(device *dev, sifr_error *error) SIFR_MUST_CHECK;

/* --- queues --- */

/* A device runs the work of a queue in the order in which it was given, and the work of different
 * queues side by side, unless a queue is told to follow another. On the CPU, and wherever a queue
 * has no thread of its own, work is done when the call that gives it returns. A queue is given work
 * by one thread at a time; different queues by any threads. Errors of work that was only given are
 * reported by the next device_finish. */
typedef enum device_queue {
    DEVICE_COMPUTE,
    DEVICE_EXCHANGE, /* with other ranks: gathers and reductions */
    DEVICE_SEND,     /* with one other rank, beside a collective that waits for its ranks */
    DEVICE_IN,       /* copies from host memory */
    DEVICE_OUT,      /* copies to host memory */
    DEVICE_QUEUES
} device_queue;

/* All that a queue was given before the mark was made. A mark stays good while the device is open;
 * a zeroed one is always reached. */
typedef struct device_mark {
    device_queue queue;
    int64_t number;
} device_mark;

sifr_status device_mark_here(device *dev, device_queue queue, device_mark *out,
                             sifr_error *error) SIFR_MUST_CHECK;

/* What `queue` is given from now on starts after the mark is reached. The host does not wait where
 * the queue runs by itself. */
sifr_status device_queue_wait(device *dev, device_queue queue, device_mark mark,
                              sifr_error *error) SIFR_MUST_CHECK;

/* The host waits until the mark is reached. */
sifr_status device_finish(device *dev, device_mark mark, sifr_error *error) SIFR_MUST_CHECK;

/* Whether the mark is reached: device_finish without the waiting, where the device can tell. */
sifr_status device_reached(device *dev, device_mark mark, bool *reached,
                           sifr_error *error) SIFR_MUST_CHECK;

/* The host waits until all that the queue was given so far has ended. */
sifr_status device_finish_queue(device *dev, device_queue queue, sifr_error *error) SIFR_MUST_CHECK;

/* Begins to copy between the device's memory and host memory of device_take_host, or within the
 * device's memory. */
sifr_status device_start_copy(device *dev, device_queue queue, void *to, const void *from,
                              int64_t bytes, sifr_error *error) SIFR_MUST_CHECK;

/* For libraries that give work to a queue by themselves, such as NCCL: makes the device the calling
 * thread's. *stream: the queue, as the device's driver calls it. SIFR_FAILED if it has no such. */
sifr_status device_enter(device *dev, device_queue queue, void **stream,
                         sifr_error *error) SIFR_MUST_CHECK;

/* When the last work before a mark began and ended, by base_seconds; 0 and 0 if the device does not
 * know, or no more. The mark must have been reached. */
void device_times(device *dev, device_mark mark, double *begun, double *ended);

/* --- sums of a step's numbers, all in device memory but for what says otherwise --- */

/* *sum = the losses of `rows` rows, added in double one after the other, on DEVICE_COMPUTE. */
sifr_status device_fold_losses(device *dev, const float *losses, int64_t rows, double *sum,
                               sifr_error *error) SIFR_MUST_CHECK;

/* What a step came to. */
typedef struct device_outcome {
    double loss_sum;      /* of all ranks' micro batches, in the order of the global batch */
    double gradient_norm; /* L2, unscaled, before clipping */
    int64_t updated;      /* losses and gradients are finite, and there were labels */
} device_outcome;

/* What a rank brings to the decision, its part: a base_exact_sum of the squares of the gradients
 * that it owns, as DEVICE_EXACT_SQUARES leaves it, then its losses by micro batch, as doubles. */
static inline int64_t device_part_bytes(int32_t micro_batches) {
    return (int64_t)sizeof(base_exact_sum) + micro_batches * (int64_t)sizeof(double);
}

typedef struct device_decision {
    const void *parts; /* rank r's at r x device_part_bytes(micro_batches) */
    int32_t ranks, micro_batches;
    int32_t owners;    /* that own each gradient once; the others, by as many, hold copies */
    bool across_first; /* the global batch goes through a copy's ranks, then its micro batches */
    int64_t labelled;
    double loss_scale, clipping; /* clipping 0: none */
    device_step *step;           /* update_scale and update are written */
    device_outcome *outcome;
} device_decision;

/* Squares are added exactly and rounded once, losses in the order of the global batch: so all ranks
 * decide alike, and the norm does not depend on which rank owns what. On DEVICE_COMPUTE. */
sifr_status device_decide(device *dev, const device_decision *decision,
                          sifr_error *error) SIFR_MUST_CHECK;

/* `out` = the sum of `count` slices of `elements` each, in the order of device_tree_sum
 * (device/tree_sum.h), for an exchange between ranks. */
typedef struct device_sum {
    base_dtype type, sum;      /* of the slices: FP32, BF16 or FP16; of `out`: FP32, or `type` */
    const void *const *slices; /* the array in host memory, read before the call returns */
    int32_t count;             /* at most DEVICE_MOST_SLICES */
    int64_t elements;
    void *out; /* may be one of the slices */
} device_sum;
#define DEVICE_MOST_SLICES 64
sifr_status device_start_sum(device *dev, device_queue queue, const device_sum *sum,
                             sifr_error *error) SIFR_MUST_CHECK;

/* The device's limits per second, all threads together: multiply-add loops in registers (a
 * multiply-add counts as two operations) and a triad over memory. sifr reports the share of them
 * that real work reaches. */
typedef struct device_limits {
    double fp32_operations, bf16_operations, bytes;
} device_limits;

/* For host work around steps: calls run(argument, tile, thread) for each tile in [0, tiles), on the
 * device's host threads, and returns when all are done. A result may only depend on the tile. */
void device_parallel(device *dev, int64_t tiles,
                     void (*run)(void *argument, int64_t tile, int thread), void *argument);

/* Takes some 50 ms. The triad runs over `bytes` at `memory` (device memory; overwritten), or in a
 * block of its own if `memory` is NULL. DEVICE_MEASURE_BYTES exceeds all caches; with fewer bytes,
 * `out->bytes` may be the speed of a cache. */
#define DEVICE_MEASURE_BYTES ((int64_t)96 << 20)
sifr_status device_measure(device *dev, void *memory, int64_t bytes, device_limits *out,
                           sifr_error *error) SIFR_MUST_CHECK;

/* Takes a block of device memory: zeroed, in huge pages if the system has them, and touched by the
 * device's threads before the call returns. */
sifr_status device_take(device *dev, int64_t bytes, void **out, sifr_error *error) SIFR_MUST_CHECK;
/* Like device_take, in memory that other processes can map through *file. The caller closes *file.
 * The file has no name, so nothing is left when its last user ends. */
sifr_status device_take_shared(device *dev, int64_t bytes, void **out, int *file,
                               sifr_error *error) SIFR_MUST_CHECK;
void device_give(device *dev, void *block, int64_t bytes);

/* What another process of this host needs to reach a block of hidden memory. */
typedef struct device_share {
    unsigned char bytes[64];
} device_share;

/* For hidden memory: names a block of device_take for other processes of this host, which open it
 * on a device of the same kind. What they open can be read by copies and sums, and must be closed
 * before its owner gives it back. */
sifr_status device_share_block(device *dev, void *block, device_share *out,
                               sifr_error *error) SIFR_MUST_CHECK;
sifr_status device_open_shared(device *dev, const device_share *share, int64_t bytes, void **out,
                               sifr_error *error) SIFR_MUST_CHECK;
void device_close_shared(device *dev, void *block, int64_t bytes);

/* Takes host memory for copies, zeroed and touched; device_give frees it. */
sifr_status device_take_host(device *dev, int64_t bytes, void **out,
                             sifr_error *error) SIFR_MUST_CHECK;

/* Copies between device and host memory after all that DEVICE_COMPUTE was given, and returns when
 * done; from any thread. If both are one memory, copies between any two places. */
sifr_status device_copy(device *dev, void *to, const void *from, int64_t bytes,
                        sifr_error *error) SIFR_MUST_CHECK;

/* For a separate device: bytes taken and not freed, and bytes copied since it was opened; otherwise
 * zero. */
typedef struct device_counts {
    int64_t device_bytes, host_bytes;
    int64_t unpinned_bytes; /* of host_bytes: copied through a buffer of the driver's, slower */
    int64_t to_device, to_host;
} device_counts;
device_counts device_count(const device *dev);

/* What of a GPU did the work since it was opened, for reports. On the CPU all is zero. To be called
 * by the thread that gives DEVICE_COMPUTE its work, or with none under way. */
typedef struct device_ran {
    char products[256]; /* who computes those of 16-bit matrices: "cuBLASLt 13.0.2", "own: WHY" */
    int64_t library_products, own_products; /* computed by the library, by sifr's own kernels */
    char own_why[256];   /* with a library: why own kernels computed the last of theirs; else "" */
    int64_t word_waits;  /* transfers for which DEVICE_COMPUTE waited (flag.h) */
    int64_t host_waits;  /* those for which the host waited in its place */
    char waits_why[256]; /* why it did, the last time; "": it never did */
    int64_t unpinned_bytes; /* of host memory taken, the most at a time */
} device_ran;
void device_ran_of(const device *dev, device_ran *out);

#endif
