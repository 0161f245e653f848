/* "ran" of --json: what did the work. */
#ifndef CLI_RAN_JSON_H
#define CLI_RAN_JSON_H

#include <jansson.h>

#include "train/report/ran.h"

/* Keeps a line of a log if it is a warning, up to 64. Without an array nothing is kept. */
void cli_keep_notice(json_t *notices, sifr_log_level level, const char *line);

/* One key a line, none of them nested, so that scripts can read it by lines. `notices`: an array,
 * whose reference stays the caller's. NULL: out of memory. */
json_t *cli_ran_json(const train_ran *ran, json_t *notices);

#endif
