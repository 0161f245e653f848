/* What E2B and E4B of Gemma 4 give each layer beside its input ("per-layer embeddings"): columns of
 * a table's row for the token, and of a product of the token's embedding. */
#ifndef MODEL_GEMMA4_INPUTS_H
#define MODEL_GEMMA4_INPUTS_H

#include "model/architectures/decoder.h"

/* What layers hand to later ones. */
typedef struct gemma4_handed {
    /* Of layers without a window, with one: the keys and values, turned and normed, of the last
     * layer of that kind that has its own. */
    decoder_heads kept[2];
    sifr_value inputs[MODEL_LIMIT_LAYERS]; /* by layer: layer_input_size columns; or none */
} gemma4_handed;

/* "hidden_size_per_layer_input", which is `size` where it is absent, and the table's rows. */
sifr_status gemma4_read_inputs(const model_reader *r, int64_t size,
                               model_config *out) SIFR_MUST_CHECK;

/* A decoder_block before the first layer: makes handed->inputs in units of their own, from x, the
 * embedding, which it returns. Without such inputs it does nothing. */
sifr_value gemma4_make_inputs(const decoder *d, sifr_value x);

/* The end of a layer: x + norm(W_p (activation(W_g x) * input)), or x where there is no input. */
sifr_value gemma4_add_input(const decoder *d, sifr_value x);

#endif
