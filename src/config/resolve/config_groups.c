/* Rates and decay of some of the weights: sifr.groups, layer_decay, and Muon's two rates. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/text.h"
#include "config/config_private.h"

static const char path_of_key[] = "sifr.groups";
static const char shape[] = "{\"match\", \"lr\" or \"lr_scale\", \"weight_decay\"}";

/* "ds.json: sifr.groups[2].lr must be …". */
static sifr_status wrong(const sifr_config *config, size_t index, const char *member,
                         const char *must, sifr_error *error) {
    char where[300];
    config_path_where(config, path_of_key, where);
    return base_fail(error, SIFR_USAGE, "%s[%zu]%s%s must %s", where, index, *member ? "." : "",
                     member, must);
}

static sifr_status check_members(const sifr_config *config, const json_t *item, size_t index,
                                 sifr_error *error) {
    static const char *const known[] = {"match", "lr", "lr_scale", "weight_decay"};
    enum { KNOWN = sizeof known / sizeof *known };
    const char *name;
    json_t *value;
    char where[300];
    json_object_foreach((json_t *)(uintptr_t)item, name, value) {
        bool found = false;
        for (size_t i = 0; i < KNOWN; i++) found |= strcmp(name, known[i]) == 0;
        if (found) continue;
        const char *near = base_nearest(name, known, KNOWN);
        return base_fail(error, SIFR_USAGE,
                         "%s[%zu].%.60s is unknown%s%s; a group has match, lr or lr_scale, and "
                         "weight_decay",
                         config_path_where(config, path_of_key, where), index, name,
                         near ? "; did you mean " : "", near ? near : "");
    }
    return SIFR_OK;
}

static sifr_status read_number(const sifr_config *config, const json_t *item, size_t index,
                               const char *member, double *out, sifr_error *error) {
    const json_t *value = json_object_get(item, member);
    double number = json_number_value(value);
    if (!value || json_is_null(value)) return SIFR_OK;
    if (!json_is_number(value) || !isfinite(number) || number < 0 || number > 1e6)
        return wrong(config, index, member, "be a number from 0 to 1000000", error);
    *out = number;
    return SIFR_OK;
}

/* Whether the largest rate of a step is the optimizer's. */
static bool follows_lr(const sifr_config *config) {
    const config_lr_schedule *s = &config->schedule;
    switch (s->kind) {
    case CONFIG_LR_CONSTANT:
        return !s->relative_step;
    case CONFIG_LR_WARMUP:
    case CONFIG_LR_WARMUP_DECAY:
        return !(s->warmup_min_lr > 0) && !(s->warmup_max_lr < config->lr) &&
               !(s->warmup_max_lr > config->lr);
    case CONFIG_LR_ONE_CYCLE:
    case CONFIG_LR_RANGE_TEST:
        return false;
    default:
        return true;
    }
}

/* A rate becomes a share of the optimizer's, as under a scheduler of torch. `where` and `remedy`
 * are for messages: the rate's key, and what to give where the scheduler allows no share. */
static sifr_status share_of_lr(const sifr_config *config, const char *where, double lr,
                               const char *remedy, double *out, sifr_error *error) {
    if (!follows_lr(config))
        return base_fail(error, SIFR_USAGE,
                         "%s is %g, and the scheduler sets rates that are no shares of "
                         "optimizer.params.lr; %s",
                         where, lr, remedy);
    if (!(config->lr > 0))
        return base_fail(error, SIFR_USAGE,
                         "%s is %g, which is no share of optimizer.params.lr 0; give that a value "
                         "above 0",
                         where, lr);
    *out = lr / config->lr;
    return SIFR_OK;
}

static sifr_status read_rate(const sifr_config *config, const json_t *item, size_t index,
                             sifr_optimizer_group *out, sifr_error *error) {
    double lr = -1;
    char where[300], member[340];
    BASE_TRY(read_number(config, item, index, "lr_scale", &out->lr_scale, error));
    BASE_TRY(read_number(config, item, index, "lr", &lr, error));
    if (lr < 0) return SIFR_OK;
    config_path_where(config, path_of_key, where);
    if (json_object_get(item, "lr_scale"))
        return base_fail(error, SIFR_USAGE, "%s[%zu] gives lr and lr_scale; give one of them",
                         where, index);
    snprintf(member, sizeof member, "%s[%zu].lr", where, index);
    return share_of_lr(config, member, lr, "give lr_scale, a share of the rate of each step",
                       &out->lr_scale, error);
}

