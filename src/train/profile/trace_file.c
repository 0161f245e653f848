#include "train/profile/trace_file.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/heap.h"
#include "plan/queries.h"
#include "sifr/version.h"

/* A queue is a track; those whose two directions run side by side have one more, for writes. */
enum { DISK_WRITES = PLAN_QUEUES, COPIES_OUT, TRACKS };
static const char *const tracks[TRACKS] = {
    [PLAN_COMPUTE] = "compute",    [PLAN_COMMUNICATION] = "communication",
    [PLAN_DISK] = "disk reads",    [PLAN_COPY] = "copies in",
    [PLAN_PEER] = "peer",          [PLAN_NEAR] = "near",
    [DISK_WRITES] = "disk writes", [COPIES_OUT] = "copies out"};

static int track_of(const plan_instruction *i) {
    if (i->action != PLAN_WRITE) return i->queue;
    return i->queue == PLAN_DISK ? DISK_WRITES : COPIES_OUT;
}

struct train_trace_file {
    const plan_schedule *const *stages;
    const double *ahead;
    double origin;
    int32_t ranks;
    bool any; /* not the first event: write a comma first */
    sifr_status status;
    sifr_error error;
    base_writer writer;
};

void train_trace_rank_name(train_trace_rank *rank) {
    if (gethostname(rank->host, sizeof rank->host) != 0) rank->host[0] = '\0';
    rank->host[sizeof rank->host - 1] = '\0';
}

sifr_status train_trace_file_check(const char *path, sifr_error *error) {
    char folder[BASE_PATH_LENGTH];
    if (!path[0] || strlen(path) >= sizeof folder)
        return base_fail(error, SIFR_USAGE, "trace: the name of the file is %s",
                         path[0] ? "too long" : "empty");
    if (access(path, F_OK) == 0 && !base_is_file(path)) /* a rename would replace a device */
        return base_fail(error, SIFR_USAGE,
                         "trace: %s exists and is not a regular file; name another file", path);
    strcpy(folder, path);
    char *slash = strrchr(folder, '/');
    if (!slash)
        strcpy(folder, ".");
    else
        slash[slash == folder] = '\0';
    if (access(folder, W_OK | X_OK) != 0)
        return base_fail(error, SIFR_USAGE,
                         "trace: %s: no file can be made in %s; name a file in an existing folder",
                         path, folder);
    return SIFR_OK;
}

static const plan_schedule *schedule_of(const train_trace_file *f, int32_t rank) {
    plan_mesh there = plan_mesh_at(&f->stages[0]->settings.mesh, rank);
    return f->stages[there.place[PLAN_AXIS_STAGE]];
}

/* --- writing --- */

static void put(train_trace_file *f, const char *text, size_t length) {
    if (f->status == SIFR_OK) f->status = base_writer_write(&f->writer, text, length, &f->error);
}

/* Takes ownership of the event and writes it on a line of its own, so that other tools can split
 * the file. */
static void put_event(train_trace_file *f, json_t *event) {
    char text[1024];
    size_t length = 0;
    if (event)
        length = json_dumpb(event, text, sizeof text, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(event);
    if (length > 0 && length <= sizeof text) {
        put(f, f->any ? ",\n" : "\n", f->any ? 2 : 1);
        put(f, text, length);
        f->any = true;
    } else if (f->status == SIFR_OK) {
        f->status = base_fail_alloc(&f->error, sizeof text);
    }
}

/* Nanosecond precision, so that events without a gap between them have none in the file. */
static double nanoseconds(const train_trace_file *f, int32_t rank, double time) {
    return round(1e9 * (time - f->ahead[rank] - f->origin));
}

/* Takes `arguments`. */
static void put_span(train_trace_file *f, int32_t rank, int track, const char *name,
                     const char *category, engine_span span, json_t *arguments) {
    double start = nanoseconds(f, rank, span.start), end = nanoseconds(f, rank, span.end);
    put_event(f, json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:o}", "name", name, "cat",
                           category, "ph", "X", "pid", (int)rank, "tid", track, "ts", start / 1e3,
                           "dur", (end - start) / 1e3, "args", arguments));
}

static void put_name(train_trace_file *f, const char *kind, int rank, int queue, const char *name) {
    put_event(f, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "name", kind, "ph", "M", "pid", rank,
                           "tid", queue, "args", "name", name));
}

static void put_place(train_trace_file *f, const char *kind, int rank, int queue, int place) {
    put_event(f, json_pack("{s:s, s:s, s:i, s:i, s:{s:i}}", "name", kind, "ph", "M", "pid", rank,
                           "tid", queue, "args", "sort_index", place));
}

sifr_status train_trace_file_open(const char *path, const plan_schedule *const *stages,
                                  train_trace_file **out, sifr_error *error) {
    train_trace_file *f;
    BASE_TRY(base_alloc(1, sizeof *f, &f, error));
    f->stages = stages;
    f->ranks = plan_mesh_ranks(&stages[0]->settings.mesh, PLAN_WORLD);
    sifr_status status = base_writer_open(&f->writer, path, error);
    if (status != SIFR_OK) {
        free(f);
        return status;
    }
    *out = f;
    return SIFR_OK;
}

static bool has_near(const plan_mesh *mesh) {
    return plan_mesh_ranks(mesh, PLAN_TENSORS) > 1 || plan_mesh_ranks(mesh, PLAN_CONTEXTS) > 1;
}

