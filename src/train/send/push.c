#include "train/send/push.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/folder_file.h"
#include "base/heap.h"
#include "base/json.h"
#include "train/send/mlflow_text.h"
#include "train/send/spool.h"

enum { METRIC_BYTES = TRAIN_MLFLOW_KEY + 128, SENT_BYTES = 1 << 16, REFUSED_IN_A_ROW = 32 };

/* Metrics of a call, their texts with commas between. */
typedef struct batch {
    char *text;
    size_t used;
    int count;
} batch;

struct train_push {
    char run[BASE_PATH_LENGTH]; /* the folder */
    train_mlflow *server;
    train_spool spool;
    bool found;   /* the run at the server */
    int64_t sent; /* bytes */
    char id[TRAIN_SPOOL_ID];
    batch numbers, nans; /* see below */
    train_pushed counts;
    bool refuses; /* a value of this process */
};

sifr_status train_push_open(const char *run, train_mlflow *server, train_push **out,
                            sifr_error *error) {
    train_push *p;
    sifr_status status = base_alloc(1, sizeof *p, &p, error);
    if (status != SIFR_OK) {
        train_mlflow_close(server);
        return status;
    }
    p->server = server;
    p->spool.file = -1;
    snprintf(p->run, sizeof p->run, "%s", run);
    status = train_spool_open(&p->spool, run, error);
    if (status == SIFR_OK) status = base_alloc(TRAIN_MLFLOW_BYTES, 1, &p->numbers.text, error);
    if (status == SIFR_OK) status = base_alloc(TRAIN_MLFLOW_BYTES, 1, &p->nans.text, error);
    if (status == SIFR_OK)
        *out = p;
    else
        train_push_close(p);
    return status;
}

void train_push_close(train_push *p) {
    if (!p) return;
    train_spool_close(&p->spool);
    train_mlflow_close(p->server);
    free(p->numbers.text);
    free(p->nans.text);
    free(p);
}

int64_t train_push_sent(const train_push *p) {
    return p->sent;
}

const train_pushed *train_push_counts(const train_push *p) {
    return &p->counts;
}

train_mlflow *train_push_server(train_push *p) {
    return p->server;
}

/* --- how much the server has --- */

static const char *shown(const train_push *p) {
    return train_http_shown(train_mlflow_http(p->server));
}

/* Of what is not sent again: an earlier process may have said it where nobody looked. */
static void read_refused(train_push *p, const json_t *sent) {
    const char *why = json_string_value(json_object_get(sent, "refusal"));
    json_int_t count = json_integer_value(json_object_get(sent, "refused"));
    if (count <= 0) return;
    p->counts.refused = count;
    if (p->refuses) return;
    train_http_tame(train_mlflow_http(p->server), why ? why : "why is not known",
                    p->counts.refusal.message, sizeof p->counts.refusal.message);
}

/* A file that is damaged, or of another run, server or spool (one that a crash of the machine has
 * cut), says nothing: all is sent, and what the server has drops out there. */
static void read_sent(train_push *p, char known[64], int64_t *bytes) {
    char path[BASE_PATH_LENGTH];
    json_t *sent = NULL;
    known[0] = '\0';
    *bytes = 0;
    p->counts.refused = 0;
    if (base_path_join(path, p->run, TRAIN_SPOOL_SENT, NULL) != SIFR_OK ||
        base_json_load(path, SENT_BYTES, &sent, NULL) != SIFR_OK)
        return;
    const char *server = json_string_value(json_object_get(sent, "server"));
    const char *run = json_string_value(json_object_get(sent, "run"));
    const char *there = json_string_value(json_object_get(sent, "run_id"));
    if (server && run && there && strcmp(server, shown(p)) == 0 && strcmp(run, p->id) == 0) {
        snprintf(known, 64, "%s", there);
        *bytes = json_integer_value(json_object_get(sent, "bytes"));
        if (!train_spool_ends_at(&p->spool, *bytes)) *bytes = 0;
        if (*bytes) read_refused(p, sent);
    }
    json_decref(sent);
}

/* Where it cannot be written, more is sent again than need be. */
static void note_sent(train_push *p) {
    char path[BASE_PATH_LENGTH];
    p->sent = p->spool.at;
    json_t *why = p->counts.refused ? json_string(p->counts.refusal.message) : NULL;
    json_t *sent = json_pack("{s:s, s:s, s:s, s:I, s:I, s:o*}", "server", shown(p), "run", p->id,
                             "run_id", train_mlflow_run_id(p->server), "bytes", (json_int_t)p->sent,
                             "refused", (json_int_t)p->counts.refused, "refusal", why);
    if (sent && base_path_join(path, p->run, TRAIN_SPOOL_SENT, NULL) == SIFR_OK) {
        sifr_status status = base_json_save(sent, path, NULL);
        (void)status;
    }
    json_decref(sent);
}

