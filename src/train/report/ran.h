/* What did the work of a run, for reports: a run that took a slower way passes like any other. */
#ifndef TRAIN_RAN_H
#define TRAIN_RAN_H

#include "engine/handle.h"

/* Counts are sums over the ranks. A text is the first rank's; ranks with another one follow, as in
 * "the first step; rank 3: SIFR_DEVICE_WAITS=host". */
typedef struct train_ran {
    bool gpu; /* the ranks' devices hide their memory; else only device and exchange count */
    char device[800];                                 /* as device_describe says it */
    char products[800], own_why[800], waits_why[800]; /* as device_ran has them, and the counts: */
    int64_t library_products, own_products;
    int64_t word_waits, host_waits;
    int64_t unpinned_bytes;
    comm_exchange exchange; /* of all ranks' groups the last one in comm_exchange's list ... */
    char exchange_why[800]; /* ... and why that was taken; "": it is the best there is */
} train_ran;

/* Of the only rank. */
void train_ran_alone(const device *dev, train_ran *out);

/* All ranks of the group call it, after the last step, and get the same. */
sifr_status train_ran_of_all(const sifr_engine *engine, comm_group *group, train_ran *out,
                             sifr_error *error) SIFR_MUST_CHECK;

#endif
