/* Rows of about the same length together, as transformers' LengthGroupedSampler has them. Private
 * to chat_rows*.c. */
#ifndef DATA_CHAT_GROUPS_H
#define DATA_CHAT_GROUPS_H

#include <stdint.h>

#include "base/errors.h"

typedef struct data_chat_groups data_chat_groups;

/* What the groups are made of: the row at each place of an epoch's own order, and its length. */
typedef struct data_chat_order {
    int64_t (*row)(const void *rows, uint64_t seed, int64_t epoch, int64_t place);
    int64_t (*length)(const void *rows, int64_t row);
    const void *rows;
    int64_t windows; /* places */
} data_chat_order;

/* For steps of `batch` sequences. Takes memory for the orders of two epochs. */
sifr_status data_chat_groups_make(int64_t windows, int64_t batch, data_chat_groups **out,
                                  sifr_error *error) SIFR_MUST_CHECK;
void data_chat_groups_free(data_chat_groups *groups); /* NULL is harmless */

/* The row at a place: the epoch's order is cut into runs of up to 50 steps, but at least four runs
 * where there are so many steps; in each run the longest rows come first, of equals the earlier;
 * and the longest row of all changes places with the very first, so that what does not fit fails at
 * once. Safe from several threads; the first call for an epoch works its order out. */
int64_t data_chat_groups_at(data_chat_groups *groups, const data_chat_order *order, uint64_t seed,
                            int64_t epoch, int64_t place);

#endif
