/* The golden results of tests/golden/ (README.md there has the files, the mathematics and how the
 * bounds are derived): what PyTorch and transformers compute with small random models, in float64.
 *
 *     golden_list list;
 *     golden_list_open(&list);
 *     for (size_t i = 0; i < list.count; i++) {
 *         golden g;
 *         golden_open(&list, i, &g);
 *         ... load g.folder, run g.tokens and g.labels ...
 *         golden_check_loss(&g, precision, loss);
 *         for (size_t p = 0; p < g.parameter_count; p++)
 *             golden_check_gradient(&g, precision, g.parameters[p].name, values, count);
 *         golden_close(&g);
 *     }
 *     golden_list_close(&list);
 *
 * The open functions and golden_check_… fail the running cmocka test, with a message that says what
 * was off by how much; golden_…_error return the figure instead. Files are looked for in
 * $SOURCE/tests/golden. */
#ifndef GOLDEN_H
#define GOLDEN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file.h"
#include "formats/safetensors/safetensors.h"

/* The models. Several folders may hold the same weights in other clothes: then `results` differs
 * from `name`. */
typedef struct golden_list {
    size_t count;
    json_t *json;
    const char *place; /* in tests/golden/ */
} golden_list;

void golden_list_open(golden_list *list);
/* Those of a folder beside the others: "families/". */
void golden_list_open_at(golden_list *list, const char *place);
void golden_list_close(golden_list *list);
const char *golden_list_name(const golden_list *list, size_t index); /* "gpt2", "llama3" … */
/* Position of the model of this name. */
size_t golden_list_find(const golden_list *list, const char *name);

typedef enum golden_precision {
    GOLDEN_FP32, /* the bounds of the issue: 1e-5 for losses and logits, 1e-4 and 1e-3 in norm */
    GOLDEN_BF16, /* derived from torch's own bf16 errors */
    GOLDEN_FP16  /* a quarter of those: it has three more bits, and scales what would vanish */
} golden_precision;

/* A parameter of the model under transformers' present name. A tied head has none of its own. */
typedef struct golden_parameter {
    const char *name;
    int rank;
    int64_t shape[4];
    size_t elements;
} golden_parameter;

/* Greedy continuation without end-of-text handling; every choice is clear of the second best. */
typedef struct golden_generation {
    const char *text; /* what `prompt` is the ids of, or NULL */
    int32_t prompt[32], expected[32];
    size_t prompt_count, expected_count;
} golden_generation;

enum { GOLDEN_STEPS = 16, GOLDEN_ZERO_RANGES = 8 };

/* An open result. Owns all that its pointers point to, until golden_close. */
typedef struct golden {
    const char *name;              /* of the folder; owned by the list */
    char folder[BASE_PATH_LENGTH]; /* the Hugging Face model folder */
    const char *stored_dtype;      /* "float32", "bfloat16", "float16": of the folder's files */
    int64_t vocab_size, sequences, length, micro_batches, steps;
    bool masked; /* some labels are -100 */

    golden_parameter *parameters; /* in transformers' order */
    size_t parameter_count;

    /* One micro batch, sequences x length, row-major. */
    int32_t *tokens, *labels;
    int32_t *token_types, *segments; /* of encoders; NULL where the model has none */
    float *targets;                  /* of heads that learn numbers: vocab_size for each token */
    int64_t labelled;
    double loss;          /* mean over the labelled tokens */
    double gradient_norm; /* L2, unclipped */
    /* Logits of some of its tokens: row logit_rows[i] of sequences x length. */
    int32_t *logit_rows;
    float *logits; /* logit_row_count x vocab_size */
    size_t logit_row_count;
    double logit_largest; /* largest absolute logit of all rows */

    /* Training from the same start: `steps` steps of `micro_batches` micro batches each. */
    int32_t *step_tokens, *step_labels; /* steps x micro_batches x sequences x length */
    int32_t *step_token_types, *step_segments;
    float *step_targets;
    double step_loss[GOLDEN_STEPS];                       /* of the whole step, before its update */
    double step_norm[GOLDEN_STEPS];                       /* before clipping */
    double step_lr[GOLDEN_STEPS];                         /* that the update uses */
    double beta1, beta2, epsilon, weight_decay, clipping; /* AdamW, every parameter decayed */
    const json_t *scheduler; /* DeepSpeed's section; `lr` of the optimizer is base_lr */
    double base_lr;
    double update_norm; /* of final - initial weights, all parameters together */

    /* Mean loss over consecutive windows: window i reads eval_tokens[iN … iN + N]. */
    int32_t *eval_tokens;
    size_t eval_token_count;
    int64_t eval_window, eval_windows;
    double eval_loss;

    golden_generation generation;      /* from ids */
    golden_generation generation_text; /* of text; text is NULL in folders without tokenizer.json */

    /* private */
    json_t *json;
    formats_safetensors file;
    struct golden_zero {
        const char *tensor;
        size_t begin, end;
    } zero[GOLDEN_ZERO_RANGES];
    size_t zero_count;
    double update_scale;
} golden;

