/* The settings that a planner may change. */
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "plan/queries.h"
#include "plan/search/search.h"

static const char *const stages[] = {"0", "1", "2", "3"};
static const char *const recomputes[] = {"none", "unit", "auto"};
static const char *const tiles[] = {"0", "4096"};
static const char *const orders[] = {"batch", "unit"};
static const char *const gradient_orders[] = {"tree", "sequential"};
static const char *const devices[] = {"none", "nvme"};
static const char *const switches[] = {"false", "true"};
static const char *const sums_bf16[] = {"fp32", "bf16"};
static const char *const sums_fp16[] = {"fp32", "fp16"};

static int32_t get_stage(const plan_settings *s) {
    return s->step.zero.stage;
}

static void set_stage(plan_settings *s, int32_t value) {
    s->step.zero.stage = value;
}

static bool has_ranks(const plan_settings *s) {
    return s->world_size > 1;
}

static int32_t get_recompute(const plan_settings *s) {
    return (int32_t)s->step.recompute;
}

static void set_recompute(plan_settings *s, int32_t value) {
    s->step.recompute = (sifr_recompute)value;
}

static bool always(const plan_settings *s) {
    (void)s;
    return true;
}

/* So that a tile's products keep many threads busy; smaller ones take hardly less in all. */
enum { TILE = 4096 };

static int32_t get_tiles(const plan_settings *s) {
    return s->step.tile_tokens > 0;
}

/* Where everything is kept, tiles take hardly less: that is not tried. */
static void set_tiles(plan_settings *s, int32_t value) {
    bool given = s->step.tile_tokens > 0 || s->step.recompute == SIFR_RECOMPUTE_NONE;
    if (value == 0)
        s->step.tile_tokens = 0;
    else if (!given)
        s->step.tile_tokens = TILE;
}

static bool has_tiles(const plan_settings *s) {
    return s->step.recompute != SIFR_RECOMPUTE_NONE &&
           s->step.micro_batch_size * s->step.seq_length > TILE;
}

static int32_t get_order(const plan_settings *s) {
    return s->step.step_order == SIFR_STEP_UNIT;
}

static void set_order(plan_settings *s, int32_t value) {
    s->step.step_order = (sifr_step_order)value;
}

static bool accumulates(const plan_settings *s) {
    return s->step.gradient_accumulation_steps > 1;
}

static int32_t get_sequential(const plan_settings *s) {
    return s->step.gradient_order == SIFR_GRADIENT_SEQUENTIAL;
}

static void set_sequential(plan_settings *s, int32_t value) {
    s->step.gradient_order = (sifr_gradient_order)value;
}

static int32_t get_offload(const plan_settings *s) {
    return s->step.offload.optimizer.device == SIFR_TIER_NVME;
}

static void set_offload(plan_settings *s, int32_t value) {
    s->step.offload.optimizer.device = value ? SIFR_TIER_NVME : SIFR_TIER_NONE;
}

static int32_t get_offload_param(const plan_settings *s) {
    return s->step.offload.param.device == SIFR_TIER_NVME;
}

/* On one rank all stages are the same step, and 3 is the one that has them there. */
static void set_offload_param(plan_settings *s, int32_t value) {
    s->step.offload.param.device = value ? SIFR_TIER_NVME : SIFR_TIER_NONE;
    if (value && !has_ranks(s)) s->step.zero.stage = 3;
}

static bool may_offload_param(const plan_settings *s) {
    return s->step.zero.stage == 3 || !has_ranks(s);
}

static int32_t get_offload_gradients(const plan_settings *s) {
    return s->step.offload.gradients == SIFR_TIER_NVME;
}

/* Where they are slices, or there is one rank. To disk by themselves they go if the config says so:
 * state is three times as much, and goes first. */
static bool may_offload_gradients(const plan_settings *s) {
    bool asked = s->step.offload.gradients != SIFR_TIER_NONE || get_offload(s);
    return asked && (s->world_size == 1 || s->step.zero.stage >= 2);
}

static void set_offload_gradients(plan_settings *s, int32_t value) {
    s->step.offload.gradients = value && may_offload_gradients(s) ? SIFR_TIER_NVME : SIFR_TIER_NONE;
}

static int32_t get_offload_activations(const plan_settings *s) {
    return s->step.offload.activations == SIFR_TIER_NVME;
}

static void set_offload_activations(plan_settings *s, int32_t value) {
    s->step.offload.activations = value ? SIFR_TIER_NVME : SIFR_TIER_NONE;
}

static int32_t get_sums(const plan_settings *s) {
    return plan_narrow_gradients(s);
}

static void set_sums(plan_settings *s, int32_t value) {
    s->step.grad_accum_dtype = value ? s->step.precision : SIFR_FP32;
}

static bool is_bf16(const plan_settings *s) {
    return s->step.precision == SIFR_BF16;
}

static int32_t get_masters(const plan_settings *s) {
    return s->step.precision != SIFR_FP32 && !plan_has_masters(s);
}

/* With gradients, as the key says. */
static void set_masters(plan_settings *s, int32_t value) {
    s->step.bf16_master_weights = value != 0;
    s->step.grad_accum_dtype = value ? s->step.precision : SIFR_FP32;
}

/* Without master weights the type of the sums is no choice. */
static bool is_bf16_with_masters(const plan_settings *s) {
    return is_bf16(s) && plan_has_masters(s);
}

static int32_t get_moments(const plan_settings *s) {
    return s->step.bf16_optimizer_states;
}

static void set_moments(plan_settings *s, int32_t value) {
    s->step.bf16_optimizer_states = value != 0;
}

static bool is_fp16(const plan_settings *s) {
    return s->step.precision == SIFR_FP16;
}

