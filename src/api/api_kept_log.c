#include "api/api_kept_log.h"

#include <string.h>

#include "base/errors.h"

static void keep(void *user, sifr_log_level level, const char *line) {
    api_kept_log *kept = user;
    size_t size = strlen(line) + 1;
    if (level != SIFR_LOG_INFO) {
        base_log(kept->to, level, "%s", line);
    } else if (size <= sizeof kept->text - kept->used) {
        memcpy(kept->text + kept->used, line, size);
        kept->used += size;
    }
}

sifr_log api_kept_log_open(api_kept_log *kept) {
    return (sifr_log){.write = keep, .user = kept};
}

void api_kept_log_show(api_kept_log *kept) {
    for (size_t at = 0; at < kept->used; at += strlen(kept->text + at) + 1)
        base_log(kept->to, SIFR_LOG_INFO, "%s", kept->text + at);
    kept->used = 0;
}
