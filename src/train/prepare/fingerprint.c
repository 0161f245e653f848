#include "train/prepare/fingerprint.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "model/shard_words.h"
#include "plan/queries.h"
#include "train/objective/objectives.h"
#include "train/report/notices.h"

/* Ends the names of hashes that older checkpoints lack. */
#define HASHED " (hash)"

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

/* 0: it cannot be read, which those say who read what is in it. */
static uint64_t hash_file(const char *path) {
    base_map map = {0};
    sifr_error ignored;
    uint64_t hash = 0;
    if (base_map_file(path, &map, &ignored) == SIFR_OK) hash = base_hash(map.data, map.size);
    base_unmap(&map);
    return hash;
}

/* The file that targets are read from; only the first rank, whose facts count, reads it. Without
 * one they are made of the model that the run began with, and kept beside its checkpoints. */
static bool put_targets(json_t *may_differ, const sifr_config *config, bool first) {
    const train_objective *objective = train_objective_asked(config);
    char key[80];
    if (!first || !objective || !objective->file) return true;
    const char *path = config_get_word(config, objective->file);
    snprintf(key, sizeof key, "%s" HASHED, objective->file);
    return json_object_set_new(may_differ, key,
                               path ? hash_text(hash_file(path)) : json_string("none")) == 0;
}

/* What a run learns in place of labels alone. */
static bool put_objective(json_t *must_match, const sifr_config *config,
                          const engine_folder *folder) {
    const train_objective *objective = train_objective_of(config, folder->config.task);
    char text[160];
    if (!objective->describe) return true;
    objective->describe(&folder->model->objective, folder->config.undropped, text, sizeof text);
    return json_object_set_new(must_match, objective->key, json_string(text)) == 0;
}

static bool put_coding(json_t *must_match, const sifr_model *model) {
    model_coding coding = MODEL_UNCODED;
    for (size_t i = 0; i < model->weight_count && !coding; i++) coding = model->weights[i].coding;
    if (!coding) return true;
    const char *text = coding == MODEL_INT8  ? "int8"
                       : coding == MODEL_NF4 ? "nf4"
                                             : "nf4, double quantization";
    return json_object_set_new(must_match, "quantization", json_string(text)) == 0;
}

json_t *train_fingerprint_must_match(const sifr_config *config, const engine_folder *folder,
                                     const data_set *data, int64_t length) {
    const sifr_model *model = folder->model;
    json_t *must_match =
        json_pack("{s:I, s:o, s:I, s:o, s:I, s:I, s:I}", "parameters",
                  (json_int_t)sifr_model_parameters(model), "weights' names and shapes (hash)",
                  hash_text(hash_model(model)), "tokens of data", (json_int_t)data_set_tokens(data),
                  "data (hash)", hash_text(data_set_hash(data)), "seq_length", (json_int_t)length,
                  "train_batch_size", (json_int_t)config->train_batch_size, "seed",
                  (json_int_t)config->step.seed);
    if (must_match && !put_objective(must_match, config, folder)) {
        json_decref(must_match);
        return NULL;
    }
    if (must_match && !put_coding(must_match, model)) {
        json_decref(must_match);
        return NULL;
    }
    bool some = sifr_model_trained(model) < sifr_model_parameters(model);
    if (must_match && some &&
        json_object_set_new(must_match, "frozen weights (hash)", hash_text(hash_frozen(model))) !=
            0) {
        json_decref(must_match);
        return NULL;
    }
    return must_match;
}

bool train_fingerprint_same_data(const json_t *must_match, const data_set *data) {
    json_t *hash = hash_text(data_set_hash(data));
    bool same = hash && json_equal(hash, json_object_get(must_match, "data (hash)"));
    json_decref(hash);
    return same;
}

bool train_fingerprint_labels(json_t *must_match, const engine_folder *folder) {
    const train_objective *objective = train_objective_for(folder->config.task);
    return !objective->put_labels || objective->put_labels(folder, must_match);
}

bool train_fingerprint_batches(json_t *must_match, const data_epochs *epochs) {
    bool drops = epochs->last == DATA_LAST_DROPPED;
    if (epochs->last == DATA_LAST_JOINED) return true;
    if (json_object_set_new(must_match, TRAIN_FINGERPRINT_LAST, json_boolean(drops)) != 0)
        return false;
    return !drops || json_object_set_new(must_match, "train_micro_batch_size_per_gpu",
                                         json_integer(epochs->micro)) == 0;
}

