/* The walk that cuts a model among tensor ranks: which products, values and weights a rank has some
 * of, by the rules of the op table; and that the ranks' parts are the whole, each element once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "model/registry.h"
#include "model/shard.h"

static sifr_model *model_of(const char *text) {
    model_config config;
    sifr_error error = {0};
    sifr_model *model = NULL;
    if (model_config_parse(text, strlen(text), "test", &config, &error) != SIFR_OK ||
        model_from_config(&config, &model, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    return model;
}

#define LLAMA(heads, kv_heads, width)                                                              \
    "{\"model_type\": \"llama\", \"vocab_size\": 97, \"hidden_size\": 48, "                        \
    "\"num_hidden_layers\": 2, \"num_attention_heads\": " #heads                                   \
    ", \"num_key_value_heads\": " #kv_heads ", \"intermediate_size\": " #width                     \
    ", \"head_dim\": 8, \"max_position_embeddings\": 64, \"attention_bias\": true}"
static const char gpt2[] = "{\"model_type\": \"gpt2\", \"vocab_size\": 97, \"n_embd\": 48, "
                           "\"n_layer\": 2, \"n_head\": 6, \"n_positions\": 64, "
                           "\"attn_pdrop\": 0.0}";

static const model_weight *find(const sifr_model *model, const char *end) {
    for (size_t w = 0; w < model->weight_count; w++) {
        const char *name = model->weights[w].name;
        size_t length = strlen(name), tail = strlen(end);
        if (length >= tail && !strcmp(name + length - tail, end)) return &model->weights[w];
    }
    fail_msg("no weight ends with %s", end);
    return NULL;
}

static void expect_cut(const sifr_model *part, const char *end, int64_t rows, int64_t columns) {
    const model_weight *w = find(part, end);
    assert_true(w->cut.count > 0 && !w->replicated);
    assert_int_equal(w->rows, rows);
    assert_int_equal(w->columns, columns);
}

static int count_nodes(const sifr_model *model, const model_op *op) {
    int count = 0;
    for (size_t n = 0; n < model->node_count; n++) count += model->nodes[n].op == op;
    return count;
}

static void cuts_a_decoder(void **state) {
    (void)state;
    sifr_model *model = model_of(LLAMA(6, 3, 36)), *part;
    sifr_error error = {0};
    assert_int_equal(model_shard(model, 3, 1, 0, &part, &error), SIFR_OK);
    expect_cut(part, "layers.1.self_attn.q_proj.weight", 16, 48);
    expect_cut(part, "layers.1.self_attn.q_proj.bias", 1, 16);
    expect_cut(part, "layers.1.self_attn.k_proj.weight", 8, 48);
    expect_cut(part, "layers.1.self_attn.o_proj.weight", 48, 16);
    expect_cut(part, "layers.1.mlp.up_proj.weight", 12, 48);
    expect_cut(part, "layers.1.mlp.down_proj.weight", 48, 12);
    static const char *const whole[] = {"embed_tokens.weight", "layers.1.input_layernorm.weight",
                                        "layers.1.self_attn.o_proj.bias", "lm_head.weight"};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        assert_true(find(part, whole[i])->replicated && !find(part, whole[i])->cut.count);
    /* An entry and a sum for attention and for the MLP of each block. */
    assert_int_equal(count_nodes(part, &model_op_tensor_entry), 4);
    assert_int_equal(count_nodes(part, &model_op_tensor_sum), 4);
    for (size_t n = 0; n < part->node_count; n++) {
        const model_node *node = &part->nodes[n];
        if (node->op == &model_op_attention) {
            assert_int_equal(node->attributes.attention.heads, 2);
            assert_int_equal(node->attributes.attention.kv_heads, 1);
        }
        assert_int_equal(part->values[node->y].node, n);
        bool own = node->op != &model_op_tensor_entry && node->op != &model_op_tensor_sum;
        if (own) assert_int_equal(part->node_at[node->attributes.op], n);
    }
    sifr_model_free(part);
    sifr_model_free(model);
}

/* q, k and v of one matrix are three blocks of columns; its output's slices are cut with them. */
static void cuts_a_fused_matrix(void **state) {
    (void)state;
    sifr_model *model = model_of(gpt2), *part;
    sifr_error error = {0};
    assert_int_equal(model_shard(model, 2, 1, 0, &part, &error), SIFR_OK);
    const model_weight *w = find(part, "h.0.attn.c_attn.weight");
    assert_int_equal(w->cut.count, 3);
    for (int b = 0; b < 3; b++) {
        assert_int_equal(w->cut.blocks[b].columns[0], 48 * b + 24);
        assert_int_equal(w->cut.blocks[b].columns[1], 48 * b + 48);
    }
    expect_cut(part, "h.0.attn.c_proj.weight", 24, 48);
    for (size_t v = 0; v < part->value_count; v++) {
        const model_value *slice = &part->values[v];
        if (slice->base >= 0) {
            assert_int_equal(slice->columns, 24);
            assert_int_equal(slice->first % 24, 0);
        }
    }
    bool elsewhere = false; /* the bias of c_proj is the first rank's */
    for (size_t n = 0; n < part->node_count; n++) elsewhere |= part->nodes[n].bias_elsewhere;
    assert_true(elsewhere);
    sifr_model_free(part);
    sifr_model_free(model);
}

