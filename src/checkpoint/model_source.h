/* Reads the weights of a model from a model folder or a checkpoint. From a checkpoint it reads the
 * values that an export would write: the master weights, in the types of the trained model's
 * folder, and the frozen weights of its base. Files are mapped, so only the part that is being read
 * is in memory.
 */
#ifndef CHECKPOINT_MODEL_SOURCE_H
#define CHECKPOINT_MODEL_SOURCE_H

#include "checkpoint/frozen_base.h"

/* Elements of a weight, and the tensor with their values. */
typedef struct checkpoint_span {
    model_span span;
    const formats_tensor *tensor;
} checkpoint_span;

/* Elements first … first + count - 1 of a weight with `columns` columns, in fp32, from `spans`
 * tensors that have all of them. */
void checkpoint_span_values(const checkpoint_span *spans, size_t span_count, int64_t columns,
                            int64_t first, int64_t count, float *values);

typedef struct checkpoint_model {
    model_lora lora;                 /* of a model with adapters; zeroed: none */
    engine_folder folder;            /* weights: NULL if they come from a checkpoint */
    char path[BASE_PATH_LENGTH];     /* path of the folder or checkpoint that is used */
    char files[BASE_PATH_LENGTH];    /* the folder with config.json and the tokenizer */
    char adapter[BASE_PATH_LENGTH];  /* the adapter's folder beside a model folder; "": none */
    char template[BASE_PATH_LENGTH]; /* the adapter's own chat template; "": it has none */
    engine_stored stored;            /* the tensors of the model folder */
    bool typed;                      /* types are known; otherwise FP32 */
    bool average;                    /* of a checkpoint, the averages of the weights are read */
    int64_t step;                    /* step of the checkpoint; -1: a model folder */
    checkpoint_opened opened;        /* the checkpoint */
    formats_weights *base_weights;   /* of its base; NULL: it has none */
    checkpoint_base base;
    checkpoint_range *ranges;       /* of its master weights */
    formats_safetensors *state;     /* its files; those with master weights are open */
    checkpoint_span *spans;         /* by weight and place */
    size_t span_count, *first_span; /* first piece of each weight, and the end */
} checkpoint_model;

/* Opens a model folder, a checkpoint, or the output folder of a run. With `adapter` (NULL: none),
 * opens a model folder and this adapter folder of PEFT; if `path` is an adapter folder, the base
 * that its config names and this adapter. For an output folder, uses its
 * model, or its newest checkpoint if there is no model or the checkpoint is of a later step; that
 * is logged. A checkpoint's files with weights, and its base, are verified by checksum. config.json
 * is read from the checkpoint's folder or from the one above it. */
sifr_status checkpoint_model_open(const char *path, const char *adapter, checkpoint_model *out,
                                  const sifr_log *log, sifr_error *error) SIFR_MUST_CHECK;
/* Opens the averages of the weights (ema) in a checkpoint, as if they were the weights. */
sifr_status checkpoint_model_open_average(const char *path, checkpoint_model *out,
                                          sifr_error *error) SIFR_MUST_CHECK;
void checkpoint_model_close(checkpoint_model *model); /* harmless on a zeroed one */

/* Reads elements first … first + count - 1 of weight `index`. Several threads may call it at once.
 * It is an engine_values function: `user` is the checkpoint_model. */
void checkpoint_model_values(const void *user, size_t index, int64_t first, int64_t count,
                             float *values);

#endif
