/* Shared state of the ranks of one host: a seat for each rank, in memory that all of them have
 * mapped. A rank writes only its own seat; the others can read it even when that rank hangs or has
 * died.
 *
 * A seat counts its rank's progress through the group's collectives, which all ranks start in the
 * same order and number from 1. Waiting for a count is a short spin and then a futex, so ranks may
 * share a core.
 */
#ifndef COMM_SEATS_H
#define COMM_SEATS_H

#include <stdatomic.h>

#include "comm/host/board.h"
#include "comm/worker.h"

enum { COMM_INLINE = 512 }; /* bytes that travel in the seat itself */

enum {
    COMM_NOWHERE = -1, /* not in a window: must go through MPI */
    COMM_IN_SEAT = -2  /* in the post's own bytes */
};

/* Where other ranks find a rank's operands of a collective: its source and its destination. */
typedef struct comm_post {
    int32_t window, to_window;
    int64_t offset, to_offset; /* in bytes, from the window's start */
    _Alignas(16) unsigned char bytes[COMM_INLINE];
} comm_post;

typedef enum comm_leaving { COMM_STAYS, COMM_LEFT_WELL, COMM_LEFT_FAILED } comm_leaving;

typedef struct comm_seat {
    _Alignas(64) _Atomic uint32_t posted; /* number of collectives whose operands are posted */
    _Atomic uint32_t arrived;             /* whose bytes from other hosts have arrived */
    _Atomic uint32_t done;                /* in which it has finished reading the others' memory */
    _Atomic uint32_t sleepers;            /* ranks that wait for one of these counts */
    _Atomic uint32_t leaving;             /* a comm_leaving */
    _Atomic double runs;                  /* base_seconds of its last sign of life while waiting */
    comm_entry entry;
    comm_post posts[COMM_LINE]; /* entry of collective n: n modulo COMM_LINE */
} comm_seat;

/* Identifies an open file of a process of this host, so that another process can open the same
 * file. */
typedef struct comm_file {
    int64_t process;
    uint64_t device, inode;
    int32_t file; /* its descriptor there; -1: none */
} comm_file;

typedef struct comm_host {
    int32_t size, mine; /* seats, and this rank's */
    comm_seat *seats;   /* NULL: none are shared */
    int64_t bytes;
    int file; /* a lock on byte i means that the process of seat i is alive */
} comm_host;

/* The first rank of a host makes the seats; the others join through its file. */
sifr_status comm_host_create(comm_host *host, int32_t size, sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_host_join(comm_host *host, int32_t size, int32_t mine, const comm_file *file,
                           sifr_error *error) SIFR_MUST_CHECK;
void comm_host_close(comm_host *host); /* harmless on a zeroed one */

static inline comm_seat *comm_host_own(const comm_host *host) {
    return &host->seats[host->mine];
}

/* Sets a count of this rank's own seat to `number` and wakes the ranks that wait for it. */
void comm_host_advance(comm_host *host, _Atomic uint32_t *count, uint32_t number);

/* Waits at most `seconds` until `count` of `seat` has reached `number`; returns whether it has. */
bool comm_host_await(comm_seat *seat, _Atomic uint32_t *count, uint32_t number, double seconds);

/* Whether the process of that seat has ended, in any way. */
bool comm_host_is_dead(const comm_host *host, int32_t seat);

/* Describes this process's open file for other processes; none if the system does not tell. */
comm_file comm_host_name_file(int file);

/* Opens another process's file with `mode` O_RDONLY or O_RDWR. SIFR_FAILED if that is forbidden, or
 * if another file is found there. */
sifr_status comm_host_open_file(const comm_file *file, int mode, int *out,
                                sifr_error *error) SIFR_MUST_CHECK;

#endif
