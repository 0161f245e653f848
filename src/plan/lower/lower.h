/* Shared by the files of the lowering: lower.c (order of instructions), lower_analyse.c (analysis
 * before lowering), lower_keep.c (results kept for backward), lower_tile.c (tiles of tokens),
 * lower_partition.c (cut of the units into parts), lower_stage.c (transfers between stages),
 * lower_forward.c, lower_backward.c, lower_split.c, lower_tensor.c (sums over tensor ranks),
 * lower_overlap.c (such sums beside computing), lower_words.c (a vocabulary that they divide),
 * lower_rows.c (rows cut over them),
 * lower_context.c (exchanges among context ranks), lower_gradient.c and lower_update.c. Private to
 * them.
 */
#ifndef PLAN_LOWER_H
#define PLAN_LOWER_H

#include "plan/schedule.h"

/* The place of a value's gradient. Several values may share a place: after y = a + b the gradients
 * of a and b are that of y. Code that adds to a shared place copies it first. */
typedef struct lower_place {
    int32_t buffer;
    int32_t sharers;
    bool local; /* belongs to a tile and has only that tile's rows */
} lower_place;

/* An addition of two partial gradient sums that follows micro batch `after`. */
typedef struct lower_sum {
    int32_t after, into, from; /* slots */
} lower_sum;

/* A unit's use of a trained segment: usually of its own; a tied head uses the embedding's. Each use
 * has its own gradient sums, as large as the segment. */
typedef struct lower_use {
    int32_t unit, segment;
} lower_use;

/* The current rows: the whole micro batch, or a tile of it. */
typedef struct lower_part {
    int64_t first, rows;
    int32_t tile;   /* 0: the first one, or no tile */
    int32_t region; /* region that is cut into tiles; -1: the whole micro batch */
    bool late;      /* recomputation within a tile's backward pass */
    int64_t summed; /* rows of a whole tile, where one product goes tile by tile, since the ranks
                       add its result up so (lower_overlap.c); else 0 */
} lower_part;

/* Regions: runs of nodes of one unit that work row by row, so that a tile of rows can pass through
 * all of them, forward and backward, before the next tile. A region is identified by its first
 * node. Values that only a region reads need to exist for one tile at a time. */
typedef struct lower_tiles {
    int64_t rows;    /* rows of a tile; 0: no tiles */
    int32_t *region; /* by node; -1: of none */
    bool *inner;     /* by node: no node outside its region reads its output */
    /* By node: the parts of `recompute` that run before the unit's backward pass (on all rows,
     * since other nodes read them), and within the region's backward pass (a tile at a time). */
    bool *early, *late;
    bool *gathered; /* by node that gathers rows: the backward pass of its unit has them already */
    /* Places of whole gradients in the order in which the first tile makes them; later tiles write
     * their rows of the same places. */
    int32_t *whole;
    size_t whole_count, whole_capacity, whole_next;
    struct lower_memory *memory; /* lower_tile.c */
    size_t memory_count, memory_capacity;
} lower_tiles;

/* What the backward calls of a node make. */
typedef enum lower_makes {
    LOWER_INPUTS = 1, /* gradients of inputs */
    LOWER_WEIGHTS = 2,
    LOWER_BOTH = LOWER_INPUTS | LOWER_WEIGHTS
} lower_makes;

/* Buffer, byte offset and matrix of a value of the current micro batch. */
typedef struct lower_operand {
    int32_t buffer;
    int64_t offset;
    device_matrix matrix;
} lower_operand;

/* Sums of a norm's weights' gradients over runs of rows of all tensor ranks, which are on their way
 * until the end of the unit's backward pass, where they are added up. */
typedef struct lower_fold {
    int32_t node;
    lower_operand sums;
} lower_fold;

/* A value whose tiles the tensor ranks add up one after the other: the last one's rows, and this
 * rank's slice of them, which is not gathered yet. */
typedef struct lower_summing {
    int32_t value; /* -1: none */
    lower_operand tile, slice;
} lower_summing;

