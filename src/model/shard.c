/* Makes a tensor rank's part of a model, by the layouts that shard_layout.c finds. */
#include "model/shard.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "model/part.h"
#include "model/shard_words.h"

typedef struct shard_work {
    const sifr_model *from;
    sifr_model *part;
    model_layouts layouts;
    int32_t ranks, place, exact;
    sifr_vocab_parallel words;
    int32_t *entries; /* by value: its entry in the unit being made; -1: none yet */
} shard_work;

/* --- weights --- */

/* The part of each run of rows or columns that a rank has. */
static model_cut cut_runs(const model_weight *w, const model_runs *runs, bool rows,
                          const model_share *share) {
    model_cut cut = {
        .rows = w->rows, .columns = w->columns, .count = runs->count, .share = share->blocks};
    for (int32_t r = 0; r < runs->count; r++) {
        int64_t begin = r ? runs->end[r - 1] : 0, size = (runs->end[r] - begin) / share->blocks;
        cut.blocks[r] = (model_block){{0, w->rows}, {0, w->columns}};
        int64_t *range = rows ? cut.blocks[r].rows : cut.blocks[r].columns;
        range[0] = begin + share->first * size;
        range[1] = range[0] + share->count * size;
        cut.room[r] = share->room * size;
    }
    return cut;
}

/* Scales of two levels are those of a whole record, so a part keeps them where it has whole records
 * of the logical weight; else its scales are opened. Values stay the same bits. */
static model_coding cut_coding(const model_weight *w, const model_runs *runs, bool rows,
                               const model_share *share, int32_t ranks) {
    bool evenly = share->blocks <= ranks || share->blocks % ranks == 0, whole = rows;
    for (int32_t r = 0; r < runs->count; r++) {
        int64_t lines = (runs->end[r] - (r ? runs->end[r - 1] : 0)) / share->blocks;
        if (evenly) lines *= share->room;
        whole &= lines * w->columns % BASE_NF4_RECORD == 0;
    }
    return w->coding == MODEL_NF4_DOUBLED && !whole ? MODEL_NF4 : w->coding;
}

static void cut_weight(shard_work *work, int32_t index, const model_runs *runs, bool rows,
                       const model_share *share) {
    model_weight *w = &work->part->weights[index];
    int64_t *size = rows ? &w->rows : &w->columns;
    if (w->cut.count) return; /* by an earlier use, alike */
    w->cut = cut_runs(&work->from->weights[index], runs, rows, share);
    w->coding = cut_coding(&work->from->weights[index], runs, rows, share, work->ranks);
    *size = *size / share->blocks * share->room;
    if (share->blocks >= work->ranks) return;
    w->copies = (int32_t)(work->ranks / share->blocks);
    w->partial = !w->frozen;
}

/* What this rank has of a value that is cut. */
static model_share share_of(const shard_work *work, int32_t value) {
    return model_share_of(work->layouts.blocks[value], work->ranks, work->place);
}

static void cut_product(shard_work *work, const model_node *node, model_product_cut how) {
    bool transposed = node->attributes.linear.transposed;
    const model_weight *w = &work->from->weights[node->w[0]];
    model_runs runs = {.count = 1, .end = {transposed ? w->rows : w->columns}};
    model_share share = share_of(work, how == MODEL_CUT_INPUTS ? node->x[0] : node->y);
    if (how == MODEL_CUT_INPUTS) {
        cut_weight(work, node->w[0], &runs, transposed, &share);
        return;
    }
    bool divided = model_output_runs(work->from, node, &runs);
    base_assert(divided);
    (void)divided;
    cut_weight(work, node->w[0], &runs, !transposed, &share);
    if (node->w[1] >= 0) cut_weight(work, node->w[1], &runs, false, &share);
}

/* Magnitudes and, as constant rows, a bias of the columns of a product whose outputs are cut. */
static void cut_followers(shard_work *work, const model_node *node) {
    const sifr_model *from = work->from;
    model_share share = share_of(work, node->y);
    model_runs runs;
    bool divided = model_output_runs(from, node, &runs);
    base_assert(divided);
    (void)divided;
    cut_weight(work, node->w[1], &runs, false, &share);
    if (node->x[3] < 0) return;
    int32_t bias = from->nodes[from->values[node->x[3]].node].w[0];
    cut_weight(work, bias, &runs, false, &share);
}

