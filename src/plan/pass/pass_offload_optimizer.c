/* Offloaded optimizer state, on disk or in host memory (Rajbhandari et al., ZeRO-Infinity, SC21):
 * the update of a unit's slice becomes, for each sub-group, reads of its state, the update, and
 * writes.
 *
 * A sub-group uses a set of buffers, one for each kind of state that is offloaded, and the sets
 * take turns. With three sets, the read of the next sub-group, the update of this one and the write
 * of the last one run at the same time, across units. Reads begin before the norm is known, which
 * does no harm. If the step is skipped, nothing is written. */
#include <stdlib.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "device/same_call.h"
#include "plan/list.h"
#include "plan/pass/passes.h"
#include "plan/pass/sub_groups.h"
#include "plan/queries.h"
#include "plan/schedule.h"

enum {
    AUTO_GROUP = 4 << 20,    /* at least; elements: 16 MiB for each kind */
    LONGEST_AUTO = 64 << 20, /* at most */
    GROUP_SETS = 4,          /* longer groups if PEAK_SHARE has room for so many sets of them */
    PEAK_SHARE = 256,        /* share of the peak that reading ahead may add */
    MOST_SETS = 64,
};

typedef struct optimizer_offload {
    plan_updates updates;
    int32_t *moved; /* by old instruction: the new one */
    int64_t *live;  /* by old instruction: live bytes of temporary buffers */
    size_t read;    /* reads of the groups before this one have started */
    size_t updated; /* updates of the groups before this one are in the new list */
    int32_t sets;
    int32_t *buffers; /* by set and part */
    int32_t call;     /* call of `call_elements` elements; -1: none yet */
    int64_t call_elements;
} optimizer_offload;

static int64_t live_peak(const optimizer_offload *o) {
    int64_t peak = 0;
    for (size_t i = 0; i < o->updates.old.count; i++) peak = base_max_i64(peak, o->live[i]);
    return peak;
}

/* The size of sub-groups without sub_group_size: keeps the list of a very large model from growing
 * to millions of instructions. */
static int64_t auto_elements(const optimizer_offload *o) {
    int64_t elements = AUTO_GROUP, share = live_peak(o) / PEAK_SHARE;
    /* as many kinds as this optimizer's updates have */
    int64_t parts = 3 + optim_most_states(optim_row_of(&o->updates.s->settings.step.optimizer));
    while (elements < LONGEST_AUTO && 2 * elements * GROUP_SETS * parts * 4 <= share) elements *= 2;
    return elements;
}

/* The number of kinds that are read, updated and written, which buffer_count counts. 16-bit
 * parameters are only written and gradients only read; each has one more buffer in a set. */
static int32_t state_parts(const optimizer_offload *o) {
    int32_t parts = o->updates.longest[PART_MASTER] > 0;
    for (int p = PART_STATE; p < PART_GRADIENT; p++) parts += o->updates.longest[p] > 0;
    return parts;
}

/* The number of sets that PEAK_SHARE of the peak has room for. A product of a large model can take
 * tens of seconds, and a large update should be read and written beside one. */
static int64_t sets_within_peak(const optimizer_offload *o) {
    int64_t set = 0;
    for (int p = 0; p < PARTS; p++)
        set += o->updates.longest[p] ? o->updates.longest[p] + PLAN_DISK_ALIGNMENT : 0;
    return base_min_i64(live_peak(o) / PEAK_SHARE / set, MOST_SETS);
}

static sifr_status choose_sets(optimizer_offload *o, sifr_error *error) {
    const sifr_offload *f = &o->updates.s->settings.step.offload;
    int32_t parts = state_parts(o);
    int64_t sets = 1 + (f->optimizer.pipeline_read && parts) + f->optimizer.pipeline_write;
    if (sets == 3) sets = base_max_i64(sets, sets_within_peak(o));
    if (f->optimizer.buffer_count && parts) sets = f->optimizer.buffer_count / parts;
    if (sets < 1)
        return base_fail(error, SIFR_USAGE,
                         "offload_optimizer: buffer_count %d: a sub-group moves %d kinds of state "
                         "and needs that many buffers; give at least that, or %d to read, update "
                         "and write at the same time",
                         (int)f->optimizer.buffer_count, (int)parts, (int)parts * 3);
    o->sets = (int32_t)base_min_i64(sets, (int64_t)o->updates.count);
    return SIFR_OK;
}

