/* Shared state of the ranks of one host: a seat for each rank, in memory that all of them have
 * mapped. A rank writes only its own seat, but for a word that answers a send; the others can read
 * it even when that rank hangs or has died.
 *
 * For each of its groups a rank has a slot (and one for its sends in a group with peers), which
 * counts its progress through the group's collectives. All ranks of the group start them in the
 * same order and give them the same numbers, and the group has the same slot on all of them.
 * Waiting for a count is a short spin and then a futex, so ranks may share a core.
 */
#ifndef COMM_SEATS_H
#define COMM_SEATS_H

#include <stdatomic.h>

#include "base/assert.h"
#include "comm/host/board.h"
#include "comm/host/lookout.h"
#include "comm/worker.h"

enum {
    COMM_INLINE = 512,                                    /* bytes that travel in the slot itself */
    COMM_MOST_RUNS = COMM_INLINE / (int)sizeof(comm_run), /* likewise, of an all-to-all */
    COMM_SLOTS = 32 /* groups of a process at a time: a bit each of a mask */
};

/* A send to a rank of this host: written by the sender while it is free, answered by the receiver
 * in `state` alone. */
typedef enum comm_mail_state { COMM_MAIL_FREE, COMM_MAIL_POSTED, COMM_MAIL_TAKEN } comm_mail_state;

enum {
    COMM_NOWHERE = -1, /* not in a window: must go through MPI */
    COMM_IN_SLOT = -2  /* in the post's own bytes */
};

/* Where other ranks find a rank's operands of a collective: its source and its destination. Of an
 * all-to-all `bytes` has the runs that it sends, by rank. */
typedef struct comm_post {
    int32_t window, to_window;
    int64_t offset, to_offset; /* in bytes, from the window's start */
    _Alignas(16) unsigned char bytes[COMM_INLINE];
} comm_post;

typedef struct comm_mail {
    _Atomic uint32_t state; /* a comm_mail_state */
    int32_t to;             /* rank of the group */
    uint32_t number;        /* among the sends to it */
    int32_t window;
    int64_t offset, size;
    _Alignas(16) unsigned char bytes[COMM_INLINE];
} comm_mail;

typedef enum comm_leaving {
    COMM_HERE,
    COMM_LEFT_WELL,
    COMM_LEFT_FAILED,
    COMM_LEFT_BEREFT /* it misses another rank, which is the cause */
} comm_leaving;

typedef struct comm_slot {
    _Alignas(64) _Atomic uint32_t posted; /* newest collective whose operands are posted */
    _Atomic uint32_t arrived;             /* whose bytes from other hosts have arrived */
    _Atomic uint32_t done;                /* in which it has finished reading the others' memory */
    _Atomic uint32_t sleepers;            /* ranks that wait for one of these counts */
    union {
        comm_post posts[COMM_LINE]; /* entry of collective n: n modulo COMM_LINE */
        comm_mail mail[COMM_LINE];  /* in a slot of sends, in any order */
    };
} comm_slot;

typedef struct comm_seat {
    _Alignas(64) _Atomic uint32_t leaving; /* a comm_leaving */
    _Atomic double runs;                   /* base_seconds of its last sign of life while waiting */
    _Atomic uint32_t knocks;               /* times that others woke its lane of sends */
    _Atomic uint32_t listens;              /* that lane sleeps */
    _Atomic uint32_t closed;               /* windows of hidden memory: its views are closed */
    comm_loss loss;                        /* of the first seat: a rank of another host */
    comm_entry entries[COMM_SLOTS];        /* by slot: what it does in that group */
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
    comm_slot *slots;   /* COMM_SLOTS x size; only those in use take memory */
    int64_t bytes;      /* mapped */
    int file;           /* a lock on byte i means that the process of seat i is alive */
} comm_host;

/* The first rank of a host makes the seats; the others join through its file. */
sifr_status comm_host_create(comm_host *host, int32_t size, sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_host_join(comm_host *host, int32_t size, int32_t mine, const comm_file *file,
                           sifr_error *error) SIFR_MUST_CHECK;
void comm_host_close(comm_host *host); /* harmless on a zeroed one */

/* Takes the memory of this rank's own slot. Other ranks may touch it only after that. */
sifr_status comm_host_take_slot(comm_host *host, int32_t slot, sifr_error *error) SIFR_MUST_CHECK;

/* Memory of a seat and of a slot. */
int64_t comm_host_seat_bytes(void);
int64_t comm_host_slot_bytes(void);

static inline comm_seat *comm_host_own(const comm_host *host) {
    return &host->seats[host->mine];
}

static inline comm_slot *comm_host_slot(const comm_host *host, int32_t slot, int32_t seat) {
    base_assert(slot >= 0 && slot < COMM_SLOTS && seat >= 0 && seat < host->size);
    return &host->slots[slot * host->size + seat];
}

/* Sets a count of this rank's slot to `number` and wakes the ranks that wait for it. */
void comm_host_advance(comm_slot *own, _Atomic uint32_t *count, uint32_t number);

/* Waits at most `seconds` until `count` of `slot` has reached `number`; returns whether it has. */
bool comm_host_await(comm_slot *slot, _Atomic uint32_t *count, uint32_t number, double seconds);

/* Wakes a rank's lane of sends: something that it may wait for has come. */
void comm_host_knock(comm_seat *seat);

/* Waits at most `seconds` until the number of knocks is no longer `seen`; returns it. */
uint32_t comm_host_listen(comm_seat *own, uint32_t seen, double seconds);

/* Whether the process of that seat has ended, in any way. */
bool comm_host_is_dead(const comm_host *host, int32_t seat);

/* Describes this process's open file for other processes; none if the system does not tell. */
comm_file comm_host_name_file(int file);

/* Opens another process's file with `mode` O_RDONLY or O_RDWR. SIFR_FAILED if that is forbidden, or
 * if another file is found there. */
sifr_status comm_host_open_file(const comm_file *file, int mode, int *out,
                                sifr_error *error) SIFR_MUST_CHECK;

#endif
