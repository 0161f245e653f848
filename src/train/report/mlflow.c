/* MLflow: the spool of the run, and a thread that sends what the spool has (train/send/push.h). The
 * server may be slow or away: records never wait for it. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/quote.h"
#include "base/text.h"
#include "base/thread.h"
#include "checkpoint/output.h"
#include "train/report/sink.h"
#include "train/report/spool_lines.h"
#include "train/send/push.h"
#include "train/send/spool.h"

static const double pause_least = 2, pause_most = 60; /* seconds between two looks at the server */
static const double patience = 30; /* and for what is left when the run has ended */

typedef struct mlflow {
    const train_report_settings *settings;
    train_spool_lines spool;
    int64_t last_step;
    train_mlflow *server; /* until the push has it; NULL: the spool alone */
    train_push *push;     /* the thread's, once that is started */
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    bool started, ends, done;
    int64_t written;    /* bytes of the spool */
    int64_t sent;       /* of these */
    bool away;          /* the last try has failed */
    sifr_error trouble; /* why, the first time, and then the last time */
    int unsaid;         /* lines of `news` */
    char news[4][SIFR_ERROR_LENGTH];
    bool said_away, said_refused;
} mlflow;

static bool is_asked(const sifr_config *config) {
    return config->mlflow;
}

/* --- what the user is to see --- */

static void tell(mlflow *m, const char *format, ...) SIFR_PRINTF(2, 3);

/* With the lock. */
static void tell(mlflow *m, const char *format, ...) {
    va_list arguments;
    if (m->unsaid == sizeof m->news / sizeof *m->news) return;
    va_start(arguments, format);
    vsnprintf(m->news[m->unsaid++], SIFR_ERROR_LENGTH, format, arguments);
    va_end(arguments);
}

static bool give_news(void *sink, char line[SIFR_ERROR_LENGTH]) {
    mlflow *m = sink;
    pthread_mutex_lock(&m->lock);
    bool any = m->unsaid > 0;
    if (any) {
        memcpy(line, m->news[0], SIFR_ERROR_LENGTH);
        memmove(m->news[0], m->news[1], (size_t)--m->unsaid * SIFR_ERROR_LENGTH);
    }
    pthread_mutex_unlock(&m->lock);
    return any;
}

/* --- the thread --- */

static void note_result(mlflow *m, sifr_status status, const sifr_error *error) {
    const train_pushed *counts = train_push_counts(m->push);
    pthread_mutex_lock(&m->lock);
    m->sent = train_push_sent(m->push);
    m->away = status != SIFR_OK;
    if (m->away) m->trouble = *error;
    if (m->away && !m->said_away)
        tell(m, "mlflow: %.600s; the run goes on, and %.200s/" TRAIN_SPOOL " keeps its records",
             error->message, m->settings->output);
    m->said_away |= m->away;
    if (counts->refused && !m->said_refused)
        tell(m, "mlflow: the server refuses a value: %.700s", counts->refusal.message);
    m->said_refused |= counts->refused > 0;
    pthread_mutex_unlock(&m->lock);
}

static sifr_status try_to_send(mlflow *m, int64_t until) {
    sifr_error error = {0};
    sifr_status status = train_push_go(m->push, until, &error);
    note_result(m, status, &error);
    return status;
}

/* Until `seconds` have passed, or the run has ended. With the lock. */
static void wait_for(mlflow *m, double seconds) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)seconds;
    while (!m->ends && pthread_cond_timedwait(&m->changed, &m->lock, &until) == 0) continue;
}

