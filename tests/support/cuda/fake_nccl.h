/* NCCL without a network: the functions of nccl_library over the fake driver's memory and streams.
 * Ranks are processes of one machine; bytes go through a memfd that the unique id names.
 *
 * What it keeps of the real one: work runs in its stream, after what the stream was given before;
 * parts of a group run together; a communicator that does not block gives its work to the stream
 * only while it is asked about (ncclCommGetAsyncError), so a mark that is taken before lies in
 * front of it; a rank that does not come is waited for until the communicator is aborted. */
#ifndef FAKE_NCCL_H
#define FAKE_NCCL_H

#include "comm/nccl/nccl_library.h"

typedef struct fake_nccl_trouble {
    nccl_result init; /* result of ncclCommInitRankConfig */
    int fail_after;   /* so many groups, the next one's communicator fails; 0: none does */
    int version;      /* 22105 is 2.21.5; 0: 2.28.9 */
} fake_nccl_trouble;

/* Sets all counts to 0. */
void fake_nccl_open(const fake_nccl_trouble *trouble, nccl_library *out);

typedef struct fake_nccl_counts {
    int64_t communicators; /* made, and neither destroyed nor aborted */
    int64_t aborted;
    int64_t groups, bytes_sent;
} fake_nccl_counts;
fake_nccl_counts fake_nccl_count(void);

#endif