/* --- the run --- */

static sifr_status find_by(train_push *p, const json_t *head, sifr_error *error) {
    const char *id = json_string_value(json_object_get(head, "run"));
    const char *name = json_string_value(json_object_get(head, "name"));
    char known[64], tame_name[256];
    int64_t bytes;
    BASE_TRY(train_spool_check(head, p->run, error));
    snprintf(p->id, sizeof p->id, "%s", id);
    train_mlflow_cut(name ? name : "sifr", sizeof tame_name - 1, tame_name);
    read_sent(p, known, &bytes);
    const train_mlflow_run run = {
        .id = p->id,
        .name = tame_name,
        .experiment = json_string_value(json_object_get(head, "experiment")),
        .experiment_id = json_string_value(json_object_get(head, "experiment_id")),
        .began = json_integer_value(json_object_get(head, "time")),
        .known = *known ? known : NULL};
    BASE_TRY(train_mlflow_find(p->server, &run, error));
    bool same = strcmp(known, train_mlflow_run_id(p->server)) == 0;
    if (same && bytes > p->spool.at) train_spool_go_to(&p->spool, bytes);
    if (!same) p->counts.refused = 0; /* all is sent again */
    return SIFR_OK;
}

static sifr_status find_run(train_push *p, int64_t until, sifr_error *error) {
    json_t *head;
    bool passed;
    train_spool_go_to(&p->spool, 0);
    BASE_TRY(train_spool_next(&p->spool, until, &head, &passed, error));
    sifr_status status = find_by(p, head, error);
    json_decref(head);
    BASE_TRY(status);
    p->found = true;
    note_sent(p);
    return SIFR_OK;
}

/* --- what a server refuses --- */

/* SIFR_USAGE, for good, is counted; the spool goes on behind. */
static sifr_status settle(train_push *p, sifr_status status, int64_t count, int64_t *done,
                          const sifr_error *reason, sifr_error *error) {
    if (status == SIFR_OK) *done += count;
    if (status == SIFR_OK) return SIFR_OK;
    if (status != SIFR_USAGE) return base_fail(error, status, "%s", reason->message);
    if (!p->refuses) p->counts.refusal = *reason;
    p->refuses = true;
    p->counts.refused += count;
    return SIFR_OK;
}

/* --- metrics --- */

static void clear(batch *b) {
    b->used = 0;
    b->count = 0;
}

/* The comma behind the first `count` metrics. A key has no braces. */
static char *behind(char *text, int count) {
    char *at = text;
    for (int i = 0; i < count; i++) at = strstr(at, "},{") + 1;
    return at;
}

/* One that is refused takes the others of its call with it: each half goes alone then. Of a server
 * that refuses REFUSED_IN_A_ROW calls in a row, no more is asked. */
static sifr_status send_numbers(train_push *p, char *text, int count, int *in_a_row,
                                sifr_error *error) {
    sifr_error reason = {0};
    sifr_status status = train_mlflow_metrics(p->server, text, &reason);
    *in_a_row = status == SIFR_OK ? 0 : *in_a_row + 1;
    if (status != SIFR_USAGE || count == 1 || *in_a_row > REFUSED_IN_A_ROW)
        return settle(p, status, count, &p->counts.metrics, &reason, error);
    char *half = behind(text, count / 2);
    *half = '\0';
    BASE_TRY(send_numbers(p, text, count / 2, in_a_row, error));
    return send_numbers(p, half + 1, count - count / 2, in_a_row, error);
}

/* What the server's data base says of a value that it has. */
static bool is_repeat(const sifr_error *reason) {
    return strstr(reason->message, "IntegrityError") || strstr(reason->message, "UniqueViolation");
}

/* A NaN that MLflow has already makes it refuse the whole call, since no NaN equals another. Then
 * each goes alone. */
static sifr_status send_nans(train_push *p, sifr_error *error) {
    sifr_error reason = {0};
    sifr_status status = train_mlflow_metrics(p->server, p->nans.text, &reason);
    if (status != SIFR_USAGE)
        return settle(p, status, p->nans.count, &p->counts.metrics, &reason, error);
    for (char *one = p->nans.text, *next; one; one = next) {
        next = strstr(one, "},{");
        if (next) next[1] = '\0';
        next = next ? next + 2 : NULL;
        status = train_mlflow_metrics(p->server, one, &reason);
        if (status == SIFR_USAGE && is_repeat(&reason)) continue;
        BASE_TRY(settle(p, status, 1, &p->counts.metrics, &reason, error));
    }
    return SIFR_OK;
}

