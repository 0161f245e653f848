/* Short training runs of a small model over ranks that are threads, for tests of ZeRO. Each step
 * checks that bytes delivered, calls made and bytes moved by the disk are what the plan says; a run
 * that fails fails the test. */
#ifndef ZERO_RUN_H
#define ZERO_RUN_H

#include "engine/engine_private.h"

enum {
    ZERO_STEPS = 3,
    ZERO_MOST_STEPS = 8,
    ZERO_LENGTH = 16,
    ZERO_SEED = 5,
    ZERO_MOST_ROWS = 1024
}; /* seed: of the first weights */

typedef struct zero_variant {
    int32_t ranks;    /* of a stage */
    int32_t per_host; /* ranks say that so many are on each host; 0: all on one */
    int32_t stages;   /* of a pipeline; 0: one */
    sifr_pipeline_schedule schedule;
    int32_t chunks;     /* 0: one */
    int32_t shard_size; /* 0: all */
    int32_t tensors;    /* of the ranks, those that share a batch; 0: one */
    bool partitions;    /* as sifr_settings has it */
    bool rows;          /* of which each has a run of the tokens between products */
    bool overlaps;      /* of whose sums: tp_overlap_comm */
    int32_t contexts;   /* the same, of those that share its tokens */
    sifr_context_kind kind;
    int32_t
        exact; /* pieces: sifr.tp_exact; a Llama then has 8 heads, and as many kv heads as pieces */
    int64_t vocabulary;        /* words; 0: 97, one block of words */
    sifr_vocab_parallel words; /* how tensor ranks divide them */
    int stage;
    bool unit_order, recompute, sequential;
    sifr_precision precision;
    const char *type;           /* "llama", "gpt2" or that of an encoder */
    const model_config *config; /* the model, in place of `type`; NULL: that of zero_config */
    int32_t layers;             /* 0: 2 */
    int32_t global;             /* micro batches of a step, over all ranks */
    int64_t sequences;          /* of a micro batch; 0: one */
    const sifr_zero *keys;      /* NULL: the defaults */
    const char *freeze[3];      /* patterns; NULL: none */
    int32_t groups;             /* weights take turns in so many groups; 0: in one */
    int steps;                  /* 0: ZERO_STEPS; -1: none, but an evaluation */
    double first_scale;         /* fp16: where the loss scale starts; 0: where it does by itself */
    bool no_clipping;
    sifr_precision travel;           /* of gradients between ranks */
    sifr_precision gradients;        /* of their sums */
    sifr_precision masters, moments; /* what optimizer state is kept in */
    const sifr_optimizer *optimizer; /* NULL: AdamW */
    bool evaluate_each;              /* after each step, too */
    const sifr_offload *offload;     /* NULL: state in memory */
    bool evaluate;                   /* after the last step, on its batch */
    int64_t activation_bytes;        /* with recompute: as sifr_settings has them */
    int32_t checkpoints;
    int64_t length;      /* of a sequence; 0: ZERO_LENGTH */
    int64_t tile_tokens; /* as sifr_settings has them */
    bool separate;       /* ranks' devices have memory of their own, which each step checks, too */
    sifr_status (*open)(device **out, sifr_error *error); /* a device; NULL: as `separate` says */
    bool packed;                                          /* sequences hold several documents */
    bool distinct;                 /* no token twice in a step; the head has weights of its own */
    bool hidden;                   /* `open` opens devices that hide their memory */
    model_coding coding;           /* of frozen weights of products */
    bool opened;                   /* they have the values of these codes, but are held as ever */
    int64_t intermediate;          /* intermediate_size; 0: as small as the rest */
    const sifr_own_loss_args *own; /* NULL: labels are learned */
    const sifr_compression *compression;
    int64_t scale_window; /* fp16: as sifr_fp16 has it; 0: its default */
    /* Called by each rank's thread after each step; NULL: nothing. */
    void (*stepped)(void *user, const sifr_engine *engine, int step, bool updated);
    void *user;
} zero_variant;

typedef struct zero_outcome {
    float *weights; /* all of them, end to end, then their states; the caller's to free */
    size_t count;
    /* By step; norm -1: nothing was updated. */
    double loss[ZERO_MOST_STEPS], norm[ZERO_MOST_STEPS], scale[ZERO_MOST_STEPS];
    double evaluated;           /* sum of losses of the ranks' first micro batches */
    float rows[ZERO_MOST_ROWS]; /* the losses of rank 0's, whose tokens context ranks share */
    int64_t updates;
    int64_t peak[PLAN_CLASSES]; /* planned, of rank 0 */
    int64_t activations;        /* where they take most */
    int32_t again;              /* instructions that compute something again */
    int64_t total_bytes, host_bytes, nvme_bytes, staging_bytes;
    int64_t nvme_read, nvme_written; /* bytes of a step, planned */
    int64_t host_read, host_written;
    int64_t gathered, reduced;   /* bytes delivered to rank 0 in a step */
    int64_t gathers, reductions; /* calls of a step */
} zero_outcome;

model_config zero_config(const char *type);
zero_outcome zero_run(zero_variant v);

/* The same of a run that may be refused: false, with the first failure in `why`, of
 * SIFR_ERROR_LENGTH, where it was. */
bool zero_try(zero_variant v, zero_outcome *out, char *why);

/* The same bits: weights, losses and norms. zero_expect_same fails the test where they are not. */
void zero_expect_same(const zero_outcome *want, zero_variant v);
bool zero_is_same(const zero_outcome *want, const zero_outcome *have);

/* zero_expect_same at each stage, in both orders, with and without recomputation. `turn` counts the
 * runs, of which some are left out under sanitizers (thinned.h). */
void zero_expect_each_stage(const zero_outcome *want, zero_variant v, size_t *turn);

#endif