bool train_fingerprint_lora(json_t *must_match, const model_lora *lora) {
    static const char *const keys[] = {"alpha_pattern", "use_rslora"};
    if (!lora->json) return true;
    bool whole = json_object_set_new(must_match, "lora_alpha", json_real(lora->alpha)) == 0 &&
                 json_object_set_new(must_match, "lora_dropout", json_real(lora->dropout)) == 0;
    for (size_t i = 0; whole && i < 2; i++) {
        json_t *value = json_object_get(lora->json, keys[i]);
        if (value) whole = json_object_set(must_match, keys[i], value) == 0;
    }
    return whole;
}

static json_t *describe_loss_scaling(const sifr_fp16 *s) {
    if (s->loss_scale > 0) return json_pack("{s:f}", "fixed", s->loss_scale);
    return json_pack("{s:f, s:f, s:I, s:I, s:b}", "initial", ldexp(1, s->initial_scale_power),
                     "least", s->min_loss_scale, "window", (json_int_t)s->loss_scale_window,
                     "hysteresis", (json_int_t)s->hysteresis, "consecutive",
                     s->consecutive_hysteresis);
}

static const char *const sections[] = {"optimizer", "scheduler"};
enum { SECTIONS = sizeof sections / sizeof *sections };

/* Uses the config's own names, so that a resume can name the key that differs. An empty section (no
 * scheduler, say) has no key. */
static bool put_sections(json_t *may_differ, const sifr_config *config) {
    json_t *acting = config_acting(config);
    bool whole = acting != NULL;
    for (size_t i = 0; whole && i < SECTIONS; i++) {
        json_t *section = json_object_get(acting, sections[i]);
        whole = !section || json_object_set(may_differ, sections[i], section) == 0;
    }
    json_decref(acting);
    return whole;
}

/* Whether some weight decays, so that it matters which ones do. */
static bool decays(const sifr_optimizer *o) {
    bool some = o->weight_decay > 0;
    for (int32_t g = 0; g < o->group_count; g++) some |= o->groups[g].weight_decay > 0;
    return some;
}

/* What single weights are trained by, in the config's names, and the average of them; nothing where
 * all are trained alike. */
static bool put_groups(json_t *may_differ, const sifr_config *config) {
    const sifr_optimizer *o = &config->step.optimizer;
    json_t *acting = config_acting(config);
    const json_t *section = json_object_get(acting, "sifr");
    bool acts[] = {o->no_decay != SIFR_DECAY_ALL && decays(o), o->layer_decay<1, o->group_count> 0,
                   o->ema_decay > 0};
    static const char *const names[] = {"no_decay", "layer_decay", "groups", "ema"};
    bool whole = acting != NULL;
    for (size_t i = 0; whole && i < sizeof names / sizeof *names; i++)
        if (acts[i])
            whole = json_object_set(may_differ, names[i], json_object_get(section, names[i])) == 0;
    json_decref(acting);
    return whole;
}

#define GATHERS "gathers"
#define COMPRESSION "compression" /* of the sums of gradients */
#define TENSOR_RANKS "tensor ranks"
#define DIVIDED "divided vocabulary" /* among tensor ranks: a gradient is another sum */
#define CONTEXT_RANKS "context ranks"
#define CONTEXT_KIND "context_parallel.kind"
#define EXACT "tp_exact" /* with it, tensor ranks decide no bit */

static const char *const sums_key = TRAIN_FINGERPRINT_SUMS;

static json_t *describe_compression(const sifr_compression *c) {
    return json_pack("{s:s, s:I, s:I, s:f, s:b, s:b, s:f, s:I}", "type", "powerSGD",
                     "matrix_approximation_rank", (json_int_t)c->rank,
                     "start_compressing_after_step", (json_int_t)c->start, "min_compression_rate",
                     c->min_compression_rate, "use_error_feedback", (int)c->error_feedback,
                     "warm_start", (int)c->warm_start, "orthogonalization_epsilon",
                     c->orthogonalization_epsilon, "random_seed", (json_int_t)c->seed);
}

/* What decides in which order gradients of a global batch are added. Where that is one tree, of
 * however many ranks, and in either step order, what may differ says no more. */
