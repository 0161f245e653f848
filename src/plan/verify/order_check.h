/* The list as streams and events, as the executor, or a device with queues, runs it.
 *
 * Instructions of the computing queue run one after the other. A transfer starts when all that was
 * computed before it is done, and is over at the wait that names it. Collectives of the
 * communication queue run one after the other as well (comm/worker.h), so a wait for one is a wait
 * for all that started before it. Reads and writes of a disk or of host memory have no order among
 * themselves (engine/store/async_io.h): each is a stream of its own. */
#ifndef PLAN_ORDER_CHECK_H
#define PLAN_ORDER_CHECK_H

#include "plan/schedule.h"

/* SIFR_FAILED where two accesses to the same bytes of memory, one of them a write, are not ordered
 * by that; of a placed schedule. Where the update is deferred the list is run twice, as the second
 * time that of the first one is in it: nothing of a step may touch what the update of the step
 * before changes, or change what it reads, before that does. */
sifr_status plan_check_order(const plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

#endif
