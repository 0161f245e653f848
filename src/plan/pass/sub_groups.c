#include "plan/pass/sub_groups.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "plan/queries.h"

enum { LONGEST_GROUP = 1 << 30 };

/* Updates of one segment with one kernel, in the list one after the other. */
typedef struct update_run {
    int32_t update, end; /* old instructions update ... end - 1 */
    int64_t page;        /* elements in a page of the narrowest kind of state that is offloaded */
} update_run;

static bool is_away(const plan_updates *u, const plan_operand *operand) {
    return plan_is_offloaded(u->s, operand->buffer);
}

plan_state_part plan_state_part_of(const plan_operand *operand) {
    switch ((plan_role)operand->role) {
    case PLAN_W1:
        return PART_NARROW;
    case PLAN_X0:
        return PART_GRADIENT;
    case PLAN_SAVED0:
    case PLAN_SAVED1:
    case PLAN_SAVED2:
    case PLAN_SAVED3:
        return (plan_state_part)(PART_STATE + operand->role - PLAN_SAVED0);
    default:
        return PART_MASTER;
    }
}

int64_t plan_update_elements(const plan_updates *u, const plan_instruction *in) {
    return u->s->calls[in->call].x[0].columns;
}

/* Bytes of an operand's values for so many elements, from the start of one of its values on. */
int64_t plan_state_bytes(const plan_updates *u, const plan_instruction *in,
                         const plan_operand *operand, int64_t elements) {
    base_assert(elements >= 0);
    const device_matrix *m = plan_role_matrix(&u->s->calls[in->call], (plan_role)operand->role);
    int64_t each = plan_update_elements(u, in) / m->columns; /* elements for a value */
    return elements / each * base_dtype_bytes(m->dtype);
}

/* Elements that a page of an operand's values belongs to. */
static int64_t elements_of_page(const plan_updates *u, const plan_instruction *in,
                                const plan_operand *operand) {
    const device_matrix *m = plan_role_matrix(&u->s->calls[in->call], (plan_role)operand->role);
    return PLAN_DISK_ALIGNMENT / base_dtype_bytes(m->dtype) *
           (plan_update_elements(u, in) / m->columns);
}

plan_pages plan_state_pages(const plan_updates *u, const plan_sub_group *g,
                            const plan_operand *operand) {
    const plan_instruction *in = &u->old.instructions[g->update];
    int64_t page = PLAN_DISK_ALIGNMENT, at = plan_state_bytes(u, in, operand, g->first);
    base_assert(at % page == 0);
    return (plan_pages){.at = at,
                        .bytes = base_ceil_to(plan_state_bytes(u, in, operand, g->elements), page)};
}

/* Where an update's elements begin in the rank's slice of its segment, which is what a buffer that
 * is offloaded holds. */
int64_t plan_update_first(const plan_updates *u, const plan_instruction *in) {
    for (int32_t i = in->first_operand; i < in->first_operand + in->operands; i++) {
        const plan_operand *operand = &u->old.operands[i];
        if (!is_away(u, operand)) continue;
        const device_matrix *m = plan_role_matrix(&u->s->calls[in->call], (plan_role)operand->role);
        return operand->offset / base_dtype_bytes(m->dtype) *
               (plan_update_elements(u, in) / m->columns);
    }
    return 0;
}

/* Whether a group may end within an update: not if its kernel moves averages of a weight's rows
 * and columns, which it would do twice. */
static bool is_cut(const plan_updates *u, const plan_instruction *in) {
    const optim_row *row = plan_row(u->s, in->segment);
    return !row->whole_gradient || u->s->calls[in->call].kernel == row->begin;
}

/* Elements in a page of the narrowest kind of this update's state that is offloaded; 0: none is
 * offloaded. */
static int64_t page_elements(const plan_updates *u, const plan_instruction *in) {
    int64_t most = 0;
    if (in->action != PLAN_UPDATE) return 0;
    for (int32_t i = in->first_operand; i < in->first_operand + in->operands; i++) {
        const plan_operand *operand = &u->old.operands[i];
        if (!is_away(u, operand)) continue;
        most = base_max_i64(most, elements_of_page(u, in, operand));
    }
    return most;
}

/* Rounds to whole pages, so that reads and writes are aligned. */
static int64_t group_elements(const plan_updates *u, int64_t page) {
    int64_t asked = u->s->settings.step.offload.sub_group_size;
    if (asked <= 0) return u->usual;
    return base_max_i64(base_min_i64(asked, LONGEST_GROUP) / page, 1) * page;
}

static void note_longest(plan_updates *u, const plan_sub_group *g) {
    const plan_instruction *in = &u->old.instructions[g->update];
    for (int32_t i = in->first_operand; i < in->first_operand + in->operands; i++) {
        const plan_operand *operand = &u->old.operands[i];
        if (!is_away(u, operand)) continue;
        int64_t *longest = &u->longest[plan_state_part_of(operand)];
        *longest = base_max_i64(*longest, plan_state_pages(u, g, operand).bytes);
    }
}

static unsigned uses_of(const plan_updates *u, const plan_instruction *in) {
    return device_update_uses(u->s->calls[in->call].kernel);
}

