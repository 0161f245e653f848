/* Weights in a checkpoint of DeepSpeed: of ZeRO stages 0 to 3, or universal.
 *
 *     DIR/latest                                          names the folder TAG
 *     DIR/TAG/mp_rank_00_model_states.pt                  shapes; stage 0: the weights
 *     DIR/TAG/[bf16_]zero_pp_rank_R_mp_rank_00_optim_states.pt  rank R's part of the masters
 *     DIR/TAG/zero_pp_rank_R_mp_rank_00_model_states.pt   stage 3: shapes, frozen weights
 *     DIR/latest_universal, DIR/TAG/zero/NAME/fp32.pt     universal: a weight each
 *
 * Stages 1 and 2 have the weights of a parameter group end to end, cut in as many parts as there
 * are ranks; stage 3 cuts each weight. Files are mapped and nothing in them is run. */
#ifndef FORMATS_DEEPSPEED_CHECKPOINT_H
#define FORMATS_DEEPSPEED_CHECKPOINT_H

#include <stdbool.h>

#include "formats/safetensors/safetensors.h"

typedef struct formats_deepspeed_weight {
    const char *name;
    int rank;
    int64_t shape[FORMATS_RANK_LIMIT];
    int64_t elements;
    size_t first_piece, pieces; /* end to end */
    bool frozen;
} formats_deepspeed_weight;

typedef struct formats_deepspeed formats_deepspeed;

/* `path` is DIR, or DIR/TAG. SIFR_USAGE for what is no such checkpoint, or one that is not
 * supported (tensor or pipeline parallel, experts, PyTorch's distributed form); SIFR_FAILED for
 * what is missing or damaged. */
sifr_status formats_deepspeed_open(const char *path, formats_deepspeed **out,
                                   sifr_error *error) SIFR_MUST_CHECK;
void formats_deepspeed_close(formats_deepspeed *checkpoint); /* NULL is harmless */

size_t formats_deepspeed_count(const formats_deepspeed *checkpoint);
const formats_deepspeed_weight *formats_deepspeed_at(const formats_deepspeed *checkpoint,
                                                     size_t index);
int formats_deepspeed_stage(const formats_deepspeed *checkpoint); /* -1: universal */
size_t formats_deepspeed_ranks(const formats_deepspeed *checkpoint);
int64_t formats_deepspeed_step(const formats_deepspeed *checkpoint);       /* -1: not known */
const char *formats_deepspeed_folder(const formats_deepspeed *checkpoint); /* of the tag */

/* Elements first … first + count - 1 of a weight, row-major. */
void formats_deepspeed_read(const formats_deepspeed *checkpoint, size_t index, int64_t first,
                            int64_t count, float *out);

#endif
