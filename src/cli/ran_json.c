#include "cli/ran_json.h"

#include "train/report/ran_describe.h"

enum { MOST_NOTICES = 64 }; /* a run may warn at each step */

void cli_keep_notice(json_t *notices, sifr_log_level level, const char *line) {
    size_t count = json_array_size(notices);
    if (!notices || level != SIFR_LOG_WARNING || count > MOST_NOTICES) return;
    if (count == MOST_NOTICES) line = "and more, which are on standard error";
    json_t *text = json_string(line);
    json_array_append_new(notices, text ? text : json_string("a warning that is not UTF-8"));
}

json_t *cli_ran_json(const train_ran *ran, json_t *notices) {
    json_t *out = train_ran_json(ran);
    if (out && json_object_set(out, "notices", notices) == 0) return out;
    json_decref(out);
    return NULL;
}
