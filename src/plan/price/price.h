/* Predicted times of instructions and of a whole step, on hardware that need not be present. */
#ifndef PLAN_PRICE_H
#define PLAN_PRICE_H

#include "base/file.h"
#include "plan/queries.h"
#include "plan/schedule.h"

/* A link between ranks: a call takes latency + bytes delivered to a rank / bandwidth. */
typedef struct plan_link {
    double latency_seconds, bytes_per_second;
} plan_link;

/* What the ranks of a described machine compute on. PLAN_MACHINE_CUDA is separate, and copies to it
 * and from it run beside each other. */
typedef enum plan_machine_device { PLAN_MACHINE_CPU, PLAN_MACHINE_CUDA } plan_machine_device;

/* A rank's share of a machine, and the links between ranks. */
typedef struct plan_machine {
    plan_machine_device device;
    int32_t compute_capability;              /* of a GPU: 90 for 9.0; 0: not known */
    int32_t multiprocessors;                 /* of a GPU; 0: not known */
    double fp32_operations, bf16_operations; /* multiply-add loop, operations/s */
    double memory_bytes;                     /* stream bandwidth, bytes/s */
    double disk_bytes;                       /* read or written, bytes/s; 0: assumed */
    double copy_bytes; /* between device and host memory, bytes/s in one direction; 0: assumed */
    double instruction_seconds; /* overhead of every instruction */
    plan_link host, network; /* between ranks of one host, and of several; bandwidth 0: assumed */
    int32_t ranks_per_host;  /* 0: all ranks on one host */
    bool separate;           /* devices with separate memory */
    int64_t room_bytes;      /* memory for a rank; 0: that of this machine */
    int64_t host_room_bytes; /* with `separate`: host memory for a rank in addition; 0: not known */
} plan_machine;

/* The predicted times of a step. Queues run in parallel, except for the waits of the schedule. */
typedef struct plan_prediction {
    double step_seconds;
    double computing, communication, disk, copy; /* busy time of each queue */
    double copy_out; /* the part of `copy` from the device to the host: a queue of its own if the
                        machine has one for each direction */
    double waiting;  /* time that the compute queue waits for the others */
    double stages;   /* the part of it that waits for other stages of a pipeline: its bubble */
} plan_prediction;

/* Floating-point operations of products, and the least bytes that a call must read or write, from
 * the rows of ops (model_call_cost). Includes what updates and sums write in place. */
void plan_cost(const plan_schedule *schedule, const device_call *call, double *operations,
               double *bytes);

/* Predicted seconds of instruction `index` on its own queue. A kernel takes the longer of computing
 * and moving, a transfer takes latency and bytes, a wait takes no time of its own. */
double plan_price(const plan_schedule *schedule, size_t index, const plan_machine *machine);

/* Bytes per second of the disk: measured, or assumed if *machine has no figure. */
double plan_disk_speed(const plan_machine *machine);
double plan_copy_speed(const plan_machine *machine); /* likewise, of copies */

/* The link between ranks of one host, or between hosts; an assumed one if *machine has no figure.
 */
plan_link plan_link_of(const plan_machine *machine, bool crosses);

/* Predicts the seconds of a step: all queues in order, with each wait lasting until its transfer
 * has ended. `seconds` (may be NULL) receives, by instruction, the time that it occupies the
 * compute queue. */
sifr_status plan_predict(const plan_schedule *schedule, const plan_machine *machine,
                         plan_prediction *out, float *seconds, sifr_error *error) SIFR_MUST_CHECK;

/* The same for the stages of a pipeline together, by stage, each of the same place in its stage: a
 * transfer between stages begins when both have come to it. */
sifr_status plan_predict_stages(const plan_schedule *const *schedules, size_t count,
                                const plan_machine *machine, plan_prediction *out,
                                sifr_error *error) SIFR_MUST_CHECK;

/* Floating-point operations of all products of a step. */
double plan_operations(const plan_schedule *schedule);

/* A machine without figures; and whether it has all figures that plan_machine_measure finds. */
plan_machine plan_machine_unknown(void);
bool plan_machine_is_known(const plan_machine *machine);

/* Measures `dev` (device_measure) and fills in everything except the links. */
sifr_status plan_machine_measure(device *dev, void *memory, int64_t bytes, plan_machine *machine,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* Fills in the same as plan_machine_measure, with the figures of a usual machine of the device's
 * kind: what is chosen by them is chosen alike by each run and plan, whatever else the machine does
 * meanwhile. */
void plan_machine_typical(device *dev, plan_machine *machine);

/* Reads a description into *machine; absent keys leave their values unchanged. SIFR_USAGE names the
 * wrong key. */
sifr_status plan_machine_load(const char *path, plan_machine *machine,
                              sifr_error *error) SIFR_MUST_CHECK;

/* The file in which `sifr bench comm` stores its figures: sifr/comm.json in the user's cache folder
 * ($XDG_CACHE_HOME, or $HOME/.cache). SIFR_FAILED if the user has none. */
sifr_status plan_machine_path(char out[BASE_PATH_LENGTH], sifr_error *error) SIFR_MUST_CHECK;

/* Reads that file into *machine, if it exists. */
sifr_status plan_machine_load_stored(plan_machine *machine, sifr_error *error) SIFR_MUST_CHECK;

#endif
