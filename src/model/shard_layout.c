/* Which products are cut among tensor ranks, and which values with them. Values that depend on one
 * another column by column are a group: where one of them is needed whole, so are all, and the
 * products that make them are not cut. So the walk is done again until nothing changes. */
#include <stdlib.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "model/shard.h"
#include "model/tensor_parts.h"

enum { WHOLE = -1 };

typedef struct layout_walk {
    const sifr_model *model;
    int32_t ranks;
    bool exact;
    model_layouts *out;
    bool *never;    /* by node: its weights are not to be cut */
    int32_t *group; /* by value: a product that makes its group; or WHOLE */
    int32_t *same;  /* by node: another product of its group, or itself */
    int32_t *user;  /* by weight: the last node that used it; -1: none yet */
    int32_t *base;  /* by weight: of an adapter's factor, the weight that it adapts; else -1 */
    bool *needed;   /* by node: the group of this product is needed whole */
    /* By node, of the product that stands for a group: how many blocks its columns are in; those
     * that several blocks of another group have in common, 0: it is no such group, WHOLE: not all
     * of it; and whether it has such a group, so that it must be divided evenly. */
    int64_t *blocks, *common;
    bool *even;
    bool again;
} layout_walk;

static int32_t base_of(const sifr_model *model, int32_t value) {
    int32_t base = model->values[value].base;
    return base < 0 ? value : base;
}

/* The product that stands for a group. */
static int32_t find(const layout_walk *l, int32_t node) {
    while (l->same[node] != node) node = l->same[node];
    return node;
}

static int32_t group_of(const layout_walk *l, int32_t value) {
    if (value < 0) return WHOLE;
    int32_t group = l->group[base_of(l->model, value)];
    return group == WHOLE ? WHOLE : find(l, group);
}

/* The one node that reads a value; *count: how many inputs of nodes it is. */
static int32_t reader_of(const sifr_model *model, int32_t value, int *count) {
    int32_t reader = -1;
    *count = 0;
    for (size_t n = 0; n < model->node_count; n++) {
        for (int x = 0; x < DEVICE_INPUTS; x++) {
            if (model->nodes[n].x[x] != value) continue;
            reader = (int32_t)n;
            ++*count;
        }
    }
    return reader;
}

static bool is_read(const sifr_model *model, int32_t value) {
    int count;
    reader_of(model, value, &count);
    return count > 0;
}

/* Whether a value is read by an op that goes with an adapter's matrix alone. */
static bool follows(const sifr_model *model, int32_t value) {
    int count;
    int32_t n = reader_of(model, value, &count);
    return count == 1 && model->nodes[n].op->layout == MODEL_LAYOUT_FOLLOWS;
}

/* Of what a product makes, the value whose slices are read: itself, or what an adapter's product is
 * added to it in, or the same with magnitudes (DoRA). */
static int32_t sliced_value(const sifr_model *model, int32_t value) {
    int32_t last = value;
    while (!model_is_sliced(model, last)) {
        int count;
        int32_t n = reader_of(model, last, &count);
        if (n < 0 || count != 1) return value;
        const model_node *node = &model->nodes[n];
        bool adds = node->op->layout == MODEL_LAYOUT_PARTS && !node->op->divide;
        if (!adds && node->op->layout != MODEL_LAYOUT_FOLLOWS) return value;
        if (adds && !follows(model, node->y) && !model_is_sliced(model, node->y)) return value;
        last = node->y;
    }
    return last;
}

bool model_output_runs(const sifr_model *model, const model_node *node, model_runs *out) {
    int64_t at = 0, columns = model->values[node->y].columns;
    int32_t y = sliced_value(model, node->y);
    bool found = true;
    *out = (model_runs){0};
    while (found && at < columns) {
        found = false;
        for (size_t v = 0; v < model->value_count && !found; v++) {
            const model_value *slice = &model->values[v];
            if (slice->base != y || slice->first != at || !is_read(model, (int32_t)v)) continue;
            if (out->count == MODEL_BLOCKS) return false;
            at += slice->columns;
            out->end[out->count++] = at;
            found = true;
        }
    }
    if (out->count > 0) return at == columns && !is_read(model, y);
    for (size_t v = 0; v < model->value_count; v++) /* slices that do not begin at its first */
        if (model->values[v].base == y && is_read(model, (int32_t)v)) return false;
    *out = (model_runs){.count = 1, .end = {columns}};
    return true;
}