/* Each element of each weight is on one rank, on as many as have it alike, or on all; and from
 * local elements, of which those that a rank has room for and does not have stand for none, each is
 * found where it lies. */
static void parts_are_the_whole(void **state) {
    (void)state;
    static const char *const texts[] = {LLAMA(6, 3, 36), gpt2, LLAMA(4, 2, 38),
                                        LLAMA(6, 3, 37), gpt2, LLAMA(8, 2, 36),
                                        LLAMA(4, 1, 100)};
    static const int32_t ranks[] = {3, 2, 2, 2, 4, 4, 2};
    sifr_error error = {0};
    for (int t = 0; t < 7; t++) {
        sifr_model *model = model_of(texts[t]), *part;
        assert_int_equal(model_shard(model, ranks[t], 0, 0, &part, &error), SIFR_OK);
        for (size_t w = 0; w < model->weight_count; w++) {
            int64_t elements = model->weights[w].rows * model->weights[w].columns;
            assert_int_equal(model_logical_elements(&part->weights[w]), elements);
            int *seen = calloc((size_t)elements, sizeof *seen);
            for (int32_t place = 0; place < ranks[t]; place++) {
                model_weight there = model_weight_at(part, w, place);
                int64_t local = there.rows * there.columns, lie = 0, stand = 0;
                model_stretch s;
                for (int64_t at = 0; model_local_next(&there, at, elements, &s);
                     at = s.at + s.count) {
                    for (int64_t i = 0; i < s.count; i++) seen[s.at + i]++;
                    assert_int_equal(model_logical_at(&there, s.place, local).at, s.at);
                    assert_true(s.place + s.count <= local);
                    lie += s.count;
                }
                for (int64_t at = 0; at < local; at = s.place + s.count) {
                    s = model_logical_at(&there, at, local);
                    assert_true(s.place == at && s.count >= 1);
                    if (s.at >= 0) stand += s.count;
                }
                assert_int_equal(lie, stand);
            }
            int copies = part->weights[w].copies ? part->weights[w].copies : 1;
            int times = part->weights[w].replicated ? ranks[t] : copies;
            for (int64_t i = 0; i < elements; i++) assert_int_equal(seen[i], times);
            free(seen);
        }
        sifr_model_free(part);
        sifr_model_free(model);
    }
}

/* Three kv heads among two ranks: the first has two, and both have room for two. Of an MLP of 37
 * columns they have 19 and 18; of a wide one blocks of as many columns as leave eight for each. */
static void divides_unevenly(void **state) {
    (void)state;
    sifr_model *model = model_of(LLAMA(6, 3, 37)), *part;
    sifr_error error = {0};
    for (int place = 0; place < 2; place++) {
        assert_int_equal(model_shard(model, 2, place, 0, &part, &error), SIFR_OK);
        expect_cut(part, "layers.0.self_attn.q_proj.weight", 32, 48);
        expect_cut(part, "layers.0.self_attn.k_proj.weight", 16, 48);
        expect_cut(part, "layers.0.self_attn.o_proj.weight", 48, 32);
        expect_cut(part, "layers.0.mlp.gate_proj.weight", 19, 48);
        const model_cut *cut = &find(part, "layers.0.mlp.down_proj.weight")->cut;
        assert_int_equal(cut->blocks[0].columns[0], place ? 19 : 0);
        assert_int_equal(cut->blocks[0].columns[1], place ? 37 : 19);
        sifr_model_free(part);
    }
    sifr_model_free(model);
    model = model_of(LLAMA(6, 3, 200)); /* 25 blocks of 8: 9, 8 and 8 */
    assert_int_equal(model_shard(model, 3, 1, 0, &part, &error), SIFR_OK);
    expect_cut(part, "layers.0.mlp.gate_proj.weight", 72, 48);
    assert_int_equal(find(part, "gate_proj.weight")->cut.blocks[0].rows[0], 72);
    assert_int_equal(find(part, "gate_proj.weight")->cut.blocks[0].rows[1], 136);
    sifr_model_free(part);
    sifr_model_free(model);
}

static void expect_attention(const sifr_model *part, int heads, int kv_heads) {
    for (size_t n = 0; n < part->node_count; n++) {
        if (part->nodes[n].op != &model_op_attention) continue;
        assert_int_equal(part->nodes[n].attributes.attention.heads, heads);
        assert_int_equal(part->nodes[n].attributes.attention.kv_heads, kv_heads);
    }
}

/* Two kv heads among four ranks, one among two: neighbours have the same, and each makes a part of
 * its gradient. Not where neighbours cannot be as many, or heads do not divide. */