static sifr_status send_batch(train_push *p, sifr_error *error) {
    int in_a_row = 0;
    if (p->numbers.count)
        BASE_TRY(send_numbers(p, p->numbers.text, p->numbers.count, &in_a_row, error));
    clear(&p->numbers);
    if (p->nans.count) BASE_TRY(send_nans(p, error));
    clear(&p->nans);
    return SIFR_OK;
}

/* Whether another line of `count` metrics fits. */
static bool has_room(const train_push *p, size_t count) {
    const batch *b = p->numbers.count > p->nans.count ? &p->numbers : &p->nans;
    return (size_t)b->count + count <= TRAIN_MLFLOW_METRICS &&
           ((size_t)b->count + count) * METRIC_BYTES < TRAIN_MLFLOW_BYTES;
}

static void put_metric(train_push *p, const char *key, const json_t *value, json_int_t step,
                       json_int_t time) {
    char name[TRAIN_MLFLOW_KEY + 1], number[40];
    if (!train_mlflow_number(value, number)) return;
    batch *b = strcmp(number, "\"NaN\"") == 0 ? &p->nans : &p->numbers;
    train_mlflow_key(key, name);
    b->used +=
        (size_t)snprintf(b->text + b->used, TRAIN_MLFLOW_BYTES - b->used,
                         "%s{\"key\":\"%s\",\"value\":%s,\"timestamp\":%lld,\"step\":%lld}",
                         b->count ? "," : "", name, number, (long long)time, (long long)step);
    b->count++;
}

/* A hostile line may have more metrics than a call takes. */
static sifr_status take_metrics(train_push *p, const json_t *line, json_t *metrics,
                                sifr_error *error) {
    json_int_t step = json_integer_value(json_object_get(line, "step"));
    json_int_t time = json_integer_value(json_object_get(line, "time"));
    const char *key;
    json_t *value;
    json_object_foreach(metrics, key, value) {
        if (!has_room(p, 1)) BASE_TRY(send_batch(p, error));
        put_metric(p, key, value, step, time);
    }
    return SIFR_OK;
}

/* --- parameters and tags --- */

typedef sifr_status send_pairs(train_mlflow *server, json_t *pairs, sifr_error *error);

/* One that is refused takes the others of its call with it: then each goes alone. */
static sifr_status send_each(train_push *p, json_t *pairs, send_pairs *send, int64_t *done,
                             sifr_error *error) {
    const char *key;
    json_t *value;
    json_object_foreach(pairs, key, value) {
        sifr_error reason = {0};
        json_t *one = json_pack("{s:O}", key, value);
        sifr_status status = one ? send(p->server, one, &reason) : base_fail_alloc(&reason, 256);
        json_decref(one);
        BASE_TRY(settle(p, status, 1, done, &reason, error));
    }
    return SIFR_OK;
}

static sifr_status send_some(train_push *p, json_t *pairs, send_pairs *send, int64_t *done,
                             sifr_error *error) {
    sifr_error reason = {0};
    if (!json_object_size(pairs)) return SIFR_OK;
    sifr_status status = send(p->server, pairs, &reason);
    if (status == SIFR_USAGE && json_object_size(pairs) > 1)
        return send_each(p, pairs, send, done, error);
    return settle(p, status, (int64_t)json_object_size(pairs), done, &reason, error);
}

static sifr_status send_all(train_push *p, json_t *pairs, send_pairs *send, int64_t *done,
                            sifr_error *error) {
    char name[TRAIN_MLFLOW_KEY + 1], text[TRAIN_MLFLOW_VALUE + 1];
    size_t bytes = 0;
    const char *key;
    json_t *value, *some = json_object();
    sifr_status status = some ? SIFR_OK : base_fail_alloc(error, 64);
    json_object_foreach(pairs, key, value) {
        if (status != SIFR_OK || !json_is_string(value)) continue;
        train_mlflow_key(key, name);
        train_mlflow_cut(json_string_value(value), TRAIN_MLFLOW_VALUE, text);
        /* In JSON a byte takes at most six. */
        if (json_object_size(some) == TRAIN_MLFLOW_PARAMETERS ||
            6 * (bytes + strlen(text)) > TRAIN_MLFLOW_BYTES) {
            status = send_some(p, some, send, done, error);
            json_object_clear(some);
            bytes = 0;
        }
        bytes += strlen(text) + TRAIN_MLFLOW_KEY;
        if (status == SIFR_OK && json_object_set_new(some, name, json_string(text)) != 0)
            status = base_fail_alloc(error, strlen(text));
    }
    if (status == SIFR_OK) status = send_some(p, some, send, done, error);
    json_decref(some);
    return status;
}

