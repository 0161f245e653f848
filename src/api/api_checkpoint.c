#include "sifr/checkpoint.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_context.h"
#include "api/api_loop.h"
#include "base/file.h"
#include "base/inside.h"
#include "checkpoint/directory.h"
#include "checkpoint/manifest.h"
#include "train/objective/objectives.h"
#include "train/prepare/fingerprint.h"

/* What a checkpoint of a caller's loop holds beside the engine's state. */
typedef struct loop_record {
    json_t *state, *facts, *may_differ, *defaults;
    checkpoint_record record;
} loop_record;

static void free_record(loop_record *r) {
    json_decref(r->state);
    json_decref(r->facts);
    json_decref(r->may_differ);
    json_decref(r->defaults);
}

static sifr_status read_object(const char *name, const char *text, json_t **out,
                               sifr_error *error) {
    json_error_t wrong;
    *out = text ? json_loads(text, JSON_REJECT_DUPLICATES, &wrong) : json_object();
    if (json_is_object(*out)) return SIFR_OK;
    if (!text) return base_fail_alloc(error, 64);
    return base_fail(error, SIFR_USAGE, "sifr_checkpoint_options.%s: is no JSON object: %s", name,
                     *out ? "it is another value" : wrong.text);
}

static sifr_status check_keep(int64_t keep, sifr_error *error) {
    if (keep >= 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "sifr_checkpoint_options.keep: %lld; give 0 to keep all, or how many of the "
                     "newest stay",
                     (long long)keep);
}

/* What a loop learns decides its bits as in a run: a loss of the caller's has to be given again, in
 * chunks as large. */
static sifr_status put_loss(const sifr_loop *loop, json_t *facts, sifr_error *error) {
    char text[256];
    if (!loop || !loop->config.loss) return SIFR_OK;
    train_own_loss.describe(&loop->state.folder.model->objective, false, text, sizeof text);
    if (json_object_set_new(facts, train_own_loss.key, json_string(text)) == 0) return SIFR_OK;
    return base_fail_alloc(error, sizeof text);
}

/* *r has to be freed also where it fails. */
static sifr_status make_record(const sifr_engine *engine, const sifr_checkpoint_options *options,
                               loop_record *r, sifr_error *error) {
    sifr_loop *loop = options->loop;
    if (loop && loop->state.engine != engine)
        return base_fail(error, SIFR_USAGE,
                         "sifr_checkpoint_options.loop: is not the loop of this engine");
    BASE_TRY(check_keep(options->keep, error));
    BASE_TRY(read_object("state", options->state, &r->state, error));
    BASE_TRY(read_object("facts", options->facts, &r->facts, error));
    BASE_TRY(put_loss(loop, r->facts, error));
    r->may_differ = loop ? train_fingerprint_may_differ(&loop->config, engine) : json_object();
    r->defaults = loop && r->may_differ
                      ? train_fingerprint_defaults(r->may_differ, &loop->config.step.optimizer)
                      : json_object();
    if (!r->may_differ || !r->defaults) return base_fail_alloc(error, 4096);
    r->record = (checkpoint_record){.must_match = r->facts,
                                    .may_differ = r->may_differ,
                                    .state = r->state,
                                    .defaults = r->defaults,
                                    .words = loop ? train_fingerprint_words : NULL,
                                    .base = loop ? &loop->state.base : NULL,
                                    .tensors = loop ? loop->state.tensors : NULL,
                                    .refused = "sifr_checkpoint_options.facts has",
                                    .own = loop ? train_own_loss.key : NULL};
    return SIFR_OK;
}

/* So that the output can be exported; files that are there stay. On the first rank. */
static sifr_status put_files(sifr_loop *loop, const char *output, sifr_error *error) {
    if (!loop || base_has_file(output, "config.json")) return SIFR_OK;
    BASE_TRY(base_make_directories(output, error));
    return train_put_folder(&loop->state, output, error);
}

static sifr_status save(sifr_context *context, sifr_engine *engine, const char *output,
                        const sifr_checkpoint_options *options, loop_record *r, sifr_error *error) {
    comm_group *group = engine_group(engine);
    sifr_status status = make_record(engine, options, r, error);
    if (status == SIFR_OK && comm_rank(group) == 0)
        status = put_files(options->loop, output, error);
    BASE_TRY(comm_agree_status(group, status, error));
    BASE_TRY(comm_agree_status(group, engine_settle(engine, error), error));
    const checkpoint_settings settings = {.keep = options->keep};
    return checkpoint_save(engine, output, &r->record, &settings, &context->log, error);
}

