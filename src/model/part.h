/* A copy of a model to which a rank's own values and nodes are added: what shard.c and context.c
 * begin with. */
#ifndef MODEL_PART_H
#define MODEL_PART_H

#include "model/description.h"

/* Copies all of a finished model but its nodes and segments to `to`, which is zeros: units without
 * nodes, weights, values, tables, groups, inputs, objective. There is room for as many values and
 * nodes more, and for node_at. Free it with sifr_model_free, also after a failure. */
sifr_status model_part_copy(const sifr_model *from, size_t values, size_t nodes, sifr_model *to,
                            sifr_error *error) SIFR_MUST_CHECK;

/* An activation beside `like`, of the same rows; returns its number. */
int32_t model_part_value(sifr_model *part, int32_t like, int64_t columns, int32_t unit);

/* Appends a node to its unit, the last one that has nodes. */
void model_part_node(sifr_model *part, model_node node);

/* A node of an op that has no kernel, of one input, beside one of the logical model. */
model_node model_bare_node(const model_op *op, const model_node *beside, int32_t x, int32_t y);

/* A slice's node is that of its base: sets those of the first `count` values, once all nodes are
 * made. */
void model_part_slices(sifr_model *part, size_t count);

#endif
