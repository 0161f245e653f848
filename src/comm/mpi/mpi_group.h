/* Groups from their split to their end, their queues of collectives, of sends and receives, and the
 * windows of the group of all ranks. */
#ifndef COMM_MPI_GROUP_H
#define COMM_MPI_GROUP_H

#include "comm/mpi/mpi_members.h"

/* --- mpi_split.c --- */

sifr_status comm_mpi_split(comm_group *parent, const comm_part *part, comm_group **out,
                           sifr_error *error) SIFR_MUST_CHECK;

/* Fills in a group of this process whose ranks and slots are known. */
sifr_status comm_mpi_take_group(mpi_group *g, mpi_process *p, comm_lane lane,
                                sifr_error *error) SIFR_MUST_CHECK;
void comm_mpi_free_group(mpi_group *g);
uint32_t comm_mpi_slots_of(const mpi_group *g); /* a mask */

/* --- mpi_queue.c: the queue of collectives, for callers --- */

/* Queues a collective; *out is its handle. comm_mpi_wait waits for it and counts it. */
sifr_status comm_mpi_start(comm_group *group, const comm_task *task, comm_handle *out,
                           sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_wait(comm_group *group, int32_t id, sifr_error *error) SIFR_MUST_CHECK;

/* As comm_follow and comm_catch_up. */
sifr_status comm_mpi_follow(comm_group *group, int32_t id, sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_catch_up(comm_group *group, sifr_error *error) SIFR_MUST_CHECK;

/* As comm_flags_take and comm_flags_give, for the group of all ranks. */
sifr_status comm_mpi_take_words(comm_group *group, sifr_error *error) SIFR_MUST_CHECK;
void comm_mpi_give_words(mpi_group *g);

/* comm_all_gather_control without counting in the ledger. */
sifr_status comm_mpi_tell(mpi_group *g, const void *mine, int64_t bytes, void *all,
                          sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_run.c --- */

/* Runs a task; on the worker's thread only. */
sifr_status comm_mpi_run(void *user, comm_task *task, sifr_error *error);

/* --- mpi_peer.c: sends and receives --- */

sifr_status comm_mpi_send(comm_group *group, int32_t to, const void *data, int64_t bytes,
                          comm_handle *out, sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_receive(comm_group *group, int32_t from, void *data, int64_t bytes,
                             comm_handle *out, sifr_error *error) SIFR_MUST_CHECK;

enum { COMM_PEER_HANDLE = 1 << 16 }; /* in a handle's number: it is of a send or receive */

/* What the lane of sends does. */
sifr_status comm_mpi_turn(void *user, comm_task *task, bool *over, sifr_error *error);
void comm_mpi_rest(void *user);

/* --- mpi_window.c --- */

sifr_status comm_mpi_open_window(comm_group *group, void *block, int64_t bytes, int file,
                                 sifr_error *error) SIFR_MUST_CHECK;
void comm_mpi_close_window(comm_group *group, void *block);
bool comm_mpi_is_apart(const comm_group *group);

#endif
