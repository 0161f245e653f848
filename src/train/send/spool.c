#include "train/send/spool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/heap.h"
#include "base/json.h"

sifr_status train_spool_open(train_spool *spool, const char *run, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    uint64_t size;
    *spool = (train_spool){.file = -1};
    BASE_TRY(base_path_join(path, run, TRAIN_SPOOL, error));
    if (base_is_file(run))
        return base_fail(error, SIFR_FAILED, "%.300s: a file; name the run's output folder", run);
    if (!base_is_file(path))
        return base_fail(error, SIFR_FAILED,
                         "%.300s: no " TRAIN_SPOOL "; a run with \"sifr\": {\"mlflow\": true} "
                         "writes one into its output",
                         run);
    BASE_TRY(base_open_read(path, &spool->file, &size, error));
    if (flock(spool->file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return base_fail(error, SIFR_FAILED,
                         "%.300s: another process is sending it: wait until the run, or the other "
                         "`sifr log push`, has ended",
                         path);
    return base_alloc(TRAIN_SPOOL_LINE, 1, &spool->buffer, error);
}

void train_spool_close(train_spool *spool) {
    if (spool->file >= 0) close(spool->file);
    free(spool->buffer);
    *spool = (train_spool){.file = -1};
}

void train_spool_go_to(train_spool *spool, int64_t at) {
    spool->at = spool->from = at;
    spool->filled = 0;
}

bool train_spool_ends_at(const train_spool *spool, int64_t at) {
    char last = 0;
    return at > 0 && pread(spool->file, &last, 1, (off_t)(at - 1)) == 1 && last == '\n';
}

sifr_status train_spool_check(const json_t *head, const char *run, sifr_error *error) {
    const json_t *version = json_object_get(head, "spool");
    const char *id = json_string_value(json_object_get(head, "run"));
    if (json_is_integer(version) && json_integer_value(version) != TRAIN_SPOOL_VERSION)
        return base_fail(error, SIFR_FAILED,
                         "%.300s/" TRAIN_SPOOL ": a spool of version %lld is not supported "
                         "(supported: %d); take the sifr that wrote it",
                         run, (long long)json_integer_value(version), TRAIN_SPOOL_VERSION);
    bool named = json_is_integer(version) && id && strlen(id) == TRAIN_SPOOL_ID - 1 &&
                 strspn(id, "0123456789abcdef") == TRAIN_SPOOL_ID - 1;
    if (named) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%.300s/" TRAIN_SPOOL ": the first line names no run, so that it is no spool "
                     "of sifr's",
                     run);
}

/* Moves the buffer to the next line, and fills it. */
static sifr_status fill(train_spool *s, sifr_error *error) {
    size_t done = (size_t)(s->at - s->from);
    memmove(s->buffer, s->buffer + done, s->filled - done);
    s->filled -= done;
    s->from = s->at;
    for (;;) {
        size_t room = TRAIN_SPOOL_LINE - s->filled;
        ssize_t got = room ? pread(s->file, s->buffer + s->filled, room,
                                   (off_t)(s->from + (int64_t)s->filled))
                           : 0;
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return base_fail_errno(error, errno, TRAIN_SPOOL ": cannot read");
        if (got == 0) return SIFR_OK;
        s->filled += (size_t)got;
    }
}

static const char *find_end(const train_spool *s) {
    size_t done = (size_t)(s->at - s->from);
    return memchr(s->buffer + done, '\n', s->filled - done);
}

/* Of a line that is longer than the buffer: on to its end. */
static sifr_status skip(train_spool *s, const char **end, sifr_error *error) {
    while (!*end && s->filled == TRAIN_SPOOL_LINE) {
        s->at = s->from + (int64_t)s->filled;
        BASE_TRY(fill(s, error));
        *end = find_end(s);
    }
    return SIFR_OK;
}

sifr_status train_spool_next(train_spool *s, int64_t until, json_t **out, bool *passed,
                             sifr_error *error) {
    const char *end = find_end(s);
    *out = NULL;
    *passed = false;
    if (!end) {
        BASE_TRY(fill(s, error));
        end = find_end(s);
    }
    bool whole = end != NULL;
    int64_t before = s->at;
    if (!whole) BASE_TRY(skip(s, &end, error));
    if (!end || s->from + (end - s->buffer) >= until) {
        train_spool_go_to(s, before);
        return SIFR_OK;
    }
    const char *line = s->buffer + (s->at - s->from);
    if (whole &&
        base_json_parse(line, (size_t)(end - line), TRAIN_SPOOL, out, NULL) == SIFR_NO_MEMORY)
        return base_fail_alloc(error, (size_t)(end - line));
    if (*out && !json_is_object(*out)) {
        json_decref(*out);
        *out = NULL;
    }
    *passed = !*out;
    s->at = s->from + (end - s->buffer) + 1;
    return SIFR_OK;
}
