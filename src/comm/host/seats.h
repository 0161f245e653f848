/* What the ranks of one host share: a seat for each of them, in memory that all have mapped. A rank
 * writes only its own seat; the others read it without its help, also when it hangs or has died.
 *
 * A seat counts what its rank has done with the group's collectives, which all ranks start in the
 * same order and number alike, from 1. A count is waited for with a short spin and then a futex, so
 * that ranks may share a core. */
#ifndef COMM_SEATS_H
#define COMM_SEATS_H

#include <stdatomic.h>

#include "comm/host/board.h"
#include "comm/worker.h"

enum { COMM_INLINE = 512 }; /* bytes that travel in the seat itself */

enum {
    COMM_NOWHERE = -1, /* in no window: MPI must carry it */
    COMM_IN_SEAT = -2  /* in the post's own bytes */
};

/* Where the others find a rank's operands of a collective: what is read, what is written. */
typedef struct comm_post {
    int32_t window, to_window;
    int64_t offset, to_offset; /* in bytes, from the window's start */
    _Alignas(16) unsigned char bytes[COMM_INLINE];
} comm_post;

typedef enum comm_leaving { COMM_STAYS, COMM_LEFT_WELL, COMM_LEFT_FAILED } comm_leaving;

typedef struct comm_seat {
    _Alignas(64) _Atomic uint32_t posted; /* collectives whose operands are posted */
    _Atomic uint32_t arrived;             /* whose bytes from other hosts are here */
    _Atomic uint32_t done;                /* in which it reads nothing of the others' any more */
    _Atomic uint32_t sleepers;            /* others that wait for one of these */
    _Atomic uint32_t leaving;             /* a comm_leaving */
    _Atomic double runs; /* base_seconds, when it last looked around while waiting */
    comm_entry entry;
    comm_post posts[COMM_LINE]; /* of collective n: n modulo COMM_LINE */
} comm_seat;

/* A file that a process of this host has open, so that another one finds the very same. */
typedef struct comm_file {
    int64_t process;
    uint64_t device, inode;
    int32_t file; /* its number there; -1: none */
} comm_file;

typedef struct comm_host {
    int32_t size, mine; /* seats, and this rank's */
    comm_seat *seats;   /* NULL: none are shared */
    int64_t bytes;
    int file; /* a lock on its byte i says that the process of seat i lives */
} comm_host;

/* The first rank of a host makes the seats; the others join them, knowing its file. */
sifr_status comm_host_create(comm_host *host, int32_t size, sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_host_join(comm_host *host, int32_t size, int32_t mine, const comm_file *file,
                           sifr_error *error) SIFR_MUST_CHECK;
void comm_host_close(comm_host *host); /* harmless on a zeroed one */

static inline comm_seat *comm_host_own(const comm_host *host) {
    return &host->seats[host->mine];
}

/* A count of this rank's own seat is `number` from now on; whoever waits for it wakes up. */
void comm_host_advance(comm_host *host, _Atomic uint32_t *count, uint32_t number);

/* Waits, at most `seconds`, until `count` of `seat` has reached `number`: has it? */
bool comm_host_await(comm_seat *seat, _Atomic uint32_t *count, uint32_t number, double seconds);

/* Has the process of that seat ended, in whatever way? */
bool comm_host_is_dead(const comm_host *host, int32_t seat);

/* How another process finds this one's open file; none where the system does not say. */
comm_file comm_host_name_file(int file);

/* Opens another process's file anew (`mode` as open's): O_RDONLY, O_RDWR. SIFR_FAILED where that is
 * forbidden, or where what is found there is not that file. */
sifr_status comm_host_open_file(const comm_file *file, int mode, int *out,
                                sifr_error *error) SIFR_MUST_CHECK;

#endif