model_share model_share_of(int64_t blocks, int32_t ranks, int32_t place) {
    base_assert(blocks >= 1 && (blocks >= ranks || ranks % blocks == 0));
    if (blocks < ranks) return (model_share){ranks, blocks, place / (ranks / blocks), 1, 1};
    model_portion own = model_portion_of(blocks, ranks, place);
    return (model_share){ranks, blocks, own.first, own.end - own.first,
                         model_portion_of(blocks, ranks, 0).end};
}

bool model_is_sliced(const sifr_model *model, int32_t value) {
    for (size_t v = 0; v < model->value_count; v++)
        if (model->values[v].base == value) return true;
    return false;
}

int64_t model_common_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

/* A product begins a group, whose columns are divided with each of these runs. */
static void begin_group(layout_walk *l, int32_t n, const model_runs *runs) {
    l->group[l->model->nodes[n].y] = n;
    l->blocks[n] = l->common[n] = 0;
    l->even[n] = false;
    for (int32_t r = 0; r < runs->count; r++)
        l->blocks[n] =
            model_common_divisor(l->blocks[n], runs->end[r] - (r ? runs->end[r - 1] : 0));
}

static void limit_blocks(layout_walk *l, int32_t group, int64_t blocks) {
    l->blocks[group] = model_common_divisor(l->blocks[group], blocks);
}

static int32_t join_groups(layout_walk *l, int32_t a, int32_t b) {
    if (a == b) return a;
    l->same[b] = a;
    limit_blocks(l, a, l->blocks[b]);
    if (l->common[a] != l->common[b]) l->common[a] = WHOLE;
    l->even[a] |= l->even[b];
    return a;
}

/* Whether ranks can divide a group. */
static bool is_divisible(const layout_walk *l, int32_t group) {
    int64_t blocks = l->blocks[group];
    if (l->common[group]) return blocks == l->common[group] && !l->even[group];
    bool evenly = blocks % l->ranks == 0;
    return blocks >= l->ranks && (evenly || (!l->exact && !l->even[group]));
}

static void need_whole(layout_walk *l, int32_t group) {
    if (group == WHOLE || l->needed[group]) return;
    l->needed[group] = l->again = true;
}

static void never_cut(layout_walk *l, int32_t node) {
    if (l->out->products[node] == MODEL_CUT_NONE) return;
    l->never[node] = l->again = true;
}

static bool same_runs(const model_runs *a, const model_runs *b) {
    bool same = a->count == b->count;
    for (int32_t r = 0; same && r < a->count; r++) same = a->end[r] == b->end[r];
    return same;
}

/* Whether two uses of a weight need the same of it. */
static bool same_cut(const layout_walk *l, int32_t a, int32_t b) {
    const model_node *one = &l->model->nodes[a], *two = &l->model->nodes[b];
    model_runs of_one, of_two;
    if (l->out->products[a] != l->out->products[b]) return false;
    if (one->op->layout != MODEL_LAYOUT_PRODUCT || two->op->layout != MODEL_LAYOUT_PRODUCT)
        return one->op->layout == two->op->layout;
    if (l->out->products[a] == MODEL_CUT_NONE || l->out->products[a] == MODEL_CUT_GRADIENT)
        return true;
    if (one->attributes.linear.transposed != two->attributes.linear.transposed) return false;
    if (l->out->products[a] == MODEL_CUT_INPUTS) return true;
    return model_output_runs(l->model, one, &of_one) && model_output_runs(l->model, two, &of_two) &&
           same_runs(&of_one, &of_two);
}

static void use_weights(layout_walk *l, int32_t n) {
    for (int i = 0; i < DEVICE_WEIGHTS; i++) {
        int32_t w = l->model->nodes[n].w[i];
        if (w < 0) continue;
        int32_t before = l->user[w];
        l->user[w] = n;
        if (before < 0 || same_cut(l, before, n)) continue;
        never_cut(l, before);
        never_cut(l, n);
    }
}

