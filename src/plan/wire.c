/* What a step moves between ranks. */
#include "base/assert.h"
#include "base/checked.h"
#include "plan/queries.h"

bool plan_is_collective(const plan_instruction *in) {
    return in->action == PLAN_GATHER || in->action == PLAN_REDUCE || in->action == PLAN_SUM ||
           in->action == PLAN_EXCHANGE;
}

int64_t plan_summed_bytes(const plan_instruction *in) {
    return plan_encoded_values((plan_code)in->encoding, in->bytes) *
           base_dtype_bytes((base_dtype)in->sum);
}

static void add_wire(const plan_schedule *s, const plan_instruction *in, int64_t *gathered,
                     int64_t *reduced) {
    if (!plan_runs(s, in)) return;
    int64_t others = plan_mesh_ranks(&s->settings.mesh, (plan_span)in->span) - 1;
    if (in->action == PLAN_GATHER) *gathered += in->bytes * others;
    if (in->action == PLAN_REDUCE || in->action == PLAN_SUM) *reduced += in->bytes * others;
    if (in->action == PLAN_SUM) *gathered += plan_summed_bytes(in) * others;
}

/* What it gets from the rank at a place of the span. */
static int64_t part_from(const plan_schedule *s, const plan_instruction *in, int32_t place) {
    int32_t ranks = plan_mesh_ranks(&s->settings.mesh, (plan_span)in->span);
    return s->runs[in->runs + ranks + place].bytes;
}

int64_t plan_delivered(const plan_schedule *s, const plan_instruction *in) {
    const plan_mesh *mesh = &s->settings.mesh;
    int64_t gathered = 0, reduced = 0;
    if (in->action == PLAN_EXCHANGE)
        return in->bytes - part_from(s, in, plan_mesh_place(mesh, (plan_span)in->span));
    if (plan_is_collective(in)) add_wire(s, in, &gathered, &reduced);
    return gathered + reduced;
}

int64_t plan_exchanged(const plan_schedule *s) {
    int64_t bytes = 0;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->action == PLAN_EXCHANGE) bytes += plan_delivered(s, in);
    }
    return bytes;
}

int64_t plan_exchanged_of(const plan_schedule *s, plan_span span) {
    int64_t bytes = 0;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->action == PLAN_EXCHANGE && in->span == span) bytes += plan_delivered(s, in);
    }
    return bytes;
}

void plan_wire(const plan_schedule *s, int64_t *gathered, int64_t *reduced) {
    *gathered = *reduced = 0;
    for (size_t i = 0; i < s->instruction_count; i++)
        add_wire(s, &s->instructions[i], gathered, reduced);
}

void plan_wire_of(const plan_schedule *s, plan_span span, int64_t *gathered, int64_t *reduced) {
    *gathered = *reduced = 0;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->span == span) add_wire(s, in, gathered, reduced);
    }
}

size_t plan_wire_spans(const plan_schedule *s, plan_span out[PLAN_WIRE_SPANS]) {
    static const plan_span all[PLAN_WIRE_SPANS] = {
        PLAN_STATE, PLAN_REPLICAS, PLAN_CONTEXTS, PLAN_TENSORS, PLAN_HOSTS, PLAN_ALIKE, PLAN_BATCH};
    size_t count = 0;
    for (size_t i = 0; i < PLAN_WIRE_SPANS; i++) {
        int64_t gathered, reduced;
        plan_wire_of(s, all[i], &gathered, &reduced);
        bool moves = all[i] != PLAN_BATCH || gathered + reduced > 0;
        if (moves && plan_mesh_ranks(&s->settings.mesh, all[i]) > 1) out[count++] = all[i];
    }
    return count;
}

/* How many parts of a gather, or of a reduction, come from other hosts. `joined`: one of each host
 * stands for those of its ranks. */
static int64_t crossing_parts(const plan_mesh *mesh, plan_span span, int32_t ranks_per_host,
                              bool joined) {
    int32_t ranks = plan_mesh_ranks(mesh, span), world = plan_mesh_ranks(mesh, PLAN_WORLD);
    int32_t here = plan_mesh_neighbours(mesh, span, ranks_per_host);
    base_assert(here >= 1 && here <= ranks);
    bool even = ranks_per_host > 0 && world % ranks_per_host == 0 && ranks % here == 0;
    return even && joined ? ranks / here - 1 : ranks - here;
}

int64_t plan_exchange_crossing(const plan_schedule *s, const plan_instruction *in,
                               int32_t ranks_per_host) {
    const plan_mesh *mesh = &s->settings.mesh;
    plan_span span = (plan_span)in->span;
    int32_t rank = plan_mesh_place(mesh, PLAN_WORLD), world = plan_mesh_ranks(mesh, PLAN_WORLD);
    int64_t bytes = 0;
    for (int32_t r = 0; r < world && ranks_per_host > 0; r++) {
        plan_mesh there = plan_mesh_at(mesh, r);
        bool far = r / ranks_per_host != rank / ranks_per_host;
        if (far && plan_mesh_group(&there, span) == plan_mesh_group(mesh, span))
            bytes += part_from(s, in, plan_mesh_place(&there, span));
    }
    return bytes;
}

int64_t plan_wire_crossing(const plan_schedule *s, plan_span span, int32_t ranks_per_host) {
    const plan_mesh *mesh = &s->settings.mesh;
    int32_t ranks = plan_mesh_ranks(mesh, span);
    int32_t here = plan_mesh_neighbours(mesh, span, ranks_per_host);
    int64_t bytes = 0, parts[2];
    if (ranks == 1 || here == ranks) return 0;
    for (int joined = 0; joined < 2; joined++)
        parts[joined] = crossing_parts(mesh, span, ranks_per_host, joined);
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        int64_t gathered = 0, reduced = 0;
        if (!plan_is_collective(in) || in->span != span) continue;
        base_dtype type = plan_encoding_of((plan_code)in->encoding)->type;
        bool narrow = type == BASE_BF16 || type == BASE_FP16;
        add_wire(s, in, &gathered, &reduced);
        bytes += gathered / (ranks - 1) * parts[1];
        bytes += reduced / (ranks - 1) * parts[!narrow && base_is_power_of_two(here)];
        if (in->action == PLAN_EXCHANGE) bytes += plan_exchange_crossing(s, in, ranks_per_host);
    }
    return bytes;
}

void plan_calls(const plan_schedule *s, int64_t *gathers, int64_t *reductions) {
    *gathers = *reductions = 0;
    for (size_t i = 0; i < s->instruction_count; i++) {
        plan_action action = (plan_action)s->instructions[i].action;
        if (!plan_runs(s, &s->instructions[i])) continue;
        *gathers += action == PLAN_GATHER || action == PLAN_SUM;
        *reductions += action == PLAN_REDUCE || action == PLAN_SUM;
    }
}
