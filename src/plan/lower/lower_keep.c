/* Chooses the results to keep for the backward pass within memory limits: those that are expensive
 * to recompute for their size.
 *
 * All results that a full recomputation would make again are sorted by the predicted time that
 * keeping them saves per byte. Of identical units, the last comes first, since its results are
 * needed soonest. Keeping one result may make others worth less (its inputs need not be
 * recomputed), so the order is found one result at a time. The longest prefix of that order with
 * which the step stays within the limits is kept.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "base/text.h"
#include "plan/lower/lower.h"
#include "plan/price/price.h"

/* Prices of a typical machine, in bytes moved. Which results are expensive hardly depends on the
 * machine, and with fixed prices a plan made anywhere is the one that runs. */
static const plan_machine typical = {
    .fp32_operations = 20, .bf16_operations = 40, .memory_bytes = 1};

/* A result: the output of a node and of the nodes that overwrite it in place. Identified by the
 * first node. */
typedef struct keep_result {
    int32_t node;
    int64_t bytes;
    double worth; /* seconds a byte, in the pricer's units */
} keep_result;

typedef struct keep_state {
    lower_state facts; /* properties of the model alone: in_place, carries, recompute */
    bool *kept;        /* by node: facts.kept */
    int32_t *first;    /* by node: the node whose result it overwrites, or itself */
    double *seconds;   /* by node: of its forward call */
    int64_t *bytes;    /* by first node */
    int32_t *like;     /* by unit: the first unit with the same ops and prices */
    keep_result *order;
    int64_t
        *before; /* by position in the order: bytes of all results before it; results + 1 entries */
    int32_t count;
} keep_state;

static sifr_status take_facts(keep_state *k, const sifr_model *model, sifr_error *error) {
    lower_state *facts = &k->facts;
    size_t nodes = model->node_count, units = model->unit_count;
    facts->model = model;
    BASE_TRY(base_alloc(nodes, sizeof *facts->in_place, &facts->in_place, error));
    BASE_TRY(base_alloc(nodes, sizeof *facts->carries, &facts->carries, error));
    BASE_TRY(base_alloc(nodes, sizeof *facts->recompute, &facts->recompute, error));
    BASE_TRY(base_alloc(nodes, sizeof *facts->feeds_other_units, &facts->feeds_other_units, error));
    BASE_TRY(base_alloc(model->value_count, sizeof *facts->mixed, &facts->mixed, error));
    BASE_TRY(base_alloc(nodes, sizeof *k->kept, &k->kept, error));
    BASE_TRY(base_alloc(nodes, sizeof *k->first, &k->first, error));
    BASE_TRY(base_alloc(nodes, sizeof *k->seconds, &k->seconds, error));
    BASE_TRY(base_alloc(nodes, sizeof *k->bytes, &k->bytes, error));
    BASE_TRY(base_alloc(nodes, sizeof *k->order, &k->order, error));
    BASE_TRY(base_alloc(nodes + 1, sizeof *k->before, &k->before, error));
    BASE_TRY(base_alloc(units, sizeof *k->like, &k->like, error));
    facts->kept = k->kept;
    BASE_TRY(lower_analyse(facts, error));
    for (size_t n = 0; n < nodes; n++) {
        k->first[n] = (int32_t)n;
        if (facts->in_place[n]) k->first[n] = k->first[model->values[model->nodes[n].x[0]].node];
    }
    return SIFR_OK;
}

static void release(keep_state *k) {
    void *const blocks[] = {
        k->facts.in_place, k->facts.carries, k->facts.recompute, k->facts.feeds_other_units,
        k->facts.mixed,    k->kept,          k->first,           k->seconds,
        k->bytes,          k->like,          k->order,           k->before};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
}

/* Prices of forward calls and sizes of their results, from a schedule that keeps everything. */
static void take_prices(keep_state *k, const plan_schedule *s) {
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->action != PLAN_FORWARD || in->micro_batch != 0) continue;
        base_assert(in->node >= 0);
        k->seconds[in->node] += plan_price(s, i, &typical);
        for (int32_t o = in->first_operand; o < in->first_operand + in->operands; o++) {
            const plan_operand *operand = &s->operands[o];
            bool made = (operand->role == PLAN_Y && k->first[in->node] == in->node) ||
                        operand->role == PLAN_SAVED0;
            if (operand->offset > 0) continue; /* of another tile: counted */
            if (made) k->bytes[k->first[in->node]] += s->buffers[operand->buffer].bytes;
        }
    }
}

