#include "model/shard_words.h"

#include "base/assert.h"
#include "model/shard.h"
#include "model/tensor_parts.h"

/* --- which nodes --- */

static bool is_head(const model_node *node) {
    return node->op->layout == MODEL_LAYOUT_WORDS && node->op->makes_loss;
}

static bool is_table(const sifr_model *model, const model_node *node) {
    return node->op->layout == MODEL_LAYOUT_WORDS && !node->op->makes_loss &&
           node->x[0] == model->inputs[SIFR_TOKENS];
}

static int64_t words_of(const sifr_model *model, const model_node *node) {
    return model->weights[node->w[0]].rows;
}

/* The head over the words of the tokens; NULL: there is none, but one over classes, or another
 * loss. */
static const model_node *find_head(const sifr_model *model) {
    const model_node *head = &model->nodes[model->node_count - 1];
    if (!is_head(head)) return NULL;
    for (size_t n = 0; n < model->node_count; n++) {
        const model_node *node = &model->nodes[n];
        if (is_table(model, node) && words_of(model, node) == words_of(model, head)) return head;
    }
    return NULL;
}

/* A use that needs the whole of a weight; NULL: heads and tables alone use it. */
static const model_node *find_other_use(const sifr_model *model, int32_t weight) {
    for (size_t n = 0; n < model->node_count; n++) {
        const model_node *node = &model->nodes[n];
        for (int i = 0; i < DEVICE_WEIGHTS; i++) {
            bool of_words = is_head(node) || (i == 0 && is_table(model, node));
            if (node->w[i] == weight && !of_words) return node;
        }
    }
    return NULL;
}

static bool is_divided(const sifr_model *model, const model_node *node, int64_t words) {
    if (!is_head(node) && (!is_table(model, node) || words_of(model, node) != words)) return false;
    for (int i = 0; i < DEVICE_WEIGHTS; i++) {
        const model_weight *w = node->w[i] < 0 ? NULL : &model->weights[node->w[i]];
        if (w && (w->adapter > 0 || find_other_use(model, node->w[i]))) return false;
    }
    return true;
}

/* Why words cannot be cut; NULL: they can. */
static const char *find_reason(const sifr_model *model, bool exact) {
    const model_node *head = find_head(model);
    return exact                           ? "with sifr.tp_exact each rank has the whole vocabulary"
           : !head && model->objective.row ? "the loss is not that of labels or of preferences"
           : !head                         ? "the model has no head over the words of its tokens"
           : !is_divided(model, head, words_of(model, head))
               ? "the head's weights have an adapter, or serve other layers too"
               : NULL;
}

sifr_status model_find_words(const sifr_model *model, sifr_vocab_parallel how, int32_t ranks,
                             bool exact, uint8_t *products, sifr_error *error) {
    const char *reason = find_reason(model, exact);
    if (how == SIFR_VOCAB_WHOLE) return SIFR_OK;
    if (reason && how == SIFR_VOCAB_SPLIT)
        return base_fail(error, SIFR_USAGE,
                         "tensor_parallel.vocab_parallel_lm_head is true, but %s; give false, or "
                         "leave it out",
                         reason);
    if (reason) return SIFR_OK;
    int64_t words = words_of(model, &model->nodes[model->node_count - 1]);
    if (how == SIFR_VOCAB_BY_BLOCKS && device_word_blocks(words) < ranks) return SIFR_OK;
    for (size_t n = 0; n < model->node_count; n++)
        if (is_divided(model, &model->nodes[n], words)) products[n] = MODEL_CUT_WORDS;
    return SIFR_OK;
}

/* --- their weights --- */

static device_words words_at(int64_t all, int32_t ranks, int32_t place) {
    int64_t block = device_words_block(all);
    model_portion blocks = model_portion_of(device_word_blocks(all), ranks, place);
    int64_t first = base_min_i64(blocks.first * block, all);
    return (device_words){first, base_min_i64(blocks.end * block, all) - first, all};
}

model_cut model_words_cut(const model_weight *weight, int32_t ranks, int32_t place) {
    model_cut cut = weight->cut;
    device_words words = words_at(weight->words, ranks, place);
    int64_t *range = cut.rows == weight->words ? cut.blocks[0].rows : cut.blocks[0].columns;
    range[0] = words.first;
    range[1] = words.first + words.count;
    return cut;
}

void model_cut_words(const sifr_model *from, const model_node *node, int32_t ranks, int32_t place,
                     sifr_model *part) {
    int64_t all = words_of(from, node), room = words_at(all, ranks, 0).count; /* the most */
    for (int i = 0; i < DEVICE_WEIGHTS; i++) {
        if (node->w[i] < 0) continue;
        model_weight *w = &part->weights[node->w[i]];
        if (w->words) continue; /* by an earlier use, alike */
        w->words = all;
        w->cut = (model_cut){.rows = w->rows,
                             .columns = w->columns,
                             .count = 1,
                             .blocks = {{{0, w->rows}, {0, w->columns}}}};
        w->cut = model_words_cut(w, ranks, place);
        if (i == 0)
            w->rows = room;
        else
            w->columns = room;
    }
}

void model_give_words(const sifr_model *from, model_node *node, int32_t ranks, int32_t place) {
    device_words words = words_at(words_of(from, node), ranks, place);
    if (is_head(node))
        node->attributes.head.words = words;
    else
        node->attributes.embedding.words = words;
}

device_words model_words_of(const model_node *node) {
    if (node->op->layout != MODEL_LAYOUT_WORDS) return (device_words){0};
    return node->op->makes_loss ? node->attributes.head.words : node->attributes.embedding.words;
}