/* The last try begins when the run has ended. */
static void *run(void *sink) {
    mlflow *m = sink;
    double pause = pause_least;
    bool last = false;
    pthread_mutex_lock(&m->lock);
    while (!last) {
        last = m->ends;
        int64_t until = m->written;
        pthread_mutex_unlock(&m->lock);
        bool failed = until > m->sent && try_to_send(m, until) != SIFR_OK;
        pause = failed ? 2 * pause : pause_least;
        if (pause > pause_most) pause = pause_most;
        pthread_mutex_lock(&m->lock);
        if (!last) wait_for(m, pause);
    }
    m->done = true;
    pthread_cond_signal(&m->changed);
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

/* Takes the server, whatever comes of it. */
static sifr_status start(mlflow *m, sifr_error *error) {
    train_mlflow *server = m->server;
    m->server = NULL;
    BASE_TRY(train_push_open(m->settings->output, server, &m->push, error));
    int failed = base_thread_start(&m->thread, run, m);
    if (failed) return base_fail_errno(error, failed, "cannot start the thread that sends");
    m->started = true;
    return SIFR_OK;
}

/* --- records --- */

static void note_written(mlflow *m) {
    pthread_mutex_lock(&m->lock);
    m->written = m->spool.file.bytes;
    pthread_mutex_unlock(&m->lock);
}

static sifr_status begin(mlflow *m, sifr_error *error) {
    if (!m->spool.begun) BASE_TRY(train_spool_begin(&m->spool, m->settings, error));
    note_written(m);
    return m->server ? start(m, error) : SIFR_OK;
}

static sifr_status record_line(void *sink, const train_record *record, sifr_error *error) {
    mlflow *m = sink;
    m->last_step = record->step;
    BASE_TRY(begin(m, error));
    if (record->when == TRAIN_EACH_STEP) return SIFR_OK;
    BASE_TRY(train_spool_record(&m->spool, record, error));
    note_written(m);
    return SIFR_OK;
}

/* --- the end --- */

static bool is_log(const char *name) {
    static const char *const names[] = {CHECKPOINT_OUTPUT_MARK, "metrics.jsonl", "metrics.csv",
                                        "trainer_state.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

/* What is not the model's, though it lies beside it. */
static bool is_other(const char *name) {
    return name[0] == '.' || strncmp(name, "spool.", 6) == 0 || strcmp(name, "latest") == 0 ||
           strstr(name, ".tmp-") || strstr(name, ".lock");
}

static sifr_status list_artifacts(mlflow *m, sifr_error *error) {
    config_artifacts asked = m->settings->config->mlflow_artifacts;
    char **names;
    size_t count;
    if (asked == CONFIG_NO_ARTIFACTS) return SIFR_OK;
    BASE_TRY(base_list_directory(m->settings->output, &names, &count, error));
    sifr_status status = SIFR_OK;
    for (size_t i = 0; status == SIFR_OK && i < count; i++)
        if (base_has_file(m->settings->output, names[i]) && !is_other(names[i]) &&
            (is_log(names[i]) || asked == CONFIG_MODEL_ARTIFACTS))
            status = train_spool_artifact(&m->spool, names[i], error);
    base_free_names(names, count);
    return status;
}

static const char *end_of(const mlflow *m) {
    const train_report_settings *s = m->settings;
    if (s->failed) return "FAILED";
    return m->last_step < s->total_steps && train_stopped(s->host) ? "KILLED" : "FINISHED";
}

/* With the lock. */
static void tell_end(mlflow *m) {
    const train_pushed *counts = m->push ? train_push_counts(m->push) : NULL;
    const char *uri = getenv("MLFLOW_TRACKING_URI");
    char refused[80], quoted[BASE_QUOTED];
    if (m->sent < m->written)
        tell(m,
             "mlflow: %lld of %lld bytes of %.200s/" TRAIN_SPOOL
             " are not sent%s%.400s; `sifr log push %.300s%s` sends them",
             (long long)(m->written - m->sent), (long long)m->written, m->settings->output,
             m->away ? ": " : "", m->away ? m->trouble.message : "",
             base_quote(m->settings->output, quoted, sizeof quoted),
             uri && *uri ? "" : " --to URI");
    if (counts && counts->refused)
        tell(m, "mlflow: the server refused %s: %.700s",
             base_format_counted(counts->refused, "value", refused), counts->refusal.message);
}

/* Looks at the signals meanwhile: the first one ends the sending, and not the program, which still
 * has its last lines to say. With the lock. */
static void wait_for_end(mlflow *m, train_http *http) {
    static const double looks = 0.1, word_after = 1;
    const train_host *host = m->settings->host;
    double began = base_seconds();
    bool stopped = train_stopped(host), said = false;
    while (!m->done) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += (long)(looks * 1e9);
        if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
        pthread_cond_timedwait(&m->changed, &m->lock, &until);
        if (!stopped && train_stopped(host)) train_http_stop(http);
        if (m->done || said || base_seconds() < began + word_after) continue;
        said = true;
        train_say(host,
                  "mlflow: sending what is left, for at most %.0f s%s; what is not sent stays for "
                  "`sifr log push`",
                  patience, stopped ? "" : "; Ctrl-C ends it");
    }
}

static void finish(void *sink) {
    mlflow *m = sink;
    sifr_error error = {0};
    if (!m->spool.begun) return;
    sifr_status status = list_artifacts(m, &error);
    if (status == SIFR_OK) status = train_spool_end(&m->spool, end_of(m), &error);
    pthread_mutex_lock(&m->lock);
    m->written = m->spool.file.bytes;
    if (status != SIFR_OK) tell(m, "mlflow: %.900s", error.message);
    m->ends = true;
    pthread_cond_signal(&m->changed);
    train_http *http = m->push ? train_mlflow_http(train_push_server(m->push)) : NULL;
    if (http) train_http_until(http, base_seconds() + patience);
    if (m->started) wait_for_end(m, http);
    pthread_mutex_unlock(&m->lock);
    if (m->started) pthread_join(m->thread, NULL);
    m->started = false;
    pthread_mutex_lock(&m->lock);
    tell_end(m);
    pthread_mutex_unlock(&m->lock);
}

static void close_all(void *sink) {
    mlflow *m = sink;
    if (!m) return;
    train_push_close(m->push);
    train_mlflow_close(m->server);
    train_spool_lines_close(&m->spool);
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

/* --- the beginning --- */

/* Without a server, or libcurl, the spool is all there is. An address that no server can have is
 * the user's mistake. */
static sifr_status open_server(mlflow *m, sifr_error *error) {
    sifr_error reason = {0};
    char quoted[BASE_QUOTED];
    const char *uri = getenv("MLFLOW_TRACKING_URI"), *wanted = getenv("MLFLOW_RUN_ID");
    sifr_status status = train_mlflow_open(NULL, &m->server, &reason);
    if (status == SIFR_OK) return SIFR_OK;
    if (status != SIFR_FAILED && uri && *uri)
        return base_fail(error, status, "mlflow: %s", reason.message);
    tell(m,
         "mlflow: %.500s; the run is kept in %.200s/" TRAIN_SPOOL
         ", which `sifr log push %.300s --to URI` sends later%s",
         reason.message, m->settings->output,
         base_quote(m->settings->output, quoted, sizeof quoted),
         wanted && *wanted ? ", with MLFLOW_RUN_ID set as now" : "");
    return SIFR_OK;
}

static sifr_status open_monitor(const train_report_settings *settings, void **out,
                                sifr_error *error) {
    mlflow *m;
    pthread_condattr_t clock;
    BASE_TRY(base_alloc(1, sizeof *m, &m, error));
    m->settings = settings;
    m->last_step = settings->first_step;
    pthread_mutex_init(&m->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&m->changed, &clock);
    pthread_condattr_destroy(&clock);
    sifr_status status = train_spool_prepare(&m->spool, settings, error);
    if (status == SIFR_OK) status = open_server(m, error);
    if (status == SIFR_OK)
        *out = m;
    else
        close_all(m);
    return status;
}

const train_sink train_mlflow_sink = {.name = "mlflow",
                                      .asked = is_asked,
                                      .open = open_monitor,
                                      .record = record_line,
                                      .close = close_all,
                                      .finish = finish,
                                      .news = give_news};
