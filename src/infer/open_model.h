/* Opening of a model to read it without training it, and the words for what it ran in. */
#ifndef INFER_OPEN_MODEL_H
#define INFER_OPEN_MODEL_H

#include "checkpoint/model_source.h"
#include "infer/inference.h"

/* Which model is read, and in what it is to be computed. */
typedef struct infer_source {
    const char *model;   /* a model folder, a checkpoint or the output folder of a run */
    const char *adapter; /* the folder of one; NULL: none */
    bool precision_given;
    sifr_precision precision; /* where it is given */
    sifr_device device;       /* of an evaluation */
    int threads;              /* 0: one for each core */
} infer_source;

/* Opens the model for options->mode, and sets options->threads and options->precision: the given
 * one, else bf16 or fp16 if all weights are stored in that type (or would be in an export of the
 * checkpoint), otherwise fp32. For an evaluation it chooses the device too. Where a GPU stays idle,
 * the log says why. Close the model with checkpoint_model_close, also after an error. */
sifr_status infer_open_model(const infer_source *source, checkpoint_model *model,
                             infer_options *options, const sifr_log *log,
                             sifr_error *error) SIFR_MUST_CHECK;

/* "fp32", "bf16" or "fp16". */
const char *infer_precision_name(sifr_precision precision);

/* What an evaluation ran in: "bf16", on a GPU "bf16, sm_90"; writes to and returns `out`. */
enum { INFER_RAN_IN = 64 };
const char *infer_ran_in(const infer_options *options, const infer_inference *inference,
                         char out[INFER_RAN_IN]);

/* After an evaluation: what its device could do faster. */
void infer_say_slow(const infer_inference *inference, const sifr_log *log);

#endif
