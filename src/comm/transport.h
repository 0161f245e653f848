/* The functions of a transport, which is a folder of comm/ and a row of transports.c; private to
 * comm/. */
#ifndef COMM_TRANSPORT_H
#define COMM_TRANSPORT_H

#include "comm/comm.h"

typedef struct comm_transport {
    /* A group of all ranks that this transport reaches. */
    sifr_status (*open)(const comm_options *options, comm_group **out, sifr_error *error);
    bool (*is_there)(void); /* whether it may be opened here; NULL: always */
    sifr_status (*all_gather)(comm_group *group, const void *slice, int64_t bytes, void *whole,
                              comm_handle *out, sifr_error *error);
    sifr_status (*reduce_scatter)(comm_group *group, const void *whole, base_dtype type,
                                  base_dtype sum, int64_t elements, void *slice, comm_handle *out,
                                  sifr_error *error);
    /* Of `elements` of each rank's slice. */
    sifr_status (*all_reduce)(comm_group *group, void *values, base_dtype type, int64_t elements,
                              comm_handle *out, sifr_error *error);
    sifr_status (*all_to_all)(comm_group *group, const void *from, const comm_run *sent, void *to,
                              const comm_run *received, comm_handle *out, sifr_error *error);
    sifr_status (*send)(comm_group *group, int32_t to, const void *data, int64_t bytes,
                        comm_handle *out, sifr_error *error);
    sifr_status (*receive)(comm_group *group, int32_t from, void *data, int64_t bytes,
                           comm_handle *out, sifr_error *error);
    sifr_status (*wait)(comm_group *group, int32_t id, sifr_error *error);
    /* NULL: the host waits. */
    sifr_status (*follow)(comm_group *group, int32_t id, sifr_error *error);
    sifr_status (*catch_up)(comm_group *group, sifr_error *error);
    sifr_status (*sum)(comm_group *group, int64_t *values, int32_t count, sifr_error *error);
    sifr_status (*all_gather_control)(comm_group *group, const void *mine, int64_t bytes, void *all,
                                      sifr_error *error);
    sifr_status (*start_control)(comm_group *group, const void *mine, int64_t bytes, void *all,
                                 comm_handle *out, sifr_error *error); /* NULL: the host waits */
    sifr_status (*broadcast)(comm_group *group, int32_t root, void *data, int64_t bytes,
                             sifr_error *error);
    /* NULL if the transport never shares memory. */
    sifr_status (*open_window)(comm_group *group, void *block, int64_t bytes, int file,
                               sifr_error *error);
    void (*close_window)(comm_group *group, void *block);
    /* Whether ranks of this host could not map each other's windows of hidden memory; NULL: never.
     */
    bool (*is_apart)(const comm_group *group);
    /* Carries operands of GPUs of several hosts from device to device. *opened, the same on all
     * ranks; else `why` says why not, or is "". give_stage closes it. NULL: the transport cannot.
     */
    sifr_status (*open_link)(comm_group *group, bool *opened, char *why, size_t size,
                             sifr_error *error);
    /* Takes flags that the device waits for in comm_follow; give_stage gives them back. NULL: the
     * transport has none. */
    sifr_status (*take_words)(comm_group *group, sifr_error *error);
    /* Host memory through which operands of a device go; NULL if the transport has none. */
    sifr_status (*take_stage)(comm_group *group, const char *why, sifr_error *error);
    /* The same for sends and receives between ranks that share no memory. */
    sifr_status (*take_sends)(comm_group *group, const char *why, sifr_error *error);
    void (*give_stage)(comm_group *group); /* all of it */
    /* As comm_exchange_of, with several ranks. NULL: by `shares_memory`. */
    comm_exchange (*exchange)(const comm_group *group, const char **why);
    sifr_status (*split)(comm_group *parent, const comm_part *part, comm_group **out,
                         sifr_error *error);
    void (*close)(comm_group *group);
} comm_transport;

/* The first member of every transport's group. */
struct comm_group {
    const comm_transport *transport;
    char name[COMM_NAME];
    int32_t rank, size, local_rank, local_size;
    int32_t per_host;  /* comm_ranks_per_host */
    int32_t *world_of; /* by rank; NULL: the same */
    bool shares_memory, peers;
    int64_t buffer_bytes;
    device *dev;            /* of the operands; NULL: they are host memory */
    comm_operands operands; /* with a device */
    comm_label label;       /* of what is started next */
    double timeout, call_seconds, byte_seconds;
    comm_ledger ledger;
    comm_event last;
    comm_watcher *watcher;
    void *watcher_user;
};

/* A rank of a parent, as it tells the others in a split. */
typedef struct comm_member {
    int32_t color, key, world; /* `world`: its number in the group of all ranks */
} comm_member;

/* Writes to `world_of`, which has room for all, the world ranks of the group with `color`, in their
 * order in it; returns their number. */
int32_t comm_choose_members(const comm_member *all, int32_t size, int32_t color, int32_t *world_of);

/* What a group has from its parent before its transport fills in the rest. */
void comm_inherit(comm_group *group, const comm_group *parent, const comm_part *part);

/* Bytes of the runs of a list of `size`. */
int64_t comm_runs_bytes(const comm_run *runs, int32_t size);

/* Where the last byte of them ends. */
int64_t comm_runs_end(const comm_run *runs, int32_t size);

/* SIFR_FAILED: two ranks name other sizes for what one of them sends to the other; `rank`, by its
 * number in the group, is the sender. */
sifr_status comm_check_part(const comm_group *group, int32_t rank, int64_t sent, int64_t received,
                            sifr_error *error) SIFR_MUST_CHECK;

/* Counts a collective of any transport once, when it is over: in its wait, or at its end if it
 * returns only when done. */
void comm_count(comm_group *group, const comm_event *event);

#endif
