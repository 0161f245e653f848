/* Optimizer state on disk (Rajbhandari et al., ZeRO-Infinity, SC21): an update of a unit's slice
 * becomes, sub-group by sub-group, reads of its state, the update, and writes.
 *
 * A sub-group goes through a set of buffers, one for each kind of state that is on disk; the sets
 * take turns. With three of them the read of the next, the update of this and the write of the last
 * sub-group run at the same time, across units. Reads begin before the norm is known (they harm
 * nothing); what the step then does not update is not written. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "plan/schedule.h"

enum {
    PARTS = 3,            /* kinds of state: master weights, two moments */
    AUTO_GROUP = 4 << 20, /* elements: 16 MiB for each kind */
    LONGEST_GROUP = 1 << 30,
};

/* A sub-group: elements first ... first + elements - 1 of what one update is of. */
typedef struct offload_group {
    int32_t update; /* old instruction */
    int64_t first, elements;
    int32_t writes[PARTS]; /* new instructions that are not waited for; -1: none */
} offload_group;

typedef struct offload_state {
    plan_schedule *s;
    plan_list old;
    int32_t *moved; /* by old instruction: the new one */
    offload_group *groups;
    size_t count, room, read; /* read: groups before this one have been started to be read */
    int32_t (*reads)[PARTS];  /* by group: new instructions */
    int32_t parts, sets;
    int32_t *buffers; /* by set and part */
    int64_t longest;  /* elements of the largest group */
    int32_t call;     /* of `call_elements` elements; -1: none so far */
    int64_t call_elements;
} offload_state;

static bool on_disk(const offload_state *o, const plan_operand *operand) {
    return o->s->buffers[operand->buffer].tier == PLAN_NVME;
}

/* Kinds of state that are on disk. */
static int32_t parts_of(const offload_state *o, const plan_instruction *in) {
    int32_t parts = 0;
    for (int32_t i = 0; i < in->operands; i++)
        parts += on_disk(o, &o->old.operands[in->first_operand + i]);
    return parts;
}

static int64_t elements_of(const offload_state *o, const plan_instruction *in) {
    return o->s->calls[in->call].x[0].columns;
}

/* Whole blocks, so that what is read and written is aligned. */
static int64_t group_elements(const plan_schedule *s) {
    int64_t asked = s->settings.offload.sub_group;
    if (asked <= 0) return AUTO_GROUP;
    return base_max_i64(base_min_i64(asked, LONGEST_GROUP) / DEVICE_BLOCK, 1) * DEVICE_BLOCK;
}

static sifr_status find_groups(offload_state *o, sifr_error *error) {
    int64_t group = group_elements(o->s);
    for (size_t i = 0; i < o->old.count; i++) {
        const plan_instruction *in = &o->old.instructions[i];
        if (in->action != PLAN_UPDATE || parts_of(o, in) == 0) continue;
        o->parts = (int32_t)base_max_i64(o->parts, parts_of(o, in));
        int64_t all = elements_of(o, in);
        for (int64_t first = 0; first < all; first += group) {
            int64_t elements = base_min_i64(group, all - first);
            o->longest = base_max_i64(o->longest, elements);
            BASE_TRY(base_grow(&o->groups, &o->room, o->count + 1, sizeof *o->groups, error));
            o->groups[o->count++] =
                (offload_group){(int32_t)i, first, elements, .writes = {-1, -1, -1}};
        }
    }
    return SIFR_OK;
}

static sifr_status take_buffers(offload_state *o, sifr_error *error) {
    const plan_offload *f = &o->s->settings.offload;
    int64_t sets = f->buffers ? f->buffers / o->parts : 1 + f->read_ahead + f->write_behind;
    if (sets < 1)
        return base_fail(
            error, SIFR_USAGE,
            "offload_optimizer: buffer_count %d: a sub-group has %d kinds of state on "
            "disk and needs as many buffers; %d let it be read, updated and written at "
            "the same time",
            (int)f->buffers, (int)o->parts, (int)o->parts * 3);
    o->sets = (int32_t)base_min_i64(sets, (int64_t)o->count);
    size_t count = (size_t)(o->sets * o->parts);
    BASE_TRY(base_alloc(count, sizeof *o->buffers, &o->buffers, error));
    /* Whoever runs it aligns their start. */
    int64_t bytes = o->longest * 4 + PLAN_DISK_ALIGNMENT;
    for (size_t b = 0; b < count; b++)
        BASE_TRY(
            plan_add_buffer(o->s, PLAN_SWAP, bytes, -1, (int32_t)b, false, &o->buffers[b], error));
    return SIFR_OK;
}

