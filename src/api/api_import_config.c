#include <stdlib.h>

#include "api/api_context.h"
#include "base/inside.h"
#include "config/import/config_import.h"
#include "convert/template_choice.h"
#include "sifr/convert.h"
#include "train/prepare/run_task.h"

static void say(void *user, const char *line) {
    const sifr_import_config_options *o = user;
    if (o->line) BASE_OUT(o->line(o->user, line));
}

static sifr_status import(sifr_import_config_options *o, char **text, sifr_imported_config *made,
                          sifr_error *error) {
    config_import_options how = {o->from, o->allow, o->allow_count};
    config_imported imported;
    BASE_TRY(config_import_file(o->path, &how, say, o, &imported, error));
    sifr_status status = convert_settle_template(&imported, &how, say, o, error);
    if (status == SIFR_OK) status = config_json_text(imported.config, text, error);
    *made = (sifr_imported_config){.source = imported.source, .left = (int64_t)imported.left};
    json_decref(imported.config);
    return status;
}

sifr_status sifr_import_config(sifr_context *context, const sifr_import_config_options *options,
                               char **text, sifr_imported_config *out, sifr_error *error) {
    BASE_ENTER(error, text);
    sifr_import_config_options known;
    sifr_imported_config made;
    (void)context;
    BASE_TRY(api_take_options("sifr_import_config_options", options, sizeof known, &known, error));
    if (out) BASE_TRY(api_check_result("sifr_imported_config", out, error));
    BASE_TRY(
        api_check_list("sifr_import_config_options.allow", known.allow, known.allow_count, error));
    if (!known.path) return base_fail(error, SIFR_USAGE, "--config: give the file");
    BASE_TRY(import(&known, text, &made, error));
    if (out) api_give_result(&made, sizeof made, out);
    return SIFR_OK;
}

sifr_status sifr_import_check(const char *text, size_t size, const char *name, sifr_error *error) {
    BASE_ENTER(error, name);
    BASE_TRY(BASE_GIVEN_FOR(error, size, text));
    sifr_config config;
    BASE_TRY(config_create(&config, error));
    sifr_status status = config_parse(&config, text, size, name, error);
    if (status == SIFR_OK) status = config_resolve(&config, 1, error);
    if (status == SIFR_OK) status = train_check_adapters(&config, error);
    config_free(&config);
    return status;
}
