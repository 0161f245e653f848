/* The report of comms_logger: the collectives of steps by operation and message size, with
 * DeepSpeed's figures. It delays no collective and allocates nothing while steps run.
 *
 * A call's latency is the time that its queue spent on it, including the wait for other ranks.
 * The ranks of a stage make the same calls in the same order, so their latencies are compared call
 * by call, some thousand at a time, between steps. The rank that enters a collective last waits
 * least.
 */
#ifndef TRAIN_COMMS_LOG_H
#define TRAIN_COMMS_LOG_H

#include "config/config.h"
#include "plan/schedule.h"
#include "train/profile/spread.h"
#include "train/report/callbacks.h"

typedef struct train_comms_log train_comms_log;

/* The calls of one operation and size; times in seconds. */
typedef struct train_comms_row {
    comm_operation operation;
    plan_span span; /* of the group: PLAN_WORLD for all ranks */
    int64_t bytes;  /* size of one rank's part; -1: all sizes without a row of their own */
    int64_t calls;
    int64_t moved;      /* bytes of one rank's parts, in all calls */
    uint64_t delivered; /* delivered to this rank, as the ledger counts */
    double latency;     /* of this rank's calls */
    double least,
        straggler; /* by call over the ranks: the least latency; the largest minus the least */
    int64_t compared, last; /* calls compared between ranks; those that this rank entered last */
} train_comms_row;

/* DeepSpeed's algorithm bandwidth and bus bandwidth, in Gbit/s. */
void train_comms_bandwidth(comm_operation operation, int64_t bytes, int32_t ranks, double seconds,
                           double *algorithm, double *bus);

/* Not a collective. The group, of the ranks that run this list (NULL: this one alone), is borrowed,
 * and so is the schedule; lines are printed through the host. */
sifr_status train_comms_log_open(const plan_schedule *schedule, comm_group *group,
                                 const config_comms_logger *settings, const train_host *host,
                                 train_comms_log **out, sifr_error *error) SIFR_MUST_CHECK;
void train_comms_log_close(train_comms_log *log); /* NULL is harmless */

/* For the watcher of a group of the mesh, during steps. NULL is harmless. */
void train_comms_log_hear(train_comms_log *log, plan_span span, const comm_event *event);

/* Called between steps, by all ranks after the same steps. NULL is harmless. */
sifr_status train_comms_log_step(train_comms_log *log, sifr_error *error) SIFR_MUST_CHECK;

/* Prints the tables at the end. All ranks call it. NULL is harmless. */
sifr_status train_comms_log_say(train_comms_log *log, sifr_error *error) SIFR_MUST_CHECK;

const train_comms_row *train_comms_log_rows(const train_comms_log *log, size_t *count);
int64_t train_comms_log_bytes(const train_comms_log *log); /* taken; 0 of NULL */

#endif