static bool is_like(const keep_state *k, const model_unit *a, const model_unit *b) {
    const model_node *nodes = k->facts.model->nodes;
    if (a->nodes != b->nodes) return false;
    for (int32_t i = 0; i < a->nodes; i++) {
        int32_t x = a->first_node + i, y = b->first_node + i;
        bool alike = nodes[x].op == nodes[y].op && k->seconds[x] == k->seconds[y] &&
                     k->bytes[x] == k->bytes[y] && k->facts.recompute[x] == k->facts.recompute[y] &&
                     k->first[x] - a->first_node == k->first[y] - b->first_node;
        if (!alike) return false;
    }
    return true;
}

static void find_alike(keep_state *k) {
    const sifr_model *model = k->facts.model;
    for (int32_t u = 0; u < (int32_t)model->unit_count; u++) {
        k->like[u] = u;
        for (int32_t v = 0; v < u; v++) {
            if (k->like[v] != v || !is_like(k, &model->units[v], &model->units[u])) continue;
            k->like[u] = v;
            break;
        }
    }
}

static void keep(keep_state *k, int32_t first, bool kept) {
    base_assert(k->first[first] == first);
    const model_unit *u = &k->facts.model->units[k->facts.model->nodes[first].unit];
    for (int32_t n = first; n < u->first_node + u->nodes; n++) {
        if (k->first[n] == first) k->kept[n] = kept;
    }
}

/* The recomputation time of a unit with the results that are kept now. */
static double time_again(keep_state *k, int32_t unit) {
    const model_unit *u = &k->facts.model->units[unit];
    double sum = 0;
    lower_find_recompute(&k->facts, unit);
    for (int32_t n = u->first_node; n < u->first_node + u->nodes; n++) {
        if (k->facts.recompute[n]) sum += k->seconds[n];
    }
    return sum;
}

/* The unit's most valuable result given those that are kept; false if nothing is recomputed any
 * more. */
static bool find_dearest(keep_state *k, int32_t unit, keep_result *out) {
    const model_unit *u = &k->facts.model->units[unit];
    double all = time_again(k, unit);
    *out = (keep_result){.node = -1};
    for (int32_t n = u->first_node; all > 0 && n < u->first_node + u->nodes; n++) {
        if (k->first[n] != n || k->kept[n] || k->bytes[n] == 0) continue;
        keep(k, n, true);
        double saved = all - time_again(k, unit);
        keep(k, n, false);
        if (saved <= 0 || saved / (double)k->bytes[n] <= out->worth) continue;
        *out = (keep_result){n, k->bytes[n], saved / (double)k->bytes[n]};
    }
    return out->node >= 0;
}

/* Computes the order of one unit in k->order. A result that pays only together with an earlier one
 * gets at most that one's value, so that it does not come first. */
static void order_unit(keep_state *k, int32_t unit) {
    keep_result next;
    k->count = 0;
    while (find_dearest(k, unit, &next)) {
        if (k->count > 0 && next.worth > k->order[k->count - 1].worth)
            next.worth = k->order[k->count - 1].worth;
        k->order[k->count++] = next;
        keep(k, next.node, true);
    }
    for (int32_t i = 0; i < k->count; i++) keep(k, k->order[i].node, false);
}

/* Sorts by value; with equal value the last unit first, and within a unit in the order found. */
typedef struct keep_place {
    keep_result result;
    int32_t rank, unit; /* position within its unit */
} keep_place;

static int compare_places(const void *a, const void *b) {
    const keep_place *x = a, *y = b;
    if (x->result.worth != y->result.worth) return x->result.worth > y->result.worth ? -1 : 1;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return x->unit > y->unit ? -1 : x->unit < y->unit;
}

/* Applies the order of each kind of unit to all units of the kind, and sorts all into one. */
static sifr_status find_order(keep_state *k, sifr_error *error) {
    const sifr_model *model = k->facts.model;
    keep_place *places;
    size_t count = 0;
    BASE_TRY(base_alloc(model->node_count, sizeof *places, &places, error));
    find_alike(k);
    for (int32_t u = 0; u < (int32_t)model->unit_count; u++) {
        if (k->like[u] != u) continue;
        order_unit(k, u);
        for (int32_t v = u; v < (int32_t)model->unit_count; v++) {
            if (k->like[v] != u) continue;
            int32_t shift = model->units[v].first_node - model->units[u].first_node;
            for (int32_t i = 0; i < k->count; i++) {
                places[count] = (keep_place){k->order[i], i, v};
                places[count++].result.node += shift;
            }
        }
    }
    base_assert(count <= model->node_count);
    if (count) qsort(places, count, sizeof *places, compare_places);
    k->count = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        k->order[i] = places[i].result;
        k->before[i + 1] = k->before[i] + places[i].result.bytes;
    }
    free(places);
    return SIFR_OK;
}

/* --- the longest prefix within the limits --- */

