/* Offloaded optimizer state, on disk or in host memory (Rajbhandari et al., ZeRO-Infinity, SC21):
 * the update of a unit's slice becomes, for each sub-group, reads of its state, the update, and
 * writes.
 *
 * A sub-group uses a set of buffers, one for each kind of state that is away, and the sets take
 * turns. With three sets, the read of the next sub-group, the update of this one and the write of
 * the last one run at the same time, across units. Reads begin before the norm is known, which does
 * no harm. If the step is skipped, nothing is written.
 *
 * Transfers move whole pages, and a page of 16-bit parameters is two blocks. So sub-groups end on
 * pages. An update is of a whole segment, or of a rank's slice, which has its pages for itself. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"
#include "plan/list.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "plan/schedule.h"

/* Kinds of state that an update uses. */
typedef enum state_part {
    PART_MASTER, /* weights that the update changes: masters, or the parameters themselves */
    PART_NARROW, /* 16-bit parameters beside masters, which the update only writes */
    PART_STATE,  /* the optimizer's first */
    PART_GRADIENT = PART_STATE + OPTIM_STATES, /* which the update only reads */
    PARTS
} state_part;

enum {
    AUTO_GROUP = 4 << 20,    /* at least; elements: 16 MiB for each kind */
    LONGEST_AUTO = 64 << 20, /* at most */
    GROUP_SETS = 4,          /* longer groups if PEAK_SHARE has room for so many sets of them */
    LONGEST_GROUP = 1 << 30,
    PEAK_SHARE = 256, /* share of the peak that reading ahead may add */
    MOST_SETS = 64,
};

/* A sub-group: elements first ... first + elements - 1 of an update. */
typedef struct sub_group {
    int32_t update; /* old instruction */
    int64_t first, elements;
    int32_t reads[PARTS];  /* new instructions; -1: none */
    int32_t writes[PARTS]; /* new instructions still running; -1: none */
} sub_group;

typedef struct optimizer_offload {
    plan_schedule *s;
    plan_list old;
    int32_t *moved; /* by old instruction: the new one */
    int64_t *live;  /* by old instruction: live bytes of temporary buffers */
    sub_group *groups;
    size_t count, room, read; /* read: reads of the groups before this one have started */
    int64_t auto_elements;    /* elements of a group if no size is given */
    int64_t longest[PARTS];   /* bytes of a group's transfer; 0: this kind is never away */
    int32_t sets;
    int32_t *buffers; /* by set and part */
    int32_t call;     /* call of `call_elements` elements; -1: none yet */
    int64_t call_elements;
} optimizer_offload;

/* Whole pages of the file. */
typedef struct disk_range {
    int64_t at, bytes;
} disk_range;

static bool is_away(const optimizer_offload *o, const plan_operand *operand) {
    return plan_is_away(o->s, operand->buffer);
}

static state_part part_of(const plan_operand *operand) {
    switch ((plan_role)operand->role) {
    case PLAN_W1:
        return PART_NARROW;
    case PLAN_X0:
        return PART_GRADIENT;
    case PLAN_SAVED0:
    case PLAN_SAVED1:
    case PLAN_SAVED2:
    case PLAN_SAVED3:
        return (state_part)(PART_STATE + operand->role - PLAN_SAVED0);
    default:
        return PART_MASTER;
    }
}

/* Bytes of an operand's values for so many elements, from the start of one of its values on. */
static int64_t bytes_of(const optimizer_offload *o, const plan_instruction *in,
                        const plan_operand *operand, int64_t elements) {
    device_call *call = &o->s->calls[in->call];
    const device_matrix *m = plan_role_matrix(call, (plan_role)operand->role);
    int64_t each = call->x[0].columns / m->columns; /* elements for a value */
    return elements / each * base_dtype_bytes(m->dtype);
}

/* Elements that a page of an operand's values belongs to. */
static int64_t elements_of_page(const optimizer_offload *o, const plan_instruction *in,
                                const plan_operand *operand) {
    device_call *call = &o->s->calls[in->call];
    const device_matrix *m = plan_role_matrix(call, (plan_role)operand->role);
    return PLAN_DISK_ALIGNMENT / base_dtype_bytes(m->dtype) * (call->x[0].columns / m->columns);
}

static disk_range range_of(const optimizer_offload *o, const sub_group *g,
                           const plan_operand *operand) {
    const plan_instruction *in = &o->old.instructions[g->update];
    int64_t page = PLAN_DISK_ALIGNMENT, at = operand->offset + bytes_of(o, in, operand, g->first);
    assert(at % page == 0);
    return (disk_range){.at = at,
                        .bytes = base_ceil_to(bytes_of(o, in, operand, g->elements), page)};
}

