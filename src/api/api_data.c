#include "sifr/data.h"

#include <stdlib.h>
#include <string.h>

#include "api/api_context.h"
#include "api/api_loop.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/inside.h"
#include "data/permutation.h"
#include "plan/queries.h"
#include "train/evaluate/evaluate.h"
#include "train/prepare/run_data.h"
#include "train/prepare/run_settings.h"
#include "train/prepare/run_task.h"

struct sifr_data {
    train_state state; /* of a run without an engine */
    sifr_config config;
    train_host host;
    sifr_data_options options;
    bool evaluation;
    char scratch[BASE_PATH_LENGTH]; /* folder for token stores that nobody keeps; "": none */
    data_rows rows;                 /* of the last call that read */
};

/* What is read: the training data or those that are held out. */
static const data_set *set_of(const sifr_data *data) {
    return data->evaluation ? data->state.held_out : data->state.data;
}

static sifr_status open_folder(train_state *t, int64_t ranks, sifr_error *error) {
    BASE_TRY(config_resolve(t->config, ranks, error));
    BASE_TRY(train_take_base(t->config, ranks, error));
    if (!t->config->model)
        return base_fail(error, SIFR_USAGE,
                         "--model DIR is needed: the model folder, with the tokenizer");
    if (!t->config->data_count)
        return base_fail(error, SIFR_USAGE,
                         "--data PATH is needed: text, a token store or rows (.jsonl, .json, "
                         ".csv)");
    BASE_TRY(train_read_lora(t->config, &t->lora, error));
    BASE_TRY(train_open_folder(t->config, &t->lora, &t->folder, error));
    BASE_TRY(train_check_packing(t->config, &t->folder.config, error));
    t->objective = train_objective_of(t->config, t->folder.config.task);
    if (t->objective->check) BASE_TRY(t->objective->check(t->config, error));
    return train_sequence_length(t->config, &t->folder.config, t->host->log, &t->length, error);
}

/* Targets that come from a model need the loop's, and a place to be kept. */
static sifr_status check_targets(const sifr_data *data, sifr_error *error) {
    const train_state *t = &data->state;
    if (!t->objective->open) return SIFR_OK;
    if (!data->options.loop)
        return base_fail(error, SIFR_USAGE,
                         "sifr.%s: its targets come from a model: give sifr_data_options.loop",
                         t->objective->key);
    if (data->config.output) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "sifr.%s: set output, the folder that keeps what its targets are made from",
                     t->objective->key);
}

static sifr_status make_scratch(sifr_data *data, sifr_error *error) {
    const char *parent = getenv("TMPDIR");
    if (!parent || !*parent) parent = "/tmp";
    BASE_TRY(base_path_join(data->scratch, parent, "sifr-XXXXXX", error));
    if (mkdtemp(data->scratch)) return SIFR_OK;
    data->scratch[0] = '\0';
    return base_fail(error, SIFR_FAILED, "%s: cannot make a folder for the tokens in it", parent);
}

static void remove_scratch(sifr_data *data) {
    if (!data->scratch[0]) return;
    if (base_remove_tree(data->scratch, NULL) != SIFR_OK)
        base_log(data->host.log, SIFR_LOG_WARNING, "%s: could not be removed", data->scratch);
    data->scratch[0] = '\0';
}

/* Text is tokenised into a store, whose files go as soon as they are mapped unless they are kept.
 */
static sifr_status open_stores(sifr_data *data, sifr_error *error) {
    train_state *t = &data->state;
    const char *cache = data->options.cache;
    if (!cache) BASE_TRY(make_scratch(data, error));
    const base_progress progress = {data->options.progress, data->options.user};
    sifr_status status = train_open_stores(t, cache ? cache : data->scratch,
                                           data->options.progress ? &progress : NULL, error);
    remove_scratch(data);
    return status;
}

static sifr_status count_steps(train_state *t, sifr_error *error) {
    BASE_TRY(train_choose_batches(t, error));
    return train_count_steps(t, error);
}

static sifr_status check_held_out(const sifr_data *data, sifr_error *error) {
    if (!data->evaluation || data->state.held_out) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "nothing is held out: set eval_data, or validation_split for rows");
}