typedef struct lower_state {
    plan_schedule *s;
    const sifr_model *model;
    int64_t tokens;      /* rows of a micro batch */
    lower_part part;     /* number of micro batches, and the one being lowered */
    int64_t element;     /* bytes of the training type */
    int32_t micro_batch; /* being lowered */
    size_t sets;         /* of what is kept by micro batch: 1, or one for each */
    const bool
        *recomputing; /* by node: nodes being recomputed now; NULL: the forward pass itself */

    /* By micro batch (a single set where each ends before the next begins) and value or node. */
    int32_t *buffer_of; /* value -> buffer */
    int32_t *saved;     /* node -> buffer of its kept statistics */
    bool *local;        /* value -> whether that buffer, and saved, have only one tile's rows */
    int32_t *gradient;  /* value -> place; -1 until a consumer has written it */

    lower_place *places;
    size_t place_count, place_capacity;

    /* By node: the call for a whole tile or micro batch, and for a shorter last tile; each made
     * once. */
    int32_t *forward_calls, *backward_calls;
    int32_t *weight_calls; /* backward calls of LOWER_WEIGHTS alone */
    bool *in_place;
    const bool *kept; /* by node: its output is kept for the backward pass; NULL: no output is */
    bool *recompute;  /* by node: to be recomputed before its unit's backward pass */
    bool
        *feeds_other_units; /* by node: other units read its output, or a result computed from it */
    bool *carries; /* by node: it or a node before it has a trained weight, so it has a backward
                      pass */

    lower_tiles tiles;

    /* By value, of a pipeline; otherwise NULL: the last part that reads it, and that adds to its
     * gradient; -1: none. */
    int32_t *last_part, *gradient_part;

    /* By value. */
    bool *mixed; /* sliced in a way that makes its gradient start from zero */
    bool *slice_written;

    /* Gradient sums. */
    bool added_at_once; /* kernels add every micro batch to one sum, without partial sums */
    int32_t *slot_of;   /* by micro batch */
    lower_sum *sums;
    int32_t sum_count, slots;
    lower_use *uses; /* by their own units first, in order; then those of tied weights */
    int32_t use_count;
    int32_t *own_use;     /* by segment: its own unit's use of it; -1: it is frozen */
    int32_t *use_of;      /* by node and weight; -1: frozen, or there is none */
    int32_t *sum_buffers; /* use x slots -> buffer; -1 while unused */
    int32_t *fresh;       /* by use: buffer of a micro batch's gradient, if not its sum */
    base_dtype sum_type;
    lower_fold *folds;
    size_t fold_count, fold_capacity;
    bool *weight_written; /* by weight, within the unit and micro batch */
    lower_summing summing;
    bool *later; /* by node: the gradients of its weights are to come, beside a sum */
} lower_state;

/* The current micro batch's index into buffer_of, saved and gradient. */
size_t lower_value(const lower_state *state, int32_t value);
size_t lower_node(const lower_state *state, int32_t node);

/* The current rows of a value; the rows of its buffer, which holds one tile or all rows, and where
 * the current rows begin in it. Values with a number of rows of their own are in no tile. */
int64_t lower_value_rows(const lower_state *state, int32_t value);
int64_t lower_rows(const lower_state *state, int32_t value, bool local);
int64_t lower_first_row(const lower_state *state, bool local);

device_matrix lower_matrix(int64_t rows, int64_t columns, base_dtype dtype);
base_dtype lower_dtype(const lower_state *state, int32_t value);
lower_operand lower_locate(const lower_state *state, int32_t value);
/* The statistics that a node's forward call keeps for its backward call. */
lower_operand lower_saved(const lower_state *state, int32_t node);
/* A node's attributes, completed with values known only to the plan. */
device_attributes lower_attributes(const lower_state *state, const model_node *node);
/* The operand of a weight in the parameters that kernels read. */
lower_operand lower_weight(const lower_state *state, int32_t weight);