/* Elements in a page of the narrowest kind of this update's state that is away; 0: none is away. */
static int64_t page_elements(const optimizer_offload *o, const plan_instruction *in) {
    int64_t most = 0;
    for (int32_t i = in->first_operand; i < in->first_operand + in->operands; i++) {
        const plan_operand *operand = &o->old.operands[i];
        if (!is_away(o, operand)) continue;
        most = base_max_i64(most, elements_of_page(o, in, operand));
    }
    return most;
}

static int64_t live_peak(const optimizer_offload *o) {
    int64_t peak = 0;
    for (size_t i = 0; i < o->old.count; i++) peak = base_max_i64(peak, o->live[i]);
    return peak;
}

/* The size of sub-groups without sub_group_size: keeps the list of a very large model from growing
 * to millions of instructions. */
static int64_t auto_elements(const optimizer_offload *o) {
    int64_t elements = AUTO_GROUP, share = live_peak(o) / PEAK_SHARE;
    /* as many kinds as this optimizer's updates have */
    int64_t parts = 3 + optim_most_states(optim_row_of(&o->s->settings.step.optimizer));
    while (elements < LONGEST_AUTO && 2 * elements * GROUP_SETS * parts * 4 <= share) elements *= 2;
    return elements;
}

/* Rounds to whole pages, so that reads and writes are aligned. */
static int64_t group_elements(const optimizer_offload *o, int64_t page) {
    int64_t asked = o->s->settings.step.offload.sub_group_size;
    if (asked <= 0) return o->auto_elements;
    return base_max_i64(base_min_i64(asked, LONGEST_GROUP) / page, 1) * page;
}

static void note_longest(optimizer_offload *o, const sub_group *g) {
    const plan_instruction *in = &o->old.instructions[g->update];
    for (int32_t i = in->first_operand; i < in->first_operand + in->operands; i++) {
        const plan_operand *operand = &o->old.operands[i];
        if (!is_away(o, operand)) continue;
        int64_t *longest = &o->longest[part_of(operand)];
        *longest = base_max_i64(*longest, range_of(o, g, operand).bytes);
    }
}

static sifr_status add_group(optimizer_offload *o, size_t update, int64_t first, int64_t elements,
                             sifr_error *error) {
    sub_group group = {.update = (int32_t)update, .first = first, .elements = elements};
    for (int p = 0; p < PARTS; p++) group.reads[p] = group.writes[p] = -1;
    BASE_TRY(base_grow(&o->groups, &o->room, o->count + 1, sizeof *o->groups, error));
    o->groups[o->count++] = group;
    note_longest(o, &group);
    return SIFR_OK;
}

static sifr_status find_groups(optimizer_offload *o, sifr_error *error) {
    o->auto_elements = auto_elements(o);
    for (size_t i = 0; i < o->old.count; i++) {
        const plan_instruction *in = &o->old.instructions[i];
        int64_t page = in->action == PLAN_UPDATE ? page_elements(o, in) : 0;
        if (page == 0) continue;
        int64_t group = group_elements(o, page), all = o->s->calls[in->call].x[0].columns;
        for (int64_t first = 0; first < all; first += group)
            BASE_TRY(add_group(o, i, first, base_min_i64(group, all - first), error));
    }
    return SIFR_OK;
}

/* The number of kinds that are read, updated and written, which buffer_count counts. 16-bit
 * parameters are only written and gradients only read; each has one more buffer in a set. */
static int32_t state_parts(const optimizer_offload *o) {
    int32_t parts = o->longest[PART_MASTER] > 0;
    for (int p = PART_STATE; p < PART_GRADIENT; p++) parts += o->longest[p] > 0;
    return parts;
}

/* The number of sets that PEAK_SHARE of the peak has room for. A product of a large model can take
 * tens of seconds, and a large update should be read and written beside one. */
static int64_t sets_within_peak(const optimizer_offload *o) {
    int64_t set = 0;
    for (int p = 0; p < PARTS; p++) set += o->longest[p] ? o->longest[p] + PLAN_DISK_ALIGNMENT : 0;
    return base_min_i64(live_peak(o) / PEAK_SHARE / set, MOST_SETS);
}

static sifr_status choose_sets(optimizer_offload *o, sifr_error *error) {
    const sifr_offload *f = &o->s->settings.step.offload;
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
    o->sets = (int32_t)base_min_i64(sets, (int64_t)o->count);
    return SIFR_OK;
}