/* One name or several; *count of them. */
static sifr_status count_matches(const sifr_config *config, const json_t *item, size_t index,
                                 size_t *count, sifr_error *error) {
    const json_t *match = json_object_get(item, "match");
    bool right = json_is_string(match) || json_array_size(match) > 0;
    *count = json_is_string(match) ? 1 : json_array_size(match);
    for (size_t i = 0; i < json_array_size(match); i++)
        right &= json_is_string(json_array_get(match, i));
    if (right) return SIFR_OK;
    return wrong(config, index, "match",
                 "be a shell pattern for names of weights, or a list of them", error);
}

static sifr_status fill_group(sifr_config *config, const json_t *item, size_t index, size_t *used,
                              sifr_error *error) {
    const json_t *match = json_object_get(item, "match");
    sifr_optimizer_group group = {.lr_scale = 1, .weight_decay = -1};
    size_t count;
    if (!json_is_object(item)) {
        char must[96];
        snprintf(must, sizeof must, "be an object %s", shape);
        return wrong(config, index, "", must, error);
    }
    BASE_TRY(check_members(config, item, index, error));
    BASE_TRY(count_matches(config, item, index, &count, error));
    BASE_TRY(read_rate(config, item, index, &group, error));
    BASE_TRY(read_number(config, item, index, "weight_decay", &group.weight_decay, error));
    sifr_optimizer_group *list;
    BASE_TRY(base_alloc(*used + count, sizeof *list, &list, error));
    if (*used) memcpy(list, config->group_list, *used * sizeof *list);
    free(config->group_list);
    config->group_list = list;
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_is_string(match) ? match : json_array_get(match, i);
        group.match = json_string_value(one);
        list[(*used)++] = group;
    }
    return SIFR_OK;
}

static sifr_status check_layer_decay(const sifr_config *config, sifr_error *error) {
    static const char *const path = "sifr.layer_decay";
    char where[300];
    if (config->step.optimizer.layer_decay > 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s is 0, with which only the head would be trained; give a number above 0, "
                     "at most 1",
                     config_path_where(config, path, where));
}

/* A rate of one of Muon's two halves. A default is dropped where the scheduler allows no share. */
static sifr_status fill_scale(const sifr_config *config, const char *path, double lr, double *out,
                              sifr_error *error) {
    char where[300];
    if (!(lr > 0) || (!follows_lr(config) && !config_setting_given(config, path))) return SIFR_OK;
    return share_of_lr(config, config_path_where(config, path, where), lr,
                       "take another scheduler, or leave it out", out, error);
}

sifr_status config_fill_groups(sifr_config *config, sifr_error *error) {
    const json_t *list = config_setting_at(config, path_of_key)->value;
    sifr_optimizer *optimizer = &config->step.optimizer;
    size_t used = 0;
    char where[300];
    free(config->group_list);
    config->group_list = NULL;
    BASE_TRY(check_layer_decay(config, error));
    BASE_TRY(fill_scale(config, "optimizer.params.muon_lr", config->muon_lr, &optimizer->muon_scale,
                        error));
    BASE_TRY(fill_scale(config, "optimizer.params.adam_lr", config->adam_lr, &optimizer->adam_scale,
                        error));
    if (!list || json_is_null(list)) return SIFR_OK;
    config_path_where(config, path_of_key, where);
    if (!json_is_array(list) || json_array_size(list) == 0)
        return base_fail(error, SIFR_USAGE, "%s must be a list of %s", where, shape);
    for (size_t i = 0; i < json_array_size(list); i++) {
        BASE_TRY(fill_group(config, json_array_get(list, i), i, &used, error));
        if (used > CONFIG_MOST_GROUPS)
            return base_fail(error, SIFR_USAGE, "%s: more than %d patterns; give fewer", where,
                             CONFIG_MOST_GROUPS);
    }
    optimizer->groups = config->group_list;
    optimizer->group_count = (int32_t)used;
    return SIFR_OK;
}
