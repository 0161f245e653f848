/* Makes a context rank's part of a model. */
#include "model/context.h"

#include "base/assert.h"
#include "base/heap.h"
#include "base/text.h"
#include "model/part.h"
#include "model/shard.h"

typedef struct context_work {
    const sifr_model *from;
    sifr_model *part;
    int32_t ranks;
    int64_t sequences;
    sifr_context_kind kind;
} context_work;

static bool convolves(const model_node *node) {
    return node->op->contexts == MODEL_CONTEXTS_HALO;
}

static bool attends(const model_node *node) {
    return node->op->contexts == MODEL_CONTEXTS_HEADS;
}

/* How many neighbours divide the heads of attention: with both kinds as many as can divide the kv
 * heads, too. */
static int32_t sharing_heads(const context_work *work, const model_node *node) {
    int32_t kv_heads = node->attributes.attention.kv_heads;
    if (work->kind == SIFR_CONTEXT_GATHER) return 1;
    if (work->kind == SIFR_CONTEXT_ULYSSES) return work->ranks;
    return (int32_t)model_common_divisor(work->ranks, kv_heads);
}

/* --- what can be cut --- */

static sifr_status refuse(const sifr_model *model, const model_node *node, const char *what,
                          sifr_error *error) {
    return base_fail(error, SIFR_USAGE,
                     "context_parallel: unit %s: %s is not supported with context ranks yet; leave "
                     "them out",
                     model->units[node->unit].name, what);
}

static sifr_status check_heads(const context_work *work, const model_node *node,
                               sifr_error *error) {
    const device_attention_attributes *a = &node->attributes.attention;
    char sizes[128];
    int32_t kv = a->kv_heads, ranks = work->ranks;
    const char *unit = work->from->units[node->unit].name;
    if (a->alibi > 0)
        return refuse(work->from, node, "attention with a bias by distance (ALiBi)", error);
    if (node->x[4] >= 0 || node->x[5] >= 0)
        return refuse(work->from, node, "attention with relative positions", error);
    if (sharing_heads(work, node) == 1) return SIFR_OK;
    if (a->dropout > 0) return refuse(work->from, node, "dropout of attention's scores", error);
    if (work->kind != SIFR_CONTEXT_ULYSSES) return SIFR_OK;
    base_format_divisors(a->heads, sizes, sizeof sizes);
    if (a->heads % ranks)
        return base_fail(error, SIFR_USAGE,
                         "context_parallel: unit %s: %d head%s not divided among %d ranks; %s%s",
                         unit, (int)a->heads, a->heads == 1 ? " is" : "s are", (int)ranks,
                         a->heads == 1 ? "leave them out" : "give ", a->heads == 1 ? "" : sizes);
    if (kv % ranks == 0 || ranks % kv == 0) return SIFR_OK;
    base_format_divisors(kv, sizes, sizeof sizes);
    return base_fail(error, SIFR_USAGE,
                     "context_parallel: unit %s: %d kv heads are not divided among %d ranks, nor "
                     "are %d ranks among them; give %s",
                     unit, (int)kv, (int)ranks, (int)ranks, sizes);
}

/* Dropout counts the elements of a micro batch from where the rank's rows begin, which are one run
 * of it where there is one sequence, and two where keys are gathered. */
static sifr_status check_node(const context_work *work, const model_node *node, sifr_error *error) {
    char what[96];
    if (attends(node)) return check_heads(work, node, error);
    if (convolves(node) && node->x[1] < 0) return SIFR_OK;
    if (convolves(node)) return refuse(work->from, node, "short_conv of packed documents", error);
    if (node->op->counts_elements && work->kind != SIFR_CONTEXT_ULYSSES)
        return refuse(work->from, node, "dropout beside gathered keys and values", error);
    if (node->op->counts_elements && work->sequences > 1)
        return refuse(work->from, node, "dropout of several sequences in a micro batch", error);
    bool rows = node->op->by_row || node->op->contexts == MODEL_CONTEXTS_ROWS || node->op->sums ||
                node->op->sums_gradient;
    if (rows && work->part->values[node->y].rows == 0) return SIFR_OK;
    bool magnitudes = node->op == &model_op_magnitude || node->op == &model_op_constant_rows;
    snprintf(what, sizeof what, "%s", magnitudes ? "DoRA (use_dora)" : node->op->name);
    return refuse(work->from, node, what, error);
}

static sifr_status check_model(const context_work *work, sifr_error *error) {
    for (size_t n = 0; n < work->from->node_count; n++)
        BASE_TRY(check_node(work, &work->from->nodes[n], error));
    return SIFR_OK;
}

/* --- values and nodes --- */

/* `heads` of the tokens of so many ranks, of a value with all heads of a rank's own. */
static int32_t add_heads(const context_work *work, const model_node *node, int32_t like,
                         int32_t heads, int32_t contexts) {
    int64_t columns = (int64_t)heads * node->attributes.attention.head_dim;
    int32_t value = model_part_value(work->part, like, columns, node->unit);
    work->part->values[value].contexts = contexts;
    return value;
}

