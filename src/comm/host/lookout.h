/* Watches other hosts: a TCP connection between the first ranks of each two hosts, which tell the
 * others what they find. When a process ends, in any way, its kernel closes the connection; when a
 * host is down or cut off, its kernel no longer answers the probes that the kernel here sends (TCP
 * keepalive). Two hosts may be cut off from each other alone, so each two have a connection. A rank
 * that is only stopped or busy counts as alive, and nothing is done in a step: a thread sleeps
 * until a connection has something to say.
 */
#ifndef COMM_LOOKOUT_H
#define COMM_LOOKOUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/errors.h"

enum {
    COMM_ADDRESSES = 16,
    COMM_SECRET = 16,
    COMM_HOST_NAME = 64,
    COMM_SILENT = 7, /* seconds without an answer after which a host counts as down or cut off */
    COMM_ALL_HOSTS = 128 /* a process may open 1,024 files by default */
};

typedef struct comm_address {
    int32_t family; /* AF_INET or AF_INET6 */
    uint32_t scope;
    unsigned char bytes[16];
} comm_address;

/* Where to connect, and the words by which both sides know each other; MPI carries it. */
typedef struct comm_meeting {
    unsigned char secret[COMM_SECRET], answer[COMM_SECRET];
    int32_t addresses; /* 0: there is no such place */
    uint16_t port;
    comm_address of[COMM_ADDRESSES];
} comm_meeting;

typedef struct comm_lookout comm_lookout;

/* A rank of another host that has ended without a word, or does not answer. */
typedef struct comm_lost {
    int32_t rank, silent; /* `silent`: it does not answer; 0: its process has ended */
    char host[COMM_HOST_NAME];
    char finder[COMM_HOST_NAME]; /* the host that has missed it */
} comm_lost;

/* What a host's first rank has found; in memory that the host shares, its other ranks read it. */
typedef struct comm_loss {
    atomic_bool found; /* `lost` is there, and stays */
    comm_lost lost;
} comm_loss;

/* On the first rank of each host: begins to watch up to `peers` others, whose connections are taken
 * until comm_lookout_seal. */
sifr_status comm_lookout_listen(int32_t rank, int32_t peers, comm_meeting *out, comm_lookout **made,
                                sifr_error *error) SIFR_MUST_CHECK;
void comm_lookout_seal(comm_lookout *lookout);

/* Connects to the first rank of another host, which listens. Takes some seconds where no address
 * can be reached. */
sifr_status comm_lookout_join(comm_lookout *lookout, const comm_meeting *meeting,
                              sifr_error *error) SIFR_MUST_CHECK;

/* Whether hosts `a` and `b` of `hosts` watch each other: each two do, of COMM_ALL_HOSTS at most. Of
 * more, each watches the first one and those at distances of powers of two. */
bool comm_lookout_watches(int32_t a, int32_t b, int32_t hosts);

/* A rank of this host has died: the others hear of it. NULL has nobody to tell. */
void comm_lookout_tell(comm_lookout *lookout, int32_t rank);

/* From now on what is found is written to `loss`, too; zeroed, it outlives the lookout. */
void comm_lookout_share(comm_lookout *lookout, comm_loss *loss);

/* Whether a rank has been lost; NULL has lost none. */
bool comm_lookout_lost(comm_lookout *lookout, comm_lost *out);
bool comm_loss_read(comm_loss *loss, comm_lost *out);

/* Says good-bye, so that the others do not miss this rank. NULL is harmless. */
void comm_lookout_close(comm_lookout *lookout);

int64_t comm_lookout_bytes(const comm_lookout *lookout);

/* This host's name, cut to its room. */
void comm_host_name(char out[COMM_HOST_NAME]);

#endif
