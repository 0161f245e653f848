/* Inference: evaluation, logits, generation. There are no gradients and no optimizer state. */
#ifndef INFER_H
#define INFER_H

#include "engine/engine_private.h"

typedef struct infer_inference infer_inference;

typedef struct infer_options {
    plan_mode mode; /* PLAN_EVALUATE, PLAN_LOGITS or PLAN_GENERATE */
    sifr_precision precision;
    sifr_device device; /* settled (engine/check/device_choice.h); PLAN_GENERATE: the CPU */
    device_place place;
    int threads;
    const char *isa;
    /* Of a batch. Generation: sequences that grow together, and the tokens of a prompt chunk. */
    int64_t sequences, length;
    int64_t cache_length; /* generation: most positions of a sequence */
    bool logits;          /* PLAN_EVALUATE: as well */
} infer_options;

/* The model is borrowed. */
sifr_status infer_create(const sifr_model *model, const infer_options *options,
                         infer_inference **out, sifr_error *error) SIFR_MUST_CHECK;
/* The same on a given device, which is closed with it, also if this call fails. */
sifr_status infer_create_on(device *dev, const sifr_model *model, const infer_options *options,
                            infer_inference **out, sifr_error *error) SIFR_MUST_CHECK;
void infer_free(infer_inference *inference); /* NULL is harmless */

device *infer_device(const infer_inference *inference);

sifr_status infer_load(infer_inference *inference, const model_architecture *architecture,
                       const formats_weights *weights, sifr_error *error) SIFR_MUST_CHECK;

/* Fills all elements of all weights with values from `make`, which several threads call at once. */
sifr_status infer_fill(infer_inference *inference, engine_values make, const void *user,
                       sifr_error *error) SIFR_MUST_CHECK;

/* PLAN_EVALUATE: sum of the losses of sequences x length tokens. With options.logits also
 * logits[sequences x length x words] in fp32; else NULL. */
sifr_status infer_loss(infer_inference *inference, const sifr_batch *batch, double *loss_sum,
                       int64_t *labelled, float *logits, sifr_error *error) SIFR_MUST_CHECK;

/* The loss of each row of the last such call, 0 without a label. */
sifr_status infer_losses(const infer_inference *inference, float *out,
                         sifr_error *error) SIFR_MUST_CHECK;

/* PLAN_LOGITS: out[sequences x length x words] in fp32. The batch needs no labels. */
sifr_status infer_logits(infer_inference *inference, const sifr_batch *batch, float *out,
                         sifr_error *error) SIFR_MUST_CHECK;

/* PLAN_GENERATE: appends `count` tokens to a sequence at `position`, after those in its cache, and
 * writes the logits of the last one to out[words]. SIFR_USAGE beyond cache_length. */
sifr_status infer_append(infer_inference *inference, int64_t sequence, const int32_t *tokens,
                         int64_t count, int64_t position, float *out,
                         sifr_error *error) SIFR_MUST_CHECK;

/* The same of one token of every sequence at once: tokens[q] at positions[q], logits to
 * out[sequences x words]. A sequence that is to stay as it is repeats its last token. */
sifr_status infer_advance(infer_inference *inference, const int32_t *tokens,
                          const int32_t *positions, float *out, sifr_error *error) SIFR_MUST_CHECK;

/* PLAN_GENERATE: what is cached of a sequence. `rows`: the keys and values of its first `count`
 * positions, copied to another one. A state, of the gated delta rule or of a short convolution, is
 * that of all tokens so far: it is copied whole, to and from infer_state_bytes bytes of the caller.
 * A sequence that has both may go on behind these positions. */
sifr_status infer_copy_rows(const infer_inference *inference, int64_t from, int64_t to,
                            int64_t count, sifr_error *error) SIFR_MUST_CHECK;
int64_t infer_state_bytes(const infer_inference *inference); /* of a sequence; 0: it has no state */
sifr_status infer_get_state(const infer_inference *inference, int64_t sequence, void *out,
                            sifr_error *error) SIFR_MUST_CHECK;
sifr_status infer_set_state(const infer_inference *inference, int64_t sequence, const void *from,
                            sifr_error *error) SIFR_MUST_CHECK;

/* Rotary angles depend on a sequence's length, so what is cached of a longer one is of no use. */
bool infer_angles_vary(const infer_inference *inference);

int64_t infer_words(const infer_inference *inference); /* rows of the head */

/* How a token is chosen; the filters act in transformers' order, and neutral values leave one out.
 */
typedef struct infer_sampling {
    double temperature; /* 0: the most likely token, whatever the rest says */
    int64_t top_k;      /* the most likely ones, and equals of the last; 0: all */
    double top_p;       /* of these, the fewest that have this probability; 1: all */
    double min_p;       /* and at least this share of the likeliest one's probability; 0: all */
    double repetition_penalty; /* above 1: ids that occurred become less likely; 1: none */
} infer_sampling;

/* Divides logits of the `count` ids by the penalty, or multiplies negative ones. `marks` has room
 * for `words` and is overwritten. */
void infer_penalize(float *logits, int64_t words, const int32_t *ids, size_t count, double penalty,
                    int32_t *marks);

/* Chooses the next token: with temperature 0 the most likely one (the lowest id in a tie),
 * otherwise a draw from the softmax of logits / temperature among those that the filters keep.
 * `random` is in [0, 1). `order` has room for `words` ids and is overwritten, and so are the
 * logits. */
int32_t infer_sample(float *logits, int64_t words, int32_t *order, const infer_sampling *sampling,
                     double random);

/* What infer_sample draws among, with a temperature above 0: their number; the ids are
 * order[words - 1], order[words - 2] …, the likeliest first; logits[id] / sum is a probability. */
int64_t infer_candidates(float *logits, int64_t words, int32_t *order,
                         const infer_sampling *sampling, double *sum);

#endif