static int32_t buffer_for(const offload_state *o, size_t group, int32_t part) {
    return o->buffers[(int32_t)(group % (size_t)o->sets) * o->parts + part];
}

/* Moves one kind of a group's state; *out is the instruction. */
static sifr_status emit_transfer(offload_state *o, plan_action action, size_t group, int32_t part,
                                 const plan_operand *state, int32_t *out, sifr_error *error) {
    plan_schedule *s = o->s;
    const offload_group *g = &o->groups[group];
    plan_role file = action == PLAN_READ ? PLAN_X0 : PLAN_Y;
    plan_role memory = action == PLAN_READ ? PLAN_Y : PLAN_X0;
    int64_t at = state->offset + g->first * 4;
    if (file == PLAN_X0) BASE_TRY(plan_add_operand(s, file, state->buffer, at, error));
    BASE_TRY(plan_add_operand(s, memory, buffer_for(o, group, part), 0, error));
    if (file == PLAN_Y) BASE_TRY(plan_add_operand(s, file, state->buffer, at, error));
    *out = (int32_t)s->instruction_count;
    return plan_add_instruction(s,
                                (plan_instruction){.action = (uint8_t)action,
                                                   .queue = PLAN_DISK,
                                                   .unit = o->old.instructions[g->update].unit,
                                                   .micro_batch = -1,
                                                   .node = -1,
                                                   .call = -1,
                                                   .bytes = g->elements * 4,
                                                   .wait = -1},
                                error);
}

static sifr_status wait_for_writes(offload_state *o, size_t group, sifr_error *error) {
    for (int32_t p = 0; p < o->parts; p++) {
        int32_t *write = &o->groups[group].writes[p];
        if (*write >= 0) BASE_TRY(plan_add_wait(o->s, *write, error));
        *write = -1;
    }
    return SIFR_OK;
}

/* Starts to read the groups before `end`. */
static sifr_status read_until(offload_state *o, size_t end, sifr_error *error) {
    for (; o->read < end && o->read < o->count; o->read++) {
        size_t group = o->read;
        const plan_instruction *in = &o->old.instructions[o->groups[group].update];
        if (group >= (size_t)o->sets) BASE_TRY(wait_for_writes(o, group - (size_t)o->sets, error));
        for (int32_t i = 0, part = 0; i < in->operands; i++) {
            const plan_operand *state = &o->old.operands[in->first_operand + i];
            if (!on_disk(o, state)) continue;
            BASE_TRY(
                emit_transfer(o, PLAN_READ, group, part, state, &o->reads[group][part], error));
            part++;
        }
    }
    return SIFR_OK;
}

/* The kernel's call for so many elements: all but the last group of a slice have the same. */
static sifr_status call_for(offload_state *o, const plan_instruction *in, int64_t elements,
                            sifr_error *error) {
    if (o->call >= 0 && o->call_elements == elements) return SIFR_OK;
    device_call call = o->s->calls[in->call];
    for (int32_t i = 0; i < in->operands; i++) {
        plan_role role = (plan_role)o->old.operands[in->first_operand + i].role;
        device_matrix *m = plan_role_matrix(&call, role);
        m->columns = m->stride = elements;
    }
    o->call_elements = elements;
    return plan_add_call(o->s, call, &o->call, error);
}

static sifr_status emit_update(offload_state *o, size_t group, sifr_error *error) {
    const offload_group *g = &o->groups[group];
    const plan_instruction *in = &o->old.instructions[g->update];
    device_call whole = o->s->calls[in->call];
    plan_instruction out = *in;
    BASE_TRY(call_for(o, in, g->elements, error));
    out.call = o->call;
    for (int32_t i = 0, part = 0; i < in->operands; i++) {
        plan_operand operand = o->old.operands[in->first_operand + i];
        const device_matrix *m = plan_role_matrix(&whole, (plan_role)operand.role);
        if (on_disk(o, &operand)) {
            operand.buffer = buffer_for(o, group, part++);
            operand.offset = 0;
        } else {
            operand.offset += g->first * device_dtype_bytes(m->dtype);
        }
        BASE_TRY(
            plan_add_operand(o->s, (plan_role)operand.role, operand.buffer, operand.offset, error));
    }
    return plan_add_instruction(o->s, out, error);
}

