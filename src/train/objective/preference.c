/* Preferences: of two answers the chosen one, by DPO's losses or ORPO's; the section "preference"
 * (docs/preferences.md). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/text.h"
#include "engine/handle.h"
#include "train/objective/objectives.h"
#include "train/objective/rewards.h"
#include "train/run.h"

static const char loss_key[] = "sifr.preference.loss_type", beta_key[] = "sifr.preference.beta",
                  reference_key[] = "sifr.preference.reference",
                  dropout_key[] = "sifr.preference.dropout";

static const char *const losses[] = {[SIFR_PREFERENCE_NONE] = "none",
                                     [SIFR_PREFERENCE_SIGMOID] = "sigmoid",
                                     [SIFR_PREFERENCE_HINGE] = "hinge",
                                     [SIFR_PREFERENCE_IPO] = "ipo",
                                     [SIFR_PREFERENCE_ORPO] = "orpo"};

/* One that is not in the list is refused by choose(). */
static sifr_preference loss_of(const sifr_config *config) {
    int found;
    base_find_word(losses, sizeof losses / sizeof *losses, config_get_word(config, loss_key),
                   &found);
    return (sifr_preference)found;
}

static bool asked(const sifr_config *config) {
    const char *word = config_get_word(config, loss_key);
    return word && strcmp(word, losses[SIFR_PREFERENCE_NONE]) != 0;
}

static sifr_status check(const sifr_config *config, sifr_error *error) {
    if (config->packing)
        return base_fail(error, SIFR_USAGE,
                         "packing: each answer of a preference takes a sequence of its own; leave "
                         "it out");
    if (config->train_on && strcmp(config->train_on, "all") == 0)
        return base_fail(error, SIFR_USAGE,
                         "train_on all: of preferences the answers are compared, not their "
                         "prompts; leave it out");
    if (config->train_on && strncmp(config->train_on, "assistant_", 10) == 0)
        return base_fail(error, SIFR_USAGE,
                         "train_on %s: of preferences whole answers are compared; leave it out",
                         config->train_on);
    if (config->turns.given)
        return base_fail(error, SIFR_USAGE,
                         "%s: of preferences whole answers are compared; leave it out",
                         config->turns.roles ? "roles_to_train" : "train_on_eos");
    if (loss_of(config) == SIFR_PREFERENCE_ORPO && config_get_word(config, reference_key))
        return base_fail(error, SIFR_USAGE,
                         "preference: orpo has no reference; leave it out, or take sigmoid, hinge "
                         "or ipo");
    return train_objective_check_sequences(config, config->step.micro_batch_size, error);
}

static sifr_status choose(const sifr_config *config, model_objective *out, sifr_error *error) {
    sifr_preference loss = loss_of(config);
    *out = (model_objective){.row = &model_objective_pairs,
                             .pairs = {loss, config_get_number(config, beta_key)}};
    if (loss != SIFR_PREFERENCE_NONE) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s: \"%s\" is not supported yet; leave it out", loss_key,
                     config_get_word(config, loss_key));
}

/* With dropout the model is another than its reference from the first step on. */
static bool is_undropped(const sifr_config *config) {
    return !config_get_truth(config, dropout_key);
}

static void set_form(const sifr_config *config, data_chat_options *options) {
    options->odds = loss_of(config) == SIFR_PREFERENCE_ORPO;
}

/* --- the reference --- */

/* The work of giving each answer its log-probabilities. */
typedef struct reference {
    train_state *t;
    const data_set *data;
    int64_t sequences; /* of a micro batch */
    data_rows rows, row;
    float *mine, *all; /* log-probabilities of a micro batch, of all ranks' */
    data_score_writer writer;
} reference;

static sifr_status take_memory(reference *r, const char *path, sifr_error *error) {
    const train_state *t = r->t;
    size_t tokens = (size_t)(r->sequences * t->length), ranks = (size_t)comm_size(t->group);
    BASE_TRY(data_rows_make(r->sequences, t->length, DATA_ROWS_PLAIN, 1, &r->rows, error));
    BASE_TRY(data_rows_make(1, t->length, DATA_ROWS_PLAIN, 1, &r->row, error));
    BASE_TRY(base_alloc(tokens, sizeof *r->mine, &r->mine, error));
    BASE_TRY(base_alloc(tokens * ranks, sizeof *r->all, &r->all, error));
    return t->first ? data_set_begin_scores(r->data, t->length, path, 0, 1, &r->writer, error)
                    : SIFR_OK;
}