json_t *train_fingerprint_sums(const plan_settings *s) {
    if (train_bits_are_anywhere(s)) return json_string("tree");
    json_t *sums = json_pack(
        "{s:I, s:I, s:s}", "ranks", (json_int_t)plan_mesh_ranks(&s->mesh, PLAN_DATA),
        "gradient_accumulation_steps", (json_int_t)s->step.gradient_accumulation_steps, "reduced",
        plan_batch_neighbours(s) > 1 ? "each micro batch (ZeRO stage 2 or 3 with step_order batch)"
                                     : "once a step (ZeRO stage 0 or 1, or step_order unit)");
    int32_t copies = plan_mesh_ranks(&s->mesh, PLAN_REPLICAS);
    const char *type = base_dtype_name(device_dtype_of(s->step.communication_data_type));
    bool whole = sums != NULL;
    if (whole && copies > 1)
        whole = json_object_set_new(sums, "replicas", json_integer(copies)) == 0;
    if (whole && plan_converts_gradients(s))
        whole = json_object_set_new(sums, "communication_data_type", json_string(type)) == 0;
    if (whole && plan_quantises_sums(s))
        whole = json_object_set_new(sums, "zero_quantized_gradients, ranks on a host",
                                    json_integer(s->mesh.host)) == 0;
    if (whole && plan_compresses(s))
        whole =
            json_object_set_new(sums, COMPRESSION, describe_compression(&s->step.compression)) == 0;
    if (whole) return sums;
    json_decref(sums);
    return NULL;
}

/* "gradient_norm": checkpoints without it are of runs whose norm was a sum in double, block after
 * block: with clipping they went on with other bits. */
json_t *train_fingerprint_may_differ(const sifr_config *config, const sifr_engine *engine) {
    char machine[512];
    device_describe(engine_device(engine), machine, sizeof machine);
    json_t *may_differ =
        json_pack("{s:I, s:s, s:f, s:s, s:s, s:s}", "micro batch size",
                  (json_int_t)config->step.micro_batch_size, "type",
                  base_dtype_name(plan_dtype(&engine_schedule(engine)->settings)),
                  "gradient_clipping", config->step.gradient_clipping, "gradient_order",
                  config->step.gradient_order == SIFR_GRADIENT_SEQUENTIAL ? "sequential" : "tree",
                  "gradient_norm", "exact", "machine", machine);
    sifr_precision sums = config->step.grad_accum_dtype;
    const plan_settings *settings = &engine_schedule(engine)->settings;
    bool whole = may_differ &&
                 json_object_set_new(may_differ, sums_key, train_fingerprint_sums(settings)) == 0 &&
                 put_sections(may_differ, config) && put_groups(may_differ, config) &&
                 put_targets(may_differ, config, comm_rank(engine_group(engine)) == 0);
    int32_t tensors = plan_mesh_ranks(&settings->mesh, PLAN_TENSORS);
    int32_t exact = settings->step.mesh.tp_exact;
    if (whole && tensors > 1 && !exact)
        whole = json_object_set_new(may_differ, TENSOR_RANKS, json_integer(tensors)) == 0;
    const sifr_model *model = engine_model(engine);
    if (whole && model_words_of(&model->nodes[model->node_count - 1]).all > 0)
        whole = json_object_set_new(may_differ, DIVIDED, json_true()) == 0;
    int32_t contexts = plan_mesh_ranks(&settings->mesh, PLAN_CONTEXTS);
    if (whole && contexts > 1)
        whole = json_object_set_new(may_differ, CONTEXT_RANKS, json_integer(contexts)) == 0;
    sifr_context_kind kind = settings->step.mesh.context_kind;
    if (whole && contexts > 1 && kind != SIFR_CONTEXT_ULYSSES)
        whole =
            json_object_set_new(may_differ, CONTEXT_KIND,
                                json_string(kind == SIFR_CONTEXT_BOTH ? "both" : "gather")) == 0;
    if (whole && exact) whole = json_object_set_new(may_differ, EXACT, json_integer(exact)) == 0;
    if (whole && sums != SIFR_FP32)
        whole = json_object_set_new(may_differ, "gradients",
                                    json_string(base_dtype_name(device_dtype_of(sums)))) == 0;
    if (whole && config->step.precision == SIFR_FP16)
        whole = json_object_set_new(may_differ, "loss scaling",
                                    describe_loss_scaling(&engine_settings(engine)->fp16)) == 0;
    if (whole && plan_quantises_some(engine_schedule(engine)))
        whole = json_object_set_new(may_differ, GATHERS, json_string("8 bits")) == 0;
    if (whole) return may_differ;
    json_decref(may_differ);
    return NULL;
}

/* Where nothing decays, which weights would is no difference. */
static bool put_idle_decay(json_t *defaults, const sifr_optimizer *o) {
    return decays(o) || json_object_set_new(defaults, "no_decay", json_string("transformers")) == 0;
}

