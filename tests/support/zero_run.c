#include "support/zero_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/random.h"
#include "model/quantization.h"
#include "optim/optim.h"
#include "plan/queries.h"
#include "support/comm_threads.h"
#include "support/model_case.h"
#include "support/on_queues.h"
#include "support/step_checks.h"
#include "support/thinned.h"

enum { WORDS = 97, MOST_RANKS = 16 };

typedef struct rank_run {
    const zero_variant *v;
    comm_threads *world;
    int32_t rank;
    zero_outcome *out; /* rank 0's */
    step_past last;
    char failure[SIFR_ERROR_LENGTH];
} rank_run;

static bool is_encoder(const char *type) {
    return strstr(type, "bert") != NULL;
}

/* Dropouts are those that absent keys have. */
static model_config encoder_config(const char *type) {
    static const char format[] =
        "{\"model_type\": \"%s\", \"vocab_size\": 97, \"hidden_size\": 24, "
        "\"num_hidden_layers\": 2, \"num_attention_heads\": 3, \"intermediate_size\": 56, "
        "\"hidden_dim\": 56, \"max_position_embeddings\": 64, \"local_attention\": 12, "
        "\"relative_attention\": true, \"position_buckets\": 6, \"pos_att_type\": \"c2p|p2c\", "
        "\"share_att_key\": true, \"norm_rel_ebd\": \"layer_norm\", \"conv_kernel_size\": 3}";
    model_config c;
    sifr_error error;
    char text[640];
    snprintf(text, sizeof text, format, type);
    if (model_config_parse(text, strlen(text), "zero_run", &c, &error))
        fail_msg("%s", error.message);
    return c;
}

model_config zero_config(const char *type) {
    if (is_encoder(type)) return encoder_config(type);
    model_config c = model_case_llama();
    c.tie_word_embeddings = true;
    strcpy(c.model_type, type);
    if (strcmp(type, "olmo") == 0) c.qkv_limit = 0.3;
    if (strcmp(type, "gpt2") != 0) return c;
    c.num_key_value_heads = c.num_attention_heads;
    c.activation = MODEL_GELU_TANH;
    c.residual_dropout = 0.1;
    return c;
}

/* Ranks that share a batch. */
static int32_t sharing_of(const zero_variant *v) {
    return (v->tensors ? v->tensors : 1) * (v->contexts ? v->contexts : 1);
}

static sifr_settings options_of(const zero_variant *v) {
    sifr_settings options = sifr_settings_defaults();
    options.precision = v->precision;
    options.threads = 1;
    options.micro_batch_size = v->sequences ? v->sequences : 1;
    options.seq_length = v->length ? v->length : ZERO_LENGTH;
    options.tile_tokens = v->tile_tokens;
    options.gradient_accumulation_steps = v->global / (v->ranks / sharing_of(v));
    options.step_order = v->unit_order ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
    options.gradient_order = v->sequential ? SIFR_GRADIENT_SEQUENTIAL : SIFR_GRADIENT_TREE;
    if (v->recompute)
        options.recompute = v->activation_bytes ? SIFR_RECOMPUTE_AUTO : SIFR_RECOMPUTE_UNIT;
    options.activation_memory = v->activation_bytes;
    options.number_checkpoints = v->checkpoints;
    if (v->optimizer) options.optimizer = *v->optimizer;
    options.optimizer.weight_decay = 0.01;
    if (v->keys) options.zero = *v->keys;
    options.zero.stage = v->stage;
    options.mesh.shard_size = v->shard_size;
    options.mesh.tensor_size = v->tensors;
    options.mesh.sequence_parallel = v->rows;
    options.mesh.tp_overlap_comm = v->overlaps;
    options.partition_activations = v->partitions;
    options.mesh.context_size = v->contexts;
    options.mesh.context_kind = v->kind;
    options.mesh.tp_exact = v->exact;
    options.mesh.vocab_parallel_lm_head = v->words;
    options.pipeline.stages = v->stages ? v->stages : 1;
    options.pipeline.schedule = v->schedule;
    options.pipeline.chunks = v->chunks ? v->chunks : 1;
    if (v->first_scale > 0) options.fp16.initial_scale_power = ilogb(v->first_scale);
    options.communication_data_type = v->travel;
    options.grad_accum_dtype = v->gradients;
    options.bf16_master_weights = v->masters == SIFR_BF16;
    options.bf16_optimizer_states = v->moments == SIFR_BF16;
    if (v->offload) options.offload = *v->offload;
    if (v->compression) options.compression = *v->compression;
    if (v->scale_window) options.fp16.loss_scale_window = v->scale_window;
    if (v->no_clipping) options.gradient_clipping = 0;
    return options;
}