void train_trace_file_ranks(train_trace_file *f, const train_trace_rank *ranks, const double *ahead,
                            double origin) {
    char text[256];
    f->ahead = ahead;
    f->origin = origin;
    int length = snprintf(text, sizeof text,
                          "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"program\":\"sifr %s\","
                          "\"ranks\":%d,\"instructions\":%zu},\"traceEvents\":[",
                          sifr_version(), (int)f->ranks, f->stages[0]->instruction_count);
    put(f, text, (size_t)length);
    for (int32_t r = 0; r < f->ranks; r++) {
        const plan_schedule *s = schedule_of(f, r);
        snprintf(text, sizeof text, "rank %d%s%s", (int)r, ranks[r].host[0] ? " on " : "",
                 ranks[r].host);
        put_name(f, "process_name", (int)r, 0, text);
        put_place(f, "process_sort_index", (int)r, 0, (int)r);
        for (int t = 0; t < TRACKS; t++) {
            bool disk = t == PLAN_DISK || t == DISK_WRITES,
                 copy = t == PLAN_COPY || t == COPIES_OUT;
            if (disk && !s->nvme_bytes) continue;
            if (copy && !s->host_bytes) continue;
            if (t == PLAN_PEER && plan_parts(&s->settings.pipeline) == 1) continue;
            if (t == PLAN_NEAR && !has_near(&s->settings.mesh)) continue;
            put_name(f, "thread_name", (int)r, t, tracks[t]);
            put_place(f, "thread_sort_index", (int)r, t, t);
        }
    }
}

void train_trace_file_step(train_trace_file *f, int32_t rank, const train_trace_step *step) {
    char name[32];
    snprintf(name, sizeof name, "step %lld", (long long)step->number);
    put_span(f, rank, PLAN_COMPUTE, name, "step", step->span,
             json_pack("{s:I, s:i}", "step", (json_int_t)step->number, "messages_left_out",
                       (int)step->left_out));
}

/* "forward h.3 linear", "gather h.3", "wait gather h.3", "update h.3 adam of the step before". */
static void name_instruction(const plan_schedule *s, const plan_instruction *i, char *out,
                             size_t size) {
    const plan_instruction *of = i->wait >= 0 ? &s->instructions[i->wait] : i;
    const char *unit = of->unit >= 0 ? s->model->units[of->unit].name : NULL;
    const char *kernel = i->call >= 0 ? device_kernel_name(s->calls[i->call].kernel) : NULL;
    snprintf(out, size, "%s%s%s%s%s%s%s", i->wait >= 0 ? "wait " : "",
             plan_action_name((plan_action)of->action), unit ? " " : "", unit ? unit : "",
             kernel ? " " : "", kernel ? kernel : "", i->deferred ? " of the step before" : "");
}

static json_t *describe(const plan_schedule *s, const train_trace_step *step, size_t index) {
    const plan_instruction *i = &s->instructions[index];
    json_t *out =
        json_pack("{s:I, s:I}", "step", (json_int_t)step->number, "instruction", (json_int_t)index);
    if (out && i->unit >= 0)
        json_object_set_new(out, "unit", json_string(s->model->units[i->unit].name));
    if (out && i->micro_batch >= 0)
        json_object_set_new(out, "micro_batch", json_integer(i->micro_batch));
    /* delivered by other ranks, as counted */
    int64_t bytes = plan_is_collective(i) ? plan_delivered(s, i) : i->bytes;
    if (out && i->bytes > 0) json_object_set_new(out, "bytes", json_integer((json_int_t)bytes));
    return out;
}

/* The compute queue starts a transfer; the transfer's own queue carries it out. */
static void put_transfer(train_trace_file *f, int32_t rank, const train_trace_step *step,
                         size_t index, engine_span span, const char *name) {
    const plan_schedule *s = schedule_of(f, rank);
    const plan_instruction *i = &s->instructions[index];
    char start[160];
    snprintf(start, sizeof start, "start %s", name);
    put_span(f, rank, PLAN_COMPUTE, start, "start", span, describe(s, step, index));
    if (span.over > 0)
        put_span(f, rank, track_of(i), name, plan_action_name((plan_action)i->action),
                 (engine_span){.start = span.begun, .end = span.over}, describe(s, step, index));
}

void train_trace_file_spans(train_trace_file *f, int32_t rank, const train_trace_step *step,
                            size_t first, const engine_span *spans, size_t count) {
    const plan_schedule *s = schedule_of(f, rank);
    for (size_t n = 0; n < count; n++) {
        const plan_instruction *i = &s->instructions[first + n];
        char name[128];
        if (spans[n].end <= 0) continue;
        name_instruction(s, i, name, sizeof name);
        if (i->queue != PLAN_COMPUTE)
            put_transfer(f, rank, step, first + n, spans[n], name);
        else
            put_span(f, rank, PLAN_COMPUTE, name, plan_action_name((plan_action)i->action),
                     spans[n], describe(s, step, first + n));
    }
}

void train_trace_file_control(train_trace_file *f, int32_t rank, const train_trace_step *step,
                              const comm_event *event) {
    put_span(f, rank, PLAN_COMMUNICATION, comm_operation_name(event->operation),
             comm_operation_name(event->operation),
             (engine_span){.start = event->begun, .end = event->ended},
             json_pack("{s:I, s:I}", "step", (json_int_t)step->number, "bytes",
                       (json_int_t)event->delivered));
}

sifr_status train_trace_file_commit(train_trace_file *f, sifr_error *error) {
    put(f, "\n]}\n", 4);
    if (f->status != SIFR_OK) {
        if (error) *error = f->error;
        return f->status;
    }
    return base_writer_commit(&f->writer, error);
}

void train_trace_file_close(train_trace_file *f) {
    if (!f) return;
    base_writer_abort(&f->writer);
    free(f);
}
