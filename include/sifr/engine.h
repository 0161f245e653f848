/* The engine: trains a model on this process's share of the work. It owns every buffer of a step,
 * takes its memory once, when it is created, and allocates nothing while it steps.
 *
 *     sifr_engine_options options = sifr_engine_defaults();
 *     options.micro_batch_size = 4, options.seq_length = 256;
 *     sifr_engine_create(model, &options, &engine, &error);
 *     sifr_engine_initialise(engine, 42, &error);
 *     for (...) sifr_engine_step(engine, tokens, labels, 3e-4, &result, &error);
 *
 * An engine is used by one thread at a time.
 */
#ifndef SIFR_ENGINE_H
#define SIFR_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sifr/model.h"
#include "sifr/status.h"
#include "sifr/step.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sifr_engine sifr_engine;

/* Loss scaling of SIFR_FP16, with the meaning of DeepSpeed's "fp16" section. Gradients are made of
 * the loss times a scale, and divided by it before their norm and the update. A dynamic scale is
 * halved by an overflow once the hysteresis is used up, and doubled after `window` steps without
 * one. */
typedef struct sifr_loss_scaling {
    double fixed;          /* the scale of all steps; 0: dynamic, as the rest says */
    double initial, least; /* an overflow at the least scale ends the run */
    int64_t window;
    int64_t hysteresis;          /* overflows until one lowers the scale */
    bool consecutive_hysteresis; /* refilled by each step without overflow, not only by growth */
} sifr_loss_scaling;

/* State in the memory of a host whose devices have their own. CPU ranks have one memory: there all
 * of this changes nothing. What is on disk by sifr_offload_options is not here. */
typedef struct sifr_host_options {
    bool optimizer;   /* fp32 master weights and both moments */
    bool parameters;  /* what kernels read as weights, at ZeRO stage 3 */
    bool gradients;   /* their sums, once they are final, on one rank or at stages 2, 3 */
    bool activations; /* what the forward pass leaves for the backward pass */
} sifr_host_options;

/* State on disk: DeepSpeed's offload_optimizer, offload_param and aio. None of it changes a result.
 */
typedef struct sifr_offload_options {
    const char *nvme_path;  /* directory, read by sifr_engine_create only; NULL: all in memory */
    bool optimizer;         /* fp32 master weights and both moments are there */
    bool parameters;        /* what kernels read as weights is, at ZeRO stage 3 */
    bool gradients;         /* their sums are, once they are final, on one rank or at stages 2, 3 */
    bool activations;       /* what the forward pass leaves for the backward pass is */
    bool masters_stay;      /* of `optimizer`, here and of the host's: master weights do not go */
    bool moments_stay;      /* nor do both moments */
    sifr_host_options host; /* what is in the host's memory instead */
    int32_t slice_count;    /* of parameters, in memory at a time; 0: worked out */
    int64_t slice_size;     /* elements that a rank's slice of a unit may have; 0: any number */
    int64_t kept_elements;  /* of parameters that stay in memory, in the model's order */
    double kept_state;      /* share of optimizer state that stays, of whole units, in that order */
    int64_t sub_group_size; /* elements updated at a time; 0: worked out */
    int32_t buffer_count;   /* each for one kind of state of one sub-group; 0: worked out */
    bool pipeline_read, pipeline_write; /* beside the update */
    bool pin_memory;     /* of what the state and gradients go through, where the system allows */
    bool pin_parameters; /* and of what parameters are read to and written from */
    int64_t block_size;  /* bytes of a request; a multiple of 4096 */
    int32_t queue_depth; /* requests under way for each thread */
    int32_t threads;
    bool single_submit, overlap_events; /* as DeepSpeed's */
} sifr_offload_options;

typedef struct sifr_engine_options {
    sifr_precision precision;
    int threads;     /* 0: every core that the process may run on */
    const char *isa; /* instruction set: "avx512_bf16", "avx512", "avx2", "plain"; NULL: the best
                        there is */
    int64_t micro_batch_size;            /* sequences */
    int64_t seq_length;                  /* tokens of a sequence */
    int32_t gradient_accumulation_steps; /* micro batches of a step */
    bool unit_order; /* all micro batches of a unit, then the next unit ("step_order") */
    bool sequential; /* gradients added left to right, not in a tree ("gradient_order") */
    bool recompute;  /* keep only units' inputs and run their forward pass again */
    /* With recompute: what is dear to compute again is kept, too, while activations take at most so
     * many bytes; 0: nothing is. Fewer than the least that they take are SIFR_USAGE. */
    int64_t activation_memory;
    /* With recompute: of the units between the first and the last the inputs of so many are kept,
     * and those between are computed again; 0: all of them are. Not with activation_memory. */
    int32_t number_checkpoints;
    /* What works row by row (norms, products, the MLP between them) goes through a micro batch so
     * many tokens at a time, and what only it reads is there for so many; a multiple of 1,024, 0:
     * all at once. The same bits each way. */
    int64_t tile_tokens;
    double beta1, beta2, eps, weight_decay;
    bool bias_correction, decoupled; /* decoupled: AdamW; else weight decay is in the gradient */
    double gradient_clipping;        /* global L2 norm; 0: off */
    sifr_loss_scaling loss_scaling;  /* of SIFR_FP16; the others have none */
    int zero_stage;                  /* of ZeRO, 0 to 3: what ranks hold as slices */
    sifr_zero_options zero;
    sifr_offload_options offload;
    sifr_precision communication_data_type; /* of gradients between ranks; 16 bits halve what moves
                                               and round it */
    /* In which sums of gradients are kept: SIFR_FP32, or the precision itself, which halves their
     * memory and what moves, and rounds every partial sum. */
    sifr_precision grad_accum_dtype;
    /* Type of master weights, and of both moments: SIFR_FP32, or SIFR_BF16 with that precision.
     * Master weights in bf16 are the parameters themselves. What is in bf16 is rounded
     * stochastically after each update, by numbers that are a function of seed, step and element.
     */
    sifr_precision masters, moments;
    uint64_t seed; /* of dropout and of this rounding */
} sifr_engine_options;