/* The weights of a node that makes a rank's columns of a value. */
static void share_weights(shard_work *work, const model_node *node, model_product_cut how) {
    for (int i = 0; i < DEVICE_WEIGHTS; i++) {
        if (node->w[i] < 0) continue;
        model_weight *w = &work->part->weights[node->w[i]];
        model_runs rows = {.count = 1, .end = {work->from->weights[node->w[i]].rows}};
        model_share share = how == MODEL_CUT_ROWS ? share_of(work, node->y) : (model_share){0};
        if (how == MODEL_CUT_ROWS)
            cut_weight(work, node->w[i], &rows, true, &share);
        else
            w->partial = !w->frozen;
    }
}

static void cut_weights(shard_work *work) {
    const sifr_model *from = work->from;
    for (size_t n = 0; n < from->node_count; n++) {
        model_product_cut how = (model_product_cut)work->layouts.products[n];
        bool follows = from->nodes[n].op->layout == MODEL_LAYOUT_FOLLOWS;
        if (follows && how == MODEL_CUT_OUTPUTS) cut_followers(work, &from->nodes[n]);
        if (follows) continue;
        if (how == MODEL_CUT_OUTPUTS || how == MODEL_CUT_INPUTS)
            cut_product(work, &from->nodes[n], how);
        else if (how == MODEL_CUT_WORDS)
            model_cut_words(from, &from->nodes[n], work->ranks, work->place, work->part);
        else if (how != MODEL_CUT_NONE)
            share_weights(work, &from->nodes[n], how);
    }
    for (size_t w = 0; w < from->weight_count; w++)
        work->part->weights[w].replicated = !work->part->weights[w].cut.count;
    for (size_t u = 0; u < from->unit_count; u++) {
        model_unit *unit = &work->part->units[u];
        unit->elements = 0;
        for (int32_t w = unit->first_weight; w < unit->first_weight + unit->weights; w++)
            unit->elements += base_ceil_to(
                work->part->weights[w].rows * work->part->weights[w].columns, DEVICE_BLOCK);
    }
}

model_weight model_weight_at(const sifr_model *part, size_t weight, int32_t place) {
    model_weight out = part->weights[weight];
    if (out.words && part->tensors > 1) {
        out.cut = model_words_cut(&out, part->tensors, place);
        return out;
    }
    bool rows = out.rows < out.cut.rows;
    if (out.cut.count == 0 || part->tensors <= 1) return out;
    model_share here = model_share_of(out.cut.share, part->tensors, part->tensor_place);
    model_share there = model_share_of(out.cut.share, part->tensors, place);
    for (int32_t b = 0; b < out.cut.count; b++) {
        int64_t *range = rows ? out.cut.blocks[b].rows : out.cut.blocks[b].columns;
        int64_t size = (range[1] - range[0]) / here.count;
        range[0] += (there.first - here.first) * size;
        range[1] = range[0] + there.count * size;
    }
    return out;
}

/* --- values and nodes --- */

/* The whole value as nodes read it that make a part of its gradient, like products whose outputs
 * are cut: one for those of a unit. */
static int32_t enter(shard_work *work, const model_node *reader) {
    int32_t x = reader->x[0], *entry = &work->entries[x];
    if (*entry >= 0) return *entry;
    *entry = model_part_value(work->part, x, work->part->values[x].columns, reader->unit);
    model_part_node(work->part, model_bare_node(&model_op_tensor_entry, reader, x, *entry));
    return *entry;
}

/* A product of this rank's inputs: a part, and the sum of all ranks' behind it. */
static void add_summed(shard_work *work, model_node product) {
    int32_t whole = product.y;
    product.y =
        model_part_value(work->part, whole, work->part->values[whole].columns, product.unit);
    product.bias_elsewhere = product.w[1] >= 0 && work->place > 0;
    model_part_node(work->part, product);
    work->part->node_at[product.attributes.op] = (int32_t)work->part->node_count - 1;
    model_part_node(work->part, model_bare_node(&model_op_tensor_sum, &product, product.y, whole));
}

/* A product with the same bits at any number of ranks: in pieces, of which this rank has some. Its
 * sums over ranks are the planner's, each by itself: were those of several products one, as behind
 * an entry, one rank would have to add them in another order. */
