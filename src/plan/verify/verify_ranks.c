/* The ranks of a group run their common instructions in one order. */
#include "plan/verify/verify_private.h"

/* Common instructions: collectives, the count of labels, and the norm. */
static bool is_together(const plan_instruction *in) {
    return in->action == PLAN_GATHER || in->action == PLAN_REDUCE || in->action == PLAN_COUNT ||
           in->action == PLAN_NORM;
}

static size_t next_together(const plan_schedule *s, size_t from) {
    while (from < s->instruction_count && !is_together(&s->instructions[from])) from++;
    return from;
}

static const char *name_or_end(const plan_schedule *s, size_t index, char *out) {
    if (index == s->instruction_count) return "the end of its list";
    return verify_name_instruction(s, index, out);
}

static sifr_status check_rank(const plan_schedule *first, const plan_schedule *s, size_t rank,
                              sifr_error *error) {
    char one[VERIFY_NAME_LENGTH], two[VERIFY_NAME_LENGTH];
    size_t a = 0, b = 0;
    for (;; a++, b++) {
        a = next_together(first, a);
        b = next_together(s, b);
        bool ended[2] = {a == first->instruction_count, b == s->instruction_count};
        if (ended[0] && ended[1]) return SIFR_OK;
        const plan_instruction *x = first->instructions + a, *y = s->instructions + b;
        bool same = !ended[0] && !ended[1] && x->action == y->action && x->unit == y->unit &&
                    x->segment == y->segment && x->span == y->span && x->deferred == y->deferred;
        if (same && x->bytes == y->bytes) continue;
        if (same)
            return base_fail(error, SIFR_FAILED,
                             VERIFY_FAULT("%s of rank %zu moves %lld bytes, %s of rank 0 %lld"),
                             verify_name_instruction(s, b, two), rank, (long long)y->bytes,
                             verify_name_instruction(first, a, one), (long long)x->bytes);
        return base_fail(error, SIFR_FAILED,
                         VERIFY_FAULT("rank %zu comes to %s where rank 0 comes to %s"), rank,
                         name_or_end(s, b, two), name_or_end(first, a, one));
    }
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
    return SIFR_OK;
}
