/* A loop as its caller holds it. */
#ifndef API_LOOP_H
#define API_LOOP_H

#include "api/api_ranks.h"
#include "sifr/loop.h"
#include "train/run.h"

struct sifr_loop {
    train_state state; /* of a run without data and output */
    sifr_config config;
    train_host host;
    sifr_ranks *ranks, *alone; /* alone: the loop's own; NULL: they are the caller's */
    bool counted;              /* the schedule knows how many steps there are */
};

#endif
