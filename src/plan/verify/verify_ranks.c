/* The ranks of a group run their common instructions in one order. */
#include "plan/queries.h"
#include "plan/verify/verify_private.h"

/* Common instructions: collectives, waits for sums, whose second half begins there, the count of
 * labels, and the norm. */
static bool is_together(const plan_schedule *s, const plan_instruction *in) {
    if (in->action == PLAN_WAIT) return s->instructions[in->wait].action == PLAN_SUM;
    return plan_is_collective(in) || in->action == PLAN_COUNT || in->action == PLAN_NORM;
}

/* Whether it brings the values of a weight of which tensor ranks have parts: those ranks alone make
 * it that own elements of the weight (pass_zero.c). */
static bool is_of_owners(const plan_schedule *s, const plan_instruction *in) {
    if (in->action != PLAN_GATHER || in->span != PLAN_TENSORS || in->segment < 0) return false;
    return s->operands[in->first_operand].buffer == s->whole_values[in->segment];
}

/* Of the common instructions of `s` and those of `other`. */
static size_t next_together(const plan_schedule *s, const plan_schedule *other, size_t from) {
    const plan_mesh *mesh = &s->settings.mesh;
    bool apart =
        plan_mesh_group(mesh, PLAN_TENSORS) != plan_mesh_group(&other->settings.mesh, PLAN_TENSORS);
    for (; from < s->instruction_count; from++) {
        const plan_instruction *in = &s->instructions[from];
        if (is_together(s, in) && !(apart && is_of_owners(s, in))) break;
    }
    return from;
}

static const char *name_or_end(const plan_schedule *s, size_t index, char *out) {
    if (index == s->instruction_count) return "the end of its list";
    return verify_name_instruction(s, index, out);
}

/* Whether two ranks take part in the same one, or in ones that are as large: parts of weights may
 * differ among tensor ranks alone. */
static bool must_fit(const plan_schedule *a, const plan_schedule *b, const plan_instruction *in) {
    plan_span span = plan_is_collective(in) ? (plan_span)in->span : PLAN_WORLD;
    bool alike = plan_mesh_ranks(&a->settings.mesh, PLAN_TENSORS) == 1;
    if (alike && in->action != PLAN_EXCHANGE) return true;
    return plan_mesh_group(&a->settings.mesh, span) == plan_mesh_group(&b->settings.mesh, span);
}

/* Whether what each of two ranks sends to the other is what that one takes it for. Other
 * collectives move as much on each of their ranks. */
static bool fit(const plan_schedule *a, const plan_instruction *x, const plan_schedule *b,
                const plan_instruction *y) {
    plan_span span = (plan_span)x->span;
    if (x->action != PLAN_EXCHANGE)
        return x->bytes == y->bytes && x->encoding == y->encoding && x->sum == y->sum;
    int32_t ranks = plan_mesh_ranks(&a->settings.mesh, span);
    int32_t of_a = plan_mesh_place(&a->settings.mesh, span);
    int32_t of_b = plan_mesh_place(&b->settings.mesh, span);
    const comm_run *one = a->runs + x->runs, *two = b->runs + y->runs;
    return x->encoding == y->encoding && one[of_b].bytes == two[ranks + of_a].bytes &&
           two[of_a].bytes == one[ranks + of_b].bytes;
}

static sifr_status fail_sizes(const plan_schedule *first, size_t a, const plan_schedule *s,
                              size_t b, sifr_error *error) {
    char one[VERIFY_NAME_LENGTH], two[VERIFY_NAME_LENGTH];
    const plan_instruction *x = first->instructions + a, *y = s->instructions + b;
    int32_t lower = plan_mesh_place(&first->settings.mesh, PLAN_WORLD);
    int32_t rank = plan_mesh_place(&s->settings.mesh, PLAN_WORLD);
    verify_name_instruction(s, b, two);
    verify_name_instruction(first, a, one);
    if (x->action == PLAN_EXCHANGE)
        return base_fail(error, SIFR_FAILED,
                         VERIFY_FAULT("%s of rank %d and %s of rank %d: what one sends is not what "
                                      "the other takes"),
                         two, (int)rank, one, (int)lower);
    return base_fail(error, SIFR_FAILED,
                     VERIFY_FAULT("%s of rank %d moves %lld bytes, %s of rank %d %lld"), two,
                     (int)rank, (long long)y->bytes, one, (int)lower, (long long)x->bytes);
}

/* Of a wait: what it waits for. */
static int32_t segment_of(const plan_schedule *s, const plan_instruction *in) {
    return in->action == PLAN_WAIT ? s->instructions[in->wait].segment : in->segment;
}

static sifr_status check_rank(const plan_schedule *first, const plan_schedule *s, size_t rank,
                              sifr_error *error) {
    char one[VERIFY_NAME_LENGTH], two[VERIFY_NAME_LENGTH];
    size_t a = 0, b = 0;
    for (;; a++, b++) {
        a = next_together(first, s, a);
        b = next_together(s, first, b);
        bool ended[2] = {a == first->instruction_count, b == s->instruction_count};
        if (ended[0] && ended[1]) return SIFR_OK;
        const plan_instruction *x = first->instructions + a, *y = s->instructions + b;
        bool same = !ended[0] && !ended[1] && x->action == y->action && x->unit == y->unit &&
                    segment_of(first, x) == segment_of(s, y) && x->span == y->span &&
                    x->deferred == y->deferred;
        if (same && (!must_fit(first, s, x) || fit(first, x, s, y))) continue;
        if (same) return fail_sizes(first, a, s, b, error);
        return base_fail(
            error, SIFR_FAILED, VERIFY_FAULT("rank %zu comes to %s where rank %d comes to %s"),
            rank, name_or_end(s, b, two), (int)plan_mesh_place(&first->settings.mesh, PLAN_WORLD),
            name_or_end(first, a, one));
    }
}

/* Whether there are collectives of values, or exchanges: rank 0 may not take part in them, and each
 * pair of an exchange has sizes of its own. */
static bool has_groups(const plan_schedule *s) {
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (plan_is_collective(in) && (in->segment < 0 || in->action == PLAN_EXCHANGE)) return true;
    }
    return false;
}

sifr_status plan_verify_ranks(const plan_schedule *const *schedules, size_t count,
                              sifr_error *error) {
    for (size_t r = 0; r < count; r++) {
        const plan_mesh *mesh = &schedules[r]->settings.mesh;
        int32_t rank = plan_mesh_place(mesh, PLAN_WORLD), ranks = plan_mesh_ranks(mesh, PLAN_WORLD);
        if (rank != (int32_t)r || ranks != (int32_t)count)
            return base_fail(error, SIFR_FAILED,
                             VERIFY_FAULT("plan %zu of %zu is that of rank %d of %d"), r, count,
                             rank, ranks);
    }
    for (size_t r = 1; r < count; r++) BASE_TRY(check_rank(schedules[0], schedules[r], r, error));
    for (size_t r = 1; r < count && has_groups(schedules[0]); r++) {
        for (size_t lower = 1; lower < r; lower++)
            BASE_TRY(check_rank(schedules[lower], schedules[r], r, error));
    }
    return SIFR_OK;
}
