#include "train/profile/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/text.h"
#include "train/profile/clocks.h"
#include "train/profile/trace_file.h"

/* limit of memory for the times of all traced steps */
#define TRACE_LIMIT ((int64_t)64 << 20)

enum { PIECE = 4096, CONTROLS = 64 }; /* spans and control messages sent at a time */

struct train_trace {
    sifr_engine *engine;
    const char *path;
    int64_t first, last;
    train_trace_step *steps; /* last - first + 1 of them, `done` are recorded */
    int64_t done;
    engine_span *spans;   /* of all traced steps, one after the other */
    comm_event *controls; /* likewise, `control_capacity` for each step */
    int32_t control_capacity;
    int64_t bytes;
    bool recording, written;
};

/* --- recording --- */

static int32_t control_capacity(const plan_schedule *s) {
    int32_t capacity = 4;
    for (size_t i = 0; i < s->instruction_count; i++) {
        uint8_t action = s->instructions[i].action;
        if (action == PLAN_COUNT || action == PLAN_NORM) capacity += 4;
    }
    return capacity;
}

static sifr_status check_size(const train_trace *t, sifr_error *error) {
    const plan_schedule *s = engine_schedule(t->engine);
    char each[32], limit[32];
    int64_t count = t->last - t->first + 1;
    int64_t step = (int64_t)(s->instruction_count * sizeof *t->spans +
                             (size_t)t->control_capacity * sizeof *t->controls + sizeof *t->steps);
    int64_t most = base_max_i64(TRACE_LIMIT / step, 1);
    if (count <= most) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "trace: steps %lld..%lld: the times of %zu instructions take %s a step, and "
                     "may take %s in all; trace at most %lld step%s",
                     (long long)t->first, (long long)t->last, s->instruction_count,
                     base_format_bytes((uint64_t)step, each),
                     base_format_bytes((uint64_t)TRACE_LIMIT, limit), (long long)most,
                     most == 1 ? "" : "s");
}

sifr_status train_trace_open(sifr_engine *engine, const char *path, int64_t first, int64_t last,
                             train_trace **out, sifr_error *error) {
    train_trace *t;
    sifr_status status;
    BASE_TRY(base_alloc(1, sizeof *t, &t, error));
    t->engine = engine;
    t->path = path;
    t->first = first;
    t->last = last;
    t->control_capacity = control_capacity(engine_schedule(engine));
    BASE_TRY_GOTO(status, check_size(t, error), fail);
    if (comm_rank(engine_group(engine)) == 0)
        BASE_TRY_GOTO(status, train_trace_file_check(path, error), fail);
    size_t count = (size_t)(last - first + 1),
           spans = engine_schedule(engine)->instruction_count * count;
    size_t controls = (size_t)t->control_capacity * count;
    BASE_TRY_GOTO(status, base_alloc(count, sizeof *t->steps, &t->steps, error), fail);
    BASE_TRY_GOTO(status, base_alloc(spans, sizeof *t->spans, &t->spans, error), fail);
    BASE_TRY_GOTO(status, base_alloc(controls, sizeof *t->controls, &t->controls, error), fail);
    t->bytes = (int64_t)(count * sizeof *t->steps + spans * sizeof *t->spans +
                         controls * sizeof *t->controls);
    *out = t;
    return SIFR_OK;
fail:
    train_trace_close(t);
    return status;
}

void train_trace_close(train_trace *t) {
    if (!t) return;
    free(t->steps);
    free(t->spans);
    free(t->controls);
    free(t);
}

int64_t train_trace_bytes(const train_trace *t) {
    return t ? t->bytes : 0;
}

int64_t train_trace_steps(const train_trace *t) {
    return t ? t->done : 0;
}

void train_trace_begin(train_trace *t) {
    if (!t) return;
    int64_t number = sifr_engine_steps(t->engine) + 1;
    t->recording = number >= t->first && number <= t->last;
    if (!t->recording) return;
    size_t count = engine_schedule(t->engine)->instruction_count;
    engine_note_spans(engine_trainer(t->engine), t->spans + (size_t)t->done * count);
    t->steps[t->done] = (train_trace_step){.number = number, .span = {.start = base_seconds()}};
}

void train_trace_end(train_trace *t) {
    if (!t || !t->recording) return;
    t->steps[t->done++].span.end = base_seconds();
    t->recording = false;
    engine_note_spans(engine_trainer(t->engine), NULL);
}

void train_trace_hear(train_trace *t, const comm_event *event) {
    if (!t || !t->recording || event->operation != COMM_CONTROL) return;
    train_trace_step *step = &t->steps[t->done];
    if (step->controls < t->control_capacity)
        t->controls[t->done * t->control_capacity + step->controls++] = *event;
    else
        step->left_out++;
}

bool train_trace_ready(const train_trace *t) {
    return t && !t->written && t->done > 0 && sifr_engine_steps(t->engine) >= t->last;
}

bool train_trace_written(const train_trace *t) {
    return t->written;
}

/* --- writing: only rank 0 has a file --- */

/* Rank 0's extra memory for writing the file. */
typedef struct trace_pieces {
    engine_span spans[PIECE];
    comm_event controls[CONTROLS];
    train_trace_rank *ranks;
    double *ahead;
    plan_schedule **stages; /* the lists by stage, of which this rank's own is the engine's */
} trace_pieces;

static int32_t stages_of(const train_trace *t) {
    return plan_mesh_ranks(&engine_schedule(t->engine)->settings.mesh, PLAN_STAGES);
}

