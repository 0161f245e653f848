/* What the files of the lowering share: lower.c (the order of things), lower_analyse.c (what is
 * known before), lower_keep.c (what is kept for backward), lower_tile.c (what runs in tiles of
 * the sequence), lower_forward.c, lower_backward.c and lower_gradient.c. Private to them. */
#ifndef PLAN_LOWER_H
#define PLAN_LOWER_H

#include "plan/schedule.h"

/* Where a value's gradient lies. Several values may share one place: after y = a + b the gradients
 * of a and b are y's. Whoever adds to a shared place takes a copy first. */
typedef struct lower_place {
    int32_t buffer;
    int32_t sharers;
    bool local; /* to a tile: it has that one's rows only */
} lower_place;

/* An addition of two partial gradient sums that follows micro batch `after`. */
typedef struct lower_sum {
    int32_t after, into, from; /* slots */
} lower_sum;

/* A unit that works with the weights of a unit, mostly its own; a tied head with the embedding's.
 * Each use has gradient sums of its own, as large as the owner's flat parameter. */
typedef struct lower_use {
    int32_t unit, owner;
    bool trained; /* some of the weights that it works with are: it has gradients */
} lower_use;

/* The rows at hand: the whole micro batch, or a tile of it. */
typedef struct lower_part {
    int64_t first, rows;
    int32_t tile;   /* 0: the first one, or no tile */
    int32_t region; /* that is cut into tiles; -1: the whole micro batch is at hand */
    bool late;      /* the forward pass again, within a tile's backward pass */
} lower_part;

/* Regions: runs of nodes of one unit that work row by row, so that a tile of rows can go through
 * all of them, forward and backward, before the next one. Named by their first node. What only a
 * region reads need exist for one tile at a time. */
typedef struct lower_tiles {
    int64_t rows;    /* of a tile; 0: nothing is tiled */
    int32_t *region; /* by node; -1: of none */
    bool *inner;     /* by node: no node outside of its region reads what it makes */
    /* By node: what of `recompute` runs before the unit's backward pass, in whole where others read
     * it, and what in the region's backward pass, a tile at a time. */
    bool *early, *late;
    /* Places of whole gradients in the order in which the first tile makes them: the other tiles
     * write their rows of the same ones. */
    int32_t *whole;
    size_t whole_count, whole_room, whole_next;
    struct lower_memory *memory; /* lower_tile.c */
    size_t memory_count, memory_room;
} lower_tiles;

typedef struct lower_state {
    plan_schedule *s;
    const sifr_model *model;
    int64_t tokens;          /* rows of a micro batch */
    lower_part part;         /* of them, that are being lowered */
    int64_t element;         /* bytes of the training type */
    int32_t micro_batch;     /* being lowered */
    const bool *recomputing; /* by node: those that are run again now; NULL: the pass itself */

    /* By micro batch (one set where the order is "batch") and value or node. */
    int32_t *buffer_of; /* value -> buffer */
    int32_t *saved;     /* node -> buffer of what its forward kept */
    bool *local;        /* value -> whether that buffer, and saved, have one tile's rows only */
    int32_t *gradient;  /* value -> place, -1 while no consumer has written it */

    lower_place *places;
    size_t place_count, place_room;

    /* By node, of a whole tile or micro batch, and of a last tile: calls, made once. */
    int32_t *forward_calls, *backward_calls;
    bool *in_place;
    const bool *kept; /* by node: what it makes lives on for the backward pass; NULL: of none */
    bool *recompute;  /* by node: to be run again before its unit's backward pass */
    bool *feeds_other_units; /* by node: other units read what it makes, or what is made of that */
    bool *carries; /* by node: a trained weight is in it or before it, so it has a backward pass */

    lower_tiles tiles;

    /* By value. */
    bool *mixed; /* sliced in a way that makes its gradient start from zero */
    bool *slice_written;

    /* Gradient sums. */
    bool added_at_once; /* kernels add every micro batch to one sum; no partial sums */
    int32_t *slot_of;   /* by micro batch */
    lower_sum *sums;
    int32_t sum_count, slots;
    lower_use *uses; /* the units' own first, in their order; then those of tied weights */
    int32_t use_count;
    int32_t *use_of;      /* by node: of its first weight */
    int32_t *sum_buffers; /* use x slots -> buffer; -1 while unused */
    int32_t *fresh;       /* by use: where a micro batch's gradient is made, if not in its sum */
    base_dtype sum_type;
    bool *weight_written; /* by weight, within the unit and micro batch */
} lower_state;

/* Buffer, byte offset and matrix of a value of the current micro batch. */
typedef struct lower_operand {
    int32_t buffer;
    int64_t offset;
    device_matrix matrix;
} lower_operand;

/* The set of the current micro batch: index into buffer_of, saved and gradient. */
size_t lower_value(const lower_state *state, int32_t value);
size_t lower_node(const lower_state *state, int32_t node);