/* What checkpoints that lack it may have had, too. */
static bool put_unknown(json_t *defaults, const json_t *may_differ) {
    const char *key;
    json_t *value;
    bool whole = true;
    json_object_foreach((json_t *)(uintptr_t)may_differ, key, value) {
        size_t length = strlen(key), end = sizeof HASHED - 1;
        bool hashed = length > end && strcmp(key + length - end, HASHED) == 0;
        if (hashed || strcmp(key, sums_key) == 0)
            whole = whole && json_object_set(defaults, key, value) == 0;
    }
    return whole;
}

json_t *train_fingerprint_defaults(const json_t *may_differ, const sifr_optimizer *optimizer) {
    json_t *defaults = json_object();
    bool whole = json_object_set_new(defaults, TENSOR_RANKS, json_integer(1)) == 0 &&
                 json_object_set_new(defaults, DIVIDED, json_false()) == 0 &&
                 json_object_set_new(defaults, CONTEXT_RANKS, json_integer(1)) == 0 &&
                 json_object_set_new(defaults, CONTEXT_KIND, json_string("ulysses")) == 0 &&
                 json_object_set_new(defaults, EXACT, json_integer(0)) == 0;
    if (!whole || !put_idle_decay(defaults, optimizer) || !put_unknown(defaults, may_differ)) {
        json_decref(defaults);
        return NULL;
    }
    for (size_t i = 0; i < SECTIONS; i++) {
        json_t *section = config_fallbacks(sections[i]);
        if (json_object_set_new(defaults, sections[i], section) == 0) continue;
        json_decref(defaults);
        return NULL;
    }
    return defaults;
}

/* --- in words --- */

/* What a note of train_fingerprint_sums says. */
static json_t *sums_in_words(const json_t *sums) {
    const json_t *compression = json_object_get(sums, COMPRESSION);
    const char *reduced = json_string_value(json_object_get(sums, "reduced"));
    json_int_t ranks = json_integer_value(json_object_get(sums, "ranks"));
    json_int_t micro = json_integer_value(json_object_get(sums, "gradient_accumulation_steps"));
    char powers[64] = "";
    if (!json_is_object(sums)) return json_string("in one tree, whatever the number of ranks");
    if (compression)
        snprintf(powers, sizeof powers, ", compressed (powerSGD of rank %lld)",
                 (long long)json_integer_value(
                     json_object_get(compression, "matrix_approximation_rank")));
    bool each = reduced && strncmp(reduced, "each", 4) == 0;
    return json_sprintf("of %lld data rank%s, %lld micro batch%s of each, reduced %s%s",
                        (long long)ranks, ranks == 1 ? "" : "s", (long long)micro,
                        micro == 1 ? "" : "es", each ? "one by one" : "once a step", powers);
}

/* Where one side has no number of ranks, they are no two numbers to compare. */
static bool put_sums_in_words(json_t *was, json_t *now) {
    json_t *before = json_object_get(was, sums_key), *after = json_object_get(now, sums_key);
    if (!before || !after || json_is_object(before) == json_is_object(after)) return true;
    return json_object_set_new(was, sums_key, sums_in_words(before)) == 0 &&
           json_object_set_new(now, sums_key, sums_in_words(after)) == 0;
}

static bool put_gathers_in_words(json_t *was, json_t *now) {
    json_t *const both[] = {was, now};
    bool whole = true;
    if (!json_object_get(was, GATHERS) == !json_object_get(now, GATHERS)) return true;
    for (int i = 0; i < 2; i++) {
        const char *words = json_object_get(both[i], GATHERS) ? "in 8 bits" : "of whole values";
        whole = whole && json_object_set_new(both[i], GATHERS, json_string(words)) == 0;
    }
    return whole;
}

/* With tp_exact the tensor ranks decide nothing, and are not noted. */
static void leave_out_tensors(json_t *was, json_t *now) {
    json_int_t before = json_integer_value(json_object_get(was, EXACT)),
               after = json_integer_value(json_object_get(now, EXACT));
    json_t *const both[] = {was, now};
    for (int i = 0; before != after && i < 2; i++) {
        json_object_del(both[i], TENSOR_RANKS);
        json_object_del(both[i], DIVIDED);
    }
}

bool train_fingerprint_words(json_t *was, json_t *now) {
    leave_out_tensors(was, now);
    return put_sums_in_words(was, now) && put_gathers_in_words(was, now);
}
