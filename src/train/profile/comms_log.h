/* What comms_logger asks for: the collectives of steps by operation and message size, with
 * DeepSpeed's figures. Nothing waits for it, and nothing is allocated while steps run.
 *
 * A call's latency is the time that its queue spent on it, waiting for other ranks included. Ranks
 * make the same calls in the same order, so their latencies are compared call by call, some
 * thousand at a time and between steps: who enters a collective last waits least. */
#ifndef TRAIN_COMMS_LOG_H
#define TRAIN_COMMS_LOG_H

#include "config/config.h"
#include "plan/schedule.h"
#include "train/callbacks.h"
#include "train/profile/spread.h"

typedef struct train_comms_log train_comms_log;

/* Seconds of the calls of one operation and size. */
typedef struct train_comms_row {
    comm_operation operation;
    int64_t bytes; /* of one rank's part; -1: sizes that have no row of their own */
    int64_t calls;
    int64_t moved;      /* bytes of one rank's parts, in all calls */
    uint64_t delivered; /* to this rank, as the ledger counts */
    double latency;     /* of this rank's calls */
    double least,
        straggler; /* over the ranks, call by call: the least latency; the largest less it */
    int64_t compared,
        last; /* calls that the last line is of; that this rank was the last to enter */
} train_comms_row;

/* What bandwidth DeepSpeed calls algorithm's and bus's, in Gbit/s. */
void train_comms_bandwidth(comm_operation operation, int64_t bytes, int32_t ranks, double seconds,
                           double *algorithm, double *bus);

/* Not a collective. The group is borrowed; lines go to the host. */
sifr_status train_comms_log_open(const plan_schedule *schedule, comm_group *group,
                                 const config_comms_logger *settings, const train_host *host,
                                 train_comms_log **out, sifr_error *error) SIFR_MUST_CHECK;
void train_comms_log_close(train_comms_log *log); /* NULL is harmless */

/* For the group's watcher, during steps. NULL is harmless. */
void train_comms_log_hear(train_comms_log *log, const comm_event *event);

/* Between steps; all ranks call it after the same ones. NULL is harmless. */
sifr_status train_comms_log_step(train_comms_log *log, sifr_error *error) SIFR_MUST_CHECK;

/* The tables, at the end. All ranks call it. NULL is harmless. */
sifr_status train_comms_log_say(train_comms_log *log, sifr_error *error) SIFR_MUST_CHECK;

const train_comms_row *train_comms_log_rows(const train_comms_log *log, size_t *count);
int64_t train_comms_log_bytes(const train_comms_log *log); /* taken; 0 of NULL */

#endif