/* Sets the call's matrix for `role`, if there is a call, and adds the operand to the current
 * instruction. */
sifr_status lower_put(lower_state *state, device_call *call, plan_role role, lower_operand operand,
                      sifr_error *error) SIFR_MUST_CHECK;

/* The node's call for the current tile: a shorter last tile has a call of its own. */
int32_t *lower_cached(const lower_state *state, int32_t *cached);
/* Ends an instruction that runs `call`. *cached is the index of an equal call, or -1; it is
 * updated. If `call` is NULL the cached one is used. */
sifr_status lower_emit(lower_state *state, plan_action action, int32_t unit, int32_t node,
                       const device_call *call, int32_t *cached, bool accumulate_dw,
                       sifr_error *error) SIFR_MUST_CHECK;

/* Fills in_place, mixed, carries, recompute and feeds_other_units. */
sifr_status lower_analyse(lower_state *state, sifr_error *error) SIFR_MUST_CHECK;
/* recompute, for the nodes of one unit, by `kept`. After lower_analyse. */
void lower_find_recompute(lower_state *state, int32_t unit);

/* Finds regions, and when their nodes are recomputed. Call after lower_analyse; the settings give
 * the rows of a tile. */
sifr_status lower_find_tiles(lower_state *state, sifr_error *error) SIFR_MUST_CHECK;
void lower_free_tiles(lower_state *state);
/* Whether a value's buffer in the current forward pass holds one tile only; likewise for its
 * gradient. */
bool lower_is_local(const lower_state *state, int32_t node);
bool lower_gradient_is_local(const lower_state *state, int32_t value);
lower_part lower_whole(const lower_state *state);
/* Lowers the forward pass of a region, tile by tile; only the nodes in `recomputing`, if that is
 * given. *next is the node after the region. */
sifr_status lower_forward_tiles(lower_state *state, int32_t region, int32_t *next,
                                sifr_error *error) SIFR_MUST_CHECK;
/* Lowers the late recomputation and the backward pass of the region that ends with `last`; *next is
 * the node before it. */
