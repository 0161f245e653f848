/* Transfers that a device waits for, and the host not (comm_follow): for transports whose lanes are
 * workers. Each place in a lane's line has a word, to which the lane's thread writes that the
 * transfer is over, whatever became of it. */
#ifndef COMM_FOLLOWED_H
#define COMM_FOLLOWED_H

#include "comm/transport.h"
#include "comm/worker.h"
#include "device/await.h"

typedef struct comm_words {
    device *dev;
    device_word (*of)[COMM_LINE]; /* by lane; NULL: none */
    bool work;                    /* the device can wait for them */
} comm_words;

/* COMM_WORD_BYTES in the host memory of the device, which must hide its own; else none. */
sifr_status comm_words_take(comm_words *words, device *dev, sifr_error *error) SIFR_MUST_CHECK;
void comm_words_give(comm_words *words); /* no transfer is followed; harmless without words */

/* In place of waiting for a transfer of the lane; `words` work. */
sifr_status comm_followed_start(const comm_words *words, comm_lane lane, comm_worker *worker,
                                int32_t id, sifr_error *error) SIFR_MUST_CHECK;

/* Before each comm_worker_start: ends the transfer that has the next place in line, if it was
 * followed. */
sifr_status comm_followed_make_room(comm_worker *worker, sifr_error *error) SIFR_MUST_CHECK;

/* Waits for all transfers of the lane that were followed. */
sifr_status comm_followed_catch_up(comm_worker *worker, sifr_error *error) SIFR_MUST_CHECK;

#endif
