/* The numbers that a step reads: checked against the tables of the model, and put into the inputs
 * of a plan. */
#include <math.h>

#include "base/assert.h"
#include "base/checked.h"
#include "engine/handle.h"
#include "plan/queries.h"

/* Rows of the smallest table that the numbers of an input choose from. */
static int64_t rows_of_input(const sifr_model *model, sifr_input input) {
    int64_t least = INT32_MAX;
    if (model->inputs[input] < 0) return least;
    for (size_t n = 0; n < model->node_count; n++) {
        const model_node *node = &model->nodes[n];
        if (node->w[0] < 0 || !model_numbers_rows(node, model->inputs[input])) continue;
        least = base_min_i64(least, model_numbered_rows(model, node));
    }
    return least;
}

enum { NO_LABEL = -100 }; /* as in PyTorch's and transformers' losses */

static const char *const names[] = {"token", "label", "position", "token type", "segment"};

/* Of whole numbers. */
static const int32_t *input_of(const sifr_batch *batch, sifr_input input) {
    switch (input) {
    case SIFR_TOKENS:
        return batch->tokens;
    case SIFR_LABELS:
        return batch->labels;
    case SIFR_TOKEN_TYPES:
        return batch->token_types;
    case SIFR_SEGMENTS:
        return batch->segments;
    case SIFR_POSITIONS:
        return batch->positions; /* NULL: they are counted */
    default:
        return NULL;
    }
}

static sifr_status check_input(const sifr_model *model, const sifr_batch *batch, sifr_input input,
                               int64_t count, sifr_error *error) {
    const int32_t *ids = input_of(batch, input);
    if (!ids || input == SIFR_SEGMENTS || input == SIFR_POSITIONS) return SIFR_OK;
    int64_t rows = rows_of_input(model, input);
    for (int64_t i = 0; i < count; i++) {
        if (ids[i] >= 0 && ids[i] < rows) continue;
        if (input == SIFR_LABELS && ids[i] == NO_LABEL) continue;
        /* Any number below 0 would do; but -1, or an id off by one, is a mistake more often. */
        if (input == SIFR_LABELS && ids[i] < 0)
            return base_fail(error, SIFR_FAILED,
                             "data: label %d at position %lld is below 0; %d where there is none",
                             ids[i], (long long)i, NO_LABEL);
        return base_fail(error, SIFR_FAILED,
                         "data: %s %d at position %lld is outside of the model's vocabulary of "
                         "%lld; was it made with another tokenizer?",
                         names[input], ids[i], (long long)i, (long long)rows);
    }
    return SIFR_OK;
}

static int64_t target_columns(const sifr_model *model) {
    int32_t targets = model->inputs[SIFR_TARGETS];
    return targets < 0 ? 0 : model->values[targets].columns;
}

static sifr_status wrong_target(const model_target_rule *rule, float target, int64_t token,
                                sifr_error *error) {
    if (!isfinite(target))
        return base_fail(error, SIFR_FAILED,
                         "data: target %g at position %lld is not a finite number", (double)target,
                         (long long)token);
    return base_fail(
        error, SIFR_FAILED,
        "data: target %g at position %lld is not %s, which is a %snumber in [%g, %.9g]",
        (double)target, (long long)token, rule->what, rule->whole ? "whole " : "", rule->low,
        rule->high);
}

static bool holds(const model_target_rule *rule, float target) {
    double t = (double)target;
    return isfinite(target) && t >= rule->low && t <= rule->high &&
           (!rule->whole || t == (double)(int64_t)t);
}

