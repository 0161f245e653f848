/* What ranks of one host waited for in a step, from the spans of all of them: their clocks are one.
 * A transfer moves from when the last rank's queue took it up until the last one was done with it;
 * while a rank stands still and nothing moves, it waits for another rank. */
#ifndef BENCH_WAITS_H
#define BENCH_WAITS_H

#include "engine/executor/executor.h"

typedef struct bench_waits {
    double late;    /* seconds, for a rank that was not there yet */
    double moving;  /* for bytes under way, and to be woken behind them */
    double control; /* for agreements of a few bytes, when all were there */
} bench_waits;

/* `spans`: those of all ranks, one rank's behind the other's. */
typedef struct bench_step_spans {
    const plan_schedule *schedule;
    const engine_span *spans;
    int32_t ranks;
} bench_step_spans;

static inline const engine_span *bench_span(const bench_step_spans *s, int32_t rank, size_t i) {
    return s->spans + (size_t)rank * s->schedule->instruction_count + i;
}

static inline bool bench_is_transfer(const plan_instruction *i) {
    return i->action == PLAN_GATHER || i->action == PLAN_REDUCE;
}

/* Whether bytes of this transfer move, and between which times. */
static inline bool bench_moves(const bench_step_spans *s, size_t i, double *from, double *to) {
    *from = *to = 0;
    if (!bench_is_transfer(&s->schedule->instructions[i])) return false;
    for (int32_t r = 0; r < s->ranks; r++) {
        const engine_span *span = bench_span(s, r, i);
        if (span->begun > *from) *from = span->begun;
        if (span->over > *to) *to = span->over;
    }
    return *to > *from;
}

/* Seconds between two times in which bytes moved. Transfers move one after the other. */
static inline double bench_moved(const bench_step_spans *s, double begun, double ended) {
    double sum = 0, from, to;
    for (size_t i = 0; i < s->schedule->instruction_count; i++) {
        if (!bench_moves(s, i, &from, &to)) continue;
        if (from < begun) from = begun;
        if (to > ended) to = ended;
        if (to > from) sum += to - from;
    }
    return sum;
}

/* Adds what `rank` waited for in one step. */
static inline void bench_add_waits(const bench_step_spans *s, int32_t rank, bench_waits *waits) {
    for (size_t i = 0; i < s->schedule->instruction_count; i++) {
        const plan_instruction *instruction = &s->schedule->instructions[i];
        const engine_span *span = bench_span(s, rank, i);
        double took = span->end - span->start, from, to, all = 0;
        if (instruction->action == PLAN_COUNT || instruction->action == PLAN_NORM) {
            for (int32_t r = 0; r < s->ranks; r++)
                if (bench_span(s, r, i)->start > all) all = bench_span(s, r, i)->start;
            double late = all < span->end ? all - span->start : took;
            waits->late += late;
            waits->control += took - late;
        } else if (instruction->action == PLAN_WAIT &&
                   bench_moves(s, (size_t)instruction->wait, &from, &to)) {
            double moving = bench_moved(s, span->start, span->end);
            if (span->end > to) moving += span->end - (span->start > to ? span->start : to);
            waits->moving += moving;
            waits->late += took - moving;
        }
    }
}

#endif