static void add_exact(shard_work *work, int32_t n, model_product_cut how) {
    model_node node = work->from->nodes[n];
    const model_weight *w = &work->from->weights[node.w[0]];
    device_linear_attributes *linear = &node.attributes.linear;
    bool inputs = how == MODEL_CUT_INPUTS;
    model_runs runs = {.count = 1, .end = {linear->transposed ? w->rows : w->columns}};
    bool divided = inputs || model_output_runs(work->from, &node, &runs);
    base_assert(divided && (int)MODEL_BLOCKS <= (int)DEVICE_LINEAR_RUNS);
    (void)divided;
    linear->cut_inputs = inputs;
    linear->pieces = work->exact / work->ranks;
    linear->runs = runs.count;
    for (int32_t r = 0; r < runs.count; r++) linear->run_end[r] = runs.end[r] / work->ranks;
    node.summed = work->ranks > 1;
    model_part_node(work->part, node);
    work->part->node_at[n] = (int32_t)work->part->node_count - 1;
}

/* What reads an adapter's matrix or factors: as much of them as this rank has. */
static void make_follower(shard_work *work, int32_t n, model_product_cut how) {
    model_node node = work->from->nodes[n];
    model_value *y = &work->part->values[node.y];
    if (node.op->makes_rows) {
        y->rows = work->part->weights[node.w[0]].rows;
        y->columns = work->part->weights[node.w[0]].columns;
    } else {
        node.attributes.magnitude.columns = (int32_t)y->columns;
        node.joined = how == MODEL_CUT_INPUTS;
    }
    model_part_node(work->part, node);
    work->part->node_at[n] = (int32_t)work->part->node_count - 1;
}

static void make_node(shard_work *work, int32_t n) {
    model_node node = work->from->nodes[n];
    model_product_cut how = (model_product_cut)work->layouts.products[n];
    bool product = node.op->layout == MODEL_LAYOUT_PRODUCT;
    if (node.op->layout == MODEL_LAYOUT_FOLLOWS) {
        make_follower(work, n, how);
        return;
    }
    if (product && how != MODEL_CUT_NONE && work->exact) {
        add_exact(work, n, how);
        return;
    }
    if (how == MODEL_CUT_WORDS) {
        model_give_words(work->from, &node, work->ranks, work->place);
        if (node.op->makes_loss) node.x[0] = enter(work, &node);
    }
    if (how == MODEL_CUT_INPUTS || (how == MODEL_CUT_WORDS && !node.op->makes_loss)) {
        add_summed(work, node);
        return;
    }
    bool makes_parts = how == MODEL_CUT_OUTPUTS || work->layouts.parts[node.y];
    if (makes_parts && !work->layouts.parts[node.x[0]]) node.x[0] = enter(work, &node);
    bool parts = node.op->layout == MODEL_LAYOUT_PARTS && work->layouts.blocks[node.y] > 0;
    if (parts && node.op->divide) {
        model_share share = share_of(work, node.y);
        node.op->divide(work->from, &node, &share);
    }
    model_part_node(work->part, node);
    work->part->node_at[n] = (int32_t)work->part->node_count - 1;
}

static void make_nodes(shard_work *work) {
    const sifr_model *from = work->from;
    sifr_model *part = work->part;
    for (size_t u = 0; u < from->unit_count; u++) {
        int32_t first = from->units[u].first_node;
        part->units[u].first_node = (int32_t)part->node_count;
        part->units[u].nodes = 0;
        for (size_t v = 0; v < from->value_count; v++) work->entries[v] = -1;
        for (int32_t n = first; n < first + from->units[u].nodes; n++) make_node(work, n);
    }
}

static void cut_values(shard_work *work) {
    for (size_t v = 0; v < work->from->value_count; v++) {
        model_value *value = &work->part->values[v];
        if (!work->layouts.blocks[v]) continue;
        model_share share = share_of(work, (int32_t)v);
        value->cut_columns = work->ranks > 1;
        value->columns = value->columns / share.blocks * share.room;
        value->first = value->first / share.blocks * share.room;
    }
}

static sifr_status check_model(const sifr_model *model, int32_t exact, sifr_error *error) {
    for (size_t w = 0; w < model->weight_count && exact; w++) {
        const model_weight *weight = &model->weights[w];
        bool adapter = weight->adapter > 0 || weight->factor;
        if (!adapter && weight->coding == MODEL_UNCODED) continue;
        return base_fail(error, SIFR_USAGE,
                         "sifr.tp_exact: %s of %s is not supported with tp_exact yet; leave one of "
                         "them out",
                         adapter ? "an adapter (LoRA)" : "a weight held as codes", weight->name);
    }
    return SIFR_OK;
}

