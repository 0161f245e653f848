/* The optimizers: a row for each, in a file of its own. Planner, engine and checkpoints read the
 * row and name no optimizer. */
#ifndef OPTIM_OPTIM_H
#define OPTIM_OPTIM_H

#include "device/call.h"
#include "model/description.h"
#include "sifr/settings.h"

/* The most states that an optimizer keeps for each weight, beside the weight itself. */
enum { OPTIM_STATES = DEVICE_SAVED };

/* What an optimizer remembers of a run beside its states, in checkpoints too; zeros at first. */
typedef struct optim_memory {
    double largest_rate, weights; /* schedule-free: the sum of the weights in the average */
} optim_memory;

/* A step, for set_step. */
typedef struct optim_step {
    int64_t updates; /* before this one */
    double learning_rate;
    optim_memory *memory; /* becomes what it is after the update */
} optim_step;

/* What a state has values for: the elements of a weight, its rows or its columns. Values of rows
 * and columns are FP32, and only updates by weight have them. Every rank has room for those of all
 * weights, and changes those of the weights of which it owns some elements. */
typedef enum optim_axis { OPTIM_ELEMENTS, OPTIM_ROWS, OPTIM_COLUMNS } optim_axis;

/* A state of a weight. It begins as zeros. */
typedef struct optim_state {
    const char *name; /* in checkpoints */
    base_dtype type;  /* BASE_NONE: FP32, or BF16 in a run with bf16_optimizer_states */
    int64_t each;     /* elements of the weight for each value; 0 means 1 */
    optim_axis axis;
} optim_state;

typedef struct optim_row {
    const char *name;     /* for people */
    device_kernel kernel; /* of an update */
    optim_state states[OPTIM_STATES];
    /* For optimizers that do not train all weights alike: whether this row trains a weight. The
     * row `rest` trains the others. */
    bool (*takes)(const sifr_optimizer *optimizer, const model_weight *weight);
    const struct optim_row *rest;
    bool remembers; /* it has an optim_memory */
    /* Updates go weight by weight: `begin` leaves exact sums over each weight, INT64 1 x 2
     * EXACT_WORDS for the part of it that a rank owns, and `kernel` reads those of all ranks. */
    bool by_weight;
    device_kernel begin;
    /* With by_weight: `kernel` also reads the gradient of the whole weight, x2, in its own type. */
    bool whole_gradient;
    /* Updates read whole weights, which is never so with by_weight: `begin` changes the states of
     * the elements that a rank owns and leaves a value for each at y, FP32. A gather brings the
     * values of all ranks. `whole` changes those of one weight in place, y: FP32 rows x columns (of
     * a convolution update.matrices of them, as in files), on each rank that owns some of its
     * elements. `kernel`, whose x0 are these values, changes the weights. The first states are
     * those of `begin`, then come those of `kernel`. */
    bool reads_whole;
    device_kernel whole;
    /* The last state is the average of the weights (ema_decay). */
    bool ema;
    const struct optim_row *with_ema; /* the row with it; NULL: not with this optimizer */
    /* The weights that a run gives are an average, and those that it trains another thing: master
     * weights are there in every precision, in fp32, and hold the average. */
    bool averages;
    /* A factor of the step's learning rate, for optimizers that have several; NULL: 1. */
    double (*rate_scale)(const sifr_optimizer *optimizer);
    /* Sets what is the same in all steps. */
    void (*set_call)(const sifr_optimizer *optimizer, device_attributes *attributes);
    /* Sets what an update reads of a step: the learning rate as it acts, betas and what follows. */
    void (*set_step)(const sifr_optimizer *optimizer, const optim_step *step, device_step *out);
    /* Of one that averages: the weights to train, from the average and the states. */
    void (*train_weights)(const sifr_optimizer *optimizer, const float *average,
                          const float *const states[OPTIM_STATES], int64_t count, float *out);
} optim_row;

/* The average of the weights. */
#define OPTIM_EMA                                                                                  \
    { .name = "ema", .type = BASE_FP32 }

/* The row of an optimizer with these settings. */
const optim_row *optim_row_of(const sifr_optimizer *optimizer);

/* Sets what an update reads of a step. */
void optim_set_step(const sifr_optimizer *optimizer, const optim_step *step, device_step *out);

/* How many states it keeps for each weight, at most OPTIM_STATES. */
static inline int optim_states(const optim_row *row) {
    int begun = row->reads_whole ? device_update_states(row->begin) : 0;
    return begun + device_update_states(row->kernel) + row->ema;
}

/* The row of a weight or a segment with this `rest`. */
static inline const optim_row *optim_row_for(const optim_row *row, bool rest) {
    return rest ? row->rest : row;
}

/* How many states a weight has, at most: of this row or of its rest. */
static inline int optim_most_states(const optim_row *row) {
    int own = optim_states(row), rest = row->rest ? optim_states(row->rest) : 0;
    return own > rest ? own : rest;
}

/* The states of a row by name, and then those of its rest that have other names, n from 0 on: the
 * index of the state in *of, which is one of the two rows; -1: there is none. */
int optim_named_state(const optim_row *row, int n, const optim_row **of);
/* The index of the state with this name, likewise. */
int optim_find_state(const optim_row *row, const char *name, const optim_row **of);

/* How many values state `i` has for so many elements. */
static inline int64_t optim_values(const optim_row *row, int i, int64_t elements) {
    int64_t each = row->states[i].each ? row->states[i].each : 1;
    return (elements + each - 1) / each;
}

/* How many values state `i` has for a whole weight. */
int64_t optim_weight_values(const optim_row *row, int i, const model_weight *weight);

/* How many values state `i`, which has an axis, has for the weights of a segment that lie before
 * element `offset`; those of a weight begin at a multiple of OPTIM_PLACE values. */
enum { OPTIM_PLACE = 16 };
int64_t optim_axis_place(const optim_row *row, int i, const sifr_model *model, int32_t segment,
                         int64_t offset);

/* The settings of a group of the model's weights: those of the optimizer where sifr_model_group was
 * not called. */
model_group optim_group_of(const sifr_model *model, int32_t group, const sifr_optimizer *optimizer);

/* Sets the flags of the weights, one each, that do not decay by the Trainer's rule. */
void optim_mark_undecayed(const sifr_model *model, bool *undecayed);

/* SIFR_USAGE unless sifr_model_group was called for this optimizer. */
sifr_status optim_check_groups(const sifr_model *model, const sifr_optimizer *optimizer,
                               sifr_error *error) SIFR_MUST_CHECK;

/* OPTIM_TYPE(type, name): the row optim_NAME of a type, in optim_NAME.c. */
#define OPTIM_TYPES                                                                                \
    OPTIM_TYPE(SIFR_ADAGRAD, adagrad)                                                              \
    OPTIM_TYPE(SIFR_LION, lion)                                                                    \
    OPTIM_TYPE(SIFR_SCHEDULE_FREE_ADAMW, schedule_free)                                            \
    OPTIM_TYPE(SIFR_ADAM_8BIT, adam_8bit)                                                          \
    OPTIM_TYPE(SIFR_ADAMW_8BIT, adam_8bit)                                                         \
    OPTIM_TYPE(SIFR_LAMB, lamb)                                                                    \
    OPTIM_TYPE(SIFR_MUON, muon)

#define OPTIM_TYPE(type, name) extern const optim_row optim_##name;
OPTIM_TYPES
#undef OPTIM_TYPE
/* Types with several rows, which optim_row_of chooses from. */
extern const optim_row optim_adam, optim_amsgrad, optim_sgd, optim_momentum, optim_adafactor,
    optim_adafactor_moment;

#endif
