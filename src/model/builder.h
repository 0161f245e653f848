/* What builder.c lends to the ops (ops/): checks of operands, and adding to the description.
 * Private to model/. */
#ifndef MODEL_BUILDER_H
#define MODEL_BUILDER_H

#include "base/errors.h"
#include "model/description.h"

static inline bool model_ok(const sifr_model *model) {
    return model->error.status == SIFR_OK;
}

/* Records a mistake, unless one is recorded already. */
#define MODEL_WRONG(model, ...)                                                                    \
    do {                                                                                           \
        if (model_ok(model)) base_set_error(&(model)->error, SIFR_USAGE, __VA_ARGS__);             \
    } while (0)

/* Handles count from 1, so that a field left out of an op's struct is none; -1 for those. */
static inline int32_t model_index(sifr_value value) {
    return value.id - 1;
}
static inline int32_t model_weight_index(sifr_weight weight) {
    return weight.id - 1;
}

/* The unit being built, for messages. */
const char *model_unit_name(const sifr_model *model);

/* What is behind a handle: NULL where a mistake is recorded, or where `op` got no activation or no
 * weight, which is recorded then. */
const model_value *model_activation(sifr_model *model, sifr_value value, const char *op);
const model_weight *model_weight_of(sifr_model *model, sifr_weight weight, const char *op);

/* Whether there is such a value, and it is an input: whole numbers. */
bool model_is_input(const sifr_model *model, sifr_value value);

/* The segments that an op was given or, of a packed model, the input. It may move the values. */
sifr_value model_segments(sifr_model *model, sifr_value given);

/* True if `weight` is absent or a vector of `columns`; else that is recorded. */
bool model_vector_fits(sifr_model *model, sifr_weight weight, int64_t columns, const char *op);

/* Values of a fresh weight, padding's too, that are further from 0 than so many deviations are
 * drawn again. */
void model_truncate(sifr_model *model, sifr_weight weight, double cutoff);

/* Each element of a fresh weight, in place of its init. */
void model_begin_at(sifr_model *model, sifr_weight weight, double value);

/* Adds a tensor without dimensions to the unit, a number that files have and no op reads, since ops
 * have it as an attribute: it is frozen, and a file where it is another one is refused. */
void model_known_number(sifr_model *model, const char *name, double value);

/* A node of `op` without operands; and the value that it makes once it is added. */
model_node model_make_node(const model_op *op);
sifr_value model_add_node(sifr_model *model, model_node node, model_value_kind kind,
                          int64_t columns);

/* What a table is made from: a rule, or frequencies and a scale. */
typedef struct model_angles {
    int64_t rotary_dim;
    const model_rope *rule;
    const double *frequencies;
    double scale;
} model_angles;

/* The value of the table for these, which are copied; made once; -1 where a mistake is recorded. */
int32_t model_add_table(sifr_model *model, const model_angles *angles);

#endif
