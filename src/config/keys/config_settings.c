/* The library's check of settings: each field against its row in the table of keys, which is all
 * that says what a field may hold. */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/errors.h"
#include "base/inside.h"
#include "config/config_private.h"

/* "4294967297", "nan", "0.1"; a switch and a choice as the number that the field holds. */
typedef char value_text[40];

static bool is_real(const config_key *row) {
    return row->type == CONFIG_NUMBER;
}

static double real_of(const void *field) {
    double value;
    memcpy(&value, field, sizeof value);
    return value;
}

/* A bool may hold more than true and false where a caller did not set it. */
static int64_t whole_of(const config_key *row, const void *field) {
    int64_t wide;
    int32_t narrow;
    unsigned char truth;
    if (row->type == CONFIG_BOOL) return memcpy(&truth, field, sizeof truth), truth;
    if (row->size == sizeof wide) return memcpy(&wide, field, sizeof wide), wide;
    return memcpy(&narrow, field, sizeof narrow), narrow;
}

static const char *text_of(const config_key *row, const void *field, value_text out) {
    if (!is_real(row))
        snprintf(out, sizeof(value_text), "%lld", (long long)whole_of(row, field));
    else if (isnan(real_of(field)))
        strcpy(out, "nan"); /* without a sign */
    else
        config_real_text(real_of(field), out);
    return out;
}

/* --- what a row allows --- */

/* The word number `index` of "a|b|c". */
static bool word_at(const char *words, int64_t index, char out[64]) {
    for (; index > 0 && (words = strchr(words, '|')); index--) words++;
    if (!words || index < 0) return false;
    snprintf(out, 64, "%.*s", (int)strcspn(words, "|"), words);
    return true;
}

/* A choice that is built: the field holds its number. */
static bool is_choice(const config_key *row, int64_t index, char word[64]) {
    return word_at(row->choices, index, word) && !config_key_has_word(row->later, word, NULL, NULL);
}

static bool is_on_disk(const sifr_offload *o) {
    return o->optimizer.device == SIFR_TIER_NVME || o->param.device == SIFR_TIER_NVME ||
           o->gradients == SIFR_TIER_NVME || o->activations == SIFR_TIER_NVME;
}

/* Whether `most`, `least` and `multiple` of a row count: as in a config, where what the row is for
 * is in use. */
static bool has_limits(const sifr_settings *s, const config_key *row) {
    const char *name = config_field_name(row);
    if (!row->most) return false;
    if (strncmp(name, "fp16.", 5) == 0) return s->precision == SIFR_FP16;
    if (strncmp(name, "offload.aio.", 12) == 0) return is_on_disk(&s->offload);
    if (strncmp(name, "offload.param.", 14) == 0) return s->offload.param.device == SIFR_TIER_NVME;
    if (strncmp(name, "offload.optimizer.", 18) == 0)
        return s->offload.optimizer.device == SIFR_TIER_NVME;
    return true;
}

/* What an optimizer does not have may be 0: not given. */
static bool is_idle(const sifr_settings *s, const config_key *row) {
    char type[64];
    const config_key *types = config_key_find("optimizer.type", NULL);
    return row->only && word_at(types->choices, (int64_t)s->optimizer.type, type) &&
           !config_key_has_word(row->only, type, NULL, NULL);
}

static bool number_holds(const config_key *row, const void *field, bool limits) {
    value_text text;
    char word[64];
    double value = is_real(row) ? real_of(field) : (double)whole_of(row, field);
    if (row->is_unsigned) return true;
    if (!isfinite(value) || !config_fits_kernels(row, value)) return false;
    if (row->type == CONFIG_CHOICE) return is_choice(row, whole_of(row, field), word);
    text_of(row, field, text);
    if (config_key_has_word(row->unset, text, NULL, NULL)) return true;
    if (row->choices) return config_key_has_word(row->choices, text, NULL, NULL);
    bool within = !limits || (value <= strtod(row->most, NULL) &&
                              (!row->least || value == 0 || value >= strtod(row->least, NULL)) &&
                              (!row->multiple || whole_of(row, field) % row->multiple == 0));
    return within && config_range_holds(row->range, value);
}

static bool holds(const config_key *row, const void *field, bool limits) {
    switch (row->type) {
    case CONFIG_BOOL:
        return whole_of(row, field) <= 1;
    case CONFIG_INT:
    case CONFIG_BYTES:
    case CONFIG_NUMBER:
    case CONFIG_CHOICE:
        return number_holds(row, field, limits);
    default: /* texts and lists */
        return true;
    }
}

/* --- and what a message says of it --- */

/* "none of 0 (batch), 1 (unit), 2 (auto)", "none of 0, 1, 2, 3". */
static void say_choices(const config_key *row, char out[400]) {
    size_t used = (size_t)snprintf(out, 400, "none of");
    char word[64];
    for (int64_t i = 0; word_at(row->choices, i, word) && used < 300; i++) {
        if (row->type == CONFIG_CHOICE && !is_choice(row, i, word)) continue;
        used += (size_t)snprintf(out + used, 400 - used, "%s ", i ? "," : "");
        used += row->type == CONFIG_CHOICE
                    ? (size_t)snprintf(out + used, 400 - used, "%lld (%s)", (long long)i, word)
                    : (size_t)snprintf(out + used, 400 - used, "%s", word);
    }
}

