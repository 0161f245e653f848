/* Masked language modelling: which tokens of a window are hidden, and what stands in their places.
 *
 * As transformers' DataCollatorForLanguageModeling: each token that is not special is chosen with
 * the given probability; of those chosen, 80 % become the mask token, 10 % a random token, and 10 %
 * stay. A window's choice is a function of a key alone. */
#ifndef DATA_MASKING_H
#define DATA_MASKING_H

#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

typedef struct data_masking {
    double probability;
    int32_t mask;     /* id of the mask token */
    int64_t words;    /* ids of the tokenizer: 0 … words - 1 */
    uint8_t *special; /* of each, whether it is a special token */
} data_masking;

/* From the tokenizer of a model folder. SIFR_USAGE where it has no mask token, or ids that the
 * model, with `vocab_size` of them, does not have. */
sifr_status data_masking_open(const char *folder, int64_t vocab_size, double probability,
                              data_masking *out, sifr_error *error) SIFR_MUST_CHECK;
void data_masking_close(data_masking *masking); /* harmless on a zeroed one */

/* The key of a sample of a run, and of a window of an evaluation, which is the same each time. */
uint64_t data_masking_key(uint64_t seed, int64_t sample);
uint64_t data_masking_evaluation_key(int64_t window);

/* Hides some of `count` tokens: labels[i] is what stood there, or -100 where it still counts as
 * seen. */
void data_masking_apply(const data_masking *masking, uint64_t key, int64_t count, int32_t *tokens,
                        int32_t *labels);

#endif
