#include "plan/verify/contents.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"

bool plan_content_equal(const plan_content *a, const plan_content *b) {
    return a->vector == b->vector && a->reach == b->reach && a->size == b->size &&
           a->segment == b->segment && a->version == b->version && a->origin == b->origin;
}

/* The index of the first run that ends behind `byte`. */
static size_t find(const plan_contents *c, int64_t byte) {
    size_t low = 0, high = c->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c->at[middle].to <= byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const plan_run *plan_contents_find(const plan_contents *c, int64_t byte) {
    size_t i = find(c, byte);
    return i < c->count ? &c->at[i] : NULL;
}

/* Replaces runs first ... end - 1 by `count` others. */
static sifr_status replace(plan_contents *c, size_t first, size_t end, const plan_run *runs,
                           size_t count, sifr_error *error) {
    size_t left = c->count - end;
    BASE_TRY(base_grow(&c->at, &c->capacity, c->count + count, sizeof *c->at, error));
    memmove(c->at + first + count, c->at + end, left * sizeof *c->at);
    memcpy(c->at + first, runs, count * sizeof *runs);
    c->count = first + count + left;
    return SIFR_OK;
}

/* Whether the run of an index continues `run` at one of its ends. */
static bool continues(const plan_contents *c, size_t index, const plan_run *run) {
    if (index >= c->count) return false;
    const plan_run *other = &c->at[index];
    bool touch = other->to == run->from || other->from == run->to;
    return touch && plan_content_equal(&other->is, &run->is);
}

sifr_status plan_contents_put(plan_contents *c, plan_range range, const plan_content *is,
                              sifr_error *error) {
    plan_run runs[3], run = {range.from, range.to, *is};
    size_t first = find(c, range.from), end = first, count = 0;
    if (range.from >= range.to) return SIFR_OK;
    while (end < c->count && c->at[end].from < range.to) end++;
    const plan_run *before = first < end ? &c->at[first] : NULL;
    const plan_run *after = first < end ? &c->at[end - 1] : NULL;
    if (before && before->from < range.from) {
        if (plan_content_equal(&before->is, is))
            run.from = before->from;
        else
            runs[count++] = (plan_run){before->from, range.from, before->is};
    }
    if (first > 0 && continues(c, first - 1, &run)) run.from = c->at[--first].from;
    size_t middle = count++;
    if (after && after->to > range.to) {
        if (plan_content_equal(&after->is, is))
            run.to = after->to;
        else
            runs[count++] = (plan_run){range.to, after->to, after->is};
    }
    if (continues(c, end, &run)) run.to = c->at[end++].to;
    runs[middle] = run;
    return replace(c, first, end, runs, count, error);
}

sifr_status plan_contents_copy(const plan_contents *from, plan_range range, plan_contents *to,
                               int64_t at, sifr_error *error) {
    for (size_t i = find(from, range.from); i < from->count; i++) {
        plan_run run = from->at[i];
        if (run.from >= range.to) break;
        plan_range part = {base_max_i64(run.from, range.from) + at - range.from,
                           base_min_i64(run.to, range.to) + at - range.from};
        run.is.origin += at - range.from;
        BASE_TRY(plan_contents_put(to, part, &run.is, error));
    }
    return SIFR_OK;
}

void plan_contents_empty(plan_contents *c) {
    c->count = 0;
}

void plan_contents_free(plan_contents *c) {
    free(c->at);
    *c = (plan_contents){0};
}