/* "not in [0, 1)", "not in [0, inf), nor -1", "not a multiple of 4096 in [1, 1073741824]". */
static void say_range(const config_key *row, bool limits, char out[400]) {
    config_range r = row->range ? config_range_of(row->range)
                                : (config_range){-INFINITY, INFINITY, false, false};
    value_text low, high;
    char of[64] = "";
    if (!is_real(row) && r.open_low) r.low++, r.open_low = false;
    if (limits) r.high = strtod(row->most, NULL), r.open_high = false;
    bool or_zero = limits && row->least;
    if (or_zero) r.low = strtod(row->least, NULL);
    config_real_text(r.low, low);
    config_real_text(r.high, high);
    if (limits && row->multiple)
        snprintf(of, sizeof of, "a multiple of %lld ", (long long)row->multiple);
    size_t used = (size_t)snprintf(out, 400, "not %sin %c%s, %s%c", of,
                                   r.open_low || isinf(r.low) ? '(' : '[', low, high,
                                   r.open_high || isinf(r.high) ? ')' : ']');
    char word[64];
    if (or_zero) used += (size_t)snprintf(out + used, 400 - used, ", nor 0");
    for (int64_t i = 0; row->unset && word_at(row->unset, i, word); i++)
        used += (size_t)snprintf(out + used, 400 - used, ", nor %s", word);
}

static sifr_status wrong(const config_key *row, const char *name, const void *field, bool limits,
                         sifr_error *error) {
    value_text value;
    char not [400];
    if (row->type == CONFIG_BOOL)
        strcpy(not, "neither 0 (false) nor 1 (true)");
    else if (row->choices)
        say_choices(row, not );
    else if (is_real(row) && isfinite(real_of(field)) && !config_fits_kernels(row, real_of(field)))
        snprintf(not, sizeof not, "beyond what fp32 has, %g", (double)FLT_MAX);
    else
        say_range(row, limits, not );
    text_of(row, field, value);
    if (!row->fallback)
        return base_fail(error, SIFR_USAGE, "%s: %s is %s (docs/config.md: %s)", name, value, not,
                         row->path);
    return base_fail(error, SIFR_USAGE, "%s: %s is %s; its default is %s (docs/config.md: %s)",
                     name, value, not, row->fallback, row->path);
}

/* --- what no single row says --- */

#define GROUP(name_, range_)                                                                       \
    {                                                                                              \
        .path = "sifr.groups", .type = CONFIG_NUMBER, .range = range_, .member = #name_,           \
        .field = offsetof(sifr_optimizer_group, name_) + 1                                         \
    }

static sifr_status check_group(const sifr_optimizer_group *group, int32_t index,
                               sifr_error *error) {
    static const config_key numbers[] = {GROUP(lr_scale, ">= 0"), GROUP(weight_decay, NULL)};
    if (!group->match)
        return base_fail(error, SIFR_USAGE,
                         "optimizer.groups[%d].match: NULL; give a shell pattern for names of "
                         "weights",
                         (int)index);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char name[64];
        const void *field = (const char *)group + numbers[i].field - 1;
        if (holds(&numbers[i], field, false)) continue;
        snprintf(name, sizeof name, "optimizer.groups[%d].%s", (int)index, numbers[i].member);
        return wrong(&numbers[i], name, field, false, error);
    }
    return SIFR_OK;
}

static sifr_status check_optimizer(const sifr_optimizer *o, sifr_error *error) {
    if (o->group_count > 0 && !o->groups)
        return base_fail(error, SIFR_USAGE,
                         "optimizer.groups: NULL, and optimizer.group_count is %d; give that many "
                         "groups, or 0",
                         (int)o->group_count);
    for (int32_t i = 0; i < o->group_count; i++) BASE_TRY(check_group(&o->groups[i], i, error));
    if (o->type == SIFR_LAMB && o->min_coeff > o->max_coeff)
        return base_fail(error, SIFR_USAGE,
                         "optimizer.min_coeff: %g is above optimizer.max_coeff %g; give a smaller "
                         "one",
                         o->min_coeff, o->max_coeff);
    if (o->type == SIFR_SGD && o->nesterov && !(o->momentum > 0 && o->dampening == 0))
        return base_fail(error, SIFR_USAGE,
                         "optimizer.nesterov: true, with momentum %g and dampening %g; Nesterov's "
                         "momentum takes a momentum above 0 and a dampening of 0, as in PyTorch",
                         o->momentum, o->dampening);
    return SIFR_OK;
}

sifr_status sifr_settings_check(const sifr_settings *settings, sifr_error *error) {
    BASE_ENTER(error, settings);
    size_t index = 0;
    for (const config_key *row; (row = config_field_next(&index));) {
        const void *field = (const char *)settings + row->field - 1;
        bool limits = has_limits(settings, row);
        bool zero = is_real(row) && real_of(field) == 0;
        if (zero && is_idle(settings, row)) continue;
        if (!holds(row, field, limits))
            return wrong(row, config_field_name(row), field, limits, error);
    }
    return check_optimizer(&settings->optimizer, error);
}