/* Codes are cut between blocks of values that share a scale. So ranks divide as few blocks of lines
 * as have whole ones: of rows, which follow each other, or of columns, which are cut in each row.
 */
static void limit_to_codes(layout_walk *l, int32_t group, const model_node *node,
                           const model_runs *outputs) {
    const model_weight *w = &l->model->weights[node->w[0]];
    if (w->coding == MODEL_UNCODED) return;
    base_assert(!node->attributes.linear.transposed); /* model_code_base */
    int64_t block = model_code_block(w->coding), whole = 0;
    int64_t lines = outputs ? block / model_common_divisor(block, w->columns) : block;
    if (!outputs) whole = w->columns % lines ? 1 : w->columns / lines;
    for (int32_t r = 0; outputs && r < outputs->count; r++) {
        int64_t size = outputs->end[r] - (r ? outputs->end[r - 1] : 0);
        whole = model_common_divisor(whole, size % lines ? 1 : size / lines);
    }
    limit_blocks(l, group, whole);
}

/* How the matrix is cut that a factor adapts; its product comes before. */
static model_product_cut cut_of_base(const layout_walk *l, const model_node *factor) {
    int32_t product = l->user[l->base[factor->w[0]]];
    return product < 0 ? MODEL_CUT_NONE : (model_product_cut)l->out->products[product];
}

/* A product with a factor of an adapter, with an input that is whole. Where its matrix is cut by
 * outputs, so is the second factor; the first is whole, and each rank makes a part of its gradient
 * and of its input's. Else both are whole. */
static void walk_factor(layout_walk *l, int32_t n) {
    const model_node *node = &l->model->nodes[n];
    model_runs runs;
    if (cut_of_base(l, node) != MODEL_CUT_OUTPUTS) return;
    if (l->model->weights[l->base[node->w[0]]].adapter == node->w[0]) {
        l->out->products[n] = MODEL_CUT_GRADIENT;
        l->out->parts[node->y] = true;
    } else if (model_output_runs(l->model, node, &runs)) {
        l->out->products[n] = MODEL_CUT_OUTPUTS;
        begin_group(l, n, &runs);
    }
}

/* Dropout before an adapter's first factor, of which each rank makes a part of the gradient. */
static bool feeds_factor(const layout_walk *l, const model_node *node) {
    int count;
    int32_t n = reader_of(l->model, node->y, &count);
    if (count != 1 || node->w[0] >= 0) return false;
    const model_node *reader = &l->model->nodes[n];
    bool factor = reader->op->layout == MODEL_LAYOUT_PRODUCT && l->base[reader->w[0]] >= 0;
    return factor && !l->never[n] && cut_of_base(l, reader) == MODEL_CUT_OUTPUTS;
}

static void walk_product(layout_walk *l, int32_t n) {
    const model_node *node = &l->model->nodes[n];
    int32_t group = group_of(l, node->x[0]);
    model_runs runs;
    if (l->never[n]) {
        need_whole(l, group);
        return;
    }
    if (group == WHOLE && l->base[node->w[0]] >= 0) {
        walk_factor(l, n);
        return;
    }
    if (group != WHOLE) {
        l->out->products[n] = MODEL_CUT_INPUTS;
        limit_to_codes(l, group, node, NULL);
        return;
    }
    if (!model_output_runs(l->model, node, &runs)) return;
    l->out->products[n] = MODEL_CUT_OUTPUTS;
    begin_group(l, n, &runs);
    limit_to_codes(l, n, node, &runs);
}

enum { ALL_INPUTS = (1 << DEVICE_INPUTS) - 1 };

/* The one group of these inputs; WHOLE where there is none, or not all are of one. */
static int32_t join_inputs(layout_walk *l, const model_node *node, int inputs) {
    int32_t joined = WHOLE;
    bool whole = false;
    for (int x = 0; x < DEVICE_INPUTS; x++) {
        if (!(inputs >> x & 1) || node->x[x] < 0) continue;
        if (l->model->values[node->x[x]].kind != MODEL_VALUE_ACTIVATION) continue;
        int32_t group = group_of(l, node->x[x]);
        whole |= group == WHOLE;
        if (group != WHOLE) joined = joined == WHOLE ? group : join_groups(l, joined, group);
    }
    if (!whole) return joined;
    need_whole(l, joined);
    return WHOLE;
}