/* How many ranks of the group share each batch: the first of them tells of it. */
static int64_t sharing(const plan_mesh *mesh) {
    return plan_mesh_ranks(mesh, PLAN_TENSORS) * plan_mesh_ranks(mesh, PLAN_CONTEXTS);
}

/* The first rank keeps the log-probabilities of sequences from `first` on. */
static sifr_status put_all(reference *r, int64_t first, int64_t count, sifr_error *error) {
    int64_t length = r->t->length;
    int64_t apart = sharing(&engine_schedule(r->t->engine)->settings.mesh) * r->sequences;
    for (int64_t i = 0; i < count; i++) {
        const float *from = r->all + (i / r->sequences * apart + i % r->sequences) * length;
        data_set_scored_read(r->data, first + i, &r->row, 0);
        for (int64_t p = 0; p < length; p++)
            if (r->row.labels[p] >= 0)
                BASE_TRY(data_score_writer_put(&r->writer, from[p], NULL, NULL, error));
    }
    return SIFR_OK;
}

/* Micro batches go round the ranks, as in an evaluation. */
static sifr_status run_round(reference *r, int64_t first, int64_t count, sifr_error *error) {
    train_state *t = r->t;
    const plan_mesh *mesh = &engine_schedule(t->engine)->settings.mesh;
    int64_t mine = first + plan_mesh_place(mesh, PLAN_DATA) * r->sequences, labelled;
    int64_t here = base_min_i64(r->sequences, base_max_i64(0, count - mine));
    int64_t round = plan_mesh_ranks(mesh, PLAN_DATA) * r->sequences;
    double loss;
    for (int64_t i = 0; i < here; i++) data_set_scored_read(r->data, mine + i, &r->rows, i);
    data_rows_clear(&r->rows, here);
    sifr_batch batch = data_rows_batch(&r->rows);
    BASE_TRY(sifr_engine_evaluate(t->engine, &batch, &loss, &labelled, error));
    BASE_TRY(engine_read_log_probabilities(t->engine, true, 0, r->mine, error));
    BASE_TRY(comm_all_gather_control(
        t->group, r->mine, r->sequences * t->length * (int64_t)sizeof *r->mine, r->all, error));
    sifr_status kept =
        t->first ? put_all(r, first, base_min_i64(round, count - first), error) : SIFR_OK;
    return train_agree(t, kept, error);
}

static sifr_status make(train_state *t, const data_set *data, const char *path, sifr_error *error) {
    reference r = {.t = t, .data = data, .sequences = t->config->step.micro_batch_size};
    int64_t count = data_set_scored(data, t->length);
    const plan_mesh *mesh = &engine_schedule(t->engine)->settings.mesh;
    int64_t step = r.sequences * plan_mesh_ranks(mesh, PLAN_DATA);
    train_say(t->host,
              "preference: the model's own log-probabilities of %lld answers are the "
              "reference; computing them once",
              (long long)count);
    sifr_status status = train_agree(t, take_memory(&r, path, error), error);
    for (int64_t at = 0; status == SIFR_OK && at < count; at += step)
        status = run_round(&r, at, count, error);
    if (status == SIFR_OK)
        status =
            train_agree(t, t->first ? data_score_writer_commit(&r.writer, error) : SIFR_OK, error);
    data_score_writer_free(&r.writer);
    data_rows_free(&r.rows);
    data_rows_free(&r.row);
    free(r.mine);
    free(r.all);
    return status;
}

/* The file of a run that went before, or a new one. */
static sifr_status find_or_make(train_state *t, data_set *data, const char *name,
                                sifr_error *error) {
    char folder[BASE_PATH_LENGTH], path[BASE_PATH_LENGTH];
    BASE_TRY(base_path_join(folder, t->config->output, CHECKPOINT_OUTPUT_DATA, error));
    BASE_TRY(base_path_join(path, folder, name, error));
    bool there = base_is_file(path);
    sifr_status status = SIFR_OK;
    if (t->position && !there)
        status =
            base_fail(error, SIFR_FAILED,
                      "%s: this run's reference is gone, and the model has been trained since; "
                      "make it with `sifr score` from the model that the run began with",
                      path);
    if (!t->position && t->first) status = base_make_directories(folder, error);
    BASE_TRY(train_agree(t, status, error));
    if (!t->position) BASE_TRY(make(t, data, path, error));
    return train_objective_scores(t, data, DATA_USE_OWN, path, error);
}