/* Rows without a label have none. */
static sifr_status check_targets(const sifr_model *model, const sifr_batch *batch, int64_t count,
                                 sifr_error *error) {
    model_target_rule rules[MODEL_TARGET_RULES] = {{.low = -INFINITY, .high = INFINITY}};
    int64_t columns = target_columns(model);
    if (!columns || !batch->labels || !batch->targets) return SIFR_OK;
    if (!model_target_rules(model, columns, rules)) rules[0].columns = columns;
    for (int64_t i = 0; i < count; i++) {
        const float *row = batch->targets + i * columns;
        if (batch->labels[i] < 0) continue;
        for (int64_t c = 0, r = 0, end = rules[0].columns; c < columns; c++) {
            if (c == end) end += rules[++r].columns;
            if (!holds(&rules[r], row[c])) return wrong_target(&rules[r], row[c], i, error);
        }
    }
    return SIFR_OK;
}

/* Tables of positions have `length` rows at least. */
static sifr_status check_positions(const sifr_model *model, const sifr_batch *batch, int64_t count,
                                   int64_t length, sifr_error *error) {
    if (!batch->positions) return SIFR_OK;
    if (!model->packed)
        return base_fail(error, SIFR_USAGE,
                         "batch: positions are given, but the model counts them: leave them out, "
                         "or make the model with sifr_pack");
    for (int64_t i = 0; i < count; i++) {
        if (batch->positions[i] >= 0 && batch->positions[i] < length) continue;
        return base_fail(error, SIFR_FAILED,
                         "data: position %d of token %lld is outside of a sequence of %lld",
                         batch->positions[i], (long long)i, (long long)length);
    }
    return SIFR_OK;
}

/* Ids that stand for an image or a sound: their embeddings are the tower's, not the table's. */
static sifr_status check_media(const sifr_model *model, const int32_t *tokens, int64_t count,
                               sifr_error *error) {
    for (int m = 0; tokens && m < model->media_count; m++) {
        int64_t i = 0;
        while (i < count && tokens[i] != model->media[m].id) i++;
        if (i == count) continue;
        return base_fail(error, SIFR_FAILED,
                         "data: token %lld is id %d, which is %s of config.json: it stands for "
                         "what a tower sees or hears, and only text is learned here; leave such "
                         "rows out",
                         (long long)i, model->media[m].id, model->media[m].key);
    }
    return SIFR_OK;
}

sifr_status engine_check_batch(const sifr_model *model, const sifr_batch *batch, int64_t count,
                               int64_t length, sifr_error *error) {
    base_assert(count >= 0 && length >= 1);
    BASE_TRY(check_positions(model, batch, count, length, error));
    for (int i = 0; i < SIFR_TARGETS; i++) {
        BASE_TRY(check_input(model, batch, (sifr_input)i, count, error));
    }
    BASE_TRY(check_media(model, batch->tokens, count, error));
    return check_targets(model, batch, count, error);
}

int64_t engine_count_losses(const sifr_model *model, const sifr_batch *batch, int64_t count,
                            int64_t length) {
    base_assert(length >= 1);
    bool pairs = model->objective.row && model->objective.row->pairs;
    int64_t losses = 0, last = -1;
    for (int64_t i = 0; batch->labels && i < count; i++) {
        if (batch->labels[i] < 0) continue;
        int64_t pair = i / (2 * length);
        losses += pairs ? pair != last : 1;
        last = pair;
    }
    return losses;
}

/* Targets of micro batch j, of `count` tokens; NaN in rows without a label. */
static sifr_status put_targets(const engine_executor *executor, const plan_schedule *s,
                               const sifr_batch *batch, int32_t j, int64_t count,
                               sifr_error *error) {
    base_assert(s->inputs[SIFR_TARGETS][j] >= 0);
    enum { PIECE = 1024 };
    float piece[PIECE];
    int64_t columns = target_columns(s->model), size = (int64_t)sizeof *piece;
    const int32_t *labels = batch->labels + j * count;
    const float *targets = batch->targets + j * count * columns;
    for (int64_t at = 0; at < count * columns; at += PIECE) {
        int64_t some = base_min_i64(PIECE, count * columns - at);
        for (int64_t i = 0; i < some; i++)
            piece[i] = labels[(at + i) / columns] < 0 ? NAN : targets[at + i];
        BASE_TRY(
            engine_set(executor, s->inputs[SIFR_TARGETS][j], at * size, piece, some * size, error));
    }
    return SIFR_OK;
}

