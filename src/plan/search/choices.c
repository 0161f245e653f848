/* The settings that a planner may change. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
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

static bool has_ranks(const plan_settings *s) {
    return plan_mesh_ranks(&s->mesh, PLAN_WORLD) > 1;
}

static bool has_stages(const plan_settings *s) {
    return s->step.pipeline.stages > 1;
}

static bool has_tensors(const plan_settings *s) {
    return s->step.mesh.tensor_size > 1;
}

static bool has_contexts(const plan_settings *s) {
    return s->step.mesh.context_size > 1;
}

static bool has_copies(const plan_settings *s) {
    return s->step.mesh.shard_size > 0;
}

static bool has_near(const plan_settings *s) {
    return s->mesh.near > 0;
}

static bool always(const plan_settings *s) {
    (void)s;
    return true;
}

/* Keeps many threads busy with a tile's products; smaller tiles save hardly any memory. Devices
 * with larger chunks get a chunk. */
enum { TILE = 4096 };

/* Without recomputation tiles save hardly any memory, so they are not tried. */
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

static bool accumulates(const plan_settings *s) {
    return s->step.gradient_accumulation_steps > 1;
}

/* Offload of parameters needs stage 3. On one rank all stages are the same step. */
static void set_offload_param(plan_settings *s, int32_t value) {
    s->step.offload.param.device = value ? SIFR_TIER_NVME : SIFR_TIER_NONE;
    if (value && !has_ranks(s)) s->step.zero.stage = 3;
}

static bool may_offload_param(const plan_settings *s) {
    return plan_cuts(s, PLAN_CUT_WEIGHTS) || !has_ranks(s);
}

/* Gradients can go to disk if they are cut into slices, or on one rank. They go there without the
 * optimizer state only if the config says so: the state is three times as large and goes first. */
static bool may_offload_gradients(const plan_settings *s) {
    const sifr_offload *offload = &s->step.offload;
    bool asked =
        offload->gradients != SIFR_TIER_NONE || offload->optimizer.device == SIFR_TIER_NVME;
    return asked && (!has_ranks(s) || plan_cuts(s, PLAN_CUT_SUMS));
}

static void set_offload_gradients(plan_settings *s, int32_t value) {
    s->step.offload.gradients = value && may_offload_gradients(s) ? SIFR_TIER_NVME : SIFR_TIER_NONE;
}

/* Also sets the type of gradients, as the key's name says. */
static void set_masters(plan_settings *s, int32_t value) {
    s->step.bf16_master_weights = value != 0;
    s->step.grad_accum_dtype = value ? s->step.precision : SIFR_FP32;
}

static bool is_bf16(const plan_settings *s) {
    return s->step.precision == SIFR_BF16;
}

/* Without master weights the type of gradient sums is fixed. */
static bool is_bf16_with_masters(const plan_settings *s) {
    return is_bf16(s) && plan_has_masters(s);
}

static bool is_fp16(const plan_settings *s) {
    return s->step.precision == SIFR_FP16;
}

#define VALUES(list) .values = list, .count = sizeof list / sizeof *list
#define FIELD(member)                                                                              \
    .field = offsetof(sifr_settings, member), .size = sizeof(((sifr_settings *)0)->member)

/* recompute "auto" can be shown but is not tried, since it lies between "none" and "unit". */
static const plan_choice choices[] = {
    {"zero_optimization.stage", VALUES(stages), FIELD(zero.stage), .matters = has_ranks,
     .traits = PLAN_OF_RANKS},
    {"pipeline.stages", FIELD(pipeline.stages), .matters = has_stages, .number = true,
     .traits = PLAN_OF_RANKS},
    {"tensor_parallel.size", FIELD(mesh.tensor_size), .matters = has_tensors, .number = true,
     .traits = PLAN_OF_RANKS},
    {"sifr.context_parallel.size", FIELD(mesh.context_size), .matters = has_contexts,
     .number = true, .traits = PLAN_OF_RANKS},
    {"sifr.shard_size", FIELD(mesh.shard_size), .matters = has_copies, .number = true,
     .traits = PLAN_OF_RANKS},
    {"zero_optimization.zero_hpz_partition_size", FIELD(zero.hpz_partition_size),
     .matters = has_near, .number = true, .traits = PLAN_OF_RANKS},
    {"train_micro_batch_size_per_gpu", FIELD(micro_batch_size), .number = true},
    {"gradient_accumulation_steps", FIELD(gradient_accumulation_steps), .number = true},
    {"sifr.recompute", .values = recomputes, .count = 2, FIELD(recompute), .matters = always},
    {"sifr.activation_memory", FIELD(activation_memory), .number = true},
    {"sifr.tile_tokens", VALUES(tiles), FIELD(tile_tokens), .on = 1, .set = set_tiles,
     .matters = has_tiles, .number = true},
    {"sifr.step_order", VALUES(orders), FIELD(step_order), .matters = accumulates,
     .traits = PLAN_IS_ORDER},
    {"zero_optimization.overlap_comm", .values = switches, FIELD(zero.overlap_comm),
     .traits = PLAN_OF_RANKS},
    {"zero_optimization.offload_optimizer.device", VALUES(devices), FIELD(offload.optimizer.device),
     .on = SIFR_TIER_NVME, .matters = always, .traits = PLAN_ON_DISK},
    {"zero_optimization.offload_param.device", VALUES(devices), FIELD(offload.param.device),
     .on = SIFR_TIER_NVME, .set = set_offload_param, .matters = may_offload_param,
     .traits = PLAN_ON_DISK},
    {"sifr.offload_gradients", VALUES(devices), FIELD(offload.gradients), .on = SIFR_TIER_NVME,
     .set = set_offload_gradients, .matters = may_offload_gradients, .traits = PLAN_ON_DISK},
    {"sifr.offload_activations", VALUES(devices), FIELD(offload.activations), .on = SIFR_TIER_NVME,
     .matters = always, .traits = PLAN_ON_DISK | PLAN_FOR_CAPACITY},
    /* These cost precision of states or sums, or the independence of results from rank count and
     * step order. */
    {"bf16.bf16_optimizer_states", VALUES(switches), FIELD(bf16_optimizer_states),
     .matters = is_bf16},
    {"bf16.bf16_master_weights_and_grads", VALUES(switches), FIELD(bf16_master_weights),
     .set = set_masters, .matters = is_bf16},
    {"data_types.grad_accum_dtype", VALUES(sums_bf16), FIELD(grad_accum_dtype), .on = SIFR_BF16,
     .matters = is_bf16_with_masters},
    {"data_types.grad_accum_dtype", VALUES(sums_fp16), FIELD(grad_accum_dtype), .on = SIFR_FP16,
     .matters = is_fp16},
    {"sifr.gradient_order", VALUES(gradient_orders), FIELD(gradient_order), .matters = accumulates},
};

