/* What each weight is trained by: a group of settings, and in some optimizers a second row. */
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/inside.h"
#include "optim/optim.h"
#include "sifr/engine.h"

static bool is_rest(const optim_row *row, const sifr_optimizer *o, const model_weight *weight) {
    return row->rest && !row->takes(o, weight);
}

/* Marks the weights that do not decay; the caller frees *out. NULL: all decay. */
static sifr_status find_undecayed(const sifr_model *model, const sifr_optimizer *o, bool **out,
                                  sifr_error *error) {
    *out = NULL;
    if (o->no_decay == SIFR_DECAY_ALL) return SIFR_OK;
    BASE_TRY(base_alloc(model->weight_count, sizeof **out, out, error));
    optim_mark_undecayed(model, *out);
    return SIFR_OK;
}

/* The number of the group that a weight's name belongs to; -1: none. */
static int32_t find_match(const sifr_optimizer *o, const char *name) {
    for (int32_t i = 0; i < o->group_count; i++)
        if (fnmatch(o->groups[i].match, name, 0) == 0) return i;
    return -1;
}

static model_group settings_of(const sifr_model *model, const sifr_optimizer *o,
                               const bool *undecayed, size_t index) {
    const model_weight *weight = &model->weights[index];
    int32_t match = find_match(o, weight->name);
    model_group out = {1, o->weight_decay};
    if (undecayed && undecayed[index]) out.weight_decay = 0;
    if (o->layer_decay > 0)
        out.lr_scale = pow(o->layer_decay, (double)model->unit_count - 1 - weight->unit);
    if (match < 0) return out;
    out.lr_scale *= o->groups[match].lr_scale;
    if (o->groups[match].weight_decay >= 0) out.weight_decay = o->groups[match].weight_decay;
    return out;
}

static bool is_same(model_group a, model_group b) {
    return memcmp(&a.lr_scale, &b.lr_scale, sizeof a.lr_scale) == 0 &&
           memcmp(&a.weight_decay, &b.weight_decay, sizeof a.weight_decay) == 0;
}

/* The model's group with these settings; a new one if there is none yet. */
static sifr_status find_group(sifr_model *model, model_group settings, int32_t *out,
                              sifr_error *error) {
    for (*out = 0; *out < (int32_t)model->group_count; ++*out)
        if (is_same(model->groups[*out], settings)) return SIFR_OK;
    BASE_TRY(base_grow(&model->groups, &model->group_capacity, model->group_count + 1,
                       sizeof *model->groups, error));
    model->groups[model->group_count++] = settings;
    return SIFR_OK;
}

/* A pattern that no weight is trained by is a mistake in it, or in the order of the groups. */
static sifr_status check_matches(const sifr_model *model, const sifr_optimizer *o,
                                 sifr_error *error) {
    for (int32_t i = 0; i < o->group_count; i++) {
        bool named = false, trained = false, first = false;
        for (size_t w = 0; w < model->weight_count; w++) {
            const model_weight *weight = &model->weights[w];
            if (fnmatch(o->groups[i].match, weight->name, 0) != 0) continue;
            named = true;
            trained |= !weight->frozen;
            first |= !weight->frozen && find_match(o, weight->name) == i;
        }
        if (first) continue;
        const char *last =
            model->weight_count ? model->weights[model->weight_count - 1].name : "(none)";
        if (!named)
            return base_fail(error, SIFR_USAGE,
                             "optimizer groups: no weight's name matches \"%s\"; names look like "
                             "%s",
                             o->groups[i].match, last);
        return base_fail(error, SIFR_USAGE,
                         "optimizer groups: \"%s\" matches only weights that %s; %s",
                         o->groups[i].match, trained ? "belong to groups before it" : "are frozen",
                         trained ? "put the narrower patterns first" : "leave the group out");
    }
    return SIFR_OK;
}

static sifr_status regroup(sifr_model *model, const sifr_optimizer *o, const bool *undecayed,
                           bool *changed, sifr_error *error) {
    const optim_row *row = optim_row_of(o);
    *changed = false;
    model->group_count = 0;
    for (size_t w = 0; w < model->weight_count; w++) {
        model_weight *weight = &model->weights[w];
        bool rest = !weight->frozen && is_rest(row, o, weight);
        int32_t group = 0;
        if (!weight->frozen)
            BASE_TRY(find_group(model, settings_of(model, o, undecayed, w), &group, error));
        *changed |= weight->rest != rest || weight->group != group;
        weight->rest = rest;
        weight->group = group;
    }
    return SIFR_OK;
}

sifr_status sifr_model_group(sifr_model *model, const sifr_optimizer *optimizer,
                             sifr_error *error) {
    BASE_ENTER(error, model, optimizer);
    bool changed, *undecayed;
    sifr_settings settings = sifr_settings_defaults();
    settings.optimizer = *optimizer;
    BASE_TRY(sifr_settings_check(&settings, error));
    BASE_TRY(check_matches(model, optimizer, error));
    BASE_TRY(find_undecayed(model, optimizer, &undecayed, error));
    sifr_status status = regroup(model, optimizer, undecayed, &changed, error);
    free(undecayed);
    BASE_TRY(status);
    return changed && model->finished ? model_arrange(model, error) : SIFR_OK;
}

model_group optim_group_of(const sifr_model *model, int32_t group,
                           const sifr_optimizer *optimizer) {
    if (group < (int32_t)model->group_count) return model->groups[group];
    return (model_group){1, optimizer->weight_decay};
}

sifr_status optim_check_groups(const sifr_model *model, const sifr_optimizer *optimizer,
                               sifr_error *error) {
    const optim_row *row = optim_row_of(optimizer);
    bool *undecayed;
    sifr_status status = SIFR_OK;
    BASE_TRY(find_undecayed(model, optimizer, &undecayed, error));
    for (size_t w = 0; w < model->weight_count && status == SIFR_OK; w++) {
        const model_weight *weight = &model->weights[w];
        if (weight->frozen) continue;
        model_group group = optim_group_of(model, weight->group, optimizer);
        bool same = weight->rest == is_rest(row, optimizer, weight) &&
                    is_same(group, settings_of(model, optimizer, undecayed, w));
        if (same) continue;
        status = base_fail(error, SIFR_USAGE,
                           "weight %s: %s treats weights by their size, shape or name, or did so "
                           "in the engine before; call sifr_model_group first",
                           weight->name, row->name);
    }
    free(undecayed);
    return status;
}
