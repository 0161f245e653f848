/* Transfers for which a device waits instead of the host (comm_follow), in transports whose lanes
 * are workers. Each place in a lane's line has a flag. The lane's thread writes to it when the
 * transfer has ended or failed. */
#ifndef COMM_FOLLOWED_H
#define COMM_FOLLOWED_H

#include "comm/transport.h"
#include "comm/worker.h"
#include "device/flag.h"

typedef struct comm_flags {
    device *dev;
    device_flag (*of)[COMM_LINE]; /* by lane; NULL: none */
    bool work;                    /* the device can wait for them */
} comm_flags;

/* Takes COMM_WORD_BYTES of host memory from a device with hidden memory; from others nothing. */
sifr_status comm_flags_take(comm_flags *flags, device *dev, sifr_error *error) SIFR_MUST_CHECK;
/* No transfer may be followed any more. Harmless without flags. */
void comm_flags_give(comm_flags *flags);

/* Makes the device wait for a transfer of the lane; `flags` work. */
sifr_status comm_followed_start(const comm_flags *flags, comm_lane lane, comm_worker *worker,
                                int32_t id, sifr_error *error) SIFR_MUST_CHECK;

/* Before each comm_worker_start: waits for the transfer in the next place of the line, if it was
 * followed. */
sifr_status comm_followed_reserve(comm_worker *worker, sifr_error *error) SIFR_MUST_CHECK;

/* Waits for all transfers of the lane that were followed. */
sifr_status comm_followed_catch_up(comm_worker *worker, sifr_error *error) SIFR_MUST_CHECK;

#endif