static sifr_status take_buffers(optimizer_offload *o, sifr_error *error) {
    BASE_TRY(choose_sets(o, error));
    BASE_TRY(base_alloc((size_t)o->sets * PARTS, sizeof *o->buffers, &o->buffers, error));
    for (int32_t b = 0; b < o->sets * PARTS; b++) {
        o->buffers[b] = -1;
        int64_t bytes = o->longest[b % PARTS];
        if (bytes) BASE_TRY(plan_add_disk_buffer(o->s, bytes, -1, &o->buffers[b], error));
    }
    return SIFR_OK;
}

static int32_t buffer_for(const optimizer_offload *o, size_t group, state_part part) {
    return o->buffers[(int32_t)(group % (size_t)o->sets) * PARTS + (int32_t)part];
}

/* Transfers one kind of a group's state; *out is the instruction. */
static sifr_status emit_transfer(optimizer_offload *o, plan_action action, size_t group,
                                 const plan_operand *state, int32_t *out, sifr_error *error) {
    plan_schedule *s = o->s;
    const sub_group *g = &o->groups[group];
    plan_role file = action == PLAN_READ ? PLAN_X0 : PLAN_Y;
    plan_role memory = action == PLAN_READ ? PLAN_Y : PLAN_X0;
    disk_range range = range_of(o, g, state);
    if (file == PLAN_X0) BASE_TRY(plan_add_operand(s, file, state->buffer, range.at, error));
    BASE_TRY(plan_add_operand(s, memory, buffer_for(o, group, part_of(state)), 0, error));
    if (file == PLAN_Y) BASE_TRY(plan_add_operand(s, file, state->buffer, range.at, error));
    *out = (int32_t)s->instruction_count;
    return plan_add_transfer(s, action, plan_queue_of(s, state->buffer),
                             o->old.instructions[g->update].unit, -1, range.bytes, error);
}

static sifr_status wait_for_writes(optimizer_offload *o, size_t group, sifr_error *error) {
    for (int32_t p = 0; p < PARTS; p++) {
        int32_t *write = &o->groups[group].writes[p];
        if (*write >= 0) BASE_TRY(plan_add_wait(o->s, *write, error));
        *write = -1;
    }
    return SIFR_OK;
}

static bool is_read(const optimizer_offload *o, const plan_operand *state) {
    return is_away(o, state) && part_of(state) != PART_NARROW;
}

/* Starts reads of the groups before `end`. */
static sifr_status read_until(optimizer_offload *o, size_t end, sifr_error *error) {
    for (; o->read < end && o->read < o->count; o->read++) {
        size_t group = o->read;
        sub_group *g = &o->groups[group];
        const plan_instruction *in = &o->old.instructions[g->update];
        if (group >= (size_t)o->sets) BASE_TRY(wait_for_writes(o, group - (size_t)o->sets, error));
        for (int32_t i = in->first_operand; i < in->first_operand + in->operands; i++) {
            const plan_operand *state = &o->old.operands[i];
            int32_t *read = &g->reads[part_of(state)];
            if (!is_read(o, state)) continue;
            BASE_TRY(emit_transfer(o, PLAN_READ, group, state, read, error));
        }
    }
    return SIFR_OK;
}

/* The kernel's call for `elements` elements. All groups of a slice but the last share one, and so
 * do slices of weights that are trained alike. */
static sifr_status call_for(optimizer_offload *o, const plan_instruction *in, int64_t elements,
                            sifr_error *error) {
    device_call call = o->s->calls[in->call];
    const device_call *last = o->call >= 0 ? &o->s->calls[o->call] : NULL;
    bool same = last && last->kernel == call.kernel &&
                memcmp(&last->attributes, &call.attributes, sizeof call.attributes) == 0;
    if (same && o->call_elements == elements) return SIFR_OK;
    for (int32_t i = 0; i < in->operands; i++) {
        plan_role role = (plan_role)o->old.operands[in->first_operand + i].role;
        device_matrix *m = plan_role_matrix(&call, role);
        int64_t each = o->s->calls[in->call].x[0].columns / m->columns;
        m->columns = m->stride = elements / each;
    }
    o->call_elements = elements;
    return plan_add_call(o->s, call, &o->call, error);
}

static sifr_status emit_update(optimizer_offload *o, size_t group, sifr_error *error) {
    const sub_group *g = &o->groups[group];
    const plan_instruction *in = &o->old.instructions[g->update];
    plan_instruction out = *in;
    BASE_TRY(call_for(o, in, g->elements, error));
    out.call = o->call;
    out.element += g->first;
    for (int32_t i = 0; i < in->operands; i++) {
        plan_operand operand = o->old.operands[in->first_operand + i];
        if (is_away(o, &operand)) {
            operand.buffer = buffer_for(o, group, part_of(&operand));
            operand.offset = 0;
        } else {
            operand.offset += bytes_of(o, in, &operand, g->first);
        }
        BASE_TRY(
            plan_add_operand(o->s, (plan_role)operand.role, operand.buffer, operand.offset, error));
    }
    return plan_add_instruction(o->s, out, error);
}

