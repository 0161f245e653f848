/* Results of sifr's functions.
 *
 * Every function that can fail returns a sifr_status and writes a message (what, where, why, what
 * to do) into the caller's sifr_error. Pass NULL if the message is not wanted. The values equal the
 * program's exit codes.
 */
#ifndef SIFR_STATUS_H
#define SIFR_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SIFR_API __attribute__((visibility("default")))
#define SIFR_PRINTF(format_index, first) __attribute__((format(printf, format_index, first)))
#define SIFR_MUST_CHECK __attribute__((warn_unused_result))
#else
#define SIFR_API
#define SIFR_PRINTF(format_index, first)
#define SIFR_MUST_CHECK
#endif

typedef enum sifr_status {
    SIFR_OK = 0,
    SIFR_FAILED = 1,    /* a file, the system or the data: see the message */
    SIFR_USAGE = 2,     /* wrong usage, config or model description */
    SIFR_NO_MEMORY = 3, /* does not fit in memory or on disk */
    SIFR_LOST_RANK = 4  /* a rank is lost, or a collective hangs */
} sifr_status;

#define SIFR_ERROR_LENGTH 1024

typedef struct sifr_error {
    sifr_status status;
    char message[SIFR_ERROR_LENGTH]; /* one line without a newline; "" while SIFR_OK */
} sifr_error;

/* Severity of a log line. */
typedef enum sifr_log_level { SIFR_LOG_DEBUG, SIFR_LOG_INFO, SIFR_LOG_WARNING } sifr_log_level;

/* Receives the library's log lines; the library itself never prints. `write` may be NULL to discard
 * them. `line` has no newline and is valid only during the call. Called from one thread at a time.
 */
typedef struct sifr_log {
    void (*write)(void *user, sifr_log_level level, const char *line);
    void *user;
} sifr_log;

#ifdef __cplusplus
}
#endif
#endif
