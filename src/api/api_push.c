#include <stdio.h>

#include "api/api_context.h"
#include "base/inside.h"
#include "base/text.h"
#include "base/thread.h"
#include "sifr/push.h"
#include "train/send/push.h"

typedef struct push_work {
    train_push *push;
    sifr_status status;
    sifr_error error;
} push_work;

/* On a thread that blocks signals: a connection that breaks may raise SIGPIPE. */
static void *send_all(void *user) {
    push_work *work = user;
    work->status = train_push_go(work->push, INT64_MAX, &work->error);
    return NULL;
}

static sifr_status send_aside(train_push *push, sifr_error *error) {
    push_work work = {.push = push};
    pthread_t thread;
    int failed = base_thread_start(&thread, send_all, &work);
    if (failed) return base_fail_errno(error, failed, "cannot start the thread that sends");
    pthread_join(thread, NULL);
    if (work.status == SIFR_OK) return SIFR_OK;
    return base_fail(error, work.status,
                     "%s; the spool keeps all, and the same command goes on where this one stopped",
                     work.error.message);
}

static void say(const sifr_log *log, const char *run, const train_pushed *counts) {
    char refused[80];
    if (counts->refused)
        base_log(log, SIFR_LOG_WARNING, "%.200s: the server refuses %s: %.700s", run,
                 base_format_counted(counts->refused, "value", refused), counts->refusal.message);
    if (counts->passed)
        base_log(log, SIFR_LOG_WARNING,
                 "%.200s/spool.jsonl: lines that are none of sifr's are left out: %lld", run,
                 (long long)counts->passed);
}

static void give(train_push *push, sifr_pushed *out) {
    const train_pushed *counts = train_push_counts(push);
    sifr_pushed made = {.metrics = counts->metrics,
                        .parameters = counts->parameters,
                        .tags = counts->tags,
                        .artifacts = counts->artifacts,
                        .refused = counts->refused,
                        .ended = counts->ended};
    snprintf(made.run_id, sizeof made.run_id, "%s", train_mlflow_run_id(train_push_server(push)));
    api_give_result(&made, sizeof made, out);
}

sifr_status sifr_push(sifr_context *context, const sifr_push_options *options, sifr_pushed *out,
                      sifr_error *error) {
    BASE_ENTER(error, context, out);
    sifr_push_options o = {0};
    train_mlflow *server;
    train_push *push;
    BASE_TRY(api_take_options("sifr_push_options", options, sizeof o, &o, error));
    BASE_TRY(api_check_result("sifr_pushed", out, error));
    if (!o.run || !*o.run)
        return base_fail(error, SIFR_USAGE, "no run is given; name the output folder of one");
    BASE_TRY(train_mlflow_open(o.to, &server, error));
    BASE_TRY(train_push_open(o.run, server, &push, error));
    sifr_status status = send_aside(push, error);
    say(&context->log, o.run, train_push_counts(push));
    if (status == SIFR_OK) give(push, out);
    train_push_close(push);
    return status;
}
