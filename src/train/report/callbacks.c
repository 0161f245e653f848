#include "train/report/callbacks.h"

#include <stdarg.h>
#include <stdio.h>

void train_say(const train_host *host, const char *format, ...) {
    char text[1024];
    va_list arguments;
    if (!host->line) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (host->live) host->live(host->user, "");
    host->line(host->user, text);
}

int train_columns(const train_host *host) {
    return host->columns ? host->columns(host->user) : 80;
}

int train_stopped(const train_host *host) {
    return host->stopped ? host->stopped(host->user) : 0;
}
