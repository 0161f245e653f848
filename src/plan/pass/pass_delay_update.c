/* Delays the update of a step to the forward pass of the next step if its state is offloaded (like
 * the overlap of ZeRO-Infinity, Rajbhandari et al., SC21, but across steps). The instructions after
 * the norm move to the front of the list and are marked as deferred. They run with the gradients
 * and the scalars of the step before, and each unit's part comes before any use of its results, so
 * no digit changes.
 *
 * They are spread evenly over the forward pass, as far as the peak of memory allows. Gradients are
 * released while activations are born, the mirror image of the backward pass, so only the buffers
 * of the transfers can raise the peak.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "plan/list.h"
#include "plan/pass/passes.h"
#include "plan/price/price.h"
#include "plan/queries.h"

enum {
    PEAK_SHARE = 256, /* share of the peak that deferring may add */
    SPREADS = 4,      /* the whole forward pass, three quarters, a half, a quarter */
};

/* First and last use of a buffer, as positions in an order: by deferred instructions, and by all
 * others; -1: never. */
typedef struct buffer_life {
    int32_t first_deferred, last_deferred, first, last;
} buffer_life;

/* Instructions are numbered in three orders: in the old list, among its deferred instructions, and
 * in the new list. */
typedef struct delay_state {
    plan_schedule *s;
    plan_list old;
    double *computed; /* by old instruction before `end`: share of the forward pass's operations
                         before it */
    size_t end;       /* the first old instruction of the backward pass */
    bool *late;       /* by old instruction: whether it is deferred */
    int32_t *moved;   /* by old instruction: the new one */

    int32_t *deferred;  /* deferred old instructions, in order */
    int32_t *wait;      /* by deferred: the wait for it; -1: none */
    double *due;        /* by deferred: share of the update before it */
    bool *taken;        /* by deferred: whether it is in the new order */
    size_t count, next; /* number of deferred; all before `next` are in the new order */
    int32_t *pending;   /* deferred waits that are missing in the new order, though their transfers
                           are in it */
    size_t pending_count;
    int64_t *updated; /* by segment: elements that this rank updates */
    int64_t *before;  /* by segment: elements of the trained ones before it */
    int32_t *last;    /* by buffer: its last deferred use, waits excluded; -1: none */

    int32_t *order; /* old instructions in the new order */
    size_t ordered;
    buffer_life *lives; /* by buffer, in the new order */
    int64_t *change;    /* by position in it: change of live bytes of temporary buffers */
} delay_state;

static const plan_instruction *deferred_at(const delay_state *d, size_t p) {
    return &d->old.instructions[d->deferred[p]];
}

static int32_t buffer_of(const delay_state *d, const plan_instruction *in, int32_t operand) {
    return d->old.operands[in->first_operand + operand].buffer;
}

/* Deferred are the instructions after the norm, reads for them that began before, and the waits for
 * both. */
static void find_deferred(delay_state *d) {
    const plan_instruction *all = d->old.instructions;
    int32_t *wait = d->moved; /* by old instruction; `moved` is unused until later */
    size_t norm = d->old.count;
    for (size_t i = 0; i < d->old.count; i++) {
        wait[i] = -1;
        if (all[i].wait >= 0) wait[all[i].wait] = (int32_t)i;
        if (all[i].action == PLAN_NORM) norm = i;
    }
    for (size_t i = 0; i < d->old.count; i++) {
        bool ahead = all[i].action == PLAN_READ && wait[i] > (int32_t)norm;
        d->late[i] = all[i].wait >= 0 ? d->late[all[i].wait] : i > norm || ahead;
        if (d->late[i]) d->deferred[d->count++] = (int32_t)i;
    }
    int32_t *place = wait; /* by deferred old instruction: its index in `deferred` */
    for (size_t p = 0; p < d->count; p++) {
        const plan_instruction *in = deferred_at(d, p);
        d->wait[p] = -1;
        if (in->wait >= 0) d->wait[place[in->wait]] = (int32_t)p;
        place[d->deferred[p]] = (int32_t)p;
    }
}

static void find_touched(delay_state *d) {
    for (size_t b = 0; b < d->s->buffer_count; b++) d->last[b] = -1;
    for (size_t p = 0; p < d->count; p++) {
        const plan_instruction *in = deferred_at(d, p);
        for (int32_t o = 0; o < in->operands && in->wait < 0; o++)
            d->last[buffer_of(d, in, o)] = (int32_t)p;
    }
}