static sifr_status open_data(sifr_context *context, const sifr_config *config, sifr_data *data,
                             sifr_error *error) {
    train_state *t = &data->state;
    int64_t ranks = data->options.ranks ? data->options.ranks : 1;
    BASE_TRY(config_copy(config, &data->config, error));
    data->host.log = &context->log;
    data->evaluation = data->options.evaluation;
    t->config = &data->config;
    t->host = &data->host;
    t->first = true;
    t->output.lock = -1;
    BASE_TRY(open_folder(t, ranks, error));
    BASE_TRY(check_targets(data, error));
    data->config.resume = false;
    BASE_TRY(open_stores(data, error));
    BASE_TRY(check_held_out(data, error));
    return data->evaluation ? SIFR_OK : count_steps(t, error);
}

/* Whether its steps are those of the data's config. */
static sifr_status check_engine(const sifr_data *data, const plan_settings *settings,
                                sifr_error *error) {
    const sifr_config *c = &data->config;
    const sifr_settings *step = &settings->step;
    int64_t ranks = plan_mesh_ranks(&settings->mesh, PLAN_DATA);
    int64_t batch = ranks * step->micro_batch_size * step->gradient_accumulation_steps;
    if (step->micro_batch_size != c->step.micro_batch_size || batch != c->train_batch_size ||
        step->seq_length != data->state.length)
        return base_fail(error, SIFR_USAGE,
                         "sifr_data: the engine's steps have %lld sequences of %lld tokens in "
                         "micro batches of %lld, the config's %lld of %lld in %lld; give both the "
                         "same config and number of ranks",
                         (long long)batch, (long long)step->seq_length,
                         (long long)step->micro_batch_size, (long long)c->train_batch_size,
                         (long long)data->state.length, (long long)c->step.micro_batch_size);
    return SIFR_OK;
}

/* Of all ranks of the loop, each with its own data; `status` is this one's so far. The engine is
 * lent, and its weights are those before the first step unless a checkpoint was loaded. */
static sifr_status make_targets(sifr_data *data, sifr_status status, sifr_error *error) {
    train_state *t = &data->state;
    sifr_loop *loop = data->options.loop;
    sifr_engine *engine = loop->state.engine;
    if (status == SIFR_OK) status = check_engine(data, &engine_schedule(engine)->settings, error);
    t->group = loop->ranks->group;
    t->first = comm_rank(t->group) == 0;
    BASE_TRY(train_agree(t, status, error));
    if (!t->objective->open) return SIFR_OK;
    if (sifr_engine_steps(engine) > 0) t->position = json_object();
    t->engine = engine;
    status = t->objective->open(t, error);
    t->engine = NULL;
    return status;
}

sifr_status sifr_data_open(sifr_context *context, const sifr_config *config,
                           const sifr_data_options *options, sifr_data **out, sifr_error *error) {
    BASE_ENTER(error, context, config, out);
    sifr_data *data;
    BASE_TRY(base_alloc(1, sizeof *data, &data, error));
    sifr_status status =
        api_take_options("sifr_data_options", options, sizeof data->options, &data->options, error);
    if (status == SIFR_OK) status = open_data(context, config, data, error);
    if (data->options.loop) status = make_targets(data, status, error);
    if (status == SIFR_OK)
        *out = data;
    else
        sifr_data_close(data);
    return status;
}

void sifr_data_close(sifr_data *data) {
    BASE_ENTER_VOID(data);
    data_rows_free(&data->rows);
    train_close(&data->state);
    config_free(&data->config);
    free(data);
}

void sifr_data_get(const sifr_data *data, sifr_data_figures *out) {
    BASE_ENTER_VOID(data, out);
    const train_state *t = &data->state;
    const data_set *set = set_of(data);
    const sifr_data_figures known = {.windows = data_set_windows(set, t->length),
                                     .tokens = data_set_tokens(set),
                                     .documents = data_set_documents(set),
                                     .seq_length = t->length,
                                     .vocab_size = t->folder.config.vocab_size,
                                     .batch_size = data->config.train_batch_size,
                                     .total_steps = t->total_steps,
                                     .hash = data_set_hash(set),
                                     .targets = data_set_columns(set),
                                     .longest = data_set_longest(set)};
    api_give_result(&known, sizeof known, out);
}

/* Memory for `count` sequences, none of which has tokens or labels yet. */
static sifr_status take_rows(sifr_data *data, int64_t count, sifr_error *error) {
    if (count < 1)
        return base_fail(error, SIFR_USAGE, "sifr_data_read: %lld sequences; give 1 or more",
                         (long long)count);
    if (data->rows.count != count) {
        data_rows_free(&data->rows);
        BASE_TRY(data_set_rows(set_of(data), count, data->state.length, &data->rows, error));
    }
    data_rows_clear(&data->rows, 0);
    return SIFR_OK;
}

