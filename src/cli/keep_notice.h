/* Warnings of a run, for "ran" of --json. */
#ifndef CLI_KEEP_NOTICE_H
#define CLI_KEEP_NOTICE_H

#include <jansson.h>

#include "sifr/status.h"

/* Keeps a line of a log if it is a warning, up to 64. Without an array nothing is kept. */
void cli_keep_notice(json_t *notices, sifr_log_level level, const char *line);

#endif
