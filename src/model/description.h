/* A model description as the planner reads it: units, weights, values and nodes (one op each), all
 * in the order in which they were built. Batch size and length do not appear here. */
#ifndef MODEL_DESCRIPTION_H
#define MODEL_DESCRIPTION_H

#include <jansson.h>
#include <stddef.h>

#include "device/call.h"
#include "formats/multimodal.h"
#include "model/coding.h"
#include "model/model_objective.h"
#include "model/ops.h"
#include "model/rope.h"
#include "model/weight_blocks.h"
#include "sifr/model.h"

typedef struct model_weight {
    char *name;
    int64_t rows, columns;
    bool vector;  /* one dimension in files */
    bool scalar;  /* none in files: one element */
    bool known;   /* a constant that no op reads, since its number is an attribute of one: a file
                     with another number than `start` is refused */
    double start; /* of a fresh model, each element, where it is not 0; `init` counts for nothing */
    int64_t size; /* of a convolution's kernel: files have columns / size x size; else 0 */
    bool frozen;  /* not trained */
    bool constant; /* and never: no gradient of it is built */
    bool based;    /* frozen, and kept in the folder that it came from: no checkpoint holds it */
    bool factor;   /* of an adapter: no model folder has it */
    bool adapted_bias; /* of a matrix with an adapter */
    model_coding coding;
    model_coding logical_coding; /* of the logical weight: a tensor rank's part may have its scales
                                    of two levels opened (shard.h) */
    int32_t adapter;             /* of such a matrix: its first factor; the second follows, and with
                                    DoRA its magnitudes. 0: none */
    int32_t norms_of; /* of magnitudes: the matrix whose norms they begin as, from 1; 0: none */
    sifr_init init;
    double deviation;
    double cutoff;     /* of a normal one: none is further from 0, in deviations; 0: no bound */
    bool has_zero_row; /* of a fresh model; an embedding's padding */
    int64_t zero_row;
    int32_t unit, group; /* group: of settings that it is trained by */
    bool rest;           /* trained by the optimizer's second row (optim/optim.h) */
    bool replicated;     /* of a tensor rank's part of a model: all its ranks have it whole */
    bool partial;        /* and each rank makes a part of its gradient */
    int32_t copies;      /* of a cut one: neighbours that have the same part, more than 1, and make
                            each a part of its gradient; else 0 */
    int32_t segment;
    int64_t offset; /* elements from the start of its segment; on a block boundary */
    model_cut cut;  /* rows x columns are of the local weight, this is of the logical one */
    int64_t words;  /* of a vocabulary that tensor ranks divide, which its rows are or, of a bias,
                       its columns; else 0. A rank may have fewer than there is room for. */
} model_weight;

typedef enum model_value_kind {
    MODEL_VALUE_ACTIVATION, /* in the training type */
    MODEL_VALUE_INPUT,      /* int32 */
    MODEL_VALUE_TARGETS,    /* FP32, of a batch */
    MODEL_VALUE_TABLE,      /* FP32 constant of positions x columns: see model_table */
    MODEL_VALUE_LOSS /* FP32, `columns` numbers for each token, all of one behind the other: the
                        first are losses */
} model_value_kind;

typedef struct model_value {
    model_value_kind kind;
    int32_t unit, node;    /* that made it; -1 for inputs and tables */
    int64_t columns, rows; /* rows 0: one for each token */
    int32_t base;          /* of a slice: the value it lies in; else -1 */
    int64_t first;
    int32_t contexts; /* of a context rank's part: it has a row for each token of so many ranks,
                         where others have one for each of the rank's own; else 0 */
    int32_t halo;     /* and before each run of the rank's so many rows of the tokens before it */
    bool wide;        /* and its gradient is in FP32: a part of a sum over context ranks */
    bool cut_columns; /* of a tensor rank's part: it has some of the columns */
    bool cut_rows; /* of a tensor rank's part: it has the rank's run of a micro batch's rows, where
                      others have all of them (shard_rows.h) */
    int32_t table; /* index of a table's model_table; else -1 */
    sifr_input input; /* of an input */
} model_value;

/* Angles of a rotary embedding: row p of the table holds scale cos(p f), then scale sin(p f). They
 * follow from a rule and, in some kinds, from the length of the sequence, or they are given. */
typedef struct model_table {
    int64_t rotary_dim;
    model_rope *rule;    /* NULL: given */
    double *frequencies; /* rotary_dim / 2; NULL: by the rule */
    double scale;
    int32_t value;
} model_table;