/* Bytes by which a step exceeds its limits; <= 0: it is within them. */
static int64_t excess(const plan_schedule *s) {
    const plan_settings *settings = &s->settings;
    int64_t most = INT64_MIN;
    if (settings->step.activation_memory > 0)
        most = s->largest_bytes[PLAN_ACTIVATIONS] - settings->step.activation_memory;
    if (settings->room_bytes > 0) most = base_max_i64(most, s->total_bytes - settings->room_bytes);
    return most;
}

/* Plans the step that keeps the first `count` results of the order. */
static sifr_status keep_first(keep_state *k, device *dev, const plan_settings *settings,
                              int32_t count, plan_schedule **out, sifr_error *error) {
    memset(k->kept, 0, k->facts.model->node_count * sizeof *k->kept);
    for (int32_t i = 0; i < count; i++) keep(k, k->order[i].node, true);
    return lower_list(k->facts.model, dev, settings, k->kept, out, error);
}

/* Two numbers of kept results, one within the limits and one beyond, with the distance of each. */
typedef struct keep_bracket {
    int32_t within, beyond;
    int64_t excess_within, excess_beyond;
} keep_bracket;

/* A step's memory is nearly linear in the bytes kept, so the answer is usually near the point where
 * the line meets the limit; later, every second try is the middle. */
static int32_t next_count(const keep_state *k, const keep_bracket *b, int step) {
    base_assert(b->within + 1 < b->beyond && b->excess_within <= 0 && b->excess_beyond > 0);
    int32_t low = b->within + 1, high = b->beyond - 1;
    if (step >= 4 && step % 2 == 0) return low + (high - low) / 2;
    double rise = (double)b->excess_beyond - (double)b->excess_within;
    double run = (double)(k->before[b->beyond] - k->before[b->within]);
    double capacity = (double)k->before[b->within] - (double)b->excess_within * run / rise;
    int32_t count = low;
    while (count < high && (double)k->before[count + 1] <= capacity) count++;
    return count;
}

static sifr_status refuse(const plan_schedule *s, sifr_error *error) {
    char least[32], limit[32];
    return base_fail(error, SIFR_USAGE,
                     "activation_memory: activations take at least %s (%lld bytes) with this micro "
                     "batch and length, even if only the units' inputs are kept, and may take %s; "
                     "give at least that, or a smaller micro batch or seq_length",
                     base_format_bytes((uint64_t)s->largest_bytes[PLAN_ACTIVATIONS], least),
                     (long long)s->largest_bytes[PLAN_ACTIVATIONS],
                     base_format_bytes((uint64_t)s->settings.step.activation_memory, limit));
}

/* *out starts as the step that keeps nothing, which is within the limits; better ones replace it.
 */
static sifr_status keep_most(keep_state *k, device *dev, const plan_settings *settings,
                             int64_t beyond, plan_schedule **out, sifr_error *error) {
    keep_bracket b = {.beyond = k->count, .excess_within = excess(*out), .excess_beyond = beyond};
    for (int step = 0; b.beyond - b.within > 1; step++) {
        plan_schedule *s;
        int32_t count = next_count(k, &b, step);
        BASE_TRY(keep_first(k, dev, settings, count, &s, error));
        int64_t over = excess(s);
        if (over > 0) {
            b.beyond = count;
            b.excess_beyond = over;
            plan_free(s);
            continue;
        }
        b.within = count;
        b.excess_within = over;
        plan_free(*out);
        *out = s;
    }
    return SIFR_OK;
}

sifr_status lower_keep(const sifr_model *model, device *dev, const plan_settings *settings,
                       plan_schedule **out, sifr_error *error) {
    keep_state k = {0};
    plan_schedule *s = NULL;
    sifr_status status;
    BASE_TRY_GOTO(status, take_facts(&k, model, error), done);
    memset(k.kept, true, model->node_count * sizeof *k.kept);
    BASE_TRY_GOTO(status, lower_list(model, dev, settings, k.kept, &s, error), done);
    int64_t beyond = excess(s);
    if (beyond > 0) {
        take_prices(&k, s);
        plan_free(s);
        s = NULL;
        memset(k.kept, 0, model->node_count * sizeof *k.kept);
        BASE_TRY_GOTO(status, find_order(&k, error), done);
        BASE_TRY_GOTO(status, keep_first(&k, dev, settings, 0, &s, error), done);
        bool least = excess(s) > 0;
        bool refused = least && settings->step.activation_memory > 0 &&
                       s->largest_bytes[PLAN_ACTIVATIONS] > settings->step.activation_memory;
        if (refused) status = refuse(s, error);
        if (!least) status = keep_most(&k, dev, settings, beyond, &s, error);
    }
    if (status == SIFR_OK) {
        *out = s;
        s = NULL;
    }
done:
    release(&k);
    plan_free(s);
    return status;
}