sifr_status sifr_checkpoint_save(sifr_context *context, sifr_engine *engine, const char *output,
                                 const sifr_checkpoint_options *options, sifr_error *error) {
    BASE_ENTER(error, context, engine, output);
    sifr_checkpoint_options known;
    loop_record r = {0};
    sifr_status status =
        api_take_options("sifr_checkpoint_options", options, sizeof known, &known, error);
    BASE_TRY(comm_agree_status(engine_group(engine), status, error));
    status = save(context, engine, output, &known, &r, error);
    free_record(&r);
    return status;
}

static sifr_status load(sifr_context *context, sifr_engine *engine, const char *output,
                        const sifr_checkpoint_options *options, loop_record *r, char **state,
                        sifr_error *error) {
    comm_group *group = engine_group(engine);
    json_t *found = NULL;
    sifr_status status = make_record(engine, options, r, error);
    BASE_TRY(comm_agree_status(group, status, error));
    BASE_TRY(checkpoint_load(engine, output, &r->record, &found, &context->log, error));
    if (!found) return SIFR_OK;
    *state = json_dumps(found, JSON_COMPACT);
    json_decref(found);
    status = *state ? SIFR_OK : base_fail_alloc(error, 4096);
    BASE_TRY(comm_agree_status(group, status, error));
    return options->loop ? engine_load_frozen(engine, &options->loop->state.folder, error)
                         : SIFR_OK;
}

sifr_status sifr_checkpoint_load(sifr_context *context, sifr_engine *engine, const char *output,
                                 const sifr_checkpoint_options *options, char **state,
                                 sifr_error *error) {
    BASE_ENTER(error, context, engine, output, state);
    sifr_checkpoint_options known;
    loop_record r = {0};
    *state = NULL;
    sifr_status status =
        api_take_options("sifr_checkpoint_options", options, sizeof known, &known, error);
    BASE_TRY(comm_agree_status(engine_group(engine), status, error));
    status = load(context, engine, output, &known, &r, state, error);
    free_record(&r);
    if (status != SIFR_OK) {
        free(*state);
        *state = NULL;
    }
    return status;
}

/* --- without an engine --- */

sifr_status sifr_checkpoint_list(const char *output, int64_t *steps, size_t capacity, size_t *count,
                                 sifr_error *error) {
    BASE_ENTER(error, output, count);
    BASE_TRY(BASE_GIVEN_FOR(error, capacity, steps));
    int64_t *all;
    BASE_TRY(checkpoint_list(output, &all, count, error));
    if (capacity && *count)
        memcpy(steps, all, (*count < capacity ? *count : capacity) * sizeof *steps);
    free(all);
    return SIFR_OK;
}

/* A checkpoint's own path, of an output that of its newest one. */
static sifr_status find(const char *path, char out[BASE_PATH_LENGTH], sifr_error *error) {
    int64_t newest;
    size_t count;
    checkpoint_names names;
    if (base_has_file(path, CHECKPOINT_MANIFEST)) {
        snprintf(out, BASE_PATH_LENGTH, "%s", path);
        return SIFR_OK;
    }
    BASE_TRY(sifr_checkpoint_list(path, &newest, 1, &count, error));
    if (!count)
        return base_fail(error, SIFR_FAILED,
                         "%s: is no checkpoint, nor a folder with any; give a checkpoint-<step> or "
                         "the output of a run",
                         path);
    checkpoint_name(newest, &names);
    return base_path_join(out, path, names.final, error);
}

static sifr_status describe(const checkpoint_opened *opened, const char *path, char **out,
                            sifr_error *error) {
    json_t *types = json_object_get(opened->json, "types");
    json_t *all = json_pack("{s:s, s:I, s:I, s:O?, s:O?, s:O?, s:O?}", "path", path, "step",
                            (json_int_t)opened->step, "updates", (json_int_t)opened->updates,
                            "types", types, "state", json_object_get(opened->json, "state"),
                            "facts", json_object_get(opened->json, "agree"), "files",
                            json_object_get(opened->json, "files"));
    *out = all ? json_dumps(all, JSON_INDENT(2)) : NULL;
    json_decref(all);
    return *out ? SIFR_OK : base_fail_alloc(error, 4096);
}

sifr_status sifr_checkpoint_inspect(const char *path, bool verify, char **out, sifr_error *error) {
    BASE_ENTER(error, path, out);
    char folder[BASE_PATH_LENGTH];
    checkpoint_opened opened = {0};
    *out = NULL;
    BASE_TRY(find(path, folder, error));
    BASE_TRY(checkpoint_open(folder, &opened, error));
    sifr_status status = SIFR_OK;
    for (size_t i = 0; status == SIFR_OK && i < opened.file_count; i++)
        status = checkpoint_check_file(&opened, i, folder, verify, error);
    if (status == SIFR_OK) status = describe(&opened, folder, out, error);
    checkpoint_close(&opened);
    return status;
}
