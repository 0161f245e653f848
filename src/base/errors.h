/* Making and passing on errors. */
#ifndef BASE_ERRORS_H
#define BASE_ERRORS_H

#include <stddef.h>

#include "sifr/status.h"

/* Writes the message into `error` (may be NULL) and yields `status`:
 *     return base_fail(error, SIFR_USAGE, "%s: heads must be at least 1, got %d", path, heads);
 * Macros, so that the compiler sees that the result is never SIFR_OK. */
#define base_fail(error, status, ...) (base_set_error((error), (status), __VA_ARGS__), (status))

/* SIFR_FAILED, with ": " and the text of the errno value `number` at the end. */
#define base_fail_errno(error, number, ...)                                                        \
    (base_set_error_errno((error), (number), __VA_ARGS__), SIFR_FAILED)

/* Puts "context: " in front of the message that `error` already holds. */
#define base_fail_in(error, status, ...)                                                           \
    (base_set_error_in((error), (status), __VA_ARGS__), (status))

/* SIFR_NO_MEMORY with the number of bytes requested. */
#define base_fail_alloc(error, bytes)                                                              \
    base_fail((error), SIFR_NO_MEMORY, "out of memory: the system refused %llu bytes",             \
              (unsigned long long)(bytes))

void base_set_error(sifr_error *error, sifr_status status, const char *format, ...)
    SIFR_PRINTF(3, 4);
void base_set_error_errno(sifr_error *error, int number, const char *format, ...) SIFR_PRINTF(3, 4);
void base_set_error_in(sifr_error *error, sifr_status status, const char *format, ...)
    SIFR_PRINTF(3, 4);

/* Pointers that a caller of the library must give: SIFR_USAGE names the first that is NULL, and the
 * function.
 *     BASE_TRY(BASE_GIVEN(error, engine, batch, result)); */
#define BASE_GIVEN(error, ...)                                                                     \
    base_check_given(__func__, #__VA_ARGS__, (const void *const[]){__VA_ARGS__},                   \
                     sizeof((const void *const[]){__VA_ARGS__}) / sizeof(void *), (error))
sifr_status base_check_given(const char *function, const char *names, const void *const *pointers,
                             size_t count, sifr_error *error) SIFR_MUST_CHECK;

/* Arrays of which `count` elements are read or written: NULL only where there are none.
 *     BASE_TRY(BASE_GIVEN_FOR(error, count, values)); */
#define BASE_GIVEN_FOR(error, count, ...) ((count) ? BASE_GIVEN(error, __VA_ARGS__) : SIFR_OK)

/* Passes a formatted line to `log` (may be NULL). */
void base_log(const sifr_log *log, sifr_log_level level, const char *format, ...) SIFR_PRINTF(3, 4);

/* Returns the status of `call` if it fails. */
#define BASE_TRY(call)                                                                             \
    do {                                                                                           \
        sifr_status base_try_status = (call);                                                      \
        if (base_try_status != SIFR_OK) return base_try_status;                                    \
    } while (0)

/* Stores the status of `call` in `status` and jumps to `label` if it fails. */
#define BASE_TRY_GOTO(status, call, label)                                                         \
    do {                                                                                           \
        (status) = (call);                                                                         \
        if ((status) != SIFR_OK) goto label;                                                       \
    } while (0)

#endif