void golden_open(const golden_list *list, size_t index, golden *out);
void golden_close(golden *g);

/* Gradient of a parameter on the micro batch of `tokens` (the one of a tied table: both uses
 * added); *count elements. Free with free(). */
float *golden_gradient(const golden *g, const char *name, size_t *count);
/* Final minus initial weights of a parameter after all steps. Free with free(). */
float *golden_update(const golden *g, const char *name, size_t *count);

/* |value - expected| / |expected| */
double golden_relative(double value, double expected);

/* Largest |difference| over the stored rows / largest |logit|; `logits`: logit_row_count x
 * vocab_size, the rows of logit_rows. */
double golden_logit_error(const golden *g, const float *logits);

/* How far a gradient is off: L2 norms. Elements whose gradient is mathematically zero are counted
 * apart (`zero_norm`), as a share of the model's whole gradient norm. */
typedef struct golden_gradient_error {
    double
        relative; /* |difference| / |expected|, over the other elements; 0 where there are none */
    double zero_share; /* |values| / gradient_norm over the elements that ought to be zero */
} golden_gradient_error;
golden_gradient_error golden_measure_gradient(const golden *g, const char *name,
                                              const float *values, size_t count);

/* Adds up, parameter by parameter, how far trained weights are from where they ought to be.
 * Elements without a gradient are left out: Adam makes steps of rounding noise there. */
typedef struct golden_update_error {
    double difference2, update2; /* sums of squares */
} golden_update_error;
void golden_add_update(const golden *g, golden_update_error *sum, const char *name,
                       const float *initial, const float *trained, size_t count);

/* Bounds: of the relative error of the loss, of golden_logit_error, of `relative` and `zero_share`
 * of a gradient, of a step's loss and norm (relative), of sqrt(difference2 / update2). */
double golden_loss_bound(const golden *g, golden_precision precision);
double golden_logit_bound(const golden *g, golden_precision precision);
double golden_gradient_bound(const golden *g, golden_precision precision, const char *name);
double golden_zero_bound(const golden *g, golden_precision precision);
double golden_step_loss_bound(const golden *g, golden_precision precision);
double golden_step_norm_bound(const golden *g, golden_precision precision);
double golden_update_bound(const golden *g, golden_precision precision);

/* The same as checks. */
void golden_check_loss(const golden *g, golden_precision precision, double loss);
void golden_check_logits(const golden *g, golden_precision precision, const float *logits);
void golden_check_gradient(const golden *g, golden_precision precision, const char *name,
                           const float *values, size_t count);
void golden_check_step(const golden *g, golden_precision precision, int64_t step, double loss,
                       double gradient_norm);
/* Every parameter must have been added. */
void golden_check_update(const golden *g, golden_precision precision,
                         const golden_update_error *sum);
void golden_check_eval(const golden *g, golden_precision precision, double loss);

/* init.json: how transformers initialises, case by case (several configs). */
typedef struct golden_init {
    json_t *json;
    const json_t *tensors;
    const char *name;
    char *config; /* a config.json, as text */
} golden_init;

/* False past the last case, and nothing is open. */
bool golden_init_open(golden_init *init, size_t index);
/* That of a folder beside it: "encoders/". */
bool golden_init_open_at(golden_init *init, const char *place, size_t index);
void golden_init_close(golden_init *init);
size_t golden_init_tensors(const golden_init *init);
const char *golden_init_name(const golden_init *init, size_t position);
size_t golden_init_count(const golden_init *init, const char *name); /* elements */
/* Mean and deviation of a freshly initialised tensor: the expected ones within five standard errors
 * of a sample of that size (of the two samples' difference); tensors that are constant, exactly. */
void golden_check_init(const golden_init *init, const char *name, const float *values,
                       size_t count);

#endif