bool plan_state_is_read(const plan_updates *u, const plan_instruction *in,
                        const plan_operand *state) {
    plan_state_part part = plan_state_part_of(state);
    if (!is_away(u, state) || part == PART_NARROW) return false;
    if (part == PART_GRADIENT) return uses_of(u, in) & DEVICE_READS_GRADIENT;
    return part != PART_MASTER || uses_of(u, in) & DEVICE_READS_WEIGHTS;
}

bool plan_state_is_written(const plan_updates *u, const plan_instruction *in,
                           const plan_operand *state) {
    plan_state_part part = plan_state_part_of(state);
    int states = device_update_states(u->s->calls[in->call].kernel);
    if (!is_away(u, state) || part == PART_GRADIENT) return false;
    if (part < PART_STATE) return uses_of(u, in) & DEVICE_CHANGES_WEIGHTS;
    return (int)part - (int)PART_STATE >= states || uses_of(u, in) & DEVICE_CHANGES_STATES;
}

/* Whether a group writes what another one reads. */
static bool feeds(const plan_updates *u, const plan_sub_group *from, const plan_sub_group *to) {
    const plan_instruction *in = &u->old.instructions[from->update];
    const plan_instruction *next = &u->old.instructions[to->update];
    if (from->first >= to->first + to->elements || to->first >= from->first + from->elements)
        return false;
    for (int32_t i = in->first_operand; i < in->first_operand + in->operands; i++) {
        if (!plan_state_is_written(u, in, &u->old.operands[i])) continue;
        for (int32_t j = next->first_operand; j < next->first_operand + next->operands; j++) {
            if (u->old.operands[j].buffer == u->old.operands[i].buffer &&
                plan_state_is_read(u, next, &u->old.operands[j]))
                return true;
        }
    }
    return false;
}

/* Only the second kernel of an update by weight finds one, among the groups of the first. */
static int32_t find_before(const plan_updates *u, const plan_sub_group *group) {
    const plan_instruction *in = &u->old.instructions[group->update];
    if (!plan_row(u->s, in->segment)->by_weight) return -1;
    for (size_t k = u->count; k-- > 0;) {
        const plan_sub_group *before = &u->groups[k];
        if (u->old.instructions[before->update].segment != in->segment) return -1;
        if (feeds(u, before, group)) return (int32_t)k;
    }
    return -1;
}

static sifr_status add_group(plan_updates *u, plan_sub_group group, sifr_error *error) {
    for (int p = 0; p < PARTS; p++) group.reads[p] = group.writes[p] = -1;
    group.after = find_before(u, &group);
    BASE_TRY(base_grow(&u->groups, &u->capacity, u->count + 1, sizeof *u->groups, error));
    u->groups[u->count++] = group;
    note_longest(u, &group);
    return SIFR_OK;
}

static update_run find_run(const plan_updates *u, size_t update) {
    const plan_instruction *first = &u->old.instructions[update];
    update_run run = {.update = (int32_t)update, .end = (int32_t)update};
    for (size_t i = update; i < u->old.count; i++, run.end++) {
        const plan_instruction *in = &u->old.instructions[i];
        int64_t page = page_elements(u, in);
        if (page == 0 || in->segment != first->segment) break;
        if (u->s->calls[in->call].kernel != u->s->calls[first->call].kernel) break;
        run.page = base_max_i64(run.page, page);
    }
    return run;
}

/* Where the group from element `first` on ends, which is in the update `at`: after `most` elements,
 * or where updates must not be cut with the last of them that ends there or before; the first that
 * ends on a page else. */
static int64_t find_end(const plan_updates *u, const update_run *run, int32_t at, int64_t first,
                        int64_t most) {
    const plan_instruction *last = &u->old.instructions[run->end - 1];
    int64_t all = plan_update_first(u, last) + plan_update_elements(u, last), found = 0;
    base_assert(at < run->end && first < all);
    if (is_cut(u, last)) return base_min_i64(first + most, all);
    for (; at < run->end; at++) {
        const plan_instruction *in = &u->old.instructions[at];
        int64_t end = plan_update_first(u, in) + plan_update_elements(u, in);
        if (end % run->page != 0 && end < all) continue;
        if (found && end > first + most) break;
        found = end;
    }
    return found;
}

static sifr_status add_groups(plan_updates *u, const update_run *run, sifr_error *error) {
    int64_t most = group_elements(u, run->page);
    int32_t at = run->update;
    int64_t first = plan_update_first(u, &u->old.instructions[at]) / run->page * run->page;
    while (at < run->end) {
        int64_t end = find_end(u, run, at, first, most), reached = 0;
        base_assert(end > first);
        plan_sub_group group = {.update = at, .first = first, .elements = end - first};
        for (; at < run->end; at++) {
            const plan_instruction *in = &u->old.instructions[at];
            reached = plan_update_first(u, in) + plan_update_elements(u, in);
            group.end = at + 1;
            if (reached >= end) break;
        }
        BASE_TRY(add_group(u, group, error));
        if (reached == end) at++;
        first = end;
    }
    return SIFR_OK;
}

sifr_status plan_cut_updates(plan_updates *u, sifr_error *error) {
    for (size_t i = 0; i < u->old.count; i++) {
        update_run run = find_run(u, i);
        if (run.end == run.update) continue;
        BASE_TRY(add_groups(u, &run, error));
        i = (size_t)run.end - 1;
    }
    return SIFR_OK;
}