static sifr_status take_buffers(optimizer_offload *o, sifr_error *error) {
    BASE_TRY(choose_sets(o, error));
    BASE_TRY(base_alloc((size_t)o->sets * PARTS, sizeof *o->buffers, &o->buffers, error));
    for (int32_t b = 0; b < o->sets * PARTS; b++) {
        o->buffers[b] = -1;
        int64_t bytes = o->updates.longest[b % PARTS];
        if (bytes) BASE_TRY(plan_add_disk_buffer(o->updates.s, bytes, -1, &o->buffers[b], error));
    }
    return SIFR_OK;
}

static int32_t buffer_for(const optimizer_offload *o, size_t group, plan_state_part part) {
    return o->buffers[(int32_t)(group % (size_t)o->sets) * PARTS + (int32_t)part];
}

/* Transfers one kind of a group's state; *out is the instruction. */
static sifr_status emit_transfer(optimizer_offload *o, plan_action action, size_t group,
                                 const plan_operand *state, int32_t *out, sifr_error *error) {
    plan_schedule *s = o->updates.s;
    const plan_sub_group *g = &o->updates.groups[group];
    plan_role file = action == PLAN_READ ? PLAN_X0 : PLAN_Y;
    plan_role memory = action == PLAN_READ ? PLAN_Y : PLAN_X0;
    plan_pages range = plan_state_pages(&o->updates, g, state);
    if (file == PLAN_X0) BASE_TRY(plan_add_operand(s, file, state->buffer, range.at, error));
    BASE_TRY(
        plan_add_operand(s, memory, buffer_for(o, group, plan_state_part_of(state)), 0, error));
    if (file == PLAN_Y) BASE_TRY(plan_add_operand(s, file, state->buffer, range.at, error));
    *out = (int32_t)s->instruction_count;
    return plan_add_transfer(s, action, plan_queue_of(s, state->buffer),
                             o->updates.old.instructions[g->update].unit, -1, range.bytes, error);
}

static sifr_status wait_for_writes(optimizer_offload *o, size_t group, sifr_error *error) {
    for (int32_t p = 0; p < PARTS; p++) {
        int32_t *write = &o->updates.groups[group].writes[p];
        if (*write >= 0) BASE_TRY(plan_add_wait(o->updates.s, *write, error));
        *write = -1;
    }
    return SIFR_OK;
}

/* Waits for what the groups before have written of a group's state. */
static sifr_status wait_for_state(optimizer_offload *o, const plan_sub_group *g,
                                  sifr_error *error) {
    int32_t segment = o->updates.old.instructions[g->update].segment;
    for (int32_t k = g->after; k >= 0; k--) {
        if (o->updates.old.instructions[o->updates.groups[k].update].segment != segment) break;
        BASE_TRY(wait_for_writes(o, (size_t)k, error));
    }
    return SIFR_OK;
}

/* Starts reads of the groups before `end`, as far as what they read has been updated. */
static sifr_status read_until(optimizer_offload *o, size_t end, sifr_error *error) {
    for (; o->read < end && o->read < o->updates.count; o->read++) {
        size_t group = o->read;
        plan_sub_group *g = &o->updates.groups[group];
        const plan_instruction *in = &o->updates.old.instructions[g->update];
        if (g->after >= (int32_t)o->updated) return SIFR_OK;
        if (group >= (size_t)o->sets) BASE_TRY(wait_for_writes(o, group - (size_t)o->sets, error));
        BASE_TRY(wait_for_state(o, g, error));
        for (int32_t i = in->first_operand; i < in->first_operand + in->operands; i++) {
            const plan_operand *state = &o->updates.old.operands[i];
            int32_t *read = &g->reads[plan_state_part_of(state)];
            if (!plan_state_is_read(&o->updates, in, state)) continue;
            BASE_TRY(emit_transfer(o, PLAN_READ, group, state, read, error));
        }
    }
    return SIFR_OK;
}

/* Whether an operand has values of an update's elements; else it is of the whole weight. */
static bool has_elements(const optimizer_offload *o, const plan_instruction *in,
                         const plan_operand *operand) {
    return operand->buffer != o->updates.s->weight_sums[in->segment];
}

/* The kernel's call for `elements` elements. All groups of a slice but the last share one, and so
 * do slices of weights that are trained alike. */
