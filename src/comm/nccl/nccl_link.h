/* A communicator of NCCL, which sends, receives and gathers bytes of device memory and adds
 * nothing. It never blocks: a call begins something, and nccl_link_poll says when that is in the
 * stream. By one thread at a time, in the GPU's context. */
#ifndef NCCL_LINK_H
#define NCCL_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "comm/nccl/nccl_library.h"

typedef struct nccl_link nccl_link;

/* Rank 0 makes the name, which all ranks begin with. The library must outlive the link. */
sifr_status nccl_link_name(const nccl_library *library, nccl_name *out,
                           sifr_error *error) SIFR_MUST_CHECK;
sifr_status nccl_link_begin(const nccl_library *library, const nccl_name *name, int32_t ranks,
                            int32_t rank, nccl_link **out, sifr_error *error) SIFR_MUST_CHECK;

/* *done: whether the last call is over (opening, too). Then its work is in the stream, and a mark
 * that is taken now is behind that work. Fails also if work in the stream has failed since. */
sifr_status nccl_link_poll(nccl_link *link, bool *done, sifr_error *error) SIFR_MUST_CHECK;

/* One part of an exchange. */
typedef struct nccl_part {
    const void *send; /* NULL: nothing is sent */
    void *receive;    /* NULL: nothing is received */
    int64_t bytes;
    int32_t to, from;
} nccl_part;

/* Begins all parts together. */
sifr_status nccl_link_exchange(nccl_link *link, const nccl_part *parts, int32_t count,
                               nccl_stream stream, sifr_error *error) SIFR_MUST_CHECK;

/* Begins to gather `bytes` of each rank into `all`; `mine` may lie at its place there. */
sifr_status nccl_link_gather(nccl_link *link, const void *mine, int64_t bytes, void *all,
                             nccl_stream stream, sifr_error *error) SIFR_MUST_CHECK;

/* Ends work in progress, here and on the other ranks, where it fails. Later calls fail. */
void nccl_link_abort(nccl_link *link);
/* All ranks call it when no work is in progress; NULL is harmless. */
void nccl_link_close(nccl_link *link);

#endif