/* A field is a bool, an int64_t, or has 32 bits (int32_t, enum). */
int64_t plan_choice_number(const plan_choice *row, const plan_settings *settings) {
    const char *field = (const char *)&settings->step + row->field;
    int64_t wide = 0;
    int32_t narrow = 0;
    if (row->size == sizeof wide) {
        memcpy(&wide, field, sizeof wide);
        return wide;
    }
    if (row->size == sizeof narrow) {
        memcpy(&narrow, field, sizeof narrow);
        return narrow;
    }
    return *(const bool *)field;
}

int32_t plan_choice_get(const plan_choice *row, const plan_settings *settings) {
    int64_t value = plan_choice_number(row, settings);
    return row->on ? value >= row->on : (int32_t)value;
}

static void set(const plan_choice *row, plan_settings *settings, int32_t value) {
    char *field = (char *)&settings->step + row->field;
    int32_t written = row->on ? (value ? row->on : 0) : value;
    if (row->set)
        row->set(settings, value);
    else if (row->size == sizeof written)
        memcpy(field, &written, sizeof written);
    else
        *(bool *)field = written != 0;
}

bool plan_is_searched(const plan_choice *row) {
    config_fit fit;
    return row->count > 0 && config_fit_of(row->key, &fit);
}

const char *plan_choice_text(const plan_choice *row, const plan_settings *settings,
                             char out[PLAN_VALUE_LENGTH]) {
    if (row->number)
        snprintf(out, PLAN_VALUE_LENGTH, "%lld", (long long)plan_choice_number(row, settings));
    else
        snprintf(out, PLAN_VALUE_LENGTH, "%s", row->values[plan_choice_get(row, settings)]);
    return out;
}

size_t plan_choice_count(void) {
    return sizeof choices / sizeof *choices;
}

const plan_choice *plan_choice_at(size_t index) {
    return index < plan_choice_count() ? &choices[index] : NULL;
}

void plan_choose(const plan_search *search, plan_settings *settings, size_t index, int32_t value) {
    set(&choices[index], settings, value);
    settings->step.tile_tokens =
        base_ceil_to(settings->step.tile_tokens, device_token_chunk(search->dev));
    if (!plan_cuts(settings, PLAN_CUT_WEIGHTS))
        settings->step.offload.param.device = SIFR_TIER_NONE;
    if (!may_offload_gradients(settings)) settings->step.offload.gradients = SIFR_TIER_NONE;
    settings->mesh.near = plan_mesh_near(&settings->step.zero, &settings->mesh);
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
    bool slices =
        row == &choices[PLAN_CHOICE_STAGE] && s->step.offload.param.device == SIFR_TIER_NVME;
    if (slices || !row->matters) return slices || !has(row, PLAN_OF_RANKS) || has_ranks(s);
    return row->matters(s);
}

const char *plan_describe_change(const plan_search *search, const plan_settings *from,
                                 const plan_settings *to, char *out, size_t size) {
    char text[128], number[PLAN_VALUE_LENGTH];
    out[0] = '\0';
    for (size_t i = 0; i < plan_choice_count(); i++) {
        const plan_choice *row = &choices[i];
        if (row->count == 0) continue;
        int32_t value = plan_choice_get(row, to);
        bool open = search->any_order && has(row, PLAN_IS_ORDER); /* stays "auto" */
        if (open || value == plan_choice_get(row, from) || !plan_is_worth_saying(row, to)) continue;
        snprintf(text, sizeof text, "%s %s", row->key, plan_choice_text(row, to, number));
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