static sifr_status call_for(optimizer_offload *o, const plan_instruction *in, int64_t elements,
                            sifr_error *error) {
    device_call call = o->updates.s->calls[in->call];
    const device_call *last = o->call >= 0 ? &o->updates.s->calls[o->call] : NULL;
    bool same = last && last->kernel == call.kernel && device_same_attributes(last, &call) &&
                device_same_matrix(&last->x[1], &call.x[1]); /* a segment's sums */
    if (same && o->call_elements == elements) return SIFR_OK;
    for (int32_t i = 0; i < in->operands; i++) {
        const plan_operand *operand = &o->updates.old.operands[in->first_operand + i];
        device_matrix *m = plan_role_matrix(&call, (plan_role)operand->role);
        if (!has_elements(o, in, operand)) continue;
        int64_t each = plan_update_elements(&o->updates, in) / m->columns;
        m->columns = m->stride = elements / each;
    }
    o->call_elements = elements;
    return plan_add_call(o->updates.s, call, &o->call, error);
}

/* A group's part of one update. */
static sifr_status emit_update(optimizer_offload *o, size_t group, const plan_instruction *in,
                               sifr_error *error) {
    const plan_sub_group *g = &o->updates.groups[group];
    plan_instruction out = *in;
    int64_t place = plan_update_first(&o->updates, in), all = plan_update_elements(&o->updates, in);
    int64_t first = base_max_i64(place, g->first);
    int64_t elements = base_min_i64(place + all, g->first + g->elements) - first;
    if (elements < all) {
        BASE_TRY(call_for(o, in, elements, error));
        out.call = o->call;
    }
    out.element += first - place;
    for (int32_t i = 0; i < in->operands; i++) {
        plan_operand operand = o->updates.old.operands[in->first_operand + i];
        if (plan_is_offloaded(o->updates.s, operand.buffer)) {
            operand.buffer = buffer_for(o, group, plan_state_part_of(&operand));
            operand.offset = plan_state_bytes(&o->updates, in, &operand, first - g->first);
        } else if (first > place && has_elements(o, in, &operand)) {
            operand.offset += plan_state_bytes(&o->updates, in, &operand, first - place);
        }
        BASE_TRY(plan_add_operand(o->updates.s, (plan_role)operand.role, operand.buffer,
                                  operand.offset, error));
    }
    return plan_add_instruction(o->updates.s, out, error);
}

static sifr_status emit_group(optimizer_offload *o, size_t group, sifr_error *error) {
    const sifr_offload *f = &o->updates.s->settings.step.offload;
    plan_sub_group *g = &o->updates.groups[group];
    const plan_instruction *in = &o->updates.old.instructions[g->update];
    size_t sets = (size_t)o->sets,
           ahead = f->optimizer.pipeline_read && sets > 1 && state_parts(o) ? 1 : 0;
    if (ahead && sets > 3) ahead = sets / 2; /* the other sets are still being written */
    BASE_TRY(read_until(o, group + 1 + ahead, error));
    for (int32_t p = 0; p < PARTS; p++) {
        if (g->reads[p] >= 0) BASE_TRY(plan_add_wait(o->updates.s, g->reads[p], error));
    }
    for (int32_t u = g->update; u < g->end; u++)
        BASE_TRY(emit_update(o, group, &o->updates.old.instructions[u], error));
    o->updated = group + 1;
    for (int32_t i = in->first_operand; i < in->first_operand + in->operands; i++) {
        const plan_operand *state = &o->updates.old.operands[i];
        int32_t *write = &g->writes[plan_state_part_of(state)];
        if (!plan_state_is_written(&o->updates, in, state)) continue;
        BASE_TRY(emit_transfer(o, PLAN_WRITE, group, state, write, error));
    }
    return f->optimizer.pipeline_write ? SIFR_OK : wait_for_writes(o, group, error);
}

/* The end of the backward pass: activations are released, and only squares come before the norm. */
static size_t find_end_of_backward(const optimizer_offload *o) {
    const plan_instruction *all = o->updates.old.instructions;
    size_t i = 0;
    while (i + 1 < o->updates.old.count && all[i].action != PLAN_NORM) i++;
    size_t begin = i;
    for (; i > 0 && (all[i - 1].action == PLAN_SQUARES || all[i - 1].action == PLAN_WAIT); i--) {
        if (all[i - 1].action == PLAN_SQUARES) begin = i - 1;
    }
    return begin;
}

static bool is_move(const plan_instruction *in) {
    return in->action == PLAN_READ || in->action == PLAN_WRITE;
}

/* Where reads begin: at the start of the step if the peak allows, since later the step waits for
 * what the disk has not moved beside computing; else at the end of the backward pass, where
 * activations are released. Few buffers are live beside the last gradients, so the swap buffers fit
 * there. Reads also begin at that end if other passes read or write before: their transfers are
 * needed sooner. */