/* How the weights of an op that makes a rank's columns are cut. */
static model_product_cut cut_of_shared(const sifr_model *model, const model_node *node) {
    static const model_product_cut cuts[] = {[MODEL_SHARED_NONE] = MODEL_CUT_NONE,
                                             [MODEL_SHARED_WHOLE] = MODEL_CUT_GRADIENT,
                                             [MODEL_SHARED_ROWS] = MODEL_CUT_ROWS};
    return node->op->shares ? cuts[node->op->shares(model, node)] : MODEL_CUT_NONE;
}

/* Whether all inputs are products whose columns are divided as the slices of the output need it. */
static bool keeps_slices(const sifr_model *model, const model_node *node) {
    if (!model_is_sliced(model, node->y)) return true;
    for (int x = 0; x < DEVICE_INPUTS; x++) {
        if (node->x[x] < 0) continue;
        const model_value *value = &model->values[node->x[x]];
        bool product = value->kind == MODEL_VALUE_ACTIVATION && value->base < 0 &&
                       model->nodes[value->node].op->layout == MODEL_LAYOUT_PRODUCT;
        if (!product || sliced_value(model, node->x[x]) != node->y) return false;
    }
    return true;
}

/* More ranks than there are blocks of what several heads have in common: neighbours have the same
 * one, and each rank some of the heads. */
static void walk_common(layout_walk *l, int32_t n, int64_t blocks) {
    const model_node *node = &l->model->nodes[n];
    int32_t common = join_inputs(l, node, node->op->common_inputs);
    int32_t own = join_inputs(l, node, ALL_INPUTS & ~node->op->common_inputs);
    int64_t heads = node->op->blocks(l->model, node, false);
    bool fits = !l->exact && common != WHOLE && own != WHOLE && common != own && blocks > 0 &&
                l->ranks % blocks == 0 && heads % l->ranks == 0 && !l->never[n];
    if (!fits) {
        need_whole(l, common);
        need_whole(l, own);
        return;
    }
    limit_blocks(l, own, heads);
    limit_blocks(l, common, blocks);
    l->even[own] = true;
    l->common[common] = l->common[common] && l->common[common] != blocks ? WHOLE : blocks;
    l->group[node->y] = own;
}

static void walk_parts(layout_walk *l, int32_t n) {
    model_node node = l->model->nodes[n];
    int64_t shared = node.op->common_inputs ? node.op->blocks(l->model, &node, true) : l->ranks;
    if (shared < l->ranks) {
        walk_common(l, n, shared);
        return;
    }
    int32_t group = join_inputs(l, &node, ALL_INPUTS);
    bool parts = cut_of_shared(l->model, &node) == MODEL_CUT_GRADIENT;
    bool fits = !l->never[n] && (node.w[0] < 0 || node.op->shares) && !(parts && l->exact) &&
                (node.op->divide || keeps_slices(l->model, &node));
    if (group == WHOLE) l->out->parts[node.y] = l->out->parts[node.x[0]] || feeds_factor(l, &node);
    if (group == WHOLE) return;
    int64_t blocks = node.op->divide ? node.op->blocks(l->model, &node, false) : 0;
    if (node.op->divide) fits &= blocks > 0;
    if (fits && node.op->common_inputs) blocks = model_common_divisor(blocks, shared);
    if (fits && node.op->divide) limit_blocks(l, group, blocks);
    if (!fits) {
        need_whole(l, group);
        return;
    }
    l->group[node.y] = group;
    l->out->products[n] = (uint8_t)cut_of_shared(l->model, &l->model->nodes[n]);
}

/* Whether the slices of a value are divided as those of the sum that it is made of. */
static bool follows_slices(const sifr_model *model, const model_node *node) {
    if (!model_is_sliced(model, node->y)) return true;
    const model_node *sum = &model->nodes[model->values[node->x[0]].node];
    for (int x = 0; x < DEVICE_INPUTS; x++)
        if (sum->x[x] >= 0 && sliced_value(model, sum->x[x]) != node->y) return false;
    return true;
}

/* Rows of factors have none but constant inputs. Magnitudes go with the product whose columns they
 * are of, which comes before. */