sifr_status lower_backward_tiles(lower_state *state, int32_t last, int32_t *next,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* Makes a schedule from checked settings, including the passes and memory. `kept` (by node,
 * borrowed) is for SIFR_RECOMPUTE_AUTO. */
sifr_status lower_list(const sifr_model *model, device *dev, const plan_settings *settings,
                       const bool *kept, plan_schedule **out, sifr_error *error) SIFR_MUST_CHECK;
/* The same for SIFR_RECOMPUTE_AUTO, keeping as much as the limits allow. */
sifr_status lower_keep(const sifr_model *model, device *dev, const plan_settings *settings,
                       plan_schedule **out, sifr_error *error) SIFR_MUST_CHECK;

/* What the backward pass of a node reads beside dy: its op's `keep`, without the input of a product
 * whose weight is frozen. */
int lower_kept(const lower_state *state, int32_t node);

/* Whether this value needs a gradient: some weight before it is trained. */
bool lower_has_gradient(const lower_state *state, int32_t value);

/* In generation, the buffers of what nodes keep of earlier tokens. Nodes with the same keys and
 * values share theirs: each writes the same new rows. */
sifr_status lower_add_caches(lower_state *state, sifr_error *error) SIFR_MUST_CHECK;
sifr_status lower_forward(lower_state *state, int32_t node, sifr_error *error) SIFR_MUST_CHECK;
/* the logits that the mode needs, instead of the loss */
sifr_status lower_logits(lower_state *state, int32_t node, sifr_error *error) SIFR_MUST_CHECK;
/* Of a node of tensor ranks, which has no kernel; and the sum of all ranks' `from`. */
sifr_status lower_tensor_forward(lower_state *state, int32_t node,
                                 sifr_error *error) SIFR_MUST_CHECK;
sifr_status lower_tensor_sum(lower_state *state, int32_t node, const lower_operand *from,
                             const lower_operand *to, sifr_error *error) SIFR_MUST_CHECK;
/* A place in FP32 for a part of a sum like `like`; and the sum of all ranks' parts of `value`,
 * rounded to `to`, with the bias of weight `bias` (-1: none), or added to it. */
sifr_status lower_tensor_part(lower_state *state, int32_t node, const lower_operand *like,
                              lower_operand *part, sifr_error *error) SIFR_MUST_CHECK;
sifr_status lower_tensor_finish(lower_state *state, int32_t node, plan_action action, int32_t value,
                                const lower_operand *part, int32_t bias, const lower_operand *to,
                                bool add, sifr_error *error) SIFR_MUST_CHECK;
/* Sums beside computing (tp_overlap_comm). Whether the result of product n is added up by tiles, or
 * `back` the gradient of its input. Tiles of a sum of so many columns: the first one, which is the
 * current part then, and the next one; false: there is none, and the part is the whole again. */
bool lower_sums_tiles(const lower_state *state, int32_t node, bool back);
void lower_first_tile(lower_state *state, int64_t columns);
bool lower_next_tile(lower_state *state);
/* Whether the gradients of a product's weights come when the sum of its input's has begun. */
bool lower_waits_for_sum(const lower_state *state, int32_t node);
/* Starts the sum of a tile, rows of `value`. The tile before is gathered by that, the last one by
 * lower_end_sum. */
sifr_status lower_sum_tile(lower_state *state, int32_t node, int32_t value,
                           const lower_operand *tile, sifr_error *error) SIFR_MUST_CHECK;
sifr_status lower_end_sum(lower_state *state, int32_t node, sifr_error *error) SIFR_MUST_CHECK;
/* The current part's rows of what has all rows. */
lower_operand lower_rows_of(const lower_state *state, const lower_operand *all);
/* Of a head of which each tensor rank has some words: the statistics of all, which its call gets as
 * x3; *out without a type: it has all words. */
sifr_status lower_words(lower_state *state, int32_t node, plan_action action, lower_operand *out,
                        sifr_error *error) SIFR_MUST_CHECK;
/* Of a node between whole rows and a tensor rank's own, and of it x to y: `back`, as gradients go.
 */
sifr_status lower_rows_forward(lower_state *state, int32_t node, sifr_error *error) SIFR_MUST_CHECK;
sifr_status lower_rows_move(lower_state *state, int32_t node, bool back, const lower_operand *x,
                            const lower_operand *y, sifr_error *error) SIFR_MUST_CHECK;
/* The gradient of what was gathered begins as that of the rows, gathered. */
sifr_status lower_rows_begin(lower_state *state, int32_t node, const lower_operand *rows,
                             const lower_operand *whole, sifr_error *error) SIFR_MUST_CHECK;
/* Before the backward pass of a node: its inputs that were gathered from all ranks' rows, which are
 * not kept, once more. */
void lower_forget_gathered(lower_state *state, int32_t unit); /* for another backward pass */
sifr_status lower_gather_again(lower_state *state, int32_t node, int keep,
                               sifr_error *error) SIFR_MUST_CHECK;
/* Sums of a norm's weights' gradients over runs of rows, so many numbers for each: room for those
 * of all ranks, of which *own are this one's; the start of their gather; and, at the end of a
 * unit's backward pass, the gradients. */
sifr_status lower_run_sums(lower_state *state, int32_t node, int64_t numbers, lower_operand *all,
                           lower_operand *own, sifr_error *error) SIFR_MUST_CHECK;
sifr_status lower_gather_sums(lower_state *state, int32_t node, const lower_operand *all,
                              const lower_operand *own, sifr_error *error) SIFR_MUST_CHECK;
sifr_status lower_fold_sums(lower_state *state, sifr_error *error) SIFR_MUST_CHECK;
/* The parts of a joined node (model_op.joins), added up over all ranks. */
sifr_status lower_tensor_join(lower_state *state, int32_t node, lower_operand *out,
                              sifr_error *error) SIFR_MUST_CHECK;
/* Of a node of context ranks, which has no kernel; and x exchanged among them, to y. Heads: of a
 * run of rows with all columns, y has all rows of a run of columns; else the other way. */
sifr_status lower_context_forward(lower_state *state, int32_t node,
                                  sifr_error *error) SIFR_MUST_CHECK;
sifr_status lower_exchange(lower_state *state, int32_t node, plan_action action, bool heads,
                           const lower_operand *x, const lower_operand *y,
                           sifr_error *error) SIFR_MUST_CHECK;
/* Keys or values x of a context rank's tokens, with those of other ranks that its queries read, to
 * y, which has rows for whole sequences; others of y become 0. And back: the gradients y
 * that all ranks have made of x, in FP32, are added up, rank by rank from this one on. */
sifr_status lower_gather(lower_state *state, int32_t node, plan_action action,
                         const lower_operand *x, const lower_operand *y,
                         sifr_error *error) SIFR_MUST_CHECK;
sifr_status lower_sum_gathered(lower_state *state, int32_t node, const lower_operand *y,
                               const lower_operand *x, sifr_error *error) SIFR_MUST_CHECK;
/* Rows x of a context rank's runs, with those of the tokens before each, to y; where a sequence
 * begins they are 0. Back, the gradients y of these are added to those of their own ranks'. */
sifr_status lower_to_halo(lower_state *state, int32_t node, plan_action action,
                          const lower_operand *x, const lower_operand *y,
                          sifr_error *error) SIFR_MUST_CHECK;
sifr_status lower_sum_halo(lower_state *state, int32_t node, const lower_operand *y,
                           const lower_operand *x, sifr_error *error) SIFR_MUST_CHECK;
/* The rows x of runs, without those before them, to y; and back, where these get 0. */
sifr_status lower_off_halo(lower_state *state, int32_t node, plan_action action, bool back,
                           const lower_operand *x, const lower_operand *y,
                           sifr_error *error) SIFR_MUST_CHECK;
/* How many runs of tokens a micro batch has on this rank, of all sequences. */
int64_t lower_context_runs(const lower_state *state);
/* Of the micro batch, the first of this rank's tokens, where it has one run of one sequence. */
int64_t lower_first_token(const lower_state *state);

/* What tensor ranks do not go with is refused; and this rank's part of the model, whose maker frees
 * it: NULL where the settings have no tensor ranks, or `model` is one. */
sifr_status lower_cut_tensors(const sifr_model *model, const device *dev,
                              const plan_settings *settings, sifr_model **out,
                              sifr_error *error) SIFR_MUST_CHECK;
/* The part of a tensor rank, and of that the part of a context rank; what context ranks do not go
 * with is refused. NULL where the settings have neither, or `model` is such a part. */
sifr_status lower_cut_ranks(const sifr_model *model, const device *dev,
                            const plan_settings *settings, sifr_model **out,
                            sifr_error *error) SIFR_MUST_CHECK;
/* A node whose gradients of weights are made later has LOWER_INPUTS now and LOWER_WEIGHTS then. */
sifr_status lower_backward(lower_state *state, int32_t node, lower_makes makes,
                           sifr_error *error) SIFR_MUST_CHECK;

/* Whether the backward pass of a node can make gradients of inputs and of weights in two calls. */
bool lower_can_split(const lower_state *state, int32_t node);
/* Units whose weights have their gradients in a pass of their own, PLAN_WALK_WEIGHTS
 * (lower_split.c): which they are, and both halves of their backward pass. */
bool lower_is_split(const lower_state *state, int32_t unit);
sifr_status lower_split_inputs(lower_state *state, int32_t unit, sifr_error *error) SIFR_MUST_CHECK;
sifr_status lower_split_weights(lower_state *state, int32_t unit,
                                sifr_error *error) SIFR_MUST_CHECK;

/* A place for the whole gradient of a value, or for a tile's. */
sifr_status lower_new_place(lower_state *state, int32_t value, int32_t *out,
                            sifr_error *error) SIFR_MUST_CHECK;

/* A stage of a pipeline (lower_stage.c). Whether a unit is of this stage; whether this stage reads
 * the weights of a segment. */
bool lower_is_here(const lower_state *state, int32_t unit);
bool lower_is_read_here(const lower_state *state, int32_t segment);
/* Shares out the model's units where the mesh has stages and the settings do not say it yet
 * (lower_partition.c). Refuses what stages do not go with. */
sifr_status lower_cut_model(const sifr_model *model, device *dev, plan_settings *settings,
                            sifr_error *error) SIFR_MUST_CHECK;
/* Fills last_part and gradient_part. After lower_analyse. */
sifr_status lower_find_crossings(lower_state *state, sifr_error *error) SIFR_MUST_CHECK;
/* Before and after the passes of the current micro batch through a part. */
sifr_status lower_receive_values(lower_state *state, int32_t part,
                                 sifr_error *error) SIFR_MUST_CHECK;
sifr_status lower_send_values(lower_state *state, int32_t part, sifr_error *error) SIFR_MUST_CHECK;
sifr_status lower_receive_gradients(lower_state *state, int32_t part,
                                    sifr_error *error) SIFR_MUST_CHECK;
sifr_status lower_send_gradients(lower_state *state, int32_t part,
                                 sifr_error *error) SIFR_MUST_CHECK;
/* The gradient sum of a use whose owner is on another stage; *buffer is where it arrives. */
sifr_status lower_send_sum(lower_state *state, int32_t use, int32_t buffer,
                           sifr_error *error) SIFR_MUST_CHECK;
sifr_status lower_receive_sum(lower_state *state, int32_t use, int32_t *buffer,
                              sifr_error *error) SIFR_MUST_CHECK;
/* Updated weights, from their owner to the other stages that read them. */
sifr_status lower_share_weights(lower_state *state, sifr_error *error) SIFR_MUST_CHECK;
/* Makes the block of a stage's finished plan large enough for its part of an evaluation too. A
 * stage may do so little in a step (frozen embeddings alone) that the evaluation takes more, and
 * all stages would then take memory that no plan has (executor_memory.c). A step without stages
 * leaves enough idle. */
sifr_status lower_hold_evaluation(plan_schedule *schedule, sifr_error *error) SIFR_MUST_CHECK;

/* Gradient sums: the tree (or sequence) over micro batches. */
sifr_status lower_plan_sums(lower_state *state, sifr_error *error) SIFR_MUST_CHECK;
/* Called before and after the backward pass of a unit for the current micro batch. */
sifr_status lower_begin_unit(lower_state *state, int32_t unit, sifr_error *error) SIFR_MUST_CHECK;
sifr_status lower_end_unit(lower_state *state, int32_t unit, sifr_error *error) SIFR_MUST_CHECK;
/* Adds the gradients of tied weights to their owners, in unit order. */
sifr_status lower_borrowed(lower_state *state, sifr_error *error) SIFR_MUST_CHECK;
/* A vector inside a flat parameter or a buffer with the same layout. */
lower_operand lower_vector(int32_t buffer, int64_t first, int64_t elements, base_dtype dtype);
/* Elements of a segment's final sums of gradients. */
lower_operand lower_gradient_sum(const lower_state *state, int32_t segment, int64_t first,
                                 int64_t elements);
/* Whether this stage updates a segment. */
bool lower_owns_segment(const lower_state *state, int32_t segment);
/* Norm and update. */
sifr_status lower_update(lower_state *state, sifr_error *error) SIFR_MUST_CHECK;
/* The buffer of the sums over a segment's weights, for optimizers that update by weight. */
sifr_status lower_weight_sums(lower_state *state, int32_t segment,
                              sifr_error *error) SIFR_MUST_CHECK;
/* Place of a weight's gradient for a node's use of it. */
lower_operand lower_weight_gradient(const lower_state *state, const model_node *node, int slot);

#endif
