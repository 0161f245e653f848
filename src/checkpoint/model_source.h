/* The weights of a model that is only read, from a model folder or from a checkpoint. A
 * checkpoint's are read as its export would have them: its master weights, in the types of the
 * model folder that its run ends with. Files are mapped: of a model no more is in memory than what
 * is being read. */
#ifndef CHECKPOINT_MODEL_SOURCE_H
#define CHECKPOINT_MODEL_SOURCE_H

#include "checkpoint/manifest.h"

/* Elements first … first + count - 1 of a weight, and the tensor that holds them. */
typedef struct checkpoint_span {
    int64_t first, count;
    const formats_tensor *tensor;
} checkpoint_span;

typedef struct checkpoint_model {
    engine_folder folder;           /* weights: NULL where they come from a checkpoint */
    char path[BASE_PATH_LENGTH];    /* of the folder or the checkpoint that was taken */
    char files[BASE_PATH_LENGTH];   /* the folder with config.json and the tokenizer */
    engine_stored stored;           /* the tensors of the model folder */
    bool typed;                     /* they are known; else they are FP32 */
    int64_t step;                   /* of the checkpoint; -1: a model folder */
    checkpoint_opened opened;       /* the checkpoint */
    checkpoint_range *ranges;       /* of its master weights */
    formats_safetensors *state;     /* its files, those that hold master weights are open */
    checkpoint_span *spans;         /* by weight and place */
    size_t span_count, *first_span; /* of each weight, and behind the last */
} checkpoint_model;

/* Opens a model folder, a checkpoint, or the output folder of a run, which stands for its model,
 * or, where there is none or where the newest checkpoint is of a later step, for that checkpoint;
 * that is said through `log`. The files of a checkpoint that hold weights are verified by their
 * checksums. config.json is read from the checkpoint's folder or from the one above it. */
sifr_status checkpoint_model_open(const char *path, checkpoint_model *out, const sifr_log *log,
                                  sifr_error *error) SIFR_MUST_CHECK;
void checkpoint_model_close(checkpoint_model *model); /* harmless on a zeroed one */

/* Elements first … first + count - 1 of weight `index`; may be called by several threads at once.
 * An engine_values: `user` is the checkpoint_model. */
void checkpoint_model_values(const void *user, size_t index, int64_t first, int64_t count,
                             float *values);

#endif