static void shares_kv_heads(void **state) {
    (void)state;
    sifr_model *model = model_of(LLAMA(8, 2, 36)), *part;
    sifr_error error = {0};
    for (int place = 0; place < 4; place++) {
        assert_int_equal(model_shard(model, 4, place, 0, &part, &error), SIFR_OK);
        const model_weight *k = find(part, "layers.1.self_attn.k_proj.weight");
        expect_cut(part, "layers.1.self_attn.q_proj.weight", 16, 48);
        expect_cut(part, "layers.1.self_attn.k_proj.weight", 8, 48);
        assert_int_equal(k->cut.blocks[0].rows[0], place / 2 * 8);
        assert_true(k->copies == 2 && k->partial && part->segments[k->segment].copies == 2);
        assert_int_equal(find(part, "q_proj.weight")->copies, 0);
        assert_int_equal(part->copies, 2);
        expect_attention(part, 2, 1);
        sifr_model_free(part);
    }
    sifr_model_free(model);
    model = model_of(LLAMA(4, 1, 36));
    assert_int_equal(model_shard(model, 2, 1, 0, &part, &error), SIFR_OK);
    expect_cut(part, "layers.0.self_attn.v_proj.weight", 8, 48);
    expect_attention(part, 2, 1);
    sifr_model_free(part);
    sifr_model_free(model);
    model = model_of(LLAMA(9, 3, 36)); /* four ranks: not as many have each kv head */
    assert_int_equal(model_shard(model, 4, 1, 0, &part, &error), SIFR_OK);
    assert_true(find(part, "q_proj.weight")->replicated && part->copies == 1);
    expect_attention(part, 9, 3);
    sifr_model_free(part);
    sifr_model_free(model);
    model = model_of(LLAMA(6, 2, 36)); /* six heads among four */
    assert_int_equal(model_shard(model, 4, 1, 0, &part, &error), SIFR_OK);
    assert_true(find(part, "q_proj.weight")->replicated && part->copies == 1);
    sifr_model_free(part);
    sifr_model_free(model);
}

static int32_t cut_products(const sifr_model *part, int32_t pieces) {
    int32_t cut = 0;
    for (size_t n = 0; n < part->node_count; n++) {
        const model_node *node = &part->nodes[n];
        if (node->op->layout != MODEL_LAYOUT_PRODUCT || !node->attributes.linear.pieces) continue;
        assert_int_equal(node->attributes.linear.pieces, pieces);
        assert_int_equal(node->summed, part->tensors > 1);
        cut++;
    }
    return cut;
}

/* Pieces: as many products on one rank as on several, without nodes between them, and the largest
 * number of pieces where there are too many. */
static void divides_into_pieces(void **state) {
    (void)state;
    sifr_model *model = model_of(LLAMA(8, 4, 36)), *part;
    sifr_error error = {0};
    for (int32_t ranks = 1; ranks <= 4; ranks *= 2) {
        assert_int_equal(model_shard(model, ranks, ranks - 1, 4, &part, &error), SIFR_OK);
        assert_int_equal(cut_products(part, 4 / ranks), 14);
        assert_int_equal(part->node_count, model->node_count);
        assert_int_equal(find(part, "q_proj.weight")->rows, 64 / ranks);
        assert_int_equal(find(part, "down_proj.weight")->columns, 36 / ranks);
        sifr_model_free(part);
    }
    assert_int_equal(model_shard(model, 1, 0, 8, &part, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "the most for this model is 4"));
    sifr_model_free(model);
    model = model_of(LLAMA(8, 4, 34));
    assert_int_equal(model_shard(model, 2, 0, 8, &part, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "the most for this model is 2"));
    sifr_model_free(model);
    model = model_of(LLAMA(6, 3, 32)); /* attention is whole with any number of ranks */
    assert_int_equal(model_shard(model, 1, 0, 8, &part, &error), SIFR_OK);
    assert_int_equal(cut_products(part, 8), 6);
    sifr_model_free(part);
    sifr_model_free(model);
    model = model_of(LLAMA(6, 3, 37));
    assert_int_equal(model_shard(model, 1, 0, 2, &part, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "two ranks cannot divide any product"));
    sifr_model_free(model);
}

/* What tensor ranks have alike lies in segments of its own. */
static void segments_are_whole_or_cut(void **state) {
    (void)state;
    sifr_model *model = model_of(gpt2), *part;
    sifr_error error = {0};
    assert_int_equal(model_shard(model, 2, 1, 0, &part, &error), SIFR_OK);
    assert_true(part->segment_count > model->segment_count);
    for (size_t w = 0; w < part->weight_count; w++)
        assert_int_equal(part->weights[w].replicated,
                         part->segments[part->weights[w].segment].replicated);
    for (size_t g = 0; g < model->segment_count; g++) assert_false(model->segments[g].replicated);
    sifr_model_free(part);
    sifr_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_a_decoder),           cmocka_unit_test(cuts_a_fused_matrix),
        cmocka_unit_test(parts_are_the_whole),      cmocka_unit_test(divides_unevenly),
        cmocka_unit_test(shares_kv_heads),          cmocka_unit_test(divides_into_pieces),
        cmocka_unit_test(segments_are_whole_or_cut)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
