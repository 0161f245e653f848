/* The settings of a step: what the library's caller fills in, a config file is read into, and the
 * planner and the engine read. A field has the name of the config's key that sets it, without
 * DeepSpeed's prefixes; docs/config.md describes each key. */
#ifndef SIFR_SETTINGS_H
#define SIFR_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "sifr/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sifr_precision {
    SIFR_FP32, /* everything in fp32 */
    SIFR_BF16, /* parameters and activations in bf16; gradients, master weights and moments in
                  fp32, unless the settings say otherwise */
    SIFR_FP16  /* the same in fp16, with loss scaling */
} sifr_precision;

/* What a rank computes on. */
typedef enum sifr_device {
    SIFR_DEVICE_AUTO, /* a GPU where there is one with kernels for it, else the CPU */
    SIFR_DEVICE_CPU,
    SIFR_DEVICE_CUDA
} sifr_device;

/* In which order a step goes through its micro batches and the model's units. */
typedef enum sifr_step_order {
    SIFR_STEP_BATCH, /* all units of a micro batch, then the next micro batch */
    SIFR_STEP_UNIT,  /* all micro batches of a unit, then the next unit */
    SIFR_STEP_AUTO   /* `sifr train` takes the quicker one that fits; elsewhere SIFR_STEP_BATCH */
} sifr_step_order;

/* In which order gradients of micro batches and ranks are added. */
typedef enum sifr_gradient_order {
    SIFR_GRADIENT_TREE,      /* sums do not depend on the number of ranks */
    SIFR_GRADIENT_SEQUENTIAL /* left to right: less memory, without that */
} sifr_gradient_order;

/* What is kept of the forward pass for the backward pass. The same bits each way. */
typedef enum sifr_recompute {
    SIFR_RECOMPUTE_NONE, /* all that the backward pass reads */
    SIFR_RECOMPUTE_UNIT, /* the inputs of units; the rest is recomputed, unit by unit */
    SIFR_RECOMPUTE_AUTO  /* and, within activation_memory, the results that are most expensive
                            to recompute for their size */
} sifr_recompute;

/* Where state is kept. CPU ranks have only one memory, so SIFR_TIER_NONE and SIFR_TIER_CPU are the
 * same for them. */
typedef enum sifr_tier {
    SIFR_TIER_NONE, /* in the device's memory */
    SIFR_TIER_CPU,  /* in the host's memory */
    SIFR_TIER_NVME  /* in a file on disk */
} sifr_tier;

/* Which part of the optimizer state goes to the tier of offload_optimizer. */
typedef enum sifr_offload_state {
    SIFR_STATE_ALL,
    SIFR_STATE_MASTER_WEIGHTS,
    SIFR_STATE_MOMENTS
} sifr_offload_state;

/* DeepSpeed's "fp16" section, for SIFR_FP16. The loss is multiplied by a scale before the backward
 * pass, and the gradients are divided by it before their norm and the update. A dynamic scale is
 * halved by an overflow once the hysteresis is used up, and doubled after loss_scale_window steps
 * without an overflow. */
typedef struct sifr_fp16 {
    double loss_scale;           /* the scale of every step; 0: dynamic, set by the fields below */
    int32_t initial_scale_power; /* the first scale is 2 to this power */
    double min_loss_scale;       /* an overflow at this scale ends the run */
    int64_t loss_scale_window;
    int64_t hysteresis;          /* overflows before the scale is lowered */
    bool consecutive_hysteresis; /* refilled by each step without overflow, not only when the scale
                                    grows */
} sifr_fp16;

/* Of reduce_bucket_size and max_live_parameters: DeepSpeed's default, or more if the model's units
 * are so large that it would end overlap. */
enum { SIFR_BY_UNITS = -1 };

/* Whether tensor ranks divide the words of the vocabulary: the rows of the embedding and the head.
 */
typedef enum sifr_vocab_parallel {
    SIFR_VOCAB_BY_BLOCKS, /* where each has a block of words, and the model allows it */
    SIFR_VOCAB_SPLIT,     /* always; a rank may have no words. A model that does not allow it is
                             refused */
    SIFR_VOCAB_WHOLE      /* never */
} sifr_vocab_parallel;

/* How attention of context ranks gets whole sequences. */
typedef enum sifr_context_kind {
    SIFR_CONTEXT_ULYSSES, /* of some heads each: ranks exchange tokens for heads, and back
                             (DeepSpeed-Ulysses, arXiv 2309.14509) */
    SIFR_CONTEXT_GATHER,  /* each rank gathers keys and values for its own queries (The Llama 3
                             Herd of Models, arXiv 2407.21783, section 3.3.2) */
    SIFR_CONTEXT_BOTH     /* neighbours, the greatest number that divides both the ranks and the kv
                             heads, exchange tokens for heads; groups of them gather the keys and
                             values of their heads */
} sifr_context_kind;