/* Rows of a buffer of one tile, or of the whole; and where the rows at hand begin in it. */
int64_t lower_rows(const lower_state *state, bool local);
int64_t lower_first_row(const lower_state *state, bool local);

device_matrix lower_matrix(int64_t rows, int64_t columns, base_dtype dtype);
base_dtype lower_dtype(const lower_state *state, int32_t value);
lower_operand lower_locate(const lower_state *state, int32_t value);
/* What a node's forward kept for its backward call. */
lower_operand lower_saved(const lower_state *state, int32_t node);
/* A node's attributes with what only the plan knows. */
device_attributes lower_attributes(const lower_state *state, const model_node *node);
/* The weight as kernels read it. */
lower_operand lower_weight(const lower_state *state, int32_t weight);

/* Sets the call's matrix for `role`, where there is a call, and adds the operand to the instruction
 * being made. */
sifr_status lower_put(lower_state *state, device_call *call, plan_role role, lower_operand operand,
                      sifr_error *error) SIFR_MUST_CHECK;

/* Of the two calls of a node, that of the tile at hand: a last one with fewer rows has its own. */
int32_t *lower_cached(const lower_state *state, int32_t *cached);
/* Ends an instruction that runs `call`; *cached: index of an equal call, or -1, updated. Without
 * `call` it runs that one. */
sifr_status lower_emit(lower_state *state, plan_action action, int32_t unit, int32_t node,
                       const device_call *call, int32_t *cached, bool accumulate_dw,
                       sifr_error *error) SIFR_MUST_CHECK;

/* Fills in_place, mixed, carries, recompute and feeds_other_units. */
sifr_status lower_analyse(lower_state *state, sifr_error *error) SIFR_MUST_CHECK;
/* recompute, for the nodes of one unit, by `kept`. After lower_analyse. */
void lower_find_recompute(lower_state *state, int32_t unit);

/* Regions, and what runs again when. After lower_analyse; rows of a tile by the settings. */
sifr_status lower_find_tiles(lower_state *state, sifr_error *error) SIFR_MUST_CHECK;
void lower_free_tiles(lower_state *state);
/* Whether a value's buffer is one tile's, of the forward pass at hand; of its gradient's. */
bool lower_is_local(const lower_state *state, int32_t node);
bool lower_gradient_is_local(const lower_state *state, int32_t value);
lower_part lower_whole(const lower_state *state);
/* Forward of a region, tile by tile, of those nodes that are in `recomputing`, where that is given;
 * *next is the node behind it. */
sifr_status lower_forward_tiles(lower_state *state, int32_t region, int32_t *next,
                                sifr_error *error) SIFR_MUST_CHECK;
/* What is late, and the backward pass, of the region that ends with `last`; *next is the node
 * before it. */
sifr_status lower_backward_tiles(lower_state *state, int32_t last, int32_t *next,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* A schedule of settings that are checked, with the passes and its memory. `kept` is borrowed, by
 * node, for SIFR_RECOMPUTE_AUTO. */
sifr_status lower_list(const sifr_model *model, device *dev, const plan_settings *settings,
                       const bool *kept, plan_schedule **out, sifr_error *error) SIFR_MUST_CHECK;
/* The same for SIFR_RECOMPUTE_AUTO: with as much kept as its limits allow. */
sifr_status lower_keep(const sifr_model *model, device *dev, const plan_settings *settings,
                       plan_schedule **out, sifr_error *error) SIFR_MUST_CHECK;

/* Whether a gradient of this value is of use: some trained weight is before it. */
bool lower_has_gradient(const lower_state *state, int32_t value);

sifr_status lower_forward(lower_state *state, int32_t node, sifr_error *error) SIFR_MUST_CHECK;
/* logits of the rows that the mode wants, in place of the loss */
sifr_status lower_logits(lower_state *state, int32_t node, sifr_error *error) SIFR_MUST_CHECK;
sifr_status lower_backward(lower_state *state, int32_t node, sifr_error *error) SIFR_MUST_CHECK;

/* Gradient sums: the tree (or sequence) over micro batches. */
sifr_status lower_plan_sums(lower_state *state, sifr_error *error) SIFR_MUST_CHECK;
/* Before and after the backward pass of a unit for the current micro batch. */
sifr_status lower_begin_unit(lower_state *state, int32_t unit, sifr_error *error) SIFR_MUST_CHECK;
sifr_status lower_end_unit(lower_state *state, int32_t unit, sifr_error *error) SIFR_MUST_CHECK;
/* Adds what units borrowed to the owners of tied weights, in unit order. */
sifr_status lower_borrowed(lower_state *state, sifr_error *error) SIFR_MUST_CHECK;
/* Norm and update. */
sifr_status lower_update(lower_state *state, sifr_error *error) SIFR_MUST_CHECK;
/* Place of a weight's gradient for a node's use of it. */
lower_operand lower_weight_gradient(const lower_state *state, const model_node *node, int slot);

#endif