/* The lowering reads of attention what is seen, and who has its heads. */
static void add_move(sifr_model *part, const model_op *op, const model_node *attention, int32_t x,
                     int32_t y) {
    model_node move = model_bare_node(op, attention, x, y);
    move.attributes.attention = attention->attributes.attention;
    model_part_node(part, move);
}

/* With queries of the rank's own or of its neighbours', keys and values are gathered from all; else
 * these are exchanged as the queries are. Several ranks have the one kv head that their heads read
 * where there are more ranks than that. */
static void add_attention(const context_work *work, model_node node) {
    device_attention_attributes *a = &node.attributes.attention;
    sifr_model *part = work->part;
    int32_t rows = node.y, sharing = sharing_heads(work, &node);
    if (sharing < work->ranks) a->contexts = work->ranks / sharing;
    a->heads /= sharing;
    a->kv_heads = a->kv_heads < sharing ? 1 : a->kv_heads / sharing;
    for (int i = 0; i < 3; i++) {
        bool gathers = i > 0 && a->contexts > 0;
        if (sharing == 1 && !gathers) continue;
        int32_t heads = add_heads(work, &node, node.x[i], i == 0 ? a->heads : a->kv_heads,
                                  gathers ? work->ranks : sharing);
        part->values[heads].wide = gathers;
        add_move(part, gathers ? &model_op_context_keys : &model_op_context_heads, &node, node.x[i],
                 heads);
        node.x[i] = heads;
    }
    if (node.x[3] >= 0) part->values[node.x[3]].contexts = work->ranks; /* segments */
    if (sharing > 1) node.y = add_heads(work, &node, rows, a->heads, sharing);
    model_part_node(part, node);
    if (sharing > 1) add_move(part, &model_op_context_rows, &node, node.y, rows);
}

/* A convolution of rows with those before them, of which it makes rows that nobody reads. */
static void add_convolution(const context_work *work, model_node node) {
    sifr_model *part = work->part;
    int32_t rows = node.y, halo = (int32_t)part->weights[node.w[0]].columns - 1;
    int32_t values[2]; /* before and behind */
    for (int i = 0; i < 2; i++) {
        values[i] = model_part_value(part, node.x[0], part->values[rows].columns, node.unit);
        part->values[values[i]].halo = halo;
    }
    model_part_node(part, model_bare_node(&model_op_context_halo, &node, node.x[0], values[0]));
    node.x[0] = values[0], node.y = values[1];
    model_part_node(part, node);
    model_part_node(part, model_bare_node(&model_op_context_inner, &node, values[1], rows));
}

/* Where a node of the logical model runs, `n` of `from`, is the last node of the part or, where
 * it has an exchange behind it, the one before. */
static void note_place(const context_work *work, int32_t n) {
    const model_node *node = &work->from->nodes[n];
    int32_t op = node->attributes.op,
            behind = convolves(node) || (attends(node) && sharing_heads(work, node) > 1) ? 2 : 1;
    if (work->from->node_at && work->from->node_at[op] != n) return; /* beside one */
    work->part->node_at[op] = (int32_t)work->part->node_count - behind;
}

static void make_nodes(const context_work *work) {
    for (size_t u = 0; u < work->from->unit_count; u++) {
        const model_unit *unit = &work->from->units[u];
        work->part->units[u].first_node = (int32_t)work->part->node_count;
        work->part->units[u].nodes = 0;
        for (int32_t n = unit->first_node; n < unit->first_node + unit->nodes; n++) {
            if (attends(&work->from->nodes[n]))
                add_attention(work, work->from->nodes[n]);
            else if (convolves(&work->from->nodes[n]))
                add_convolution(work, work->from->nodes[n]);
            else
                model_part_node(work->part, work->from->nodes[n]);
            note_place(work, n);
        }
    }
}

static sifr_status make_part(const context_work *work, sifr_error *error) {
    const sifr_model *from = work->from;
    size_t more = 0; /* at most, values and nodes */
    for (size_t n = 0; n < from->node_count; n++)
        more += attends(&from->nodes[n]) || convolves(&from->nodes[n]) ? 4 : 0;
    BASE_TRY(model_part_copy(from, more, more, work->part, error));
    BASE_TRY(check_model(work, error));
    work->part->contexts = work->ranks;
    make_nodes(work);
    model_part_slices(work->part, from->value_count);
    return model_arrange(work->part, error);
}

sifr_status model_cut_contexts(const sifr_model *model, const model_context_args *args,
                               sifr_model **out, sifr_error *error) {
    base_assert(args->ranks > 1 && model->finished && !model->contexts);
    context_work work = {
        .from = model, .ranks = args->ranks, .sequences = args->sequences, .kind = args->kind};
    BASE_TRY(base_alloc(1, sizeof *work.part, &work.part, error));
    sifr_status status = make_part(&work, error);
    if (status == SIFR_OK)
        *out = work.part;
    else
        sifr_model_free(work.part);
    return status;
}