static sifr_status count_exact(const sifr_model *model, int32_t ranks, int32_t *out,
                               sifr_error *error) {
    model_layouts layouts;
    BASE_TRY(model_find_layouts(model, ranks, true, &layouts, error));
    *out = layouts.cut_count;
    model_layouts_free(&layouts);
    return SIFR_OK;
}

/* What two ranks divide must divide among as many as there are pieces, or each number of ranks
 * would have other products cut. */
static sifr_status check_exact(const shard_work *work, sifr_error *error) {
    int32_t of_two, cut = work->layouts.cut_count, most = work->exact;
    BASE_TRY(count_exact(work->from, 2, &of_two, error));
    if (cut == of_two && cut > 0) return SIFR_OK;
    while (cut < of_two && most > 2) BASE_TRY(count_exact(work->from, most /= 2, &cut, error));
    if (of_two == 0)
        return base_fail(error, SIFR_USAGE,
                         "sifr.tp_exact is %d: two ranks cannot divide any product of this model; "
                         "leave it out",
                         (int)work->exact);
    return base_fail(error, SIFR_USAGE,
                     "sifr.tp_exact is %d: %d ranks cannot divide all products that two can, since "
                     "its heads, its kv heads or its MLP's width are no multiples of that; the "
                     "most for this model is %d",
                     (int)work->exact, (int)work->exact, (int)most);
}

static bool cuts_words(const shard_work *work) {
    for (size_t n = 0; n < work->from->node_count; n++)
        if (work->layouts.products[n] == MODEL_CUT_WORDS) return true;
    return false;
}

static sifr_status make_part(shard_work *work, sifr_error *error) {
    const sifr_model *from = work->from;
    int32_t divisor = work->exact ? work->exact : work->ranks;
    BASE_TRY(model_find_layouts(from, divisor, work->exact > 0, &work->layouts, error));
    if (work->exact) BASE_TRY(check_exact(work, error));
    BASE_TRY(model_find_words(from, work->words, work->ranks, work->exact > 0,
                              work->layouts.products, error));
    if (work->layouts.cut_count == 0 && !cuts_words(work))
        return base_fail(error, SIFR_USAGE,
                         "tensor_parallel: %d ranks cannot divide any product of this model: its "
                         "heads and its MLP's width are fewer, are read whole, or do not fall on "
                         "blocks of 4- or 8-bit codes; %s",
                         (int)work->ranks, work->ranks > 2 ? "give fewer" : "leave them out");
    /* An entry or a part, and an entry's or a sum's node, for each node. */
    BASE_TRY(model_part_copy(from, from->node_count, from->node_count, work->part, error));
    BASE_TRY(base_alloc(from->value_count, sizeof *work->entries, &work->entries, error));
    work->part->tensors = work->ranks;
    work->part->tensor_place = work->place;
    work->part->copies = work->layouts.copies;
    if (work->ranks > 1) cut_weights(work);
    cut_values(work);
    make_nodes(work);
    model_part_slices(work->part, from->value_count);
    return model_arrange(work->part, error);
}

sifr_status model_shard(const sifr_model *model, int32_t ranks, int32_t place, int32_t exact,
                        sifr_model **out, sifr_error *error) {
    model_shard_args args = {ranks, place, exact, SIFR_VOCAB_WHOLE};
    return model_shard_by(model, args, out, error);
}

sifr_status model_shard_by(const sifr_model *model, model_shard_args args, sifr_model **out,
                           sifr_error *error) {
    int32_t ranks = args.ranks, place = args.place, exact = args.exact;
    base_assert(ranks >= 1 && place >= 0 && place < ranks && model->finished);
    base_assert(exact ? exact % ranks == 0 && exact <= DEVICE_LINEAR_PIECES : ranks > 1);
    base_assert(!model->tensors); /* the logical one */
    shard_work work = {
        .from = model, .ranks = ranks, .place = place, .exact = exact, .words = args.words};
    BASE_TRY(check_model(model, exact, error));
    BASE_TRY(base_alloc(1, sizeof *work.part, &work.part, error));
    sifr_status status = make_part(&work, error);
    model_layouts_free(&work.layouts);
    free(work.entries);
    if (status == SIFR_OK)
        *out = work.part;
    else
        sifr_model_free(work.part);
    return status;
}
