/* A log for the time before it is known that the input can be used. */
#ifndef API_KEPT_LOG_H
#define API_KEPT_LOG_H

#include <stddef.h>

#include "sifr/status.h"

/* Start with `to` alone. */
typedef struct api_kept_log {
    const sifr_log *to;
    char text[2048]; /* lines, each with a NUL */
    size_t used;
} api_kept_log;

/* Information is kept until api_kept_log_show, so that a failure is one line; the rest passes at
 * once. The log is good as long as *kept. */
sifr_log api_kept_log_open(api_kept_log *kept);
void api_kept_log_show(api_kept_log *kept);

#endif