static int64_t tile_tokens(const plan_settings *s) {
    return s->step.tile_tokens;
}

static int64_t micro_batch_size(const plan_settings *s) {
    return s->step.micro_batch_size;
}

static int64_t gradient_accumulation_steps(const plan_settings *s) {
    return s->step.gradient_accumulation_steps;
}

static int64_t activation_memory(const plan_settings *s) {
    return s->step.activation_memory;
}

static int32_t get_overlap(const plan_settings *s) {
    return s->step.zero.overlap_comm;
}

#define VALUES(list) .values = list, .count = sizeof list / sizeof *list
#define CHOICE(name, when) .get = get_##name, .set = set_##name, .matters = when

/* Of these "auto" is written, and not tried: it lies between the others. */
static const plan_choice choices[] = {
    {"zero_optimization.stage", VALUES(stages), CHOICE(stage, has_ranks), .traits = PLAN_OF_RANKS},
    {"train_micro_batch_size_per_gpu", .number = micro_batch_size},
    {"gradient_accumulation_steps", .number = gradient_accumulation_steps},
    {"sifr.recompute", .values = recomputes, .count = 2, CHOICE(recompute, always)},
    {"sifr.activation_memory", .number = activation_memory},
    {"sifr.tile_tokens", VALUES(tiles), CHOICE(tiles, has_tiles), .number = tile_tokens},
    {"sifr.step_order", VALUES(orders), CHOICE(order, accumulates), .traits = PLAN_IS_ORDER},
    {"zero_optimization.overlap_comm", .values = switches, .get = get_overlap,
     .traits = PLAN_OF_RANKS},
    {"zero_optimization.offload_optimizer.device", VALUES(devices), CHOICE(offload, always),
     .traits = PLAN_ON_DISK},
    {"zero_optimization.offload_param.device", VALUES(devices),
     CHOICE(offload_param, may_offload_param), .traits = PLAN_ON_DISK},
    {"sifr.offload_gradients", VALUES(devices), CHOICE(offload_gradients, may_offload_gradients),
     .traits = PLAN_ON_DISK},
    {"sifr.offload_activations", VALUES(devices), CHOICE(offload_activations, always),
     .traits = PLAN_ON_DISK | PLAN_FOR_ROOM},
    /* These cost digits of states or sums, or the independence of rank count and step order. */
    {"bf16.bf16_optimizer_states", VALUES(switches), CHOICE(moments, is_bf16)},
    {"bf16.bf16_master_weights_and_grads", VALUES(switches), CHOICE(masters, is_bf16)},
    {"data_types.grad_accum_dtype", VALUES(sums_bf16), CHOICE(sums, is_bf16_with_masters)},
    {"data_types.grad_accum_dtype", VALUES(sums_fp16), CHOICE(sums, is_fp16)},
    {"sifr.gradient_order", VALUES(gradient_orders), CHOICE(sequential, accumulates)},
};

bool plan_is_searched(const plan_choice *row) {
    config_fit fit;
    return row->count > 0 && config_fit_of(row->key, &fit);
}

const char *plan_choice_text(const plan_choice *row, const plan_settings *settings,
                             char out[PLAN_VALUE_LENGTH]) {
    if (row->number)
        snprintf(out, PLAN_VALUE_LENGTH, "%lld", (long long)row->number(settings));
    else
        snprintf(out, PLAN_VALUE_LENGTH, "%s", row->values[row->get(settings)]);
    return out;
}

size_t plan_choice_count(void) {
    return sizeof choices / sizeof *choices;
}

const plan_choice *plan_choice_at(size_t index) {
    return index < plan_choice_count() ? &choices[index] : NULL;
}

void plan_choose(const plan_search *search, plan_settings *settings, size_t index, int32_t value) {
    choices[index].set(settings, value);
    if (settings->step.zero.stage < 3) settings->step.offload.param.device = SIFR_TIER_NONE;
    if (!may_offload_gradients(settings)) settings->step.offload.gradients = SIFR_TIER_NONE;
    if (search->overlap_by_stage) settings->step.zero.overlap_comm = settings->step.zero.stage == 3;
}

static bool has(const plan_choice *row, plan_trait trait) {
    return (row->traits & trait) != 0;
}

static void append(char *out, size_t size, const char *text) {
    size_t used = strlen(out);
    snprintf(out + used, size - used, "%s%s", used ? ", " : "", text);
}

bool plan_is_worth_saying(const plan_choice *row, const plan_settings *s) {
    bool slices = row->set == set_stage && get_offload_param(s);
    if (slices || !row->matters) return slices || !has(row, PLAN_OF_RANKS) || has_ranks(s);
    return row->matters(s);
}

const char *plan_describe_change(const plan_search *search, const plan_settings *from,
                                 const plan_settings *to, char *out, size_t size) {
    char text[128];
    out[0] = '\0';
    for (size_t i = 0; i < plan_choice_count(); i++) {
        const plan_choice *row = &choices[i];
        if (row->count == 0) continue;
        int32_t value = row->get(to);
        bool open = search->any_order && row->set == set_order; /* "auto" still says it all */
        if (open || value == row->get(from) || !plan_is_worth_saying(row, to)) continue;
        snprintf(text, sizeof text, "%s %s", row->key, row->values[value]);
        append(out, size, text);
    }
    if (to->step.micro_batch_size != from->step.micro_batch_size ||
        to->step.gradient_accumulation_steps != from->step.gradient_accumulation_steps) {
        snprintf(text, sizeof text,
                 "train_micro_batch_size_per_gpu %lld with gradient_accumulation_steps %d",
                 (long long)to->step.micro_batch_size, (int)to->step.gradient_accumulation_steps);
        append(out, size, text);
    }
    return out;
}
