/* What the ranks of a run compute on, settled by all of them together: GPUs only where every rank
 * has one that the run can use.
 */
#ifndef ENGINE_DEVICE_CHOICE_H
#define ENGINE_DEVICE_CHOICE_H

#include "comm/comm.h"
#include "device/device.h"

typedef struct engine_device_choice {
    sifr_device kind; /* not SIFR_DEVICE_AUTO */
    device_place place;
    int32_t most_sharers; /* ranks on the GPU that has most of them */
    /* Why "auto" is the CPU; "" where it is not, or where this rank has neither a GPU nor kernels
     * for one. */
    char why[sizeof((sifr_error *)0)->message];
    bool idle; /* and a GPU that is there is not used */
} engine_device_choice;

/* All ranks call it with the same settings, and get the same result but for `place`. With
 * SIFR_DEVICE_CUDA: SIFR_FAILED names the lowest rank without a GPU that it can use, and what keeps
 * it; SIFR_USAGE where GPUs differ in compute capability. */
sifr_status engine_choose_device(const sifr_settings *settings, comm_group *group,
                                 engine_device_choice *out, sifr_error *error) SIFR_MUST_CHECK;

/* The choice of a single process, on the first GPU that it sees. */
sifr_status engine_choose_device_alone(sifr_device wish, engine_device_choice *out,
                                       sifr_error *error) SIFR_MUST_CHECK;

/* Logs why "auto" is the CPU, where that has a reason. */
void engine_say_choice(const engine_device_choice *choice, const sifr_log *log);
/* Logs what copies cost because this much host memory is not pinned; nothing for 0. */
void engine_say_unpinned(int64_t bytes, const sifr_log *log);

/* Chooses and opens. All ranks call it; where one cannot open its device, all fail alike. */
sifr_status engine_open_device(const sifr_settings *settings, comm_group *group, device **out,
                               sifr_error *error) SIFR_MUST_CHECK;

/* What a rank tells the others of its GPU. */
typedef struct engine_gpu {
    char uuid[48];
    char name[64];
    int32_t major, minor; /* compute capability */
} engine_gpu;

/* The number of ranks on the GPU of rank `rank`. */
int32_t engine_count_sharers(const engine_gpu *gpus, int32_t ranks, int32_t rank);
/* SIFR_USAGE names the first rank whose GPU has another compute capability than rank 0's: kernels
 * for it have bits of their own. */
sifr_status engine_compare_gpus(const engine_gpu *gpus, int32_t ranks,
                                sifr_error *error) SIFR_MUST_CHECK;

#endif
