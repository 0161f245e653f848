#include "train/prepare/reference.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/heap.h"
#include "engine/handle.h"

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

/* The first rank keeps the log-probabilities of sequences from `first` on. */
static sifr_status put_all(reference *r, int64_t first, int64_t count, sifr_error *error) {
    int64_t length = r->t->length;
    for (int64_t i = 0; i < count; i++) {
        data_set_scored_read(r->data, first + i, &r->row, 0);
        for (int64_t p = 0; p < length; p++)
            if (r->row.labels[p] >= 0)
                BASE_TRY(
                    data_score_writer_put(&r->writer, r->all[i * length + p], NULL, NULL, error));
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

static sifr_status use_file(train_state *t, data_set *data, data_set_use use, const char *path,
                            sifr_error *error) {
    sifr_status status =
        data_set_use_scores(data, use, path, t->folder.config.vocab_size, t->length, error);
    return train_agree(t, status, error);
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
    return use_file(t, data, DATA_USE_OWN, path, error);
}

static sifr_status use_reference(train_state *t, sifr_error *error) {
    const char *path = t->config->preference.reference;
    if (path)
        BASE_TRY(use_file(t, t->data, DATA_USE_LOGPROBS, path, error));
    else
        BASE_TRY(find_or_make(t, t->data, "reference.safetensors", error));
    if (!t->held_out) return SIFR_OK;
    if (path && !t->config->eval_data)
        return use_file(t, t->held_out, DATA_USE_LOGPROBS, path, error);
    return find_or_make(t, t->held_out, "eval-reference.safetensors", error);
}

static sifr_status take_rewards(train_state *t, sifr_error *error) {
    const sifr_config *c = t->config;
    const plan_mesh *mesh = &engine_schedule(t->engine)->settings.mesh;
    int64_t own = c->train_batch_size / plan_mesh_ranks(mesh, PLAN_DATA);
    int64_t most = own * (1 + comm_size(t->group)) + c->train_batch_size +
                   c->step.micro_batch_size * t->length;
    return base_alloc((size_t)most, sizeof *t->rewards, &t->rewards, error);
}

sifr_status train_use_scores(train_state *t, sifr_error *error) {
    const sifr_config *c = t->config;
    if (c->distill.scores) return use_file(t, t->data, DATA_USE_TOPS, c->distill.scores, error);
    if (c->preference.loss == SIFR_PREFERENCE_NONE) return SIFR_OK;
    BASE_TRY(train_agree(t, take_rewards(t, error), error));
    if (c->preference.loss != SIFR_PREFERENCE_ORPO) return use_reference(t, error);
    BASE_TRY(use_file(t, t->data, DATA_USE_ANSWERS, NULL, error));
    return t->held_out ? use_file(t, t->held_out, DATA_USE_ANSWERS, NULL, error) : SIFR_OK;
}
