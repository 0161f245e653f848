#include "optim/optim.h"

#include <string.h>

#include "base/checked.h"

static const optim_row *plain_row(const sifr_optimizer *optimizer) {
    switch (optimizer->type) {
#define OPTIM_TYPE(type, name)                                                                     \
    case type:                                                                                     \
        return &optim_##name;
        OPTIM_TYPES
#undef OPTIM_TYPE
    case SIFR_ADAMW:
    case SIFR_ADAM:
        break;
    case SIFR_SGD:
        return optimizer->momentum > 0 ? &optim_momentum : &optim_sgd;
    case SIFR_ADAFACTOR:
        return optimizer->has_momentum ? &optim_adafactor_moment : &optim_adafactor;
    }
    return optimizer->amsgrad ? &optim_amsgrad : &optim_adam;
}

const optim_row *optim_row_of(const sifr_optimizer *optimizer) {
    const optim_row *row = plain_row(optimizer);
    return optimizer->ema_decay > 0 && row->with_ema ? row->with_ema : row;
}

int64_t optim_weight_values(const optim_row *row, int i, const model_weight *weight) {
    if (row->states[i].axis == OPTIM_ROWS) return weight->rows;
    if (row->states[i].axis == OPTIM_COLUMNS) return weight->columns;
    return optim_values(row, i, weight->rows * weight->columns);
}

int64_t optim_axis_place(const optim_row *row, int i, const sifr_model *model, int32_t segment,
                         int64_t offset) {
    int64_t values = 0;
    for (size_t w = 0; w < model->weight_count; w++) {
        const model_weight *weight = &model->weights[w];
        if (weight->segment != segment || weight->offset >= offset) continue;
        values += base_ceil_to(optim_weight_values(row, i, weight), OPTIM_PLACE);
    }
    return values;
}

/* The average begins as the weights after the first update, as torch's AveragedModel does. */
void optim_set_step(const sifr_optimizer *optimizer, const optim_step *step, device_step *out) {
    optim_row_of(optimizer)->set_step(optimizer, step, out);
    out->average_share = step->updates ? (float)(1 - optimizer->ema_decay) : 1.0f;
}

static bool has_name(const optim_row *row, const char *name) {
    for (int i = 0; i < optim_states(row); i++)
        if (strcmp(row->states[i].name, name) == 0) return true;
    return false;
}

int optim_named_state(const optim_row *row, int n, const optim_row **of) {
    *of = row;
    if (n < optim_states(row)) return n;
    n -= optim_states(row);
    *of = row->rest;
    for (int i = 0; row->rest && i < optim_states(row->rest); i++)
        if (!has_name(row, row->rest->states[i].name) && n-- == 0) return i;
    return -1;
}

int optim_find_state(const optim_row *row, const char *name, const optim_row **of) {
    for (int n = 0, i; (i = optim_named_state(row, n, of)) >= 0; n++)
        if (strcmp((*of)->states[i].name, name) == 0) return i;
    return -1;
}