static sifr_status emit_group(offload_state *o, size_t group, sifr_error *error) {
    const plan_offload *f = &o->s->settings.offload;
    const plan_instruction *in = &o->old.instructions[o->groups[group].update];
    size_t sets = (size_t)o->sets, ahead = f->read_ahead && sets > 1 ? 1 : 0;
    if (ahead && sets > 3) ahead = sets - 2; /* the last one is still being written */
    BASE_TRY(read_until(o, group + 1 + ahead, error));
    for (int32_t p = 0; p < parts_of(o, in); p++)
        BASE_TRY(plan_add_wait(o->s, o->reads[group][p], error));
    BASE_TRY(emit_update(o, group, error));
    for (int32_t i = 0, part = 0; i < in->operands; i++) {
        const plan_operand *state = &o->old.operands[in->first_operand + i];
        if (!on_disk(o, state)) continue;
        BASE_TRY(emit_transfer(o, PLAN_WRITE, group, part, state, &o->groups[group].writes[part],
                               error));
        part++;
    }
    return f->write_behind ? SIFR_OK : wait_for_writes(o, group, error);
}

static sifr_status emit_same(offload_state *o, size_t index, sifr_error *error) {
    plan_instruction in = o->old.instructions[index];
    for (int32_t i = in.first_operand; i < in.first_operand + in.operands; i++) {
        const plan_operand *operand = &o->old.operands[i];
        BASE_TRY(plan_add_operand(o->s, (plan_role)operand->role, operand->buffer, operand->offset,
                                  error));
    }
    o->moved[index] = (int32_t)o->s->instruction_count;
    if (in.wait >= 0) in.wait = o->moved[in.wait];
    return plan_add_instruction(o->s, in, error);
}

static sifr_status rewrite(offload_state *o, sifr_error *error) {
    size_t group = 0;
    bool begun = !o->s->settings.offload.read_ahead;
    for (size_t i = 0; i < o->old.count; i++) {
        if (!begun && o->old.instructions[i].action == PLAN_SQUARES) {
            begun = true; /* activations are given back by now */
            BASE_TRY(read_until(o, (size_t)o->sets, error));
        }
        if (group == o->count || o->groups[group].update != (int32_t)i) {
            BASE_TRY(emit_same(o, i, error));
            continue;
        }
        for (; group < o->count && o->groups[group].update == (int32_t)i; group++)
            BASE_TRY(emit_group(o, group, error));
    }
    for (group = 0; group < o->count; group++) BASE_TRY(wait_for_writes(o, group, error));
    return SIFR_OK;
}

static bool assign_tiers(plan_schedule *s) {
    const plan_offload *f = &s->settings.offload;
    bool disk = false;
    for (size_t b = 0; b < s->buffer_count; b++) {
        plan_buffer *buffer = &s->buffers[b];
        if (buffer->class == PLAN_MASTERS) buffer->tier = f->masters;
        if (buffer->class == PLAN_MOMENTS) buffer->tier = f->moments;
        disk |= buffer->tier == PLAN_NVME;
    }
    return disk;
}

sifr_status plan_pass_offload(plan_schedule *s, sifr_error *error) {
    offload_state o = {.s = s, .call = -1};
    sifr_status status;
    if (s->settings.mode != PLAN_TRAIN || !assign_tiers(s)) return SIFR_OK;
    o.old = plan_take_list(s);
    BASE_TRY_GOTO(status, find_groups(&o, error), done);
    BASE_TRY_GOTO(status, base_alloc(o.old.count, sizeof *o.moved, &o.moved, error), done);
    BASE_TRY_GOTO(status, base_alloc(o.count, sizeof *o.reads, &o.reads, error), done);
    if (o.count) BASE_TRY_GOTO(status, take_buffers(&o, error), done);
    status = rewrite(&o, error);
done:
    plan_free_list(&o.old);
    free(o.groups);
    free(o.moved);
    free(o.reads);
    free(o.buffers);
    return status;
}

void plan_disk(const plan_schedule *s, int64_t *read, int64_t *written) {
    *read = *written = 0;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->action == PLAN_READ) *read += in->bytes;
        if (in->action == PLAN_WRITE) *written += in->bytes;
    }
}
