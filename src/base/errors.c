#include "base/errors.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

static void base_clean_line(char *line) {
    for (; *line; line++) {
        if ((unsigned char)*line < 0x20 || *line == 0x7f) *line = ' ';
    }
}

/* Messages begin with the name of what is wrong, as in "%s: no such file". An empty one is shown.
 */
static void base_write_message(sifr_error *error, const char *format, va_list arguments) {
    char *line = error->message;
    vsnprintf(line, sizeof error->message, format, arguments);
    base_clean_line(line);
    if (strncmp(line, ": ", 2) != 0) return;
    memmove(line + 2, line, sizeof error->message - 3);
    memcpy(line, "\"\"", 2);
    line[sizeof error->message - 1] = '\0';
}

void base_set_error(sifr_error *error, sifr_status status, const char *format, ...) {
    base_assert(status != SIFR_OK);
    if (error) {
        va_list arguments;
        va_start(arguments, format);
        error->status = status;
        base_write_message(error, format, arguments);
        va_end(arguments);
    }
}

sifr_status base_check_given(const char *function, const char *names, const void *const *pointers,
                             size_t count, sifr_error *error) {
    for (size_t i = 0; i < count; i++) {
        if (!pointers[i])
            return base_fail(error, SIFR_USAGE, "%s: %.*s: NULL; give one", function,
                             (int)strcspn(names, ","), names);
        names += strcspn(names, ",");
        names += strspn(names, ", ");
    }
    return SIFR_OK;
}

void base_set_error_errno(sifr_error *error, int number, const char *format, ...) {
    base_assert(number != 0);
    if (error) {
        va_list arguments;
        va_start(arguments, format);
        error->status = SIFR_FAILED;
        base_write_message(error, format, arguments);
        va_end(arguments);
        size_t used = strlen(error->message);
        char text[128] = "";
        /* glibc's strerror_r may return a static string instead of filling the buffer. */
        const char *reason = strerror_r(number, text, sizeof text);
        snprintf(error->message + used, sizeof error->message - used, ": %s%s", reason,
                 number == EFBIG ? " (`ulimit -f` gives the largest that is allowed)" : "");
    }
}

void base_set_error_in(sifr_error *error, sifr_status status, const char *format, ...) {
    if (error) {
        char inner[SIFR_ERROR_LENGTH];
        memcpy(inner, error->message, sizeof inner);
        va_list arguments;
        va_start(arguments, format);
        error->status = status;
        base_write_message(error, format, arguments);
        va_end(arguments);
        size_t used = strlen(error->message);
        snprintf(error->message + used, sizeof error->message - used, ": %s", inner);
    }
}

void base_log(const sifr_log *log, sifr_log_level level, const char *format, ...) {
    if (!log || !log->write) return;
    char line[2 * SIFR_ERROR_LENGTH];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    base_clean_line(line);
    log->write(log->user, level, line);
}
