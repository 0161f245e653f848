#include "train/view/view_trace.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/heap.h"
#include "train/view/view_lines.h"

/* The queues of a trace's tracks, as sifr numbers them. */
enum { QUEUE_COMPUTE, QUEUE_COMMUNICATION };

typedef struct trace_event {
    const char *name, *category, *unit;
    int64_t rank, queue, step;
    double start, length, bytes;
} trace_event;

/* NULL: the table is full. */
static train_view_sum *sum_of(train_view_trace *t, train_view_sums table, const char *name) {
    char cut[sizeof t->sums[0]->name];
    snprintf(cut, sizeof cut, "%s", name);
    for (size_t i = 0; i < t->sum_count[table]; i++)
        if (strcmp(t->sums[table][i].name, cut) == 0) return &t->sums[table][i];
    if (t->sum_count[table] == TRAIN_VIEW_SUMS) {
        t->sums_left_out++;
        return NULL;
    }
    train_view_sum *sum = &t->sums[table][t->sum_count[table]++];
    strcpy(sum->name, cut);
    return sum;
}

static train_view_sum *add(train_view_trace *t, train_view_sums table, const char *name,
                           const trace_event *e) {
    train_view_sum *sum = sum_of(t, table, name);
    if (!sum) return NULL;
    sum->calls++;
    sum->time += e->length;
    sum->bytes += e->bytes;
    return sum;
}

/* "forward linear" of the event "forward h.3 linear" of the unit "h.3". */
static void class_of(const trace_event *e, char *out, size_t size) {
    size_t head = strlen(e->category), unit = strlen(e->unit);
    const char *rest = e->name;
    if (strncmp(rest, e->category, head) == 0) rest += head;
    if (unit && *rest == ' ' && strncmp(rest + 1, e->unit, unit) == 0) rest += 1 + unit;
    static const char later[] = " of the step before";
    size_t length = strlen(rest);
    if (length >= sizeof later - 1 && !strcmp(rest + length - (sizeof later - 1), later))
        length -= sizeof later - 1;
    bool transfer = !strcmp(e->category, "start") || !strcmp(e->category, "wait");
    bool kernel = rest != e->name && length > 1 && *rest == ' ' && !transfer;
    snprintf(out, size, "%s%.*s", e->category, kernel ? (int)length : 0, rest);
}

static void add_unit(train_view_trace *t, const trace_event *e) {
    static const char *const parts[] = {"forward", "recompute", "backward"};
    for (int p = 0; p < 3; p++) {
        if (strcmp(e->category, parts[p]) != 0) continue;
        train_view_sum *sum = add(t, TRAIN_VIEW_UNIT, e->unit, e);
        if (sum) sum->parts[p] += e->length;
    }
}

static void add_sums(train_view_trace *t, const trace_event *e) {
    char class[160];
    if (e->queue == QUEUE_COMMUNICATION) {
        add(t, TRAIN_VIEW_WIRE, e->category, e);
    } else if (e->queue == QUEUE_COMPUTE) {
        class_of(e, class, sizeof class);
        add(t, TRAIN_VIEW_CLASS, class, e);
        if (*e->unit) add_unit(t, e);
    }
}

/* -1: there are too many. */
static int32_t track_of(train_view_trace *t, int64_t rank, int64_t queue) {
    for (size_t i = 0; i < t->track_count; i++)
        if (t->tracks[i].rank == rank && t->tracks[i].queue == queue) return (int32_t)i;
    if (t->track_count == TRAIN_VIEW_TRACKS) {
        t->tracks_left_out++;
        return -1;
    }
    t->tracks[t->track_count] = (train_view_track){.rank = rank, .queue = queue};
    return (int32_t)t->track_count++;
}

static void add_span(train_view_trace *t, const trace_event *e) {
    int32_t track = track_of(t, e->rank, e->queue);
    if (track < 0 || t->span_count == t->span_capacity) {
        t->spans_left_out++;
        return;
    }
    train_view_span *span = &t->spans[t->span_count++];
    *span = (train_view_span){track, e->category[0], e->start, e->length, ""};
    if (!strncmp(e->name, "wait", 4)) span->kind = 'w';
    snprintf(span->name, sizeof span->name, "%s", e->name);
}