/* Whether ranks exchange values in the midst of a segment's update. */
static bool exchanges(const delay_state *d, int32_t segment) {
    const optim_row *row = plan_row(d->s, segment);
    return row->by_weight || row->reads_whole;
}

/* Spreads deferred updates by their elements. Instructions before an update in the list move with
 * it, and its writes follow at once. A gather's position depends on its segment alone, so it is
 * equal on all ranks, whatever part of it they own; so does an update's that gathers come before.
 */
static void find_due(delay_state *d) {
    const sifr_model *model = d->s->model;
    int64_t all = 0, *elements = d->updated, *before = d->before;
    for (size_t g = 0; g < model->segment_count; g++) {
        elements[g] = 0;
        before[g] = all;
        if (!model->segments[g].frozen) all += d->s->segment_elements[g];
    }
    for (size_t p = 0; p < d->count; p++) {
        const plan_instruction *in = deferred_at(d, p);
        if (in->action == PLAN_UPDATE) elements[in->segment] += d->s->calls[in->call].x[0].columns;
    }
    int32_t segment = -1;
    double done = 0, last = 0;
    for (size_t p = 0; p < d->count; p++) {
        const plan_instruction *in = deferred_at(d, p);
        d->due[p] = 1;
        if (in->action == PLAN_WRITE) d->due[p] = last;
        if (in->action != PLAN_UPDATE && in->action != PLAN_GATHER) continue;
        if (in->segment != segment) done = 0;
        segment = in->segment;
        double share = 1;
        if (exchanges(d, segment)) {
            share = 0;
        } else if (in->action == PLAN_UPDATE) {
            share = done / (double)elements[segment];
            done += (double)d->s->calls[in->call].x[0].columns;
        }
        d->due[p] = last =
            ((double)before[segment] + share * (double)d->s->segment_elements[segment]) /
            (double)all;
    }
    for (size_t p = d->count; p-- > 1;)
        if (d->due[p - 1] > d->due[p]) d->due[p - 1] = d->due[p];
}

static void find_computed(delay_state *d) {
    double sum = 0, operations, bytes;
    size_t i = 0;
    for (; i < d->old.count && d->old.instructions[i].action != PLAN_BACKWARD; i++) {
        const plan_instruction *in = &d->old.instructions[i];
        d->computed[i] = sum;
        if (d->late[i] || in->call < 0) continue;
        plan_cost(d->s, &d->s->calls[in->call], &operations, &bytes);
        sum += operations;
    }
    d->end = i;
    for (i = 0; i < d->end && sum > 0; i++) d->computed[i] /= sum;
}

static void take(delay_state *d, size_t p) {
    if (d->taken[p]) return;
    d->taken[p] = true;
    d->order[d->ordered++] = d->deferred[p];
    if (d->wait[p] >= 0) d->pending[d->pending_count++] = d->wait[p];
    for (size_t k = 0; k < d->pending_count && deferred_at(d, p)->wait >= 0; k++) {
        if (d->pending[k] == (int32_t)p) d->pending[k--] = d->pending[--d->pending_count];
    }
}

static void take_until(delay_state *d, size_t end) {
    for (; d->next < end; d->next++) take(d, d->next);
}

static bool share_buffer(const delay_state *d, const plan_instruction *a,
                         const plan_instruction *b) {
    for (int32_t i = 0; i < a->operands; i++) {
        for (int32_t j = 0; j < b->operands; j++) {
            if (buffer_of(d, a, i) == buffer_of(d, b, j)) return true;
        }
    }
    return false;
}

/* Appends the deferred instructions that use the same buffers as `in`, and the waits of their
 * transfers. */
static void take_needed(delay_state *d, const plan_instruction *in) {
    int64_t needed = -1;
    for (int32_t o = 0; o < in->operands; o++)
        needed = base_max_i64(needed, d->last[buffer_of(d, in, o)]);
    if (needed < 0) return;
    take_until(d, (size_t)needed + 1);
    for (size_t k = d->pending_count; k-- > 0;) {
        size_t p = (size_t)d->pending[k];
        if (share_buffer(d, deferred_at(d, p), in)) take(d, p), k = d->pending_count;
    }
}

