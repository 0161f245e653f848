/* Checks the order of a list that runs as streams and events, in the executor or on a device with
 * queues.
 *
 * Instructions of the compute queue run one after the other. A transfer starts after everything
 * computed before it, and has ended at the wait that names it. Collectives of the communication
 * queue run one after the other as well (comm/worker.h), so a wait for one is a wait for all
 * started before it. Reads and writes of a disk or of host memory have no order among themselves
 * (engine/store/async_io.h): each is a stream of its own. */
#ifndef PLAN_ORDER_CHECK_H
#define PLAN_ORDER_CHECK_H

#include "plan/schedule.h"

/* For a placed schedule. SIFR_FAILED if two accesses to the same bytes of memory, one of them a
 * write, are not ordered by these rules. If the update is deferred, the list is run twice, since
 * the second run contains the update of the first. Before that update, nothing in the step may
 * access what the update writes, or write what the update reads. */
sifr_status plan_check_order(const plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

#endif