/* The other stages' lists are made again. */
static sifr_status list_stages(const train_trace *t, trace_pieces *pieces, sifr_error *error) {
    const plan_schedule *own = engine_schedule(t->engine);
    int32_t stages = stages_of(t);
    BASE_TRY(base_alloc((size_t)stages, sizeof *pieces->stages, &pieces->stages, error));
    for (int32_t s = 0; s < stages; s++) {
        plan_settings there = own->settings;
        there.mesh.place[PLAN_AXIS_STAGE] = there.pipeline.stage = s;
        if (s == own->settings.mesh.place[PLAN_AXIS_STAGE])
            pieces->stages[s] = (plan_schedule *)(uintptr_t)own;
        else
            BASE_TRY(plan_lower(own->model, own->dev, &there, &pieces->stages[s], error));
    }
    return SIFR_OK;
}

/* `rank` sends its part of a step to rank 0. *error is for communication; errors of the file are
 * kept in the file. */
static sifr_status hand_over(train_trace *t, int32_t rank, int64_t index, trace_pieces *pieces,
                             train_trace_file *file, sifr_error *error) {
    comm_group *group = engine_group(t->engine);
    bool mine = comm_rank(group) == rank;
    size_t count = (size_t)pieces->ranks[rank].instructions;
    engine_span *spans = t->spans + (size_t)index * count; /* of this rank, if it is `mine` */
    comm_event *controls = t->controls + index * t->control_capacity;
    train_trace_step step = t->steps[index];
    BASE_TRY(comm_broadcast(group, rank, &step, sizeof step, error));
    if (file) train_trace_file_step(file, rank, &step);
    for (size_t at = 0; at < count; at += PIECE) {
        size_t part = count - at < PIECE ? count - at : PIECE;
        engine_span *piece = mine ? spans + at : pieces->spans;
        BASE_TRY(comm_broadcast(group, rank, piece, (int64_t)(part * sizeof *piece), error));
        if (file) train_trace_file_spans(file, rank, &step, at, piece, part);
    }
    for (int32_t at = 0; at < step.controls; at += CONTROLS) {
        int32_t part = (int32_t)base_min_i64(step.controls - at, CONTROLS);
        comm_event *piece = mine ? controls + at : pieces->controls;
        BASE_TRY(comm_broadcast(group, rank, piece, part * (int64_t)sizeof *piece, error));
        for (int32_t i = 0; file && i < part; i++)
            train_trace_file_control(file, rank, &step, &piece[i]);
    }
    return SIFR_OK;
}

/* Host names of the ranks, and the start of the timeline: the first traced step of any rank. */
static sifr_status describe(train_trace *t, trace_pieces *pieces, double *origin,
                            sifr_error *error) {
    comm_group *group = engine_group(t->engine);
    train_clock clock = train_clock_here();
    train_trace_rank mine = {.start = t->done ? t->steps[0].span.start : 0,
                             .instructions =
                                 (int64_t)engine_schedule(t->engine)->instruction_count};
    train_trace_rank_name(&mine);
    BASE_TRY(train_clocks_compare(group, &clock, pieces->ahead, error));
    BASE_TRY(comm_all_gather_control(group, &mine, sizeof mine, pieces->ranks, error));
    for (int32_t r = 0; r < comm_size(group); r++) {
        double start = pieces->ranks[r].start - pieces->ahead[r];
        if (r == 0 || start < *origin) *origin = start;
    }
    return SIFR_OK;
}

static sifr_status write_all(train_trace *t, trace_pieces *pieces, train_trace_file *file,
                             sifr_error *error) {
    double origin = 0;
    BASE_TRY(describe(t, pieces, &origin, error));
    if (file) train_trace_file_ranks(file, pieces->ranks, pieces->ahead, origin);
    for (int32_t r = 0; r < comm_size(engine_group(t->engine)); r++) {
        for (int64_t i = 0; i < t->done; i++) BASE_TRY(hand_over(t, r, i, pieces, file, error));
    }
    return SIFR_OK;
}

sifr_status train_trace_write(train_trace *t, sifr_error *error) {
    comm_group *group = engine_group(t->engine);
    size_t ranks = (size_t)comm_size(group);
    trace_pieces *pieces = NULL;
    train_trace_file *file = NULL;
    t->written = true;
    sifr_status status = base_alloc(1, sizeof *pieces, &pieces, error);
    if (status == SIFR_OK) status = base_alloc(ranks, sizeof *pieces->ranks, &pieces->ranks, error);
    if (status == SIFR_OK) status = base_alloc(ranks, sizeof *pieces->ahead, &pieces->ahead, error);
    if (status == SIFR_OK && comm_rank(group) == 0) status = list_stages(t, pieces, error);
    if (status == SIFR_OK && comm_rank(group) == 0)
        status = train_trace_file_open(t->path, (const plan_schedule *const *)pieces->stages, &file,
                                       error);
    status = comm_agree_status(group, status, error);
    if (status == SIFR_OK) {
        status = write_all(t, pieces, file, error);
        if (status == SIFR_OK && file) status = train_trace_file_commit(file, error);
        status = comm_agree_status(group, status, error);
    }
    train_trace_file_close(file);
    if (pieces) {
        for (int32_t s = 0; pieces->stages && s < stages_of(t); s++)
            if (pieces->stages[s] != engine_schedule(t->engine)) plan_free(pieces->stages[s]);
        free(pieces->stages);
        free(pieces->ranks);
        free(pieces->ahead);
    }
    free(pieces);
    return status;
}
