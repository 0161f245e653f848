/* A host's cores, divided among its ranks before a run. */
#ifndef TRAIN_SHARE_CORES_H
#define TRAIN_SHARE_CORES_H

#include "comm/comm.h"
#include "train/report/callbacks.h"

/* Says which cores the ranks use, and fills host->threads, ranks_per_node and ranks_per_switch. All
 * ranks of the group call it, before they take memory: it moves this process to the NUMA node of
 * its share. */
sifr_status train_share_cores(comm_group *group, train_host *host,
                              sifr_error *error) SIFR_MUST_CHECK;

#endif
