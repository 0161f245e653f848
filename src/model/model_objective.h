/* What a head learns in place of the cross entropy of its labels: a row for each such objective, in
 * the file of its op (ops/op_head_NAME.c). The rest of model/, the engine and what is above them
 * ask the row, and name no objective. */
#ifndef MODEL_MODEL_OBJECTIVE_H
#define MODEL_MODEL_OBJECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "sifr/objective.h"

struct model_node;
struct model_op;
struct model_objective_row;

/* An objective with its numbers. Zeroed: the cross entropy. */
typedef struct model_objective {
    const struct model_objective_row *row;
    union {
        struct {
            sifr_preference loss;
            double beta;
        } pairs;
        sifr_distil_args distil;
        sifr_own_loss_args own; /* its function is NULL in plans without one */
    };
} model_objective;

typedef struct model_objective_row {
    const char *name, *call;   /* "preference", "sifr_prefer": in messages */
    const struct model_op *op; /* of the head, in place of head_loss */
    int64_t loss_columns;      /* numbers for each token behind it; the first are losses */
    bool pairs;                /* two sequences, one behind the other, make one loss */
    bool calls;                /* the loss is a function of the caller's: `own` */
    bool evaluates_labels;     /* an evaluation has the cross entropy alone, and no targets */
    void (*check)(sifr_model *model, const model_objective *objective);
    /* Gives the head's node its targets and its numbers; `classes`: rows of its weight. */
    void (*complete)(sifr_model *model, int64_t classes, struct model_node *node);
} model_objective_row;

extern const model_objective_row model_objective_pairs, model_objective_distil, model_objective_own;

/* Has a model learn it; zeroed: labels alone. A wrong call is recorded. */
void model_learn(sifr_model *model, const model_objective *objective);

#endif