static void walk_follower(layout_walk *l, int32_t n) {
    const model_node *node = &l->model->nodes[n];
    if (node->op->makes_rows) return;
    int32_t product = l->user[node->w[0]], group = group_of(l, node->x[0]);
    model_product_cut cut =
        product < 0 ? MODEL_CUT_NONE : (model_product_cut)l->out->products[product];
    if (cut != MODEL_CUT_OUTPUTS || !follows_slices(l->model, node)) {
        need_whole(l, group);
        if (cut == MODEL_CUT_INPUTS) l->out->products[n] = MODEL_CUT_INPUTS;
        return;
    }
    if (group == WHOLE) return;
    l->out->products[n] = MODEL_CUT_OUTPUTS;
    l->group[node->y] = group;
}

static void walk_node(layout_walk *l, int32_t n) {
    const model_node *node = &l->model->nodes[n];
    if (node->op->layout == MODEL_LAYOUT_FOLLOWS) {
        walk_follower(l, n);
        return;
    }
    if (node->op->layout == MODEL_LAYOUT_PRODUCT)
        walk_product(l, n);
    else if (node->op->layout == MODEL_LAYOUT_PARTS)
        walk_parts(l, n);
    bool whole = node->op->layout == MODEL_LAYOUT_WHOLE || node->op->layout == MODEL_LAYOUT_WORDS;
    for (int x = 0; x < DEVICE_INPUTS && whole; x++) need_whole(l, group_of(l, node->x[x]));
    use_weights(l, n);
}

/* The group that a node's weights are cut with; WHOLE: they are not. */
static int32_t cut_group(const layout_walk *l, int32_t n) {
    const model_node *node = &l->model->nodes[n];
    if (l->out->products[n] == MODEL_CUT_OUTPUTS) return group_of(l, node->y);
    if (l->out->products[n] == MODEL_CUT_INPUTS) return group_of(l, node->x[0]);
    return l->out->products[n] == MODEL_CUT_ROWS ? group_of(l, node->y) : WHOLE;
}

/* Groups that cannot be divided are needed whole, and so are those whose blocks are in common to
 * other numbers of ranks than the first such group's. */
static void check_groups(layout_walk *l) {
    int64_t common = 0;
    for (size_t n = 0; n < l->model->node_count; n++) {
        int32_t group = cut_group(l, (int32_t)n);
        if (group == WHOLE) continue;
        if (!common && is_divisible(l, group)) common = l->common[group];
        bool other = l->common[group] && l->common[group] != common;
        if (other || !is_divisible(l, group)) need_whole(l, group);
    }
}

/* Weights that are used twice must be cut alike. */
static void check_uses(layout_walk *l) {
    const sifr_model *model = l->model;
    for (size_t w = 0; w < model->weight_count; w++) l->user[w] = -1;
    for (size_t n = 0; n < model->node_count; n++) {
        int32_t w = model->nodes[n].w[0], group = cut_group(l, (int32_t)n);
        if (w < 0 || group == WHOLE) continue;
        int32_t before = l->user[w];
        l->user[w] = (int32_t)n;
        if (before < 0 || l->blocks[cut_group(l, before)] == l->blocks[group]) continue;
        never_cut(l, before);
        never_cut(l, (int32_t)n);
    }
}

static void walk(layout_walk *l) {
    const sifr_model *model = l->model;
    l->again = false;
    for (size_t v = 0; v < model->value_count; v++) l->group[v] = WHOLE, l->out->parts[v] = false;
    for (size_t w = 0; w < model->weight_count; w++) l->user[w] = -1;
    for (size_t n = 0; n < model->node_count; n++) {
        l->same[n] = (int32_t)n;
        l->needed[n] = false;
        l->out->products[n] = MODEL_CUT_NONE;
    }
    for (size_t n = 0; n < model->node_count; n++) walk_node(l, (int32_t)n);
    check_groups(l);
    check_uses(l);
    for (size_t n = 0; n < model->node_count; n++) /* groups may have been joined since */
        if (l->needed[n]) l->needed[find(l, (int32_t)n)] = true;
    for (size_t n = 0; n < model->node_count; n++)
        if (l->out->products[n] == MODEL_CUT_OUTPUTS && l->needed[find(l, (int32_t)n)])
            l->never[n] = true;
}