/* How ranks divide the work. */
typedef struct sifr_mesh {
    int32_t shard_size; /* neighbours that share one copy of what the ZeRO stage cuts, a divisor of
                           the number of ranks, or of those of a pipeline stage; other groups of as
                           many hold copies of it. 0: all share one */
    int32_t context_size; /* neighbours that divide the tokens of each sequence among them (context
                             parallelism), and so share a batch. A divisor of the ranks and of
                             seq_length; 0 and 1: each rank has whole sequences */
    int32_t tensor_size;  /* neighbours that divide the matrices of each block among them (tensor
                             parallelism); they share a batch. A divisor of the ranks; 0 and 1: each
                             rank has whole matrices */
    int32_t tp_exact; /* 2, 4 or 8: the same bits with every tensor_size that divides it; what it
                         divides is computed in so many pieces. 0: bits follow from
                         tensor_size */
    sifr_context_kind context_kind;
    sifr_vocab_parallel vocab_parallel_lm_head;
    bool sequence_parallel; /* with tensor ranks: each has a run of a micro batch's tokens between
                               the products that are divided, where norms, dropout and residuals
                               are, which otherwise each has whole. The same bits. The tokens of a
                               micro batch are a multiple of 128 x tensor_size */
    bool tp_overlap_comm;   /* with tensor ranks: sums over them travel while the next rows, or
                               gradients of weights, are computed. The same bits and bytes */
} sifr_mesh;

/* How ranks share and exchange state: DeepSpeed's keys of zero_optimization. Counts are elements.
 * None of them but quantized_weights and quantized_gradients changes a result. */
typedef struct sifr_zero {
    int32_t stage;              /* 0 to 3: what ranks hold as slices */
    bool overlap_comm;          /* beside computing; false: each transfer is waited for at once */
    bool quantized_weights;     /* stage 3: gathers carry 8 bits a parameter, and all compute with
                                   what these stand for */
    bool quantized_gradients;   /* stages 2 and 3: gradients travel in 4 bits, inside hosts first,
                                   then between them, and are added up in fp32 */
    int64_t reduce_bucket_size; /* a unit's gradients travel beside computing if at most so many;
                                   SIFR_BY_UNITS: 5e8, at least one unit */
    int64_t allgather_bucket_size; /* stages 0 to 2: on their way at a time after the update */
    /* Stage 3. */
    int64_t prefetch_bucket_size; /* units are gathered ahead until at least so many; 0: none */
    int64_t max_live_parameters;  /* nothing is gathered ahead beyond so many gathered ones;
                                     SIFR_BY_UNITS: 1e9, at least two units */
    int64_t max_reuse_distance;   /* a unit stays if fewer are gathered until its next use */
    int64_t param_persistence_threshold; /* units of at most so many are always whole ... */
    int64_t model_persistence_threshold; /* ... while all of these are at most so many */
    int64_t hpz_partition_size; /* neighbours that keep a second copy of the parameters among them,
                                   from a unit's first gather of a step to its last one; 0, 1: none
                                 */
} sifr_zero;

/* How gradients are coded on their way between ranks. */
typedef enum sifr_compression_type { SIFR_COMPRESSION_NONE, SIFR_POWER_SGD } sifr_compression_type;

/* PowerSGD (Vogels et al., NeurIPS 2019), with the parameters and defaults of torch's hook: sums of
 * the gradients of matrices are products of two factors. Sums are kept in fp32; CPUs alone. */
typedef struct sifr_compression {
    sifr_compression_type type;
    int64_t rank;                /* columns of each factor, at most 64 */
    int64_t start;               /* steps before the first that compresses; with error_feedback or
                                    warm_start at least 2 */
    double min_compression_rate; /* a matrix that is not so many times smaller stays as it is */
    bool error_feedback;         /* what a step loses is added to the next one's gradient */
    bool warm_start;             /* a step begins with the factors of the one before */
    double orthogonalization_epsilon; /* joins the norms that columns are divided by */
    int64_t seed;                     /* of the first factors */
} sifr_compression;

/* DeepSpeed's offload_optimizer: master weights and moments. Counts of 0 are worked out from the
 * model. */
typedef struct sifr_offload_optimizer {
    sifr_tier device;
    sifr_offload_state state;
    double ratio; /* share of the state that is offloaded; the rest is that of whole units, in the
                     model's order */
    int32_t buffer_count; /* each for one kind of state of one sub-group */
    bool pin_memory;      /* of what state and gradients go through, where the system allows */
    bool pipeline_read;   /* the next sub-group is read beside the update of this one */
    bool pipeline_write;  /* and the last one written */
} sifr_offload_optimizer;