static sifr_status use_reference(train_state *t, sifr_error *error) {
    const char *path = config_get_word(t->config, reference_key);
    if (path)
        BASE_TRY(train_objective_scores(t, t->data, DATA_USE_LOGPROBS, path, error));
    else
        BASE_TRY(find_or_make(t, t->data, "reference.safetensors", error));
    if (!t->held_out) return SIFR_OK;
    if (path && !t->config->eval_data)
        return train_objective_scores(t, t->held_out, DATA_USE_LOGPROBS, path, error);
    return find_or_make(t, t->held_out, "eval-reference.safetensors", error);
}

/* --- rewards --- */

static sifr_status take_rewards(train_state *t, sifr_error *error) {
    const sifr_config *c = t->config;
    const plan_mesh *mesh = &engine_schedule(t->engine)->settings.mesh;
    int64_t own = c->train_batch_size / plan_mesh_ranks(mesh, PLAN_DATA);
    int64_t most = own * (1 + comm_size(t->group)) + c->train_batch_size +
                   c->step.micro_batch_size * t->length;
    return base_alloc((size_t)most, sizeof *t->measured, &t->measured, error);
}

/* Of a reference that no file has, the log-probabilities are computed once, from the engine's
 * weights, and kept in the output for a resumed run. */
static sifr_status open_reference(train_state *t, sifr_error *error) {
    BASE_TRY(train_agree(t, take_rewards(t, error), error));
    if (loss_of(t->config) != SIFR_PREFERENCE_ORPO) return use_reference(t, error);
    BASE_TRY(train_objective_scores(t, t->data, DATA_USE_ANSWERS, NULL, error));
    if (!t->held_out) return SIFR_OK;
    return train_objective_scores(t, t->held_out, DATA_USE_ANSWERS, NULL, error);
}

/* The means of the step's pairs, in the order of the global batch. */
static sifr_status measure(train_state *t, double *out, sifr_error *error) {
    const plan_settings *s = &engine_schedule(t->engine)->settings;
    int64_t per = s->step.micro_batch_size, k = s->step.gradient_accumulation_steps;
    int64_t own = k * per, ranks = plan_mesh_ranks(&s->mesh, PLAN_DATA);
    float *all = t->measured + own, *sorted = all + comm_size(t->group) * own;
    float *read = sorted + ranks * own;
    for (int64_t j = 0; j < k; j++) {
        BASE_TRY(engine_read_log_probabilities(t->engine, false, (int32_t)j, read, error));
        train_rewards_take(t->folder.model, &t->rows, j * per, per, read, t->measured + j * per);
    }
    BASE_TRY(
        comm_all_gather_control(t->group, t->measured, own * (int64_t)sizeof *all, all, error));
    for (int32_t r = 0; r < ranks; r++)
        for (int32_t j = 0; j < k; j++)
            memcpy(sorted + plan_global_micro_batch(s, r, j) * per,
                   all + r * sharing(&s->mesh) * own + j * per, (size_t)per * sizeof *all);
    train_rewards means = train_rewards_mean(sorted, ranks * own / 2);
    memcpy(out, means.values, sizeof means.values);
    return SIFR_OK;
}

/* Checkpoints from before sifr.preference.dropout were made with the model's dropout, and say
 * nothing of it. */
static void describe(const model_objective *objective, bool undropped, char *out, size_t size) {
    snprintf(out, size, "%s, beta %.9g%s", losses[objective->pairs.loss], objective->pairs.beta,
             undropped ? ", sifr.preference.dropout false" : "");
}

const train_objective train_preference = {
    .tasks = 1u << MODEL_NEXT_TOKEN,
    .key = "preference",
    .keys = {loss_key, beta_key, reference_key, dropout_key},
    .file = reference_key,
    .asked = asked,
    .check = check,
    .choose = choose,
    .undropped = is_undropped,
    .says_undropped = "preference: dropout is off, as by TRL 1.16's disable_dropout; give "
                      "--preference-dropout to leave it on",
    .chats = true,
    .pairs = true,
    .unasked = "data: rows with a chosen and a rejected answer are preferences: give "
               "--preference sigmoid (DPO), hinge, ipo or orpo; to learn the chosen "
               "answers alone, write them as messages",
    .unfit = "preference: the data must be rows with a chosen and a rejected answer; leave "
             "it out, or give such rows",
    .sample = "answer",
    .form = set_form,
    .open = open_reference,
    .describe = describe,
    .measures = {TRAIN_REWARD_NAMES},
    .shown = "margin",
    .shows = TRAIN_REWARD_MARGIN,
    .measure = measure,
    .evaluated = &train_measure_rewards};
