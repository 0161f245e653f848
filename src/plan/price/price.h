/* What instructions, and a whole step, should take on some hardware, which need not be at hand. */
#ifndef PLAN_PRICE_H
#define PLAN_PRICE_H

#include "base/file.h"
#include "plan/queries.h"
#include "plan/schedule.h"

/* How ranks reach each other: a call takes latency + bytes delivered to a rank / bandwidth. */
typedef struct plan_link {
    double latency_seconds, bytes_per_second;
} plan_link;

/* A description of a rank's share of a machine, and of what joins the ranks. */
typedef struct plan_machine {
    double fp32_operations, bf16_operations; /* multiply-add loop, operations a second */
    double memory_bytes;                     /* stream bandwidth, bytes a second */
    double disk_bytes;                       /* read or written, a second; 0: assumed */
    double copy_bytes; /* between the device's memory and the host's, a second; 0: assumed */
    double instruction_seconds; /* spent on any instruction */
    plan_link host, network; /* of ranks on one host, and on several; a bandwidth of 0: assumed */
    int32_t ranks_per_host;  /* 0: all are on one */
    bool separate;           /* devices have memory of their own (device_open_separate) */
    int64_t room_bytes;      /* memory that a rank can have; 0: what there is here */
    int64_t host_room_bytes; /* with `separate`: of the host's, beside that; 0: not known */
} plan_machine;

/* What a step should take. The queues run beside each other, but for the waits of the schedule. */
typedef struct plan_prediction {
    double step_seconds;
    double computing, communication, disk, copy; /* what each queue is busy */
    double waiting;                              /* of the computing queue for the others */
} plan_prediction;

/* Floating-point operations of products, and bytes that a call must read or write at least once, as
 * the rows of ops have it (model_call_cost); and what the update and sums write in place. */
void plan_cost(const plan_schedule *schedule, const device_call *call, double *operations,
               double *bytes);

/* Predicted seconds of instruction `index` on its own queue: of a kernel the longer of computing
 * and moving, of a transfer latency and bytes; a wait takes none of its own. */
double plan_price(const plan_schedule *schedule, size_t index, const plan_machine *machine);

/* Bytes a second that the disk moves: measured, or assumed where *machine says nothing. */
double plan_disk_speed(const plan_machine *machine);
double plan_copy_speed(const plan_machine *machine); /* the same of copies */

/* The link that a schedule's transfers take, with what is assumed where `machine` says nothing. */
plan_link plan_link_of(const plan_machine *machine, int32_t world_size);

/* Predicted seconds of a step: all queues in order, each wait until its transfer is over.
 * `seconds` (may be NULL) takes, by instruction, those that it holds the computing queue. */
sifr_status plan_predict(const plan_schedule *schedule, const plan_machine *machine,
                         plan_prediction *out, float *seconds, sifr_error *error) SIFR_MUST_CHECK;

/* Operations of all products of a step. */
double plan_operations(const plan_schedule *schedule);

/* Before anything is measured or read; and whether all that plan_machine_measure finds is there. */
plan_machine plan_machine_unknown(void);
bool plan_machine_is_known(const plan_machine *machine);

/* Measures what `dev` can do (device_measure) and fills in all but the links. */
sifr_status plan_machine_measure(device *dev, void *memory, int64_t bytes, plan_machine *machine,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* Reads a description over what *machine holds: keys that are not there change nothing. SIFR_USAGE
 * names the key that is wrong. */
sifr_status plan_machine_load(const char *path, plan_machine *machine,
                              sifr_error *error) SIFR_MUST_CHECK;

/* Where `sifr bench comm` keeps what it measured here: sifr/comm.json in the user's cache folder
 * ($XDG_CACHE_HOME, or $HOME/.cache). SIFR_FAILED where the user has none. */
sifr_status plan_machine_path(char out[BASE_PATH_LENGTH], sifr_error *error) SIFR_MUST_CHECK;

/* Reads that file over *machine, where it is there. */
sifr_status plan_machine_load_stored(plan_machine *machine, sifr_error *error) SIFR_MUST_CHECK;

#endif