static sifr_status emit_group(optimizer_offload *o, size_t group, sifr_error *error) {
    const sifr_offload *f = &o->s->settings.step.offload;
    sub_group *g = &o->groups[group];
    const plan_instruction *in = &o->old.instructions[g->update];
    size_t sets = (size_t)o->sets,
           ahead = f->optimizer.pipeline_read && sets > 1 && state_parts(o) ? 1 : 0;
    if (ahead && sets > 3) ahead = sets / 2; /* the other sets are still being written */
    BASE_TRY(read_until(o, group + 1 + ahead, error));
    for (int32_t p = 0; p < PARTS; p++) {
        if (g->reads[p] >= 0) BASE_TRY(plan_add_wait(o->s, g->reads[p], error));
    }
    BASE_TRY(emit_update(o, group, error));
    for (int32_t i = in->first_operand; i < in->first_operand + in->operands; i++) {
        const plan_operand *state = &o->old.operands[i];
        int32_t *write = &g->writes[part_of(state)];
        if (!is_away(o, state) || part_of(state) == PART_GRADIENT) continue;
        BASE_TRY(emit_transfer(o, PLAN_WRITE, group, state, write, error));
    }
    return f->optimizer.pipeline_write ? SIFR_OK : wait_for_writes(o, group, error);
}

/* The end of the backward pass: activations are released, and only squares come before the norm. */
static size_t find_end_of_backward(const optimizer_offload *o) {
    const plan_instruction *all = o->old.instructions;
    size_t i = 0;
    while (i + 1 < o->old.count && all[i].action != PLAN_NORM) i++;
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
        if (o->buffers[b] >= 0) buffers += o->s->buffers[o->buffers[b]].bytes;
    }
    for (size_t i = 0; i < o->old.count; i++) {
        if (i < late && is_move(&o->old.instructions[i])) return late;
        peak = base_max_i64(peak, o->live[i] + (i < late ? 0 : buffers));
        most = base_max_i64(most, o->live[i] + buffers);
    }
    return most - peak <= peak / PEAK_SHARE ? 0 : late;
}

/* Finds live bytes, from the lifetimes before this pass. */
static sifr_status find_live(optimizer_offload *o, sifr_error *error) {
    const plan_schedule *s = o->s;
    BASE_TRY(base_alloc(s->instruction_count + 1, sizeof *o->live, &o->live, error));
    plan_find_lives(o->s);
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
    size_t group = 0, begin = o->count ? find_begin(o) : 0;
    for (size_t i = 0; i < o->old.count; i++) {
        if (i == begin && o->count && o->s->settings.step.offload.optimizer.pipeline_read)
            BASE_TRY(read_until(o, (size_t)o->sets, error));
        if (group == o->count || o->groups[group].update != (int32_t)i) {
            BASE_TRY(plan_keep(o->s, &o->old, i, o->moved, error));
            continue;
        }
        for (; group < o->count && o->groups[group].update == (int32_t)i; group++)
            BASE_TRY(emit_group(o, group, error));
    }
    assert(group == o->count && o->read == o->count);
    for (group = 0; group < o->count; group++) BASE_TRY(wait_for_writes(o, group, error));
    return SIFR_OK;
}

static bool some_away(const plan_schedule *s) {
    for (size_t b = 0; b < s->buffer_count; b++) {
        if (plan_is_away(s, (int32_t)b)) return true;
    }
    return false;
}

sifr_status plan_pass_offload_optimizer(plan_schedule *s, sifr_error *error) {
    optimizer_offload o = {.s = s, .call = -1};
    sifr_status status;
    if (s->settings.mode != PLAN_TRAIN || !some_away(s)) return SIFR_OK;
    BASE_TRY_GOTO(status, find_live(&o, error), done);
    o.old = plan_take_list(s);
    BASE_TRY_GOTO(status, find_groups(&o, error), done);
    BASE_TRY_GOTO(status, base_alloc(o.old.count, sizeof *o.moved, &o.moved, error), done);
    if (o.count) BASE_TRY_GOTO(status, take_buffers(&o, error), done);
    status = rewrite(&o, error);
done:
    plan_free_list(&o.old);
    free(o.groups);
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