/* Makes an order in which the deferred instructions are spread over that share of the forward
 * pass. */
static void make_order(delay_state *d, double share) {
    d->next = d->ordered = d->pending_count = 0;
    for (size_t p = 0; p < d->count; p++) d->taken[p] = false;
    for (size_t i = 0; i < d->old.count; i++) {
        if (d->late[i]) continue;
        size_t due = d->next;
        if (i >= d->end) due = d->count;
        while (due < d->count && d->due[due] * share <= d->computed[i]) due++;
        take_until(d, due);
        take_needed(d, &d->old.instructions[i]);
        d->order[d->ordered++] = (int32_t)i;
    }
    take_until(d, d->count);
    base_assert(d->ordered == d->old.count && d->pending_count == 0);
}

static void keep_order(delay_state *d) {
    for (d->ordered = 0; d->ordered < d->old.count; d->ordered++)
        d->order[d->ordered] = (int32_t)d->ordered;
}

static void find_lives(delay_state *d) {
    for (size_t b = 0; b < d->s->buffer_count; b++)
        d->lives[b] =
            (buffer_life){.first_deferred = -1, .last_deferred = -1, .first = -1, .last = -1};
    for (size_t n = 0; n < d->ordered; n++) {
        const plan_instruction *in = &d->old.instructions[d->order[n]];
        for (int32_t o = 0; o < in->operands; o++) {
            buffer_life *life = &d->lives[buffer_of(d, in, o)];
            int32_t *first = in->deferred ? &life->first_deferred : &life->first;
            *(in->deferred ? &life->last_deferred : &life->last) = (int32_t)n;
            if (*first < 0) *first = (int32_t)n;
        }
    }
}

static bool comes_and_goes(const delay_state *d, size_t buffer) {
    return d->s->buffers[buffer].first >= 0 && !plan_is_offloaded(d->s, (int32_t)buffer);
}

/* The results of the backward pass that the update needs live past the end of the step. */
static bool lives_on(const buffer_life *life) {
    return life->first >= 0 && life->last_deferred >= 0;
}

static void add_life(delay_state *d, int32_t first, int32_t last, int64_t bytes) {
    if (first < 0) return;
    d->change[first] += bytes;
    d->change[last + 1] -= bytes;
}

/* The peak of temporary buffers in the current order. */
static int64_t find_peak(delay_state *d) {
    int64_t live = 0, peak = 0;
    find_lives(d);
    for (size_t n = 0; n <= d->ordered; n++) d->change[n] = 0;
    for (size_t b = 0; b < d->s->buffer_count; b++) {
        const buffer_life *life = &d->lives[b];
        int64_t bytes = d->s->buffers[b].bytes;
        if (!comes_and_goes(d, b)) continue;
        bool on = lives_on(life);
        add_life(d, on ? 0 : life->first_deferred, life->last_deferred, bytes);
        add_life(d, life->first, on ? (int32_t)d->ordered - 1 : life->last, bytes);
    }
    for (size_t n = 0; n < d->ordered; n++) {
        live += d->change[n];
        peak = base_max_i64(peak, live);
    }
    return peak;
}

/* Puts the current order into the schedule and places its memory. */
static sifr_status put_order(delay_state *d, sifr_error *error) {
    plan_empty_list(d->s);
    for (size_t n = 0; n < d->ordered; n++)
        BASE_TRY(plan_keep(d->s, &d->old, (size_t)d->order[n], d->moved, error));
    plan_find_lives(d->s);
    for (size_t b = 0; b < d->s->buffer_count; b++) {
        plan_buffer *buffer = &d->s->buffers[b];
        const buffer_life *life = &d->lives[b];
        if (!comes_and_goes(d, b)) continue;
        buffer->deferred = life->first < 0 && life->last_deferred >= 0;
        if (lives_on(life)) buffer->first = life->first, buffer->last = life->last_deferred;
    }
    return plan_place(d->s, error);
}

static void mark(delay_state *d, bool deferred) {
    for (size_t p = 0; p < d->count; p++) d->old.instructions[d->deferred[p]].deferred = deferred;
}