/* --- files --- */

/* A spool may come from elsewhere: it names files of its run alone. */
static sifr_status open_file(const train_push *p, const char *name, int *file, uint64_t *bytes,
                             sifr_error *error) {
    char path[BASE_PATH_LENGTH], tame[256];
    sifr_error reason = {0};
    train_http_tame(train_mlflow_http(p->server), name, tame, sizeof tame);
    if (!*name || *name == '/' || strstr(name, ".."))
        return base_fail(error, SIFR_USAGE, "%s: no file of the run", tame);
    if (base_folder_file(p->run, name, path, &reason) == SIFR_OK &&
        base_open_read(path, file, bytes, &reason) == SIFR_OK)
        return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s: cannot be sent: %s", tame, reason.message);
}

static sifr_status send_file(train_push *p, const char *name, sifr_error *error) {
    sifr_error reason = {0};
    uint64_t bytes;
    int file;
    sifr_status status = open_file(p, name, &file, &bytes, &reason);
    if (status == SIFR_OK) {
        status = train_mlflow_artifact(p->server, name, file, bytes, &reason);
        close(file);
    }
    return settle(p, status, 1, &p->counts.artifacts, &reason, error);
}

/* --- lines --- */

static sifr_status send_state(train_push *p, const char *state, const json_t *line,
                              sifr_error *error) {
    sifr_error reason = {0};
    int64_t done = 0;
    bool ends = strcmp(state, "RUNNING") != 0;
    sifr_status status = train_mlflow_state(
        p->server, state, json_integer_value(json_object_get(line, "time")), &reason);
    BASE_TRY(settle(p, status, 1, &done, &reason, error));
    p->counts.ended = ends;
    return SIFR_OK;
}

static sifr_status send_other(train_push *p, const json_t *line, sifr_error *error) {
    json_t *value;
    if ((value = json_object_get(line, "parameters")) != NULL)
        return send_all(p, value, train_mlflow_parameters, &p->counts.parameters, error);
    if ((value = json_object_get(line, "tags")) != NULL)
        return send_all(p, value, train_mlflow_tags, &p->counts.tags, error);
    if (json_is_string(value = json_object_get(line, "artifact")))
        return send_file(p, json_string_value(value), error);
    if (json_is_string(value = json_object_get(line, "end")))
        return send_state(p, json_string_value(value), line, error);
    if (json_object_get(line, "resumed")) return send_state(p, "RUNNING", line, error);
    p->counts.passed++;
    return SIFR_OK;
}

/* What precedes in the batch goes first: the server gets lines in their order. */
static sifr_status send_line(train_push *p, const json_t *line, int64_t begin, sifr_error *error) {
    json_t *metrics = json_object_get(line, "metrics");
    int64_t end = p->spool.at;
    bool joins = json_is_object(metrics) && has_room(p, json_object_size(metrics));
    if (!joins && p->numbers.count + p->nans.count) {
        BASE_TRY(send_batch(p, error));
        p->spool.at = begin; /* for the note alone */
        note_sent(p);
        p->spool.at = end;
    }
    if (json_is_object(metrics)) return take_metrics(p, line, metrics, error);
    BASE_TRY(send_other(p, line, error));
    note_sent(p);
    return SIFR_OK;
}

static sifr_status send_lines(train_push *p, int64_t until, sifr_error *error) {
    for (;;) {
        json_t *line;
        bool passed;
        int64_t begin = p->spool.at;
        BASE_TRY(train_spool_next(&p->spool, until, &line, &passed, error));
        if (!line && !passed) break;
        p->counts.passed += passed;
        sifr_status status = line ? send_line(p, line, begin, error) : SIFR_OK;
        json_decref(line);
        BASE_TRY(status);
    }
    BASE_TRY(send_batch(p, error));
    if (p->sent != p->spool.at) note_sent(p);
    return SIFR_OK;
}

sifr_status train_push_go(train_push *p, int64_t until, sifr_error *error) {
    if (!p->found) BASE_TRY(find_run(p, until, error));
    sifr_status status = send_lines(p, until, error);
    if (status == SIFR_OK) return SIFR_OK;
    clear(&p->numbers);
    clear(&p->nans);
    p->found = false; /* it may be gone: the next call looks for it again */
    return status;
}