sifr_status sifr_data_read(sifr_data *data, const int64_t *windows, int64_t count, sifr_batch *out,
                           sifr_error *error) {
    BASE_ENTER(error, data, out);
    BASE_TRY(BASE_GIVEN_FOR(error, count > 0, windows));
    const data_set *set = set_of(data);
    int64_t all = data_set_windows(set, data->state.length);
    for (int64_t i = 0; i < count; i++)
        if (windows[i] < 0 || windows[i] >= all)
            return base_fail(error, SIFR_USAGE,
                             "sifr_data_read: there is no sequence %lld; they are 0 to %lld",
                             (long long)windows[i], (long long)all - 1);
    BASE_TRY(take_rows(data, count, error));
    for (int64_t i = 0; i < count; i++) data_set_window(set, windows[i], &data->rows, i);
    *out = data_rows_batch(&data->rows);
    return SIFR_OK;
}

sifr_status sifr_data_step(sifr_data *data, const sifr_engine *engine, int64_t step,
                           sifr_batch *out, sifr_error *error) {
    BASE_ENTER(error, data, engine, out);
    const train_state *t = &data->state;
    const plan_settings *settings = &engine_schedule(engine)->settings;
    if (data->evaluation)
        return base_fail(error, SIFR_USAGE,
                         "sifr_data_step: these are data to evaluate on; read them with "
                         "sifr_data_read");
    BASE_TRY(check_engine(data, settings, error));
    if (step < 0)
        return base_fail(error, SIFR_USAGE, "sifr_data_step: step %lld; they begin at 0",
                         (long long)step);
    int32_t micro_batches = settings->step.gradient_accumulation_steps;
    BASE_TRY(take_rows(data, micro_batches * settings->step.micro_batch_size, error));
    train_fetch(t, settings, step, &data->rows);
    *out = data_rows_batch(&data->rows);
    return SIFR_OK;
}

int64_t sifr_data_order(uint64_t seed, int64_t epoch, int64_t count, int64_t place) {
    BASE_INSIDE;
    return epoch < 0 || place < 0 || place >= count ? -1 : data_permute(seed, epoch, count, place);
}

/* What the caller gave to be asked. */
typedef struct asked {
    int (*stop)(void *user);
    void *user;
} asked;

static int ask(void *user) {
    const asked *of = user;
    return BASE_OUT(of->stop(of->user));
}

sifr_status sifr_data_evaluate(const sifr_data *data, sifr_engine *engine, int64_t windows,
                               int (*stop)(void *user), void *user, sifr_data_evaluation *out,
                               sifr_error *error) {
    BASE_ENTER(error, data, engine, out);
    const sifr_settings *step = engine_settings(engine);
    sifr_data_evaluation known = {0};
    train_evaluation e;
    asked of = {stop, user};
    BASE_TRY(api_check_result("sifr_data_evaluation", out, error));
    if (windows < 0)
        return base_fail(error, SIFR_USAGE,
                         "sifr_data_evaluate: %lld windows; give 0 for all, or how many",
                         (long long)windows);
    if (step->seq_length != data->state.length)
        return base_fail(error, SIFR_USAGE,
                         "sifr_data_evaluate: the engine's sequences have %lld tokens, the data's "
                         "%lld; give both the same config",
                         (long long)step->seq_length, (long long)data->state.length);
    BASE_TRY(engine_settle(engine, error));
    BASE_TRY(train_evaluate(engine, set_of(data), data->state.objective->evaluated,
                            step->micro_batch_size, step->seq_length, windows, stop ? ask : NULL,
                            &of, &e, &known.stopped, error));
    known.windows = e.windows;
    known.tokens = e.tokens;
    known.loss = e.loss;
    known.seconds = e.seconds;
    known.score_count = e.scores.count;
    for (int i = 0; i < e.scores.count; i++)
        known.scores[i] = (sifr_data_score){e.scores.items[i].name, e.scores.items[i].value};
    api_give_result(&known, sizeof known, out);
    return SIFR_OK;
}

_Static_assert((int)SIFR_DATA_SCORES == TRAIN_MOST_SCORES, "all scores have room");