/* What a model reads of each token, end to end: tokens, labels, token types, segments, positions.
 */
typedef struct batch_ids {
    int32_t *tokens, *labels, *types, *segments, *positions;
    bool packed;
    uint32_t words;
} batch_ids;

static batch_ids make_ids(size_t count, bool packed, int64_t vocabulary) {
    int32_t *all = calloc(5 * count, sizeof *all);
    return (batch_ids){.tokens = all,
                       .labels = all + count,
                       .types = all + 2 * count,
                       .segments = all + 3 * count,
                       .positions = all + 4 * count,
                       .packed = packed,
                       .words = vocabulary ? (uint32_t)vocabulary : WORDS};
}

static sifr_batch batch_of(const batch_ids *ids) {
    return (sifr_batch){.tokens = ids->tokens,
                        .labels = ids->labels,
                        .token_types = ids->types,
                        .segments = ids->segments,
                        .positions = ids->packed ? ids->positions : NULL};
}

/* Documents of 1 to 7 tokens, of other lengths in each sequence. */
static void pack(const plan_settings *settings, int64_t index, int64_t at, batch_ids *ids) {
    int32_t document = 0, position = 0;
    for (int64_t i = 0; i < settings->step.seq_length; i++, position++) {
        if (position > (index + document) % 7) document++, position = 0;
        ids->segments[at + i] = document;
        ids->positions[at + i] = position;
    }
}

/* Sequence `index` of a step is padded, but for one in three. */
static void pad(const plan_settings *settings, int64_t index, int64_t at, batch_ids *ids) {
    int64_t length = settings->step.seq_length, real = length;
    if (index % 3 != 0) real = 1 + (7 * index + 3) % length;
    for (int64_t i = 0; i < length; i++) {
        ids->types[at + i] = i < real && i > real / 2;
        ids->segments[at + i] = i >= real;
        if (i >= real) ids->tokens[at + i] = 0, ids->labels[at + i] = -100;
    }
}

static void fill_batch(const sifr_engine *engine, int step, const zero_variant *v, batch_ids *ids) {
    const plan_settings *settings = &engine->training->settings;
    int64_t count = settings->step.micro_batch_size * settings->step.seq_length;
    for (int32_t j = 0; j < settings->step.gradient_accumulation_steps; j++) {
        int32_t g =
            plan_global_micro_batch(settings, plan_mesh_place(&settings->mesh, PLAN_DATA), j);
        for (int64_t i = 0; i < count; i++) {
            int64_t in_step = g * count + i, at = j * count + i;
            base_random4 draw = base_philox(9, (uint64_t)in_step, (uint64_t)step);
            ids->tokens[at] = (int32_t)(v->distinct ? (35 * in_step + step) % WORDS
                                                    : (int64_t)(draw.v[0] % ids->words));
            bool none = draw.v[1] % 5 == 0; /* ranks have different counts of labels */
            ids->labels[at] = none ? -100 : (int32_t)(draw.v[2] % ids->words);
        }
        if (engine->model->inputs[SIFR_SEGMENTS] < 0) continue;
        for (int64_t n = 0; n < settings->step.micro_batch_size; n++)
            (ids->packed ? pack : pad)(settings, g * settings->step.micro_batch_size + n,
                                       j * count + n * settings->step.seq_length, ids);
    }
}

