/* The ways by which a group's collectives move: messages, windows of the host, both, NCCL between
 * GPUs of several hosts, host memory. On the lane's thread, but for opening and closing. */
#ifndef COMM_MPI_WAYS_H
#define COMM_MPI_WAYS_H

#include "comm/mpi/mpi_members.h"
#include "comm/reduce.h"

/* --- mpi_messages.c --- */

/* Starts sending to one rank and receiving from another; `two` are the requests. */
sifr_status comm_mpi_exchange(mpi_group *g, const comm_task *task, int kind, const void *send,
                              int32_t to, void *receive, int32_t from, int64_t bytes,
                              mpi_request *two, sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_finish(mpi_group *g, mpi_request *requests, int count,
                            sifr_error *error) SIFR_MUST_CHECK;

/* A message in progress; `from` is the rank whose `bytes` it brings, -1 of a send. */
typedef struct mpi_part {
    mpi_request request;
    int64_t bytes;
    int32_t from;
} mpi_part;

/* Waits for messages of an all-to-all, and checks their sizes. */
sifr_status comm_mpi_finish_parts(mpi_group *g, mpi_part *parts, int count,
                                  sifr_error *error) SIFR_MUST_CHECK;

sifr_status comm_mpi_start_receive(mpi_group *g, const comm_task *task, int kind, void *to,
                                   int32_t from, int64_t bytes, mpi_request *request,
                                   sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_start_send(mpi_group *g, const comm_task *task, int kind, const void *from,
                                int32_t to, int64_t bytes, mpi_request *request,
                                sifr_error *error) SIFR_MUST_CHECK;

/* Counts bytes received from rank `from`. */
void comm_mpi_count(const mpi_group *g, comm_task *task, int32_t from, int64_t bytes);

/* --- mpi_all_to_all.c --- */

/* All parts by messages; of the others, those that neighbours cannot read in place. */
sifr_status comm_mpi_send_all_to_all(mpi_group *g, comm_task *task,
                                     sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_read_all_to_all(mpi_group *g, comm_task *task,
                                     sifr_error *error) SIFR_MUST_CHECK;

/* What rank near[i], which has posted, sends to the others, by rank. */
const comm_run *comm_mpi_runs_of(const mpi_group *g, int32_t i, const comm_task *task);

/* The part that rank near[i], which has posted, sends to this one. */
sifr_status comm_mpi_read_part(mpi_group *g, comm_task *task, int32_t i,
                               sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_move.c: by MPI messages --- */

sifr_status comm_mpi_move(mpi_group *g, comm_task *task, sifr_error *error) SIFR_MUST_CHECK;

/* An all-reduce as a reduction into this rank's own slice and a gather from there, in place. */
sifr_status
comm_mpi_all_reduce(mpi_group *g, comm_task *task,
                    sifr_status (*sum)(mpi_group *g, comm_task *part, sifr_error *error),
                    sifr_status (*join)(mpi_group *g, comm_task *part, sifr_error *error),
                    sifr_error *error) SIFR_MUST_CHECK;

/* A gather among ranks first, first + stride … */
sifr_status comm_mpi_gather(mpi_group *g, comm_task *task, int tag, int32_t first, int32_t stride,
                            sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_many.c: among many ranks --- */

/* Adds in host memory, as the task rounds. */
static inline void comm_mpi_add(const comm_task *task, const device_sum *sum) {
    if (task->once)
        comm_reduce_once(sum);
    else
        comm_reduce(sum);
}

sifr_status comm_mpi_gather_many(mpi_group *g, comm_task *task, int kind,
                                 sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_broadcast_many(mpi_group *g, comm_task *task,
                                    sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_sum_many(mpi_group *g, comm_task *task, sifr_error *error) SIFR_MUST_CHECK;

/* Ranks first, first + stride … reduce: `part` gives what this rank adds to `length` elements from
 * `at` of the slice of rank `target`, in the type of the sum; `weight` ranks' parts are in it. */
typedef struct comm_adders {
    int32_t first, stride, weight;
    void (*part)(mpi_group *g, const comm_task *task, int32_t target, int64_t at, int64_t length,
                 void *out);
} comm_adders;

sifr_status comm_mpi_reduce_many(mpi_group *g, comm_task *task, const comm_adders *adders,
                                 sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_reduce_apart(mpi_group *g, comm_task *task, sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_shared.c: by reading in place --- */

/* An all-reduce of the ranks of one host; all have posted. */
sifr_status comm_mpi_all_reduce_shared(mpi_group *g, comm_task *task,
                                       sifr_error *error) SIFR_MUST_CHECK;

sifr_status comm_mpi_move_shared(mpi_group *g, comm_task *task, sifr_error *error) SIFR_MUST_CHECK;

/* Waits until all ranks of the host have posted. *usable: all operands lie where they can read
 * them; all ranks find the same. */
sifr_status comm_mpi_see_posts(mpi_group *g, const comm_task *task, bool *usable,
                               sifr_error *error) SIFR_MUST_CHECK;
/* This rank has read all that it needs; waits until the others of the host have, too. */
sifr_status comm_mpi_let_go(mpi_group *g, const comm_task *task, sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_link.c: between the GPUs of several hosts --- */

/* All ranks call it. *opened, the same on all; if it is not, `why` says so, or is "" where it was
 * not tried. */
sifr_status comm_mpi_open_link(comm_group *group, bool *opened, char *why, size_t size,
                               sifr_error *error) SIFR_MUST_CHECK;
void comm_mpi_close_link(mpi_group *g); /* harmless without */
sifr_status comm_mpi_move_linked(mpi_group *g, comm_task *task, sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_stage.c: through host memory, from and to a device --- */

/* Takes host memory for the largest operands; `why` is logged once. */
sifr_status comm_mpi_take_stage(comm_group *group, const char *why,
                                sifr_error *error) SIFR_MUST_CHECK;
/* The same for as many sends and receives as there are at a time. */
sifr_status comm_mpi_take_sends(comm_group *group, const char *why,
                                sifr_error *error) SIFR_MUST_CHECK;
void comm_mpi_give_stage(comm_group *group); /* both; harmless without */
comm_exchange comm_mpi_exchange_of(const comm_group *group, const char **why);
sifr_status comm_mpi_move_staged(mpi_group *g, comm_task *task, sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_levels.c: within hosts in place, between them by MPI --- */

sifr_status comm_mpi_gather_levels(mpi_group *g, comm_task *task,
                                   sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_reduce_levels(mpi_group *g, comm_task *task,
                                   sifr_error *error) SIFR_MUST_CHECK;

#endif