typedef struct model_node {
    const model_op *op;
    int32_t unit;
    int32_t x[DEVICE_INPUTS], w[DEVICE_WEIGHTS]; /* values and weights; -1 where none */
    int32_t y;
    bool bias_elsewhere; /* w[1] is added by another tensor rank, whose sum this rank's y joins */
    bool summed; /* with tp_exact: y where inputs are cut, dx where outputs are, is a part of a sum
                    over tensor ranks, in fp32, to which a bias is added once it is whole */
    bool joined; /* its op's part of all tensor ranks is added up before it (model_op.joins) */
    device_attributes attributes; /* sequences and length are filled in by the planner */
} model_node;

/* Settings of an optimizer that some weights are trained by. */
typedef struct model_group {
    double lr_scale, weight_decay;
} model_group;

/* A flat parameter: weights of a unit that are treated alike, all frozen or all trained by one
 * group of settings. Only trained segments have gradients, moments and master weights. */
typedef struct model_segment {
    int32_t unit, group;
    bool frozen, rest;
    bool replicated; /* the same on all tensor ranks */
    bool partial;    /* and a rank's gradient of it is a part of a sum; else they are the same */
    int32_t copies;  /* of cut weights: tensor neighbours that have the same; 0: each has its own */
    model_coding coding;
    int64_t elements; /* its weights padded to blocks, or to records */
} model_segment;

typedef struct model_unit {
    char *name;
    int32_t first_node, nodes;
    int32_t first_weight, weights;
    int32_t first_segment, segments;
    int64_t elements; /* of all its weights, padded to blocks */
} model_unit;

struct sifr_model {
    model_unit *units;
    model_segment *segments; /* by unit; model_arrange makes them */
    model_weight *weights;
    model_value *values;
    model_node *nodes;
    model_table *tables;
    model_group *groups; /* by model_weight.group; sifr_model_group makes them */
    size_t segment_count, segment_capacity;
    size_t unit_count, unit_capacity, weight_count, weight_capacity, value_count, value_capacity;
    size_t node_count, node_capacity, table_count, table_capacity, group_count, group_capacity;
    int32_t inputs[SIFR_INPUTS]; /* values; -1 until asked for */
    bool finished;
    bool packed; /* sifr_pack */
    /* While it is built: the adapters that it gets, and the modules that get them; NULL: none. */
    const struct model_lora *lora;
    const json_t *lora_targets;
    sifr_error error; /* of the first wrong call */
    model_objective objective;
    /* Ids that text may not have, since they stand for an image, a video or a sound. */
    formats_media media[FORMATS_MEDIA_LIMIT];
    int media_count;
    /* Of a tensor rank's part of a model (shard.h): how many ranks there are, the rank's place
     * among them, and by node of the logical model the node that runs here. 0 and NULL: it is the
     * logical model. With tp_exact one rank has a part, too: the whole. */
    int32_t tensors, tensor_place;
    int32_t copies; /* of them, neighbours that have the same kv heads, where these are fewer */
    int32_t *node_at;
    int32_t contexts; /* of a context rank's part (context.h): how many ranks there are; else 0 */
};

/* Rows first … first + count - 1 of a table, for a sequence of `length` tokens. */
void model_fill_table(const model_table *table, int64_t first, int64_t count, int64_t length,
                      float *rows);

/* Whether keys in the cache must be made anew when a sequence grows from `before` tokens to
 * `after`. */
bool model_outgrows_cache(const sifr_model *model, int64_t before, int64_t after);

/* Whether `value` (-1: none) chooses rows of a node's first weight. */
bool model_numbers_rows(const model_node *node, int32_t value);

/* The rows of that weight that there are numbers for, from 0 on. */
int64_t model_numbered_rows(const sifr_model *model, const model_node *node);

/* The dimensions of a logical weight in files; returns their number, 3 at most. */
int model_weight_shape(const model_weight *weight, int64_t shape[3]);

/* Divides each unit's weights into segments, in the order of their first weights, and gives every
 * weight its place in one. For a finished model, whenever weights become frozen or change group. */
sifr_status model_arrange(sifr_model *model, sifr_error *error) SIFR_MUST_CHECK;

/* Elements first … first+count-1 of a logical weight's initial values for a seed. */
void model_initial_values(const sifr_model *model, size_t weight, uint64_t seed, int64_t first,
                          int64_t count, float *out);

#endif