static sifr_status one_step(rank_run *r, sifr_engine *engine, int step, batch_ids *ids,
                            sifr_error *error) {
    sifr_step_result result;
    step_counts before;
    fill_batch(engine, step, r->v, ids);
    sifr_batch batch = batch_of(ids);
    BASE_TRY(step_checks_count(engine, &before, error));
    BASE_TRY(sifr_engine_step(engine, &batch, 1e-2, &result, error));
    BASE_TRY(step_checks_compare(engine, &before, &r->last, result.updated, error));
    r->last = (step_past){.ran = true, .updated = result.updated};
    if (r->v->stepped) r->v->stepped(r->v->user, engine, step, result.updated);
    if (r->rank == 0) {
        r->out->loss[step] = result.loss;
        r->out->norm[step] = result.updated ? result.gradient_norm : -1;
        r->out->scale[step] = result.loss_scale;
        r->out->updates = sifr_engine_updates(engine);
    }
    return SIFR_OK;
}

/* The losses of each token, in the order of the batch. */
static sifr_status read_rows(rank_run *r, const sifr_engine *engine, sifr_error *error) {
    const engine_evaluator *evaluator = &engine->evaluator;
    const plan_settings *settings = &evaluator->schedule->settings;
    int64_t run = plan_run_length(settings), count = plan_tokens(settings);
    float own[ZERO_MOST_ROWS], all[ZERO_MOST_ROWS * MOST_RANKS];
    int64_t bytes = count * (int64_t)sizeof *own;
    if (count * plan_mesh_ranks(&settings->mesh, PLAN_CONTEXTS) > ZERO_MOST_ROWS) return SIFR_OK;
    BASE_TRY(engine_get(evaluator->executor, evaluator->schedule->losses[0], 0, own, bytes, error));
    BASE_TRY(comm_all_gather_control(engine->group, own, bytes, all, error));
    int64_t contexts = plan_mesh_ranks(&settings->mesh, PLAN_CONTEXTS);
    int64_t apart = plan_mesh_ranks(&settings->mesh, PLAN_TENSORS);
    plan_settings there = *settings;
    for (int64_t i = 0; r->rank == 0 && i < count * contexts; i++) {
        int64_t row = i % count;
        there.mesh.place[PLAN_AXIS_CONTEXT] = (int32_t)(i / count);
        plan_token_runs runs = plan_runs_of_tokens(&there);
        int64_t at = runs.first[row / runs.length % runs.count] + row % runs.length;
        r->out->rows[row / run * run * contexts + at] = all[i / count * apart * count + row];
    }
    return SIFR_OK;
}

static sifr_status evaluate(rank_run *r, sifr_engine *engine, const batch_ids *ids,
                            sifr_error *error) {
    double sum, all[MOST_RANKS];
    int64_t labelled;
    if (!r->v->evaluate) return SIFR_OK;
    sifr_batch batch = batch_of(ids);
    sifr_status status = sifr_engine_evaluate(engine, &batch, &sum, &labelled, error);
    if (status == SIFR_OK)
        status = comm_all_gather_control(engine->group, &sum, sizeof sum, all, error);
    if (status == SIFR_OK && engine->training->settings.pipeline.stages <= 1)
        status = read_rows(r, engine, error);
    for (int32_t i = 0; i < r->v->ranks && r->rank == 0 && status == SIFR_OK; i += sharing_of(r->v))
        r->out->evaluated += all[i];
    return status;
}

/* An evaluation that leaves what trains as it was. */
static sifr_status look(sifr_engine *engine, const batch_ids *ids, sifr_error *error) {
    double sum;
    int64_t labelled;
    sifr_batch batch = batch_of(ids);
    sifr_status status = sifr_engine_evaluate(engine, &batch, &sum, &labelled, error);
    return status == SIFR_OK ? engine_refresh(engine, error) : status;
}