/* DeepSpeed's offload_param: parameters as kernels read them, at ZeRO stage 3. Counts of 0 are
 * worked out from the model. */
typedef struct sifr_offload_param {
    sifr_tier device;
    int32_t buffer_count; /* slices in memory at a time, from their read to the end of their use, of
                             several ranks of their gather */
    int64_t buffer_size;  /* elements that a rank's slice of a unit may have; 0: any number */
    int64_t max_in_cpu;   /* elements of slices that stay in the host's memory, units in the model's
                             order */
    bool pin_memory;      /* of what slices are read to and written from */
} sifr_offload_param;

/* DeepSpeed's "aio" section: how a disk is read and written. */
typedef struct sifr_aio {
    int64_t block_size;           /* bytes of a request; a multiple of 4096 */
    int32_t queue_depth;          /* requests under way for each thread */
    int32_t intra_op_parallelism; /* threads */
    bool single_submit, overlap_events;
} sifr_aio;

/* In which order the stages of a pipeline work on micro batches (plan/walk.h has the papers). */
typedef enum sifr_pipeline_schedule {
    SIFR_SCHEDULE_GPIPE,       /* all forward, then all backward */
    SIFR_SCHEDULE_1F1B,        /* one forward, one backward */
    SIFR_SCHEDULE_INTERLEAVED, /* the same over several chunks a stage */
    SIFR_SCHEDULE_ZB_H1        /* 1f1b, with the gradients of weights where a stage would wait */
} sifr_pipeline_schedule;

/* DeepSpeed's "pipeline": the model's units on several ranks, one after the other. None of it
 * changes a result. */
typedef struct sifr_pipeline {
    int32_t stages;        /* must divide the ranks; 0 and 1: no pipeline */
    const char *partition; /* "best", "uniform", "parameters", "type:REGEX"; NULL: best */
    sifr_pipeline_schedule schedule;
    int32_t chunks;                         /* of SIFR_SCHEDULE_INTERLEAVED, at least 2 */
    int32_t activation_checkpoint_interval; /* above 0: SIFR_RECOMPUTE_UNIT */
} sifr_pipeline;

/* State on other tiers. None of it changes a result. */
typedef struct sifr_offload {
    sifr_offload_optimizer optimizer;
    sifr_offload_param param;
    sifr_tier gradients;    /* final gradient sums, on one rank or at ZeRO stages 2 and 3 */
    sifr_tier activations;  /* results of the forward pass that the backward pass reads */
    int64_t sub_group_size; /* elements that are read, updated and written at a time; 0: worked
                               out */
    const char *nvme_path;  /* directory of the files, where something is on SIFR_TIER_NVME */
    sifr_aio aio;
} sifr_offload;

/* docs/optimizers.md has the formulas. Both Adams are one optimizer: `decoupled` tells AdamW. */
typedef enum sifr_optimizer_type {
    SIFR_ADAMW,
    SIFR_ADAM,
    SIFR_SGD,
    SIFR_ADAGRAD,
    SIFR_LION,
    SIFR_SCHEDULE_FREE_ADAMW,
    SIFR_ADAM_8BIT, /* both have decoupled weight decay */
    SIFR_ADAMW_8BIT,
    SIFR_LAMB,
    SIFR_MUON, /* and AdamW or Adam for what is no matrix, and for embeddings and heads */
    SIFR_ADAFACTOR
} sifr_optimizer_type;

/* Forms of Muon's Newton-Schulz iteration: on the Gram matrix, which is faster unless the matrix is
 * square, or on the matrix. */
typedef enum sifr_ns_method { SIFR_NS_GRAM, SIFR_NS_STANDARD } sifr_ns_method;

/* Which weights do not decay. */
typedef enum sifr_no_decay {
    SIFR_DECAY_ALL,            /* none: every trained weight decays */
    SIFR_NO_DECAY_TRANSFORMERS /* biases and weights of norms, by the Hugging Face Trainer's rule */
} sifr_no_decay;

/* Settings of the weights whose names match a shell glob. */
typedef struct sifr_optimizer_group {
    const char *match;
    double lr_scale;     /* times the learning rate of each step */
    double weight_decay; /* below 0: as without the group */
} sifr_optimizer_group;