static size_t find_begin(const optimizer_offload *o) {
    size_t late = find_end_of_backward(o);
    int64_t buffers = 0, peak = 0, most = 0;
    for (int32_t b = 0; b < o->sets * PARTS; b++) {
        if (o->buffers[b] >= 0) buffers += o->updates.s->buffers[o->buffers[b]].bytes;
    }
    for (size_t i = 0; i < o->updates.old.count; i++) {
        if (i < late && is_move(&o->updates.old.instructions[i])) return late;
        peak = base_max_i64(peak, o->live[i] + (i < late ? 0 : buffers));
        most = base_max_i64(most, o->live[i] + buffers);
    }
    return most - peak <= peak / PEAK_SHARE ? 0 : late;
}

/* Finds live bytes, from the lifetimes before this pass. */
static sifr_status find_live(optimizer_offload *o, sifr_error *error) {
    const plan_schedule *s = o->updates.s;
    BASE_TRY(base_alloc(s->instruction_count + 1, sizeof *o->live, &o->live, error));
    plan_find_lives(o->updates.s);
    for (size_t b = 0; b < s->buffer_count; b++) {
        const plan_buffer *buffer = &s->buffers[b];
        if (!plan_comes_and_goes(s, (int32_t)b)) continue;
        o->live[buffer->first] += buffer->bytes;
        o->live[buffer->last + 1] -= buffer->bytes;
    }
    for (size_t i = 0; i < s->instruction_count; i++) o->live[i + 1] += o->live[i];
    return SIFR_OK;
}

static sifr_status rewrite(optimizer_offload *o, sifr_error *error) {
    size_t group = 0, begin = o->updates.count ? find_begin(o) : 0;
    for (size_t i = 0; i < o->updates.old.count; i++) {
        if (i == begin && o->updates.count &&
            o->updates.s->settings.step.offload.optimizer.pipeline_read)
            BASE_TRY(read_until(o, (size_t)o->sets, error));
        if (group == o->updates.count || o->updates.groups[group].update != (int32_t)i) {
            BASE_TRY(plan_keep(o->updates.s, &o->updates.old, i, o->moved, error));
            continue;
        }
        for (; group < o->updates.count && o->updates.groups[group].update <= (int32_t)i; group++) {
            BASE_TRY(emit_group(o, group, error));
            i = (size_t)o->updates.groups[group].end - 1;
        }
    }
    base_assert(group == o->updates.count && o->read == o->updates.count);
    for (group = 0; group < o->updates.count; group++) BASE_TRY(wait_for_writes(o, group, error));
    return SIFR_OK;
}

static bool some_offloaded(const plan_schedule *s) {
    for (size_t b = 0; b < s->buffer_count; b++) {
        if (plan_is_offloaded(s, (int32_t)b)) return true;
    }
    return false;
}

sifr_status plan_pass_offload_optimizer(plan_schedule *s, sifr_error *error) {
    optimizer_offload o = {.updates = {.s = s}, .call = -1};
    sifr_status status;
    if (s->settings.mode != PLAN_TRAIN || !some_offloaded(s)) return SIFR_OK;
    BASE_TRY_GOTO(status, find_live(&o, error), done);
    o.updates.old = plan_take_list(s);
    o.updates.usual = auto_elements(&o);
    BASE_TRY_GOTO(status, plan_cut_updates(&o.updates, error), done);
    BASE_TRY_GOTO(status, base_alloc(o.updates.old.count, sizeof *o.moved, &o.moved, error), done);
    if (o.updates.count) BASE_TRY_GOTO(status, take_buffers(&o, error), done);
    status = rewrite(&o, error);
done:
    plan_free_list(&o.updates.old);
    free(o.updates.groups);
    free(o.moved);
    free(o.live);
    free(o.buffers);
    return status;
}

static void add_up(const plan_schedule *s, plan_queue queue, int64_t *read, int64_t *written) {
    *read = *written = 0;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->queue != queue) continue;
        if (in->action == PLAN_READ) *read += in->bytes;
        if (in->action == PLAN_WRITE) *written += in->bytes;
    }
}

void plan_disk(const plan_schedule *s, int64_t *read, int64_t *written) {
    add_up(s, PLAN_DISK, read, written);
}

void plan_copies(const plan_schedule *s, int64_t *read, int64_t *written) {
    add_up(s, PLAN_COPY, read, written);
}