/* Chooses the widest spread that memory allows; else keeps the old order. */
static sifr_status choose_order(delay_state *d, sifr_error *error) {
    keep_order(d);
    int64_t peak = find_peak(d), more = peak / PEAK_SHARE, bytes = d->s->total_bytes;
    mark(d, true);
    for (int quarters = SPREADS; quarters > 0; quarters--) {
        make_order(d, (double)quarters / SPREADS);
        if (find_peak(d) > peak + more) continue;
        BASE_TRY(put_order(d, error));
        d->s->spread = quarters;
        if (d->s->total_bytes <= bytes + more) return SIFR_OK;
    }
    d->s->spread = 0;
    mark(d, false);
    keep_order(d);
    find_lives(d);
    return put_order(d, error);
}

static sifr_status use_order(delay_state *d, sifr_error *error) {
    mark(d, true);
    make_order(d, (double)d->s->spread / SPREADS);
    find_lives(d);
    return put_order(d, error);
}

static sifr_status allocate(delay_state *d, sifr_error *error) {
    size_t count = d->s->instruction_count, buffers = d->s->buffer_count;
    BASE_TRY(base_alloc(count, sizeof *d->computed, &d->computed, error));
    BASE_TRY(base_alloc(count, sizeof *d->late, &d->late, error));
    BASE_TRY(base_alloc(count, sizeof *d->moved, &d->moved, error));
    BASE_TRY(base_alloc(count, sizeof *d->deferred, &d->deferred, error));
    BASE_TRY(base_alloc(count, sizeof *d->wait, &d->wait, error));
    BASE_TRY(base_alloc(count, sizeof *d->due, &d->due, error));
    BASE_TRY(base_alloc(count, sizeof *d->taken, &d->taken, error));
    BASE_TRY(base_alloc(count, sizeof *d->pending, &d->pending, error));
    BASE_TRY(base_alloc(count, sizeof *d->order, &d->order, error));
    BASE_TRY(base_alloc(count + 1, sizeof *d->change, &d->change, error));
    BASE_TRY(base_alloc(d->s->model->segment_count, sizeof *d->updated, &d->updated, error));
    BASE_TRY(base_alloc(d->s->model->segment_count, sizeof *d->before, &d->before, error));
    BASE_TRY(base_alloc(buffers, sizeof *d->last, &d->last, error));
    return base_alloc(buffers, sizeof *d->lives, &d->lives, error);
}

static void release(delay_state *d) {
    void *const blocks[] = {d->computed, d->late,  d->moved,   d->deferred, d->wait,
                            d->due,      d->taken, d->pending, d->order,    d->change,
                            d->last,     d->lives, d->updated, d->before};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
    plan_free_list(&d->old);
}

/* Offloaded parameters are excluded: the forward pass reads them and would wait for the update's
 * writes. So are stages: the later ones have forward passes beside backward passes, and the ranks
 * of a stage would need the list of the same place in the others to spread alike. */
bool plan_may_delay_update(const plan_schedule *s) {
    const sifr_offload *f = &s->settings.step.offload;
    if (plan_parts(&s->settings.pipeline) > 1 || s->compresses) return false;
    if (s->settings.mode != PLAN_TRAIN || !f->optimizer.pipeline_read ||
        !f->optimizer.pipeline_write)
        return false;
    if (plan_parameters_offloaded(s)) return false;
    return plan_is_offloaded_tier(s, plan_master_tier(&s->settings)) ||
           plan_is_offloaded_tier(s, plan_moment_tier(&s->settings));
}

bool plan_update_writes(const plan_schedule *s) {
    bool after = false;
    for (size_t i = 0; i < s->instruction_count; i++) {
        after |= s->instructions[i].action == PLAN_NORM;
        if (after && s->instructions[i].action == PLAN_WRITE) return true;
    }
    return false;
}

sifr_status plan_pass_delay_update(plan_schedule *s, int32_t spread, sifr_error *error) {
    delay_state d = {.s = s};
    sifr_status status;
    BASE_TRY_GOTO(status, allocate(&d, error), done);
    if (spread < 0) BASE_TRY_GOTO(status, plan_memory(s, error), done); /* of the old order */
    d.old = plan_take_list(s);
    find_deferred(&d);
    find_touched(&d);
    find_due(&d);
    find_computed(&d);
    s->spread = spread;
    status = spread < 0 ? choose_order(&d, error) : use_order(&d, error);
done:
    release(&d);
    return status;
}