static sifr_status read_weights(rank_run *r, const sifr_engine *engine, sifr_error *error) {
    const sifr_model *model = engine->model;
    size_t parts = (size_t)engine_parts(engine), states = parts - 1;
    size_t all = 0;
    for (size_t w = 0; w < model->weight_count; w++)
        all += (size_t)model_logical_elements(&model->weights[w]);
    float *whole = calloc(parts * all, sizeof *whole), *at = whole;
    sifr_status status = SIFR_OK;
    for (size_t w = 0; w < model->weight_count && status == SIFR_OK; w++) {
        size_t count = (size_t)model_logical_elements(&model->weights[w]);
        status = sifr_engine_read_weight(engine, model->weights[w].name, at, count, error);
        at += count;
    }
    for (size_t i = 0; i < states * model->weight_count && status == SIFR_OK; i++) {
        size_t w = i / states;
        engine_part part = (engine_part)(ENGINE_STATE1 + i % states);
        if ((int)part >= engine_weight_parts(engine, w)) continue;
        bool cut = model->weights[w].cut.count > 0;
        size_t count = (size_t)(cut ? model_logical_elements(&model->weights[w])
                                    : engine_part_elements(engine, w, part));
        if (engine_part_each(engine, w, part) > 1) continue; /* what codes are shares of */
        status = engine_collect(engine, w, part, 0, (int64_t)count, at, error);
        at += count;
    }
    if (r->rank == 0) {
        r->out->weights = whole;
        r->out->count = (size_t)(at - whole);
    } else {
        free(whole);
    }
    return status;
}

static void note_plan(zero_outcome *out, const plan_schedule *s) {
    memcpy(out->peak, s->peak_bytes, sizeof out->peak);
    out->activations = s->largest_bytes[PLAN_ACTIVATIONS];
    for (size_t i = 0; i < s->instruction_count; i++)
        out->again += s->instructions[i].action == PLAN_RECOMPUTE;
    out->total_bytes = s->total_bytes;
    out->nvme_bytes = s->nvme_bytes;
    out->host_bytes = s->host_bytes;
    out->staging_bytes = plan_host_bytes(s) - s->host_bytes - 2 * plan_piece_bytes(s);
    plan_disk(s, &out->nvme_read, &out->nvme_written);
    plan_copies(s, &out->host_read, &out->host_written);
    plan_wire(s, &out->gathered, &out->reduced);
    plan_calls(s, &out->gathers, &out->reductions);
}

static sifr_status group_weights(sifr_model *model, int32_t groups, sifr_error *error) {
    for (size_t w = 0; w < model->weight_count; w++) model->weights[w].group = (int32_t)w % groups;
    return model_arrange(model, error);
}

static sifr_status code_weights(sifr_model *model, model_coding coding, model_config *config,
                                sifr_error *error) {
    config->coding = coding;
    model_code_base(model, config);
    if (model->error.status != SIFR_OK) return base_fail(error, SIFR_FAILED, "no codes");
    return model_arrange(model, error);
}

/* What codes of a weight stand for. */
static void through_blocks(float *values, int64_t count) {
    static const int64_t most = BASE_NF4_RECORD;
    uint8_t record[BASE_BLOCK8_RECORD_BYTES];
    for (int64_t at = 0; at < count; at += most) {
        base_block8_encode(values + at, base_min_i64(most, count - at), record);
        base_block8_decode(record, 0, base_min_i64(most, count - at), values + at);
    }
}