/* What an optimizer does not use has no effect. */
typedef struct sifr_optimizer {
    double beta1, beta2, eps, weight_decay;
    bool bias_correction;
    bool decoupled; /* true: AdamW; false: weight decay is added to the gradient (L2) */
    sifr_optimizer_type type;
    bool amsgrad;               /* of Adam */
    double momentum, dampening; /* of SGD; the first of Muon, too */
    bool nesterov;
    double lr_decay; /* of Adagrad */
    /* Of schedule-free AdamW: steps over which the rate grows, and powers of the step and of the
     * largest rate so far in the weight of a step in the average. */
    int64_t warmup_steps;
    double r, weight_lr_power;
    double min_coeff, max_coeff; /* of LAMB: bounds of a weight's trust ratio */
    sifr_ns_method ns_method;    /* of Muon */
    /* Of Muon: times the learning rate of each step, for what Muon trains and for the rest; 0: 1.
     */
    double muon_scale, adam_scale;
    /* Of Adafactor: the least RMS of a weight that its rate is scaled by, the largest RMS of an
     * update before the rate, and the power of the step in the averages of squares, below 0. */
    double least_scale, clip_threshold, decay_rate;
    bool scale_parameter;  /* the rate is scaled by the RMS of the weight */
    bool has_momentum;     /* beta1 of Adafactor counts */
    int64_t min_8bit_size; /* of 8-bit Adam: weights of fewer elements keep 32 bits */
    /* Of an exponential moving average of the weights, beside what trains; 0: none. Not of 8-bit
     * Adam and schedule-free AdamW. */
    double ema_decay;
    /* Settings that are not the same for all weights; sifr_model_group divides a model by them. */
    sifr_no_decay no_decay;
    /* The learning rate falls by this factor from one of the model's units to the one before it;
     * the last one has all of it. 0 and 1: no fall. */
    double layer_decay;
    const sifr_optimizer_group *groups; /* group_count; the first that matches a weight counts. They
                                           must be there until the engine is created */
    int32_t group_count;
} sifr_optimizer;

typedef struct sifr_settings {
    sifr_device device;
    int32_t threads; /* 0: every core that the process may run on */
    const char *isa; /* instruction set: "avx512_bf16", "avx512", "avx2", "plain"; NULL: the best
                        there is */
    uint64_t seed;   /* of dropout and of stochastic rounding */

    int64_t micro_batch_size;            /* sequences */
    int64_t seq_length;                  /* tokens of a sequence */
    int32_t gradient_accumulation_steps; /* micro batches of a rank and step */
    sifr_step_order step_order;
    sifr_gradient_order gradient_order;

    sifr_precision precision;
    sifr_fp16 fp16;
    sifr_precision communication_data_type; /* of gradients between ranks; 16 bits halve what moves
                                               and round it */
    /* In which sums of gradients are kept: SIFR_FP32, or the precision itself, which halves their
     * memory and what moves, and rounds every partial sum. */
    sifr_precision grad_accum_dtype;
    /* With SIFR_BF16: no fp32 master weights, the parameters themselves are updated; moments in
     * bf16. State in bf16 is rounded stochastically after each update; the random numbers depend
     * only on seed, step and element. */
    bool bf16_master_weights, bf16_optimizer_states;

    sifr_recompute recompute;
    /* Of SIFR_RECOMPUTE_AUTO: most bytes that a rank's activations may take. A limit below the
     * least that they can take is SIFR_USAGE; 0: SIFR_RECOMPUTE_UNIT. */
    int64_t activation_memory;
    /* Of SIFR_RECOMPUTE_UNIT: the number of units, between the first and the last, whose inputs are
     * kept; the units between them are recomputed. 0: every unit's input is kept. */
    int64_t number_checkpoints;
    /* Inputs of units that are kept are cut among tensor ranks, which have the same ones, and
     * gathered before they are used again. Does not change a result. */
    bool partition_activations;
    /* Ops that work row by row (norms, products, the MLP) process a micro batch this many tokens at
     * a time, so values that only they read take memory for that many tokens. A multiple of 1,024,
     * on GPUs of 8,192; 0: all tokens at once. Does not change a result. */
    int64_t tile_tokens;

    sifr_optimizer optimizer;
    double gradient_clipping; /* global L2 norm; 0: off */
    sifr_mesh mesh;
    sifr_zero zero;
    sifr_compression compression;
    sifr_pipeline pipeline;
    sifr_offload offload;
} sifr_settings;

/* The defaults of the config's keys (docs/config.md), one sequence of 1024 tokens, fp32, AdamW. */
SIFR_API sifr_settings sifr_settings_defaults(void);

/* Whether each field has a value that its key may have (docs/config.md) or that this header names,
 * numbers are finite, and fields go together. SIFR_USAGE names the first field that is wrong, its
 * value and what it may be. sifr_engine_create and sifr_model_group call it; what depends on the
 * model, the device or the ranks is checked there. */
SIFR_API sifr_status sifr_settings_check(const sifr_settings *settings,
                                         sifr_error *error) SIFR_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