static void add_step(train_view_trace *t, const trace_event *e) {
    t->steps_of_ranks++;
    if (t->step < 0) {
        t->step = e->step;
        t->begin = e->start;
        t->end = e->start + e->length;
    } else if (e->step == t->step) {
        t->begin = fmin(t->begin, e->start);
        t->end = fmax(t->end, e->start + e->length);
    }
}

static void add_event(train_view_trace *t, const trace_event *e) {
    if (!strcmp(e->category, "step")) {
        add_step(t, e);
        return;
    }
    add_sums(t, e);
    if (e->step == t->step) add_span(t, e);
}

/* "thread_name" of the compute queue of a rank. */
static void name_track(train_view_trace *t, const json_t *event, const json_t *arguments) {
    const char *kind = json_string_value(json_object_get(event, "name"));
    const char *name = json_string_value(json_object_get(arguments, "name"));
    if (!kind || !name || strcmp(kind, "thread_name") != 0) return;
    int32_t track = track_of(t, json_integer_value(json_object_get(event, "pid")),
                             json_integer_value(json_object_get(event, "tid")));
    if (track >= 0) snprintf(t->tracks[track].name, sizeof t->tracks[track].name, "%s", name);
}

static const char *text_in(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static bool take_event(train_view_trace *t, const json_t *event) {
    const json_t *arguments = json_object_get(event, "args");
    const char *phase = text_in(event, "ph");
    if (!strcmp(phase, "M")) name_track(t, event, arguments);
    if (strcmp(phase, "X") != 0) return json_is_object(event);
    trace_event e = {.name = text_in(event, "name"),
                     .category = text_in(event, "cat"),
                     .unit = text_in(arguments, "unit"),
                     .rank = json_integer_value(json_object_get(event, "pid")),
                     .queue = json_integer_value(json_object_get(event, "tid")),
                     .step = json_integer_value(json_object_get(arguments, "step")),
                     .start = json_number_value(json_object_get(event, "ts")),
                     .length = json_number_value(json_object_get(event, "dur")),
                     .bytes = json_number_value(json_object_get(arguments, "bytes"))};
    if (!(fabs(e.start) < 1e15) || !(e.length >= 0 && e.length < 1e15)) return false;
    add_event(t, &e);
    return true;
}

/* An event is a line; the first and the last line of the file are none. */
static sifr_status take_line(void *user, const char *line, size_t size, sifr_error *error) {
    train_view_trace *t = user;
    (void)error;
    if (size && line[size - 1] == ',') size--;
    if (size == 0 || memchr("]}", line[0], 2)) return SIFR_OK;
    bool first = memmem(line, size, "\"traceEvents\"", 13) != NULL;
    json_t *event = first ? NULL : json_loadb(line, size, 0, NULL);
    if (!first && !take_event(t, event)) t->bad_lines++;
    json_decref(event);
    return SIFR_OK;
}

sifr_status train_view_trace_open(train_view_trace *t, const char *path, size_t spans,
                                  sifr_error *error) {
    train_view_lines lines;
    sifr_error reason = {0};
    struct stat about;
    *t = (train_view_trace){.span_capacity = spans, .step = -1};
    t->there = lstat(path, &about) == 0 || errno != ENOENT;
    if (!t->there) return SIFR_OK;
    for (int i = 0; i < TRAIN_VIEW_TABLES; i++)
        BASE_TRY(base_alloc(TRAIN_VIEW_SUMS, sizeof *t->sums[i], &t->sums[i], error));
    BASE_TRY(base_alloc(spans, sizeof *t->spans, &t->spans, error));
    BASE_TRY(base_alloc(TRAIN_VIEW_TRACKS, sizeof *t->tracks, &t->tracks, error));
    sifr_status status = train_view_each_line(path, t, take_line, &lines, &reason);
    t->bad_lines += lines.passed;
    if (status == SIFR_NO_MEMORY) return base_fail(error, status, "%s", reason.message);
    if (status == SIFR_OK && !t->steps_of_ranks)
        base_set_error(&reason, SIFR_FAILED, "%.800s: it has no step of sifr", path);
    snprintf(t->why, sizeof t->why, "%s", reason.message);
    return SIFR_OK;
}

void train_view_trace_close(train_view_trace *t) {
    for (int i = 0; i < TRAIN_VIEW_TABLES; i++) free(t->sums[i]);
    free(t->spans);
    free(t->tracks);
    *t = (train_view_trace){0};
}