/* fp32, all cores, one sequence of 1024 tokens, AdamW with betas 0.9 and 0.999, epsilon 1e-8, no
 * weight decay, clipping at 1, seed 42; loss scaling dynamic from 2^16 down to 1, window 1000,
 * hysteresis 2; transfers overlap, one unit is gathered ahead and none is kept; state in memory. */
SIFR_API sifr_engine_options sifr_engine_defaults(void);

typedef struct sifr_step_result {
    double loss;          /* mean over the labelled tokens of the step */
    int64_t labelled;     /* tokens that have a label */
    double gradient_norm; /* L2, before clipping; loss scale divided out */
    double loss_scale;    /* of this step; 1 in fp32 and bf16 */
    bool updated;         /* false: a loss or gradient was not finite (or no token had a label), and
                             nothing was changed but, in fp16, the loss scale */
} sifr_step_result;

/* The model is borrowed: finished, and alive as long as the engine. SIFR_NO_MEMORY when the system
 * refuses what the plan needs; SIFR_USAGE for options that contradict each other. Weights are zero
 * until they are initialised or written. */
SIFR_API sifr_status sifr_engine_create(const sifr_model *model, const sifr_engine_options *options,
                                        sifr_engine **out, sifr_error *error) SIFR_MUST_CHECK;
SIFR_API void sifr_engine_free(sifr_engine *engine); /* NULL is harmless */

/* Random weights by each weight's rule: a function of (seed, weight, element) alone. */
SIFR_API sifr_status sifr_engine_initialise(sifr_engine *engine, uint64_t seed,
                                            sifr_error *error) SIFR_MUST_CHECK;

/* Weights by name, in fp32, row-major; count must be rows x columns. Writing resets nothing else.
 * Both copy. With several ranks each of them makes the same calls. */
SIFR_API sifr_status sifr_engine_write_weight(sifr_engine *engine, const char *name,
                                              const float *values, size_t count,
                                              sifr_error *error) SIFR_MUST_CHECK;
SIFR_API sifr_status sifr_engine_read_weight(const sifr_engine *engine, const char *name,
                                             float *values, size_t count,
                                             sifr_error *error) SIFR_MUST_CHECK;

/* One step. tokens and labels: gradient_accumulation_steps x micro_batch_size x seq_length ids,
 * row-major; the label of a token is the id that follows it, or -100 for none. Both are copied
 * before any work. Ids outside of the model's vocabulary are SIFR_FAILED, and nothing changes.
 * SIFR_FAILED, too, for a step in fp16 that overflows at the least loss scale: no later one can do
 * better. Where state is on disk a step may leave its update to the next one; all other functions
 * find it done, and a disk that fails is then said by them. */
SIFR_API sifr_status sifr_engine_step(sifr_engine *engine, const int32_t *tokens,
                                      const int32_t *labels, double learning_rate,
                                      sifr_step_result *result, sifr_error *error) SIFR_MUST_CHECK;

/* Adam's betas from the next step on, for schedules that move them; the options' until then. The
 * bias corrections are 1 - beta^t with the betas of the step, as torch has them. An update that is
 * left to a later step keeps the betas of its own. SIFR_USAGE outside of 0 to below 1. */
SIFR_API sifr_status sifr_engine_set_betas(sifr_engine *engine, double beta1, double beta2,
                                           sifr_error *error) SIFR_MUST_CHECK;

/* Sum of the losses of one micro batch (micro_batch_size x seq_length), without training. */
SIFR_API sifr_status sifr_engine_evaluate(sifr_engine *engine, const int32_t *tokens,
                                          const int32_t *labels, double *loss_sum,
                                          int64_t *labelled, sifr_error *error) SIFR_MUST_CHECK;

/* Steps so far, and how many of them changed the weights. */
SIFR_API int64_t sifr_engine_steps(const sifr_engine *engine);
SIFR_API int64_t sifr_engine_updates(const sifr_engine *engine);

/* Loss scale of the step to come; 1 in fp32 and bf16. */
SIFR_API double sifr_engine_loss_scale(const sifr_engine *engine);

/* Bytes that the plan asks for: all of the engine's buffers at their peak. */
SIFR_API int64_t sifr_engine_planned_bytes(const sifr_engine *engine);

#ifdef __cplusplus
}
#endif
#endif
