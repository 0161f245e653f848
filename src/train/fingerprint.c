#include "train/fingerprint.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"

static json_t *hash_text(uint64_t hash) {
    char hex[17];
    base_hash_hex(hash, hex);
    return json_string(hex);
}

static uint64_t hash_model(const sifr_model *model) {
    uint64_t hash = 0;
    for (size_t i = 0; i < model->weight_count; i++) {
        const model_weight *w = &model->weights[i];
        int64_t shape[2] = {w->rows, w->columns};
        hash = base_hash_seeded(w->name, strlen(w->name) + 1, hash);
        hash = base_hash_seeded(shape, sizeof shape, hash);
    }
    return hash;
}

static uint64_t hash_frozen(const sifr_model *model) {
    uint64_t hash = 0;
    for (size_t i = 0; i < model->weight_count; i++) {
        const model_weight *w = &model->weights[i];
        if (w->frozen) hash = base_hash_seeded(w->name, strlen(w->name) + 1, hash);
    }
    return hash;
}

json_t *train_identity_agree(const sifr_config *config, const sifr_model *model,
                             const train_data *data, int64_t length) {
    json_t *agree = json_pack(
        "{s:I, s:o, s:I, s:o, s:I, s:I, s:I}", "parameters",
        (json_int_t)sifr_model_parameters(model), "weights' names and shapes (hash)",
        hash_text(hash_model(model)), "tokens of data", (json_int_t)train_data_tokens(data),
        "data (hash)", hash_text(train_data_hash(data)), "seq_length", (json_int_t)length,
        "train_batch_size", (json_int_t)config->train_batch_size, "seed", (json_int_t)config->seed);
    bool some = sifr_model_trained(model) < sifr_model_parameters(model);
    if (agree && some &&
        json_object_set_new(agree, "frozen weights (hash)", hash_text(hash_frozen(model))) != 0) {
        json_decref(agree);
        return NULL;
    }
    return agree;
}

static json_t *describe_optimizer(const config_optimizer *o) {
    return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:b, s:b}", "type",
                     o->kind == CONFIG_ADAM ? "Adam" : "AdamW", "lr", o->lr, "beta1", o->beta1,
                     "beta2", o->beta2, "eps", o->eps, "weight_decay", o->weight_decay,
                     "bias_correction", o->bias_correction, "decoupled", o->decoupled);
}

static json_t *describe_cycle(const config_lr_schedule *s) {
    return json_pack(
        "{s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:b, s:f, s:f, s:f}", "cycle_min_lr",
        s->cycle_min_lr, "cycle_max_lr", s->cycle_max_lr, "decay_lr_rate", s->decay_lr_rate,
        "first_step_size", (json_int_t)s->first_step_size, "second_step_size",
        (json_int_t)s->second_step_size, "first_stair_count", (json_int_t)s->first_stair_count,
        "second_stair_count", (json_int_t)s->second_stair_count, "decay_step_size",
        (json_int_t)s->decay_step_size, "cycle_momentum", s->cycle_momentum, "cycle_min_mom",
        s->cycle_min_mom, "cycle_max_mom", s->cycle_max_mom, "decay_mom_rate", s->decay_mom_rate);
}

/* All fields of the schedule, so that any change is seen. */
static json_t *describe_schedule(const config_lr_schedule *s) {
    if (s->kind == CONFIG_LR_ONE_CYCLE) return describe_cycle(s);
    return json_pack("{s:i, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:i}", "kind", (int)s->kind,
                     "base_lr", s->base_lr, "warmup_min_lr", s->warmup_min_lr, "warmup_max_lr",
                     s->warmup_max_lr, "warmup_min_ratio", s->warmup_min_ratio, "cos_min_ratio",
                     s->cos_min_ratio, "warmup_num_steps", (json_int_t)s->warmup_num_steps,
                     "total_num_steps",
                     (json_int_t)(s->kind == CONFIG_LR_CONSTANT || s->kind == CONFIG_LR_WARMUP
                                      ? 0
                                      : s->total_num_steps),
                     "warmup_type", (int)s->warmup_type);
}

static json_t *describe_loss_scaling(const sifr_loss_scaling *s) {
    if (s->fixed > 0) return json_pack("{s:f}", "fixed", s->fixed);
    return json_pack("{s:f, s:f, s:I, s:I, s:b}", "initial", s->initial, "least", s->least,
                     "window", (json_int_t)s->window, "hysteresis", (json_int_t)s->hysteresis,
                     "consecutive", s->consecutive_hysteresis);
}

json_t *train_identity_notes(const sifr_config *config, const sifr_engine *engine) {
    char machine[512];
    device_describe(engine->dev, machine, sizeof machine);
    json_t *notes =
        json_pack("{s:I, s:s, s:f, s:s, s:o, s:o, s:s}", "micro batch size",
                  (json_int_t)config->micro_batch_size, "type",
                  device_dtype_name(engine->training->settings.dtype), "gradient_clipping",
                  config->gradient_clipping, "gradient_order",
                  config->gradient_order == CONFIG_GRADIENT_SEQUENTIAL ? "sequential" : "tree",
                  "optimizer", describe_optimizer(&config->optimizer), "schedule",
                  describe_schedule(&config->schedule), "machine", machine);
    device_dtype sums = engine->training->settings.gradients;
    if (notes && sums != DEVICE_FP32 &&
        json_object_set_new(notes, "gradients", json_string(device_dtype_name(sums))) != 0) {
        json_decref(notes);
        return NULL;
    }
    if (notes && config->fp16.enabled &&
        json_object_set_new(notes, "loss scaling",
                            describe_loss_scaling(&engine->options.loss_scaling)) != 0) {
        json_decref(notes);
        return NULL;
    }
    return notes;
}