static void through_codes(float *values, int64_t count, bool doubled) {
    int64_t blocks = (count + BASE_NF4_BLOCK - 1) / BASE_NF4_BLOCK;
    float *scales = malloc((size_t)blocks * sizeof *scales);
    uint8_t record[BASE_NF4_PLAIN];
    base_nf4_scales(values, count, scales);
    float mean = base_nf4_mean(scales, blocks);
    for (int64_t at = 0; at < count; at += BASE_NF4_RECORD) {
        int64_t some = base_min_i64(BASE_NF4_RECORD, count - at);
        base_nf4_encode(values + at, some, doubled, mean, record);
        base_nf4_decode(record, doubled, 0, some, values + at);
    }
    free(scales);
}

/* Writes them in place of the first values of those weights that a model with codes would hold so.
 */
static sifr_status open_codes(sifr_engine *engine, model_coding coding, model_config *config,
                              sifr_error *error) {
    sifr_model *like;
    sifr_status status = model_from_config(config, &like, error);
    for (size_t w = 0; status == SIFR_OK && w < like->weight_count; w++)
        like->weights[w].frozen = engine->model->weights[w].frozen;
    if (status == SIFR_OK) status = code_weights(like, coding, config, error);
    for (size_t w = 0; status == SIFR_OK && w < like->weight_count; w++) {
        const model_weight *weight = &like->weights[w];
        int64_t count = weight->rows * weight->columns;
        if (!weight->coding) continue;
        float *values = malloc((size_t)count * sizeof *values);
        model_initial_values(like, w, ZERO_SEED, 0, count, values);
        if (coding == MODEL_INT8)
            through_blocks(values, count);
        else
            through_codes(values, count, coding == MODEL_NF4_DOUBLED);
        status = sifr_engine_write_weight(engine, weight->name, values, (size_t)count, error);
        free(values);
    }
    sifr_model_free(like);
    return status;
}

static void *run_rank(void *argument) {
    rank_run *r = argument;
    const zero_variant *v = r->v;
    model_config config = v->config ? *v->config : zero_config(v->type);
    config.packed = v->packed;
    if (v->own) config.objective = (model_objective){.row = &model_objective_own, .own = *v->own};
    if (v->layers) config.num_hidden_layers = v->layers;
    if (v->exact && !v->config) {
        config.num_attention_heads = 8;
        config.num_key_value_heads = v->exact;
        if (strcmp(v->type, "gpt2") == 0) config.head_dim = config.hidden_size / 8;
    }
    if (v->intermediate) config.intermediate_size = v->intermediate;
    if (v->distinct) config.tie_word_embeddings = false;
    if (v->length > config.max_position_embeddings) config.max_position_embeddings = v->length;
    sifr_model *model = NULL;
    sifr_engine *engine = NULL;
    sifr_error error = {0};
    sifr_settings options = options_of(v);
    batch_ids ids = make_ids((size_t)(options.gradient_accumulation_steps *
                                      options.micro_batch_size * options.seq_length),
                             v->packed, v->vocabulary);
    if (v->vocabulary) config.vocab_size = v->vocabulary;
    comm_group *group = comm_threads_group(r->world, r->rank);
    sifr_status status = model_from_config(&config, &model, &error);
    for (int i = 0; i < 3 && status == SIFR_OK && v->freeze[i]; i++) {
        status = sifr_model_freeze(model, v->freeze[i], &error);
    }
    if (status == SIFR_OK && v->coding && !v->opened)
        status = code_weights(model, v->coding, &config, &error);
    device *dev = NULL;
    if (status == SIFR_OK)
        status = v->open       ? v->open(&dev, &error)
                 : v->separate ? device_open_separate(1, NULL, &dev, &error)
                               : device_open_cpu(1, NULL, &dev, &error);
    if (status == SIFR_OK) status = sifr_model_group(model, &options.optimizer, &error);
    if (status == SIFR_OK && v->groups) status = group_weights(model, v->groups, &error);
    if (status == SIFR_OK) status = engine_create_on(dev, model, &options, group, &engine, &error);
    if (status == SIFR_OK) status = step_checks_pinned(engine, &error);
    if (status == SIFR_OK) status = sifr_engine_initialise(engine, ZERO_SEED, &error);
    if (status == SIFR_OK && v->opened) status = open_codes(engine, v->coding, &config, &error);
    int steps = v->steps ? v->steps : ZERO_STEPS;
    if (status == SIFR_OK && steps < 0) fill_batch(engine, 0, v, &ids);
    for (int s = 0; s < steps && status == SIFR_OK; s++) {
        status = one_step(r, engine, s, &ids, &error);
        if (status == SIFR_OK && v->evaluate_each) status = look(engine, &ids, &error);
    }
    if (status == SIFR_OK) status = evaluate(r, engine, &ids, &error);
    if (status == SIFR_OK) status = read_weights(r, engine, &error);
    if (status == SIFR_OK && r->rank == 0) note_plan(r->out, engine->training);
    if (status != SIFR_OK) memcpy(r->failure, error.message, sizeof r->failure);
    sifr_engine_free(engine);
    comm_close(group);
    sifr_model_free(model);
    free(ids.tokens);
    return NULL;
}

