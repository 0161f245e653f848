/* One config from a string, resolved for some ranks; what the tests of configs share. */
#ifndef CONFIG_CASE_H
#define CONFIG_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"

typedef struct config_case {
    sifr_config config;
    sifr_error error;
    sifr_status status;
    char lines[131072]; /* of config_explain, each with a newline */
} config_case;

static inline void config_case_line(void *user, const char *line) {
    config_case *c = user;
    size_t used = strlen(c->lines);
    snprintf(c->lines + used, sizeof c->lines - used, "%s\n", line);
}

/* What a config resolves to, the library takes; a run may still give the length of the model. */
static inline void config_case_is_taken(const sifr_config *config) {
    sifr_settings step = config->step;
    sifr_error error = {0};
    if (step.seq_length == 0) step.seq_length = 1;
    if (sifr_settings_check(&step, &error) != SIFR_OK) fail_msg("%s", error.message);
}

/* flags: name, value, name, value, …, NULL. */
static inline config_case *config_case_flags(const char *text, int64_t ranks, ...) {
    config_case *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->status = config_create(&c->config, &c->error);
    if (c->status == SIFR_OK && text) {
        c->status = config_parse(&c->config, text, strlen(text), "ds.json", &c->error);
    }
    va_list flags;
    va_start(flags, ranks);
    for (const char *name; c->status == SIFR_OK && (name = va_arg(flags, const char *)) != NULL;) {
        c->status = config_set(&c->config, name, va_arg(flags, const char *), &c->error);
    }
    va_end(flags);
    if (c->status == SIFR_OK) c->status = config_resolve(&c->config, ranks, &c->error);
    if (c->status == SIFR_OK) config_case_is_taken(&c->config);
    config_explain(&c->config, true, config_case_line, c);
    return c;
}

static inline config_case *config_case_text(const char *text) {
    return config_case_flags(text, 1, NULL);
}

static inline void config_case_free(config_case *c) {
    config_free(&c->config);
    free(c);
}

static inline void config_case_refused(config_case *c, const char *message) {
    if (c->status != SIFR_USAGE) fail_msg("not refused: expected \"%s\"", message);
    assert_string_equal(c->error.message, message);
    config_case_free(c);
}

/* Refused with exactly this message. */
static inline void config_refused(const char *text, const char *message) {
    config_case_refused(config_case_text(text), message);
}

static inline void config_case_accepted(config_case *c) {
    if (c->status != SIFR_OK) fail_msg("refused: %s", c->error.message);
}

/* Accepted, and --dry-run has a line that begins with `path` and holds `part`. */
static inline void config_said(const char *text, const char *path, const char *part) {
    config_case *c = config_case_text(text);
    config_case_accepted(c);
    bool found = false;
    size_t length = strlen(path);
    for (char *line = c->lines, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = 0;
        if (strncmp(line, path, length) == 0 && line[length] == ' ' && strstr(line, part)) {
            found = true;
        }
        *end = '\n';
    }
    if (!found) fail_msg("no line for %s that says \"%s\" in:\n%s", path, part, c->lines);
    config_case_free(c);
}

#endif
