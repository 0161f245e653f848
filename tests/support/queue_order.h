/* Runs a schedule as an accelerator would, as queues and events without any work, and finds
 * accesses to the same bytes that nothing orders. A full implementation of vector clocks (Mattern
 * 1989): each queue keeps what it knows of every queue. plan/verify/order_check.c proves the same
 * with less, and the two are compared (tests/plan/test_queue_order.c).
 *
 * The executor's rule: a transfer on queue q starts after all that computing has enqueued (an event
 * of the compute queue that q follows) and after what q has enqueued. A wait has computing follow
 * the event behind its transfer. Nothing else orders anything, not even the end of a step. */
#ifndef SUPPORT_QUEUE_ORDER_H
#define SUPPORT_QUEUE_ORDER_H

#include "plan/schedule.h"

/* Copies to the device and from it have a queue each. */
typedef enum order_queue {
    ORDER_COMPUTE,
    ORDER_EXCHANGE,
    ORDER_NEAR,
    ORDER_DISK,
    ORDER_IN,
    ORDER_OUT,
    ORDER_QUEUES
} order_queue;

order_queue queue_order_of(const plan_instruction *in);

/* The accesses of a schedule, which must outlive it. */
typedef struct queue_order queue_order;
queue_order *queue_order_open(const plan_schedule *schedule);
void queue_order_close(queue_order *order);

/* Mistakes of an executor. */
typedef struct queue_mistake {
    int32_t left_out; /* a wait that it ignores in every step; -1: none */
    bool early;       /* its transfers do not wait for what computing has enqueued before them */
} queue_mistake;

enum { QUEUE_NO_WAIT = -1 };

/* Runs the list `steps` times; the first time without deferred instructions. Returns the number of
 * instructions with an access that is not ordered after an earlier one. The first such pair is in
 * `pair` (if not NULL): the earlier instruction, the later one. */
enum { QUEUE_STEPS = 2 };
int64_t queue_order_run(queue_order *order, int steps, const queue_mistake *mistake,
                        int32_t pair[2]);

/* Whether leaving out the wait leaves two accesses of QUEUE_STEPS steps unordered, from the list
 * alone: something on another queue touches bytes of its transfer before any wait for a transfer
 * that started on that queue at the same time or later. */
bool queue_order_needs(const queue_order *order, int32_t wait);

#endif
