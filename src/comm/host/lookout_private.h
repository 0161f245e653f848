/* The lookout, for its own files. */
#ifndef COMM_LOOKOUT_PRIVATE_H
#define COMM_LOOKOUT_PRIVATE_H

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "comm/host/lookout.h"

typedef enum comm_note_kind {
    COMM_HELLO,
    COMM_WELCOME, /* the answer */
    COMM_STAYS,   /* and this is the connection that is used, of those that were tried */
    COMM_LOST,
    COMM_GOODBYE
} comm_note_kind;

/* All that is ever sent. */
typedef struct comm_note {
    int32_t kind;    /* a comm_note_kind */
    comm_lost about; /* the sender, or the rank that it has lost */
    unsigned char secret[COMM_SECRET];
} comm_note;

/* A connection. */
typedef struct comm_tie {
    int file;         /* -1: over */
    bool welcome;     /* its rank is known */
    bool known, left; /* it stays; it has said good-bye */
    comm_lost peer;
    size_t got; /* bytes of `note` */
    comm_note note;
} comm_tie;

struct comm_lookout {
    pthread_t thread;
    int wake, listener; /* descriptors; listener -1: none */
    atomic_bool stop, sealed;
    comm_loss own, *shared; /* shared: NULL without */
    comm_lost self;
    comm_meeting meeting;
    pthread_mutex_t lock; /* of the ties and losses, where the thread does not sleep */
    int32_t capacity;     /* of ties */
    comm_tie *ties;
    struct pollfd *polled; /* wake, listener, ties */
};

/* A lookout without connections, and without its thread. */
sifr_status comm_lookout_make(int32_t rank, int32_t capacity, comm_lookout **out,
                              sifr_error *error) SIFR_MUST_CHECK;
/* Room for a connection: one that has not said who it is makes room for the next. NULL: none. */
comm_tie *comm_lookout_free_tie(comm_lookout *lookout);
void comm_lookout_wake(comm_lookout *lookout);
sifr_status comm_lookout_start(comm_lookout *lookout, sifr_error *error) SIFR_MUST_CHECK;
void comm_lookout_free(comm_lookout *lookout);

/* False: it could not be sent at once. */
bool comm_note_send(int file, comm_note_kind kind, const comm_lost *about,
                    const unsigned char secret[COMM_SECRET]);
bool comm_secret_is(const unsigned char *a, const unsigned char *b);

/* Has the kernel probe the other side. */
void comm_tie_probe(int file);

#endif
