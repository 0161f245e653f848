/* Settings of a step that the config and the library share. A field has the name of the config's
 * key that sets it, without DeepSpeed's prefixes. */
#ifndef SIFR_STEP_H
#define SIFR_STEP_H

#include <stdbool.h>
#include <stdint.h>

typedef enum sifr_precision {
    SIFR_FP32, /* everything in fp32 */
    SIFR_BF16, /* parameters and activations in bf16; gradients, master weights and moments in
                  fp32, unless the options say otherwise */
    SIFR_FP16  /* the same in fp16, with loss scaling */
} sifr_precision;

/* How ranks exchange what ZeRO cuts: DeepSpeed's keys of zero_optimization. Counts are elements.
 * None of them changes a result. */
typedef struct sifr_zero_options {
    bool overlap_comm;          /* beside computing; false: each transfer is waited for at once */
    int64_t reduce_bucket_size; /* a unit's gradients travel beside computing if at most so many */
    int64_t allgather_bucket_size; /* stages 0 to 2: on their way at a time after the update */
    /* Stage 3. */
    int64_t prefetch_bucket_size; /* units are gathered ahead until at least so many; 0: none */
    int64_t max_live_parameters;  /* nothing is gathered ahead beyond so many gathered ones */
    int64_t max_reuse_distance;   /* a unit stays if fewer are gathered until its next use */
    int64_t param_persistence_threshold; /* units of at most so many are always whole ... */
    int64_t model_persistence_threshold; /* ... while all of these are at most so many */
} sifr_zero_options;

#endif
