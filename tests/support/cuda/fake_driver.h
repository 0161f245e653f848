/* A driver without a GPU: the functions of cuda_driver over threads of the host, for tests.
 *
 * What it keeps of a real driver:
 * - A stream is a thread. Only events, waits for values and synchronising order its work with that
 *   of others, so ThreadSanitizer reports a wait that is missing even if the result was right.
 * - Memory of the device has two mappings. The address that is handed out has no rights: a host
 *   that reads it faults at the line. Kernels and copies work on the other mapping. Guard pages lie
 *   before and behind each block, new memory is full of NaNs, and after cuMemFree nobody has it.
 * - A call needs a current context, a copy needs both ends inside memory that is known, a launch
 *   the arguments and the size of block that its kernel has.
 * - Other processes open blocks and events through their handles; this process cannot. That a block
 *   is freed before they close it, which a driver does not define, is counted.
 *
 * What differs: copies from and to host memory that is not pinned are counted, and finished on
 * return. A captured graph runs in the order in which its work was given. An event that is recorded
 * again before it was reached counts as reached when any of its records is. An image is a text: the
 * names of its functions with a space between, or "fake", which has all.
 *
 * The driver's functions have no argument to find a state by, so there is one fake a process. */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

#include "device/cuda/cuda_driver.h"

typedef struct fake_kernel fake_kernel;

typedef struct fake_launch {
    const fake_kernel *kernel;
    uint32_t grid[3], block[3], shared_bytes;
} fake_launch;

struct fake_kernel {
    const char *name; /* for cuModuleGetFunction */
    size_t argument_bytes;
    uint32_t threads; /* the most of a block; 0: 1,024 */
    /* `arguments`: a copy of the struct. Addresses of device memory in it, on 8 bytes, have been
     * replaced by those that can be reached. */
    void (*run)(const fake_launch *launch, const void *arguments);
    const void *user;
};

typedef struct fake_driver_options {
    int devices;     /* 0: 1 */
    uint64_t memory; /* bytes of each device; 0: 1 GiB */
    const fake_kernel *kernels;
    size_t kernel_count;
    uint32_t pause_us; /* streams rest up to so long before each piece of work, by `seed` */
    uint64_t seed;
} fake_driver_options;

/* Fills `out`, which cuda_driver_start then takes. */
void fake_driver_open(const fake_driver_options *options, cuda_driver *out);

/* Waits for the streams, and frees all. To be called once per fake_driver_open. */
void fake_driver_close(void);

/* What was given out and has not come back, and what was done. */
typedef struct fake_driver_counts {
    int64_t blocks, host_blocks, imports, streams, events, modules, contexts;
    int64_t bytes;       /* of blocks, all devices */
    int64_t early_frees; /* of blocks that another process had open */
    int64_t launches, copies, pageable_copies;
    int64_t deepest;         /* the most work that a stream had and had not done */
    int64_t lookups, missed; /* of functions; those that a module does not have */
    int64_t waits;           /* of the host: for streams, and queries that found an event reached */
} fake_driver_counts;
fake_driver_counts fake_driver_count(void);
int64_t fake_driver_waits(void); /* of the calling thread alone */

/* From now on each device has so much memory, taken blocks included. */
void fake_driver_limit(uint64_t bytes);

/* The launch after `launches` more ones does not run, and from then on every call gives `result`,
 * as after an access to an illegal address. Work already enqueued does not run; events are reached.
 */
void fake_driver_fail_launch(int64_t launches, cuda_result result);

/* Where the host can reach `bytes` of device memory; NULL if they are not in one block. For checks
 * in tests, after synchronising. */
void *fake_driver_reach(cuda_address address, size_t bytes);

#endif
