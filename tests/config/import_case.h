/* Imports of other programs' configs, with what is said of them. Included by one test file each. */
#ifndef CONFIG_IMPORT_CASE_H
#define CONFIG_IMPORT_CASE_H

#include "config/config_case.h"

#include "config/import/config_import.h"

static char lines[16384]; /* of the last import */

static void keep_line(void *user, const char *line) {
    (void)user;
    size_t used = strlen(lines);
    snprintf(lines + used, sizeof lines - used, "%s\n", line);
}

static sifr_status import(const char *text, config_imported *made, sifr_error *error) {
    lines[0] = '\0';
    return config_import(text, strlen(text), "a.yaml", NULL, keep_line, NULL, made, error);
}

#endif