/* By weight: what it adapts. */
static void find_bases(layout_walk *l) {
    const sifr_model *model = l->model;
    for (size_t w = 0; w < model->weight_count; w++) l->base[w] = -1;
    for (size_t w = 0; w < model->weight_count; w++) {
        int32_t first = model->weights[w].adapter;
        if (first > 0) l->base[first] = l->base[first + 1] = (int32_t)w;
    }
}

/* Blocks of several columns, where there are so many that ranks hardly differ: products of round
 * sizes are faster. */
static int64_t round_blocks(const layout_walk *l, int64_t blocks) {
    int64_t each = 1;
    if (blocks % l->ranks == 0) return blocks;
    for (; blocks % 2 == 0 && blocks / 2 >= 8 * (int64_t)l->ranks && each < 64; each *= 2)
        blocks /= 2;
    return blocks;
}

static void note(const layout_walk *l) {
    const sifr_model *model = l->model;
    l->out->copies = 1;
    for (size_t v = 0; v < model->value_count; v++) {
        int32_t group = group_of(l, (int32_t)v);
        l->out->blocks[v] = group == WHOLE         ? 0
                            : l->common[group] > 0 ? l->common[group]
                                                   : round_blocks(l, l->blocks[group]);
        if (group != WHOLE && l->common[group] > 0)
            l->out->copies = (int32_t)(l->ranks / l->common[group]);
    }
    for (size_t n = 0; n < model->node_count; n++) {
        if (model->nodes[n].op->layout != MODEL_LAYOUT_PRODUCT) continue;
        if (l->out->products[n] == MODEL_CUT_OUTPUTS || l->out->products[n] == MODEL_CUT_INPUTS)
            l->out->cut_count++;
        else
            l->out->kept_count++;
    }
}

sifr_status model_find_layouts(const sifr_model *model, int32_t ranks, bool exact,
                               model_layouts *out, sifr_error *error) {
    base_assert(ranks >= 1 && model->finished);
    layout_walk l = {.model = model, .ranks = ranks, .exact = exact, .out = out};
    size_t nodes = model->node_count, values = model->value_count;
    sifr_status status;
    *out = (model_layouts){0};
    BASE_TRY_GOTO(status, base_alloc(nodes, sizeof *out->products, &out->products, error), done);
    BASE_TRY_GOTO(status, base_alloc(values, sizeof *out->blocks, &out->blocks, error), done);
    BASE_TRY_GOTO(status, base_alloc(nodes, sizeof *l.never, &l.never, error), done);
    BASE_TRY_GOTO(status, base_alloc(values, sizeof *l.group, &l.group, error), done);
    BASE_TRY_GOTO(status, base_alloc(nodes, sizeof *l.same, &l.same, error), done);
    BASE_TRY_GOTO(status, base_alloc(nodes, sizeof *l.needed, &l.needed, error), done);
    BASE_TRY_GOTO(status, base_alloc(nodes, sizeof *l.blocks, &l.blocks, error), done);
    BASE_TRY_GOTO(status, base_alloc(nodes, sizeof *l.common, &l.common, error), done);
    BASE_TRY_GOTO(status, base_alloc(nodes, sizeof *l.even, &l.even, error), done);
    BASE_TRY_GOTO(status, base_alloc(values, sizeof *out->parts, &out->parts, error), done);
    BASE_TRY_GOTO(status, base_alloc(model->weight_count, sizeof *l.user, &l.user, error), done);
    BASE_TRY_GOTO(status, base_alloc(model->weight_count, sizeof *l.base, &l.base, error), done);
    find_bases(&l);
    do walk(&l);
    while (l.again);
    note(&l);
done:
    free(l.never);
    free(l.group);
    free(l.same);
    free(l.needed);
    free(l.blocks);
    free(l.common);
    free(l.even);
    free(l.user);
    free(l.base);
    if (status != SIFR_OK) model_layouts_free(out);
    return status;
}

void model_layouts_free(model_layouts *layouts) {
    free(layouts->products);
    free(layouts->blocks);
    free(layouts->parts);
    *layouts = (model_layouts){0};
}
