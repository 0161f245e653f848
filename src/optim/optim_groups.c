/* Which weights an optimizer trains by its second row. */
#include "optim/optim.h"
#include "sifr/engine.h"

static bool is_rest(const optim_row *row, const sifr_optimizer *o, const model_weight *weight) {
    return row->rest && !row->takes(o, weight);
}

sifr_status sifr_model_group(sifr_model *model, const sifr_optimizer *optimizer,
                             sifr_error *error) {
    const optim_row *row = optim_row_of(optimizer);
    bool changed = false;
    for (size_t w = 0; w < model->weight_count; w++) {
        model_weight *weight = &model->weights[w];
        bool rest = is_rest(row, optimizer, weight);
        changed |= weight->rest != rest;
        weight->rest = rest;
    }
    return changed && model->finished ? model_arrange(model, error) : SIFR_OK;
}

sifr_status optim_check_groups(const sifr_model *model, const sifr_optimizer *optimizer,
                               sifr_error *error) {
    const optim_row *row = optim_row_of(optimizer);
    for (size_t w = 0; w < model->weight_count; w++) {
        const model_weight *weight = &model->weights[w];
        if (weight->frozen || weight->rest == is_rest(row, optimizer, weight)) continue;
        return base_fail(error, SIFR_USAGE,
                         "weight %s: %s treats weights by their size and shape, or did so in the "
                         "engine before; call sifr_model_group first",
                         weight->name, row->name);
    }
    return SIFR_OK;
}
