#include "train/objective/objectives.h"

#include <stdio.h>

#include "train/run.h"

#define ADDRESS(row) &(row),
static const train_objective *const objectives[] = {TRAIN_OBJECTIVES(ADDRESS)};
enum { COUNT = sizeof objectives / sizeof *objectives };

static bool is_asked(const train_objective *o, const sifr_config *config) {
    return o->asked && o->asked(config);
}

const train_objective *train_objective_asked(const sifr_config *config) {
    for (int i = 0; i < COUNT; i++)
        if (is_asked(objectives[i], config)) return objectives[i];
    return NULL;
}

const train_objective *train_objective_for(model_task task) {
    for (int i = 0; i < COUNT; i++)
        if (!objectives[i]->asked && objectives[i]->tasks >> task & 1) return objectives[i];
    return NULL;
}

const train_objective *train_objective_of(const sifr_config *config, model_task task) {
    const train_objective *asked = train_objective_asked(config);
    return asked ? asked : train_objective_for(task);
}

sifr_status train_objective_choose(const sifr_config *config, model_objective *out,
                                   sifr_error *error) {
    const train_objective *asked = train_objective_asked(config);
    *out = (model_objective){0};
    for (int i = 0; i < COUNT; i++)
        if (objectives[i] != asked && is_asked(objectives[i], config))
            return base_fail(error, SIFR_USAGE, "%s and %s are both given; give one of them",
                             asked->key, objectives[i]->key);
    return asked ? asked->choose(config, out, error) : SIFR_OK;
}

sifr_status train_objective_check_sequences(const sifr_config *config, int64_t sequences,
                                            sifr_error *error) {
    const train_objective *asked = train_objective_asked(config);
    if (!asked || !asked->pairs || sequences % 2 == 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "train_micro_batch_size_per_gpu %lld: it counts sequences, and a preference "
                     "has two, the chosen answer and the rejected one; give an even number",
                     (long long)sequences);
}

bool train_objective_undropped(const sifr_config *config) {
    const train_objective *asked = train_objective_asked(config);
    return asked && asked->undropped && asked->undropped(config);
}

void train_objective_form(const sifr_config *config, data_chat_options *options) {
    const train_objective *asked = train_objective_asked(config);
    if (asked && asked->form) asked->form(config, options);
}

sifr_status train_objective_check_data(const train_objective *objective, const data_set *data,
                                       sifr_error *error) {
    const data_chat *chat = data_set_chat(data);
    bool pairs = chat && data_chat_is_paired(chat);
    if (pairs == objective->pairs) return SIFR_OK;
    if (!pairs) return base_fail(error, SIFR_USAGE, "%s", objective->unfit);
    for (int i = 0; i < COUNT; i++)
        if (objectives[i]->pairs) return base_fail(error, SIFR_USAGE, "%s", objectives[i]->unasked);
    return base_fail(error, SIFR_USAGE,
                     "data: rows with a chosen and a rejected answer, which no objective learns; "
                     "give other rows");
}

/* --- metrics --- */

static int count_measures(const train_objective *o) {
    int count = 0;
    while (count < TRAIN_MEASURES && o->measures[count]) count++;
    return count;
}

int train_objective_measures(const train_objective *objective) {
    return objective->measure ? count_measures(objective) : 0;
}

/* Number *at of the keys that a row has; false where it has fewer: *at is then less by so many. */
static bool take_key(const train_objective *o, size_t *at, char out[64]) {
    size_t count = (size_t)count_measures(o), of_steps = o->measure ? count : 0;
    if (*at >= of_steps + count) {
        *at -= of_steps + count;
        return false;
    }
    if (*at < of_steps)
        snprintf(out, 64, "%s", o->measures[*at]);
    else
        snprintf(out, 64, "eval_%s", o->measures[*at - of_steps]);
    return true;
}

const char *train_objective_column(const train_objective *own, size_t column, char out[64]) {
    for (int i = 0; i < COUNT; i++)
        if (!objectives[i]->measure && take_key(objectives[i], &column, out)) return out;
    return own && own->measure && take_key(own, &column, out) ? out : NULL;
}

const char *train_objective_history(size_t key, char out[64]) {
    for (int i = 0; i < COUNT; i++)
        if (objectives[i]->measure && take_key(objectives[i], &key, out)) return out;
    return NULL;
}

sifr_status train_objective_scores(train_state *t, data_set *data, data_set_use use,
                                   const char *path, sifr_error *error) {
    sifr_status status =
        data_set_use_scores(data, use, path, t->folder.config.vocab_size, t->length, error);
    return train_agree(t, status, error);
}
