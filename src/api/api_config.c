#include "sifr/config.h"

#include <stdlib.h>
#include <string.h>

#include "api/api_context.h"
#include "base/heap.h"
#include "base/inside.h"
#include "config/config.h"

sifr_status sifr_config_create(sifr_config **out, sifr_error *error) {
    BASE_ENTER(error, out);
    sifr_config *config;
    BASE_TRY(base_alloc(1, sizeof *config, &config, error));
    sifr_status status = config_create(config, error);
    if (status != SIFR_OK) {
        free(config);
        return status;
    }
    *out = config;
    return SIFR_OK;
}

void sifr_config_free(sifr_config *config) {
    BASE_ENTER_VOID(config);
    config_free(config);
    free(config);
}

sifr_status sifr_config_copy(const sifr_config *config, sifr_config **out, sifr_error *error) {
    BASE_ENTER(error, config, out);
    sifr_config *copy;
    BASE_TRY(base_alloc(1, sizeof *copy, &copy, error));
    sifr_status status = config_copy(config, copy, error);
    if (status != SIFR_OK) {
        free(copy);
        return status;
    }
    *out = copy;
    return SIFR_OK;
}

/* What a copy of the config has read, if all of it could be: else the config stays as it was. */
static sifr_status keep(sifr_config *config, sifr_config *read, sifr_status status) {
    if (status != SIFR_OK) {
        config_free(read);
        return status;
    }
    config_free(config);
    *config = *read;
    return SIFR_OK;
}

sifr_status sifr_config_load(sifr_config *config, const char *path, sifr_error *error) {
    BASE_ENTER(error, config, path);
    sifr_config read;
    BASE_TRY(config_copy(config, &read, error));
    return keep(config, &read, config_load(&read, path, error));
}

sifr_status sifr_config_parse(sifr_config *config, const char *text, size_t size, const char *name,
                              sifr_error *error) {
    BASE_ENTER(error, config, name);
    BASE_TRY(BASE_GIVEN_FOR(error, size, text));
    sifr_config read;
    BASE_TRY(config_copy(config, &read, error));
    return keep(config, &read, config_parse(&read, text, size, name, error));
}

sifr_status sifr_config_set(sifr_config *config, const char *name, const char *value,
                            sifr_error *error) {
    BASE_ENTER(error, config, name);
    return config_set(config, name, value, error);
}

sifr_status sifr_config_clear(sifr_config *config, const char *name, sifr_error *error) {
    BASE_ENTER(error, config, name);
    return config_clear(config, name, error);
}

sifr_status sifr_config_set_loss(sifr_config *config, sifr_loss_function *loss, void *user,
                                 sifr_error *error) {
    BASE_ENTER(error, config);
    config->loss = loss;
    config->loss_user = user;
    config->resolved = false;
    return SIFR_OK;
}

sifr_status sifr_config_resolve(sifr_config *config, int64_t ranks, sifr_error *error) {
    BASE_ENTER(error, config);
    return config_resolve(config, ranks, error);
}

static sifr_status check_resolved(const sifr_config *config, sifr_error *error) {
    if (config->resolved) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "the config is not resolved: values are known after sifr_config_resolve");
}

sifr_status sifr_config_value(const sifr_config *config, const char *name, char **out,
                              sifr_error *error) {
    BASE_ENTER(error, config, name, out);
    BASE_TRY(check_resolved(config, error));
    return config_value_json(config, name, out, error);
}

sifr_status sifr_config_json(const sifr_config *config, char **out, sifr_error *error) {
    BASE_ENTER(error, config, out);
    BASE_TRY(check_resolved(config, error));
    return config_text(config, out, error);
}

/* The caller's, which may be NULL. */
typedef struct line_taker {
    void (*line)(void *user, const char *text);
    void *user;
} line_taker;

static void take_line(void *user, const char *text) {
    const line_taker *to = user;
    if (to->line) BASE_OUT(to->line(to->user, text));
}

sifr_status sifr_config_explain(sifr_config *config, int64_t ranks, bool all,
                                void (*line)(void *user, const char *text), void *user,
                                sifr_error *error) {
    BASE_ENTER(error, config);
    sifr_status status = config_resolve(config, ranks, error);
    config_explain(config, all, take_line, &(line_taker){line, user});
    return status;
}

bool sifr_config_flag_at(size_t index, sifr_config_flag *flag) {
    BASE_ENTER_OR(false, flag);
    config_flag row;
    if (!config_flag_at(index, &row)) return false;
    sifr_config_flag known = {.path = row.path,
                              .argument = row.argument,
                              .fallback = row.fallback,
                              .doc = row.doc,
                              .group = (sifr_config_group)row.group,
                              .many = row.many};
    memcpy(known.name, row.name, sizeof known.name);
    return api_give_result(&known, sizeof known, flag);
}

_Static_assert((int)SIFR_CONFIG_GROUPS == CONFIG_FLAG_GROUPS &&
                   (int)SIFR_CONFIG_RANKS == CONFIG_FLAGS_RANKS,
               "the groups of flags are those of the table");
_Static_assert(sizeof((sifr_config_flag){0}.name) == sizeof((config_flag){0}.name),
               "a flag's name is copied whole");
