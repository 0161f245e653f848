/* What a backend fills in: the functions of a device, as device.h says them, and the row of its
 * kind, as kinds.h says it. Private to device/. */
#ifndef DEVICE_BACKEND_H
#define DEVICE_BACKEND_H

#include "device/flag.h"
#include "device/host_team.h"
#include "device/kinds.h"

/* Tokens of a chunk in which the CPU's kernels add weight gradients. */
enum { DEVICE_CPU_CHUNK = 1024 };

/* Kinds of memory that a backend hands out. */
typedef enum device_memory {
    DEVICE_MEMORY, /* of the device */
    DEVICE_HOST,   /* of the host, for copies */
    DEVICE_FOREIGN /* of a device of another process; never handed out */
} device_memory;

typedef struct device_backend {
    void (*close)(device *dev); /* all but the team */
    const char *(*isa)(const device *dev);
    void (*describe)(const device *dev, char *out, size_t size);
    int64_t (*token_chunk)(const device *dev); /* NULL: the kernels are the CPU's */
    const char *(*notice)(const device *dev);  /* NULL: never anything */
    sifr_status (*prepare)(device *dev, device_call *call,
                           sifr_error *error); /* operands checked */
    void (*only_plan)(device *dev); /* NULL: what it prepares takes no time worth saving */
    sifr_status (*run)(device *dev, const device_call *call, sifr_error *error);
    sifr_status (*measure)(device *dev, void *memory, int64_t bytes, device_limits *out,
                           sifr_error *error);
    sifr_status (*take)(device *dev, device_memory kind, int64_t bytes, void **out,
                        sifr_error *error);
    sifr_status (*take_shared)(device *dev, int64_t bytes, void **out, int *file,
                               sifr_error *error);
    void (*give)(device *dev, void *block, int64_t bytes);
    sifr_status (*copy)(device *dev, void *to, const void *from, int64_t bytes, sifr_error *error);
    device_counts (*count)(const device *dev);       /* NULL: host memory is device memory */
    void (*ran)(const device *dev, device_ran *out); /* all but waits; NULL: nothing to tell */
    bool hidden; /* the host does not reach the memory; then, for other processes: */
    sifr_status (*share)(device *dev, void *block, device_share *out, sifr_error *error);
    sifr_status (*open_shared)(device *dev, const device_share *share, int64_t bytes, void **out,
                               sifr_error *error);
    void (*close_shared)(device *dev, void *block, int64_t bytes);
    int64_t (*capacity)(const device *dev); /* free bytes; NULL: not its own to tell */

    /* Queues. Without `mark` all work is done when it is given, and no mark is waited for. */
    sifr_status (*start_copy)(device *dev, device_queue queue, void *to, const void *from,
                              int64_t bytes, sifr_error *error);
    sifr_status (*mark)(device *dev, device_queue queue, device_mark *out, sifr_error *error);
    sifr_status (*follow)(device *dev, device_queue queue, device_mark mark, sifr_error *error);
    sifr_status (*finish)(device *dev, device_mark mark, sifr_error *error);
    sifr_status (*wait_flag)(device *dev, const device_flag *flag, uint32_t value,
                             sifr_error *error); /* flag.h; NULL: it cannot */
    void (*times)(device *dev, device_mark mark, double *begun, double *ended);
    sifr_status (*reached)(device *dev, device_mark mark, bool *reached,
                           sifr_error *error); /* NULL: who asks waits for the mark */
    sifr_status (*enter)(device *dev, device_queue queue, void **stream,
                         sifr_error *error); /* NULL: no streams for other libraries */

    sifr_status (*fold_losses)(device *dev, const float *losses, int64_t rows, double *sum,
                               sifr_error *error);
    sifr_status (*decide)(device *dev, const device_decision *decision, sifr_error *error);
    sifr_status (*start_sum)(device *dev, device_queue queue, const device_sum *sum,
                             sifr_error *error);
} device_backend;

/* A kind of device, by which kinds.c opens and describes it; NULL: the kind has no such thing. */
typedef struct device_kind {
    sifr_status (*open)(const device_place *place, int threads, const char *isa, device **out,
                        sifr_error *error);
    device_build (*build)(void);
    sifr_status (*choose)(int32_t rank, device_found *out, sifr_error *error);
    bool (*is_there)(void); /* NULL: always */
    sifr_status (*survey)(device_driver *driver,
                          void (*each)(void *argument, const device_gpu *gpu), void *argument,
                          sifr_error *error); /* with *driver zeroed */
    sifr_status (*open_described)(int threads, const device_description *description, device **out,
                                  sifr_error *error);
    const char *(*library_name)(int number); /* NULL after the last; with open_library */
    sifr_status (*open_library)(int number, int driver, device_library *out, sifr_error *error);
} device_kind;

extern const device_kind device_kind_cpu, device_kind_cuda;

/* Waits for transfers, as device_ran has them. */
typedef struct device_waits {
    int64_t by_word, by_host;
    char refused[256]; /* why the device cannot wait for flags; "": it can, or was not asked */
    char why[256];
} device_waits;

/* The first member of every device; zeroed but for these two. */
struct device {
    const device_backend *backend;
    host_team *team;    /* of host threads, the device's own */
    device_waits waits; /* device.c counts them */
    bool plans_only;    /* device_only_plan: nothing runs */
    sifr_error failure; /* of a function of the caller's; SIFR_OK: none */
};

#endif
