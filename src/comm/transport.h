/* The functions of a transport; private to comm/. */
#ifndef COMM_TRANSPORT_H
#define COMM_TRANSPORT_H

#include "comm/comm.h"

typedef struct comm_transport {
    sifr_status (*all_gather)(comm_group *group, const void *slice, int64_t bytes, void *whole,
                              comm_handle *out, sifr_error *error);
    sifr_status (*reduce_scatter)(comm_group *group, const void *whole, base_dtype type,
                                  base_dtype sum, int64_t elements, void *slice, comm_handle *out,
                                  sifr_error *error);
    sifr_status (*wait)(comm_group *group, int32_t id, sifr_error *error);
    sifr_status (*sum)(comm_group *group, int64_t *values, int32_t count, sifr_error *error);
    sifr_status (*all_gather_control)(comm_group *group, const void *mine, int64_t bytes, void *all,
                                      sifr_error *error);
    sifr_status (*broadcast)(comm_group *group, int32_t root, void *data, int64_t bytes,
                             sifr_error *error);
    /* NULL if the transport never shares memory. */
    sifr_status (*open_window)(comm_group *group, void *block, int64_t bytes, int file,
                               sifr_error *error);
    void (*close_window)(comm_group *group, void *block);
    /* Host memory through which operands of a device go; NULL if the transport has none. */
    sifr_status (*take_stage)(comm_group *group, const char *why, sifr_error *error);
    void (*give_stage)(comm_group *group);
    void (*close)(comm_group *group);
} comm_transport;

/* The first member of every transport's group. */
struct comm_group {
    const comm_transport *transport;
    int32_t rank, size, local_rank, local_size;
    bool shares_memory;
    int64_t buffer_bytes;
    device *dev;      /* of the operands; NULL: they are host memory */
    int64_t largest;  /* bytes of the largest operand, with a device */
    comm_label label; /* of what is started next */
    double timeout, call_seconds, byte_seconds;
    comm_ledger ledger;
    comm_event last;
    comm_watcher *watcher;
    void *watcher_user;
};

/* Counts a collective of any transport once, when it is over: in its wait, or at its end if it
 * returns only when done. */
void comm_count(comm_group *group, const comm_event *event);

#endif
