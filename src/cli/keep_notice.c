#include "cli/keep_notice.h"

enum { MOST_NOTICES = 64 }; /* a run may warn at each step */

void cli_keep_notice(json_t *notices, sifr_log_level level, const char *line) {
    size_t count = json_array_size(notices);
    if (!notices || level != SIFR_LOG_WARNING || count > MOST_NOTICES) return;
    if (count == MOST_NOTICES) line = "and more, which are on standard error";
    json_t *text = json_string(line);
    json_array_append_new(notices, text ? text : json_string("a warning that is not UTF-8"));
}