bool zero_try(zero_variant v, zero_outcome *out, char *why) {
    if (!v.open && !v.separate && on_queues()) v.open = on_queues_open, v.hidden = true;
    *out = (zero_outcome){0};
    rank_run runs[MOST_RANKS] = {0};
    pthread_t threads[MOST_RANKS];
    int32_t ranks = v.ranks * (v.stages ? v.stages : 1);
    comm_threads *world = comm_threads_create(ranks);
    if (v.hidden) comm_threads_share(world);
    comm_threads_place(world, v.per_host);
    for (int32_t r = 0; r < ranks; r++) {
        runs[r] = (rank_run){.v = &v, .world = world, .rank = r, .out = out};
        pthread_create(&threads[r], NULL, run_rank, &runs[r]);
    }
    for (int32_t r = 0; r < ranks; r++) pthread_join(threads[r], NULL);
    comm_threads_free(world);
    for (int32_t r = 0; r < ranks; r++) {
        if (!runs[r].failure[0]) continue;
        snprintf(why, SIFR_ERROR_LENGTH, "rank %d: %s", r, runs[r].failure);
        free(out->weights);
        *out = (zero_outcome){0};
        return false;
    }
    return true;
}

zero_outcome zero_run(zero_variant v) {
    zero_outcome out;
    char why[SIFR_ERROR_LENGTH];
    if (!zero_try(v, &out, why)) fail_msg("%s", why);
    return out;
}

bool zero_is_same(const zero_outcome *want, const zero_outcome *have) {
    return have->count == want->count &&
           !memcmp(have->weights, want->weights, want->count * sizeof *want->weights) &&
           !memcmp(have->loss, want->loss, sizeof want->loss) &&
           !memcmp(have->norm, want->norm, sizeof want->norm) &&
           !memcmp(have->scale, want->scale, sizeof want->scale) && have->updates == want->updates;
}

void zero_expect_same(const zero_outcome *want, zero_variant v) {
    static const char *const precisions[] = {"fp32", "bf16", "fp16"};
    zero_outcome have = zero_run(v);
    if (!zero_is_same(want, &have)) {
        fail_msg("%s, %s, %d ranks in %d stages, schedule %d, ZeRO %d, %s order, %s: other bits",
                 v.type, v.optimizer ? optim_row_of(v.optimizer)->name : "AdamW", v.ranks, v.stages,
                 (int)v.schedule, v.stage, v.unit_order ? "unit" : "batch",
                 precisions[v.precision]);
    }
    free(have.weights);
}

void zero_expect_each_stage(const zero_outcome *want, zero_variant v, size_t *turn) {
    for (v.stage = 0; v.stage < 4; v.stage++) {
        for (int order = 0; order < 2; order++) {
            if (thinned_run((*turn)++)) continue;
            v.unit_order = order;
            v.recompute = (v.stage + order) % 2;
            zero_expect_same(want, v);
        }
    }
}