/* The losses of an evaluation may follow from labels alone. */
static bool reads_targets(const plan_schedule *s) {
    const model_objective_row *row = s->model->objective.row;
    bool labels_alone = s->settings.mode == PLAN_EVALUATE && row && row->evaluates_labels;
    return s->inputs[SIFR_TARGETS][0] >= 0 && !labels_alone;
}

/* Tokens, labels and targets have no value that stands for none; logits need no labels. */
static sifr_status check_missing(const plan_schedule *s, const sifr_batch *batch,
                                 sifr_error *error) {
    bool losses = s->settings.mode == PLAN_TRAIN || s->settings.mode == PLAN_EVALUATE;
    for (int i = SIFR_TOKENS; i <= (losses ? SIFR_LABELS : SIFR_TOKENS); i++) {
        if (s->inputs[i][0] < 0 || input_of(batch, (sifr_input)i)) continue;
        return base_fail(
            error, SIFR_USAGE,
            "batch: %ss are missing; this model reads %lld of them for each micro "
            "batch",
            names[i], (long long)(s->settings.step.micro_batch_size * s->settings.step.seq_length));
    }
    if (!losses || batch->targets || !reads_targets(s)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "batch: targets are missing; this model reads %lld for each token",
                     (long long)target_columns(s->model));
}

/* Of micro batch j, the runs of each sequence that this rank has, or all where the model's value is
 * whole sequences. */
static sifr_status put_ids(const engine_executor *executor, const plan_schedule *s, int32_t input,
                           const int32_t *ids, int32_t j, sifr_error *error) {
    const plan_settings *settings = &s->settings;
    int64_t sequences = settings->step.micro_batch_size, length = settings->step.seq_length;
    int64_t run = plan_run_length(settings), size = (int64_t)sizeof *ids;
    int32_t value = s->model->inputs[input];
    bool whole = run == length || (value >= 0 && s->model->values[value].contexts > 0);
    plan_token_runs runs = plan_runs_of_tokens(settings);
    ids += j * sequences * length;
    if (whole)
        return engine_set(executor, s->inputs[input][j], 0, ids, sequences * length * size, error);
    for (int64_t i = 0; i < sequences * runs.count; i++)
        BASE_TRY(engine_set(executor, s->inputs[input][j], i * runs.length * size,
                            ids + i / runs.count * length + runs.first[i % runs.count],
                            runs.length * size, error));
    return SIFR_OK;
}

sifr_status engine_put_batch(const engine_executor *executor, const plan_schedule *s,
                             const sifr_batch *batch, sifr_error *error) {
    int64_t count = s->settings.step.micro_batch_size * s->settings.step.seq_length;
    bool targets = s->model->inputs[SIFR_TARGETS] >= 0 && batch->labels && batch->targets;
    /* Of a cached call positions have their own call. */
    bool packed = s->model->packed && s->settings.mode != PLAN_GENERATE;
    BASE_TRY(check_missing(s, batch, error));
    for (int32_t j = 0; j < s->settings.step.gradient_accumulation_steps; j++) {
        if (targets) BASE_TRY(put_targets(executor, s, batch, j, count, error));
        for (int i = 0; i < SIFR_TARGETS; i++) {
            const int32_t *ids = input_of(batch, (sifr_input)i);
            int32_t buffer = s->inputs[i][j];
            if (buffer < 0 || (i == SIFR_POSITIONS && !packed)) continue;
            if (i == SIFR_POSITIONS && !ids) {
                BASE_TRY(engine_count_positions(executor, j, error));
            } else if (ids) {
                BASE_TRY(put_ids(executor, s, i, ids, j, error));
            } else if (i > SIFR_POSITIONS) {
                BASE_TRY(engine_clear(executor, buffer, error));
            }
        }
    }
    return SIFR_OK;
}
