/* Prometheus: a text file for node_exporter's textfile collector, and a page to scrape. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/heap.h"
#include "train/report/loopback_server.h"
#include "train/report/prometheus.h"
#include "train/report/sink.h"

/* --- the file --- */

typedef struct prometheus_file {
    train_prometheus state;
    const char *path;
    double written; /* train_record.now */
    bool wrong;     /* the file keeps saying that the run goes on, which `why` explains */
    sifr_error why;
} prometheus_file;

static bool file_is_asked(const sifr_config *config) {
    return config->prometheus_file != NULL;
}

static train_prometheus begin(const train_report_settings *settings) {
    train_prometheus state = {.run = settings->output, .total_steps = settings->total_steps};
    state.newest.step = settings->first_step;
    state.newest.samples = settings->first_step * settings->config->train_batch_size;
    state.newest.time = base_seconds_since_1970();
    return state;
}

static sifr_status write_file(const prometheus_file *f, sifr_error *error) {
    size_t size;
    char *text = train_prometheus_text(&f->state, &size);
    if (!text) return base_fail_alloc(error, 4096);
    sifr_status status = base_write_file(f->path, text, size, error);
    free(text);
    return status;
}

static sifr_status open_file(const train_report_settings *settings, void **out, sifr_error *error) {
    prometheus_file *f;
    sifr_error reason = {0};
    if (!*settings->config->prometheus_file)
        return base_fail(
            error, SIFR_USAGE,
            "prometheus_file is empty: name a file, such as run.prom, or leave it out");
    BASE_TRY(base_alloc(1, sizeof *f, &f, error));
    *f = (prometheus_file){.state = begin(settings), .path = settings->config->prometheus_file};
    *out = f;
    if (write_file(f, &reason) == SIFR_OK) return SIFR_OK;
    free(f);
    return base_fail(error, SIFR_USAGE,
                     "prometheus_file: %s; give a path in a folder that can be written",
                     reason.message);
}

/* At most once a second, but for the records that may be the last. */
static sifr_status record_file(void *sink, const train_record *record, sifr_error *error) {
    prometheus_file *f = sink;
    train_prometheus_note(&f->state, record);
    bool due = record->now - f->written >= 1 || record->step == f->state.total_steps;
    if (!due) return SIFR_OK;
    f->written = record->now;
    return write_file(f, error);
}

static void finish_file(void *sink) {
    prometheus_file *f = sink;
    f->state.ended = true;
    f->wrong = write_file(f, &f->why) != SIFR_OK;
}

static bool tell_file(void *sink, char line[SIFR_ERROR_LENGTH]) {
    prometheus_file *f = sink;
    bool wrong = f->wrong;
    if (wrong)
        snprintf(line, SIFR_ERROR_LENGTH,
                 "prometheus_file: %.800s; it still says that the run goes on", f->why.message);
    f->wrong = false;
    return wrong;
}

/* Also of a run that never began, whose file would say that it goes on. */
static void close_file(void *sink) {
    prometheus_file *f = sink;
    if (f && !f->state.ended) finish_file(f);
    free(f);
}

const train_sink train_prometheus_file = {.name = "prometheus_file",
                                          .asked = file_is_asked,
                                          .open = open_file,
                                          .record = record_file,
                                          .close = close_file,
                                          .finish = finish_file,
                                          .news = tell_file};

/* --- the page --- */

typedef struct prometheus_page {
    train_prometheus state;
    pthread_mutex_t lock; /* of the state, which the server reads */
    train_server *server;
} prometheus_page;

static bool page_is_asked(const sifr_config *config) {
    return config->prometheus_port > 0;
}

static char *make_page(void *user, size_t *size) {
    prometheus_page *p = user;
    pthread_mutex_lock(&p->lock);
    char *text = train_prometheus_text(&p->state, size);
    pthread_mutex_unlock(&p->lock);
    return text;
}

static void close_page(void *sink) {
    prometheus_page *p = sink;
    if (!p) return;
    train_server_close(p->server);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static sifr_status open_page(const train_report_settings *settings, void **out, sifr_error *error) {
    prometheus_page *p;
    sifr_error reason = {0};
    int port = (int)settings->config->prometheus_port;
    BASE_TRY(base_alloc(1, sizeof *p, &p, error));
    p->state = begin(settings);
    pthread_mutex_init(&p->lock, NULL);
    *out = p;
    if (train_server_open(port, "/metrics", make_page, p, &p->server, &reason) == SIFR_OK)
        return SIFR_OK;
    close_page(p);
    return base_fail(error, SIFR_USAGE, "prometheus_port: %s; give a port that is free",
                     reason.message);
}

static sifr_status record_page(void *sink, const train_record *record, sifr_error *error) {
    prometheus_page *p = sink;
    (void)error;
    pthread_mutex_lock(&p->lock);
    train_prometheus_note(&p->state, record);
    pthread_mutex_unlock(&p->lock);
    return SIFR_OK;
}

const train_sink train_prometheus_page = {.name = "prometheus_port",
                                          .asked = page_is_asked,
                                          .open = open_page,
                                          .record = record_page,
                                          .close = close_page};
