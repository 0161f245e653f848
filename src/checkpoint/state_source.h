/* Reads all state of a checkpoint, weight by weight, whatever ranks made it: master weights and
 * what the optimizer keeps. Files are mapped. */
#ifndef CHECKPOINT_STATE_SOURCE_H
#define CHECKPOINT_STATE_SOURCE_H

#include "checkpoint/model_source.h"

typedef struct checkpoint_state {
    const checkpoint_model *model; /* of a checkpoint; borrowed */
    int parts;                     /* of a weight: ENGINE_MASTER and the states */
    checkpoint_range *ranges;      /* by weight, part and place */
    checkpoint_span *spans;        /* of the ranges */
    size_t count, *first;          /* first range of each part of each weight, and the end */
    formats_safetensors *files;
} checkpoint_state;

/* SIFR_USAGE where `model` comes from a folder, or from a run with another optimizer. Files that
 * the model has not verified yet are verified by checksum. */
sifr_status checkpoint_state_open(const checkpoint_model *model, const optim_row *optimizer,
                                  checkpoint_state *out, sifr_error *error) SIFR_MUST_CHECK;
void checkpoint_state_close(checkpoint_state *state); /* harmless on a zeroed one */

/* Whether the weight was trained, so that there are states of it. */
bool checkpoint_state_trained(const checkpoint_state *state, size_t weight);

/* Elements first … first + count - 1 of a part of a weight, in fp32, not rounded. */
void checkpoint_state_values(const checkpoint_state *state, size_t weight, engine_part part,
                             int64_t first, int64_t count, float *values);

#endif
