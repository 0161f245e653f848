/* What the builder's ops refuse: the first wrong call is what sifr_model_finish reports. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "sifr/model.h"

enum { WORDS = 11, WIDTH = 12 };

typedef struct parts {
    sifr_model *m;
    sifr_value x; /* tokens x WIDTH */
    sifr_weight table, vector;
} parts;

static sifr_value norm(const parts *p, int64_t heads, sifr_weight scale) {
    return sifr_rms_norm(
        p->m, (sifr_norm_args){.x = p->x, .scale = scale, .epsilon = 1e-5, .heads = heads});
}

static void norm_heads(const parts *p) {
    norm(p, 5, p->vector);
}
static void norm_heads_negative(const parts *p) {
    norm(p, -1, p->vector);
}
static void norm_scale(const parts *p) {
    norm(p, 3, p->vector);
}

static void norm_bias_alone(const parts *p) {
    sifr_layer_norm(p->m, (sifr_norm_args){.x = p->x, .bias = p->vector, .epsilon = 1e-5});
}

static void rope(const parts *p, int64_t head_dim, int64_t rotary_dim, double scale) {
    static const double frequencies[WIDTH] = {0};
    sifr_rope(p->m, (sifr_rope_args){.x = p->x,
                                     .head_dim = head_dim,
                                     .rotary_dim = rotary_dim,
                                     .frequencies = frequencies,
                                     .scale = scale});
}

static void rope_heads(const parts *p) {
    rope(p, 5, 0, 0);
}
static void rope_odd(const parts *p) {
    rope(p, 3, 0, 0);
}
static void rope_odd_part(const parts *p) {
    rope(p, 6, 3, 0);
}
static void rope_too_much(const parts *p) {
    rope(p, 6, 8, 0);
}
static void rope_scale(const parts *p) {
    rope(p, 6, 4, NAN);
}

static void split_qkv(const parts *p) {
    sifr_split_qkv(p->m, p->x, 4, 2);
}
static void split_qkv_none(const parts *p) {
    sifr_split_qkv(p->m, p->x, 0, 3);
}

static void table(const parts *p, int64_t first) {
    sifr_embedding(p->m, (sifr_embedding_args){
                             .ids = sifr_positions(p->m), .table = p->table, .first = first});
}

static void table_end(const parts *p) {
    table(p, WORDS);
}
static void table_begin(const parts *p) {
    table(p, -1);
}

static void gate(const parts *p) {
    sifr_gelu_gate(p->m, p->x, sifr_slice(p->m, p->x, 0, 5), true);
}

static void scale(const parts *p) {
    sifr_scale(p->m, (sifr_scale_args){.x = p->x, .factor = 1e300});
}

static void scale_by(const parts *p) {
    sifr_scale_by(p->m, p->x, p->vector);
}
static void scale_by_none(const parts *p) {
    sifr_scale_by(p->m, p->x, SIFR_NO_WEIGHT);
}
static void swish(const parts *p) {
    sifr_swish(p->m, p->x, -1e39);
}

static void clip(const parts *p) {
    sifr_clip(p->m, p->x, 0);
}

static void xielu(const parts *p, sifr_weight positive, double epsilon) {
    sifr_weight one = sifr_weight_vector(p->m, "one", 1, SIFR_INIT_ONE);
    sifr_xielu(p->m, (sifr_xielu_args){.x = p->x,
                                       .positive = positive.id ? positive : one,
                                       .negative = one,
                                       .beta = 0.5,
                                       .epsilon = epsilon});
}
static void xielu_wide(const parts *p) {
    xielu(p, p->vector, -1e-6);
}
static void xielu_epsilon(const parts *p) {
    xielu(p, SIFR_NO_WEIGHT, 1e-6);
}
static void xielu_none(const parts *p) {
    sifr_xielu(p->m, (sifr_xielu_args){.x = p->x, .beta = 0.5});
}

static void alibi(const parts *p) {
    sifr_attention(p->m, (sifr_attention_args){.q = p->x,
                                               .k = p->x,
                                               .v = p->x,
                                               .heads = 2,
                                               .kv_heads = 2,
                                               .bidirectional = true,
                                               .alibi = 1});
}

static void join_one(const parts *p) {
    sifr_join(p->m, &p->x, 1);
}
static void join_tokens(const parts *p) {
    sifr_join(p->m, (sifr_value[]){p->x, sifr_tokens(p->m)}, 2);
}
static void join_rows(const parts *p) {
    sifr_join(p->m, (sifr_value[]){p->x, sifr_rows(p->m, p->table)}, 2);
}

static void deviation(const parts *p) {
    sifr_weight_matrix(p->m, "d", 2, 2, SIFR_INIT_NORMAL, NAN);
}

static void relu(const parts *p) {
    sifr_relu(p->m, sifr_tokens(p->m), true);
}

static void head(const parts *p, sifr_weight bias, double factor, double softcap) {
    sifr_head_loss(
        p->m,
        (sifr_head_args){
            .x = p->x, .weight = p->table, .bias = bias, .scale = factor, .softcap = softcap});
}

static void head_bias(const parts *p) {
    head(p, p->vector, 0, 0);
}
static void head_scale(const parts *p) {
    head(p, SIFR_NO_WEIGHT, 1e39, 0);
}
static void head_softcap(const parts *p) {
    head(p, SIFR_NO_WEIGHT, 0, -1);
}

static void targets(const parts *p, sifr_value x, sifr_value wanted, sifr_weight bias) {
    sifr_head_regression(p->m, (sifr_head_targets_args){
                                   .x = x, .targets = wanted, .weight = p->table, .bias = bias});
}

static void targets_none(const parts *p) {
    targets(p, p->x, SIFR_NO_VALUE, SIFR_NO_WEIGHT);
}
static void targets_labels(const parts *p) {
    targets(p, p->x, sifr_labels(p->m), SIFR_NO_WEIGHT);
}
static void targets_few(const parts *p) {
    targets(p, p->x, sifr_targets(p->m, WORDS - 1), SIFR_NO_WEIGHT);
}
static void targets_no_column(const parts *p) {
    sifr_targets(p->m, 0);
}
static void targets_twice(const parts *p) {
    sifr_targets(p->m, 2);
    sifr_targets(p->m, 3);
}
static void targets_whole(const parts *p) {
    sifr_input_value(p->m, SIFR_TARGETS);
}
static void targets_ids(const parts *p) {
    sifr_embedding(p->m, (sifr_embedding_args){.ids = sifr_targets(p->m, 1), .table = p->table});
}
static void targets_bias(const parts *p) {
    targets(p, p->x, sifr_labels(p->m), p->vector);
}
static void targets_columns(const parts *p) {
    targets(p, sifr_slice(p->m, p->x, 0, 5), sifr_labels(p->m), SIFR_NO_WEIGHT);
}

/* A value with the rows of a weight does not go where each token has one. */
static void rows_add(const parts *p) {
    sifr_add(p->m, p->x, sifr_rows(p->m, p->table));
}
static void rows_head(const parts *p) {
    sifr_head_loss(p->m, (sifr_head_args){.x = sifr_rows(p->m, p->table), .weight = p->table});
}
static void rows_near(const parts *p) {
    sifr_unfold(p->m, (sifr_unfold_args){.x = sifr_rows(p->m, p->table), .size = 3});
}
static void near_segments(const parts *p) {
    sifr_unfold(p->m, (sifr_unfold_args){.x = p->x, .size = 3, .segments = p->x});
}

static void convolve(const parts *p, sifr_value x, sifr_weight weight, sifr_weight bias,
                     sifr_value segments) {
    sifr_short_conv(
        p->m, (sifr_short_conv_args){.x = x, .weight = weight, .bias = bias, .segments = segments});
}

static sifr_weight kernel(const parts *p, int64_t rows, int64_t size) {
    return sifr_weight_kernel(p->m, "k", rows, 1, size, SIFR_INIT_NORMAL, 0.1);
}

/* Of p->x, 12 columns, as q, k and v. */
static void delta(const parts *p, int64_t keys, int64_t values, sifr_value share, sifr_weight bias,
                  sifr_value segments) {
    sifr_delta(p->m, (sifr_delta_args){.q = p->x,
                                       .k = p->x,
                                       .v = p->x,
                                       .time = sifr_slice(p->m, p->x, 0, values),
                                       .share = share,
                                       .rate = sifr_weight_vector(p->m, "A", values, SIFR_INIT_LOG),
                                       .bias = bias,
                                       .key_heads = keys,
                                       .value_heads = values,
                                       .segments = segments});
}

static sifr_weight delta_vector(const parts *p, int64_t columns) {
    return sifr_weight_vector(p->m, "B", columns, SIFR_INIT_ONE);
}

static void delta_heads(const parts *p) {
    delta(p, 3, 4, sifr_slice(p->m, p->x, 0, 4), delta_vector(p, 4), SIFR_NO_VALUE);
}
static void delta_columns(const parts *p) {
    delta(p, 2, 4, sifr_slice(p->m, p->x, 0, 3), delta_vector(p, 4), SIFR_NO_VALUE);
}
static void delta_bias(const parts *p) {
    delta(p, 2, 4, sifr_slice(p->m, p->x, 0, 4), delta_vector(p, 3), SIFR_NO_VALUE);
}
static void delta_weight(const parts *p) {
    delta(p, 2, 4, sifr_slice(p->m, p->x, 0, 4), SIFR_NO_WEIGHT, SIFR_NO_VALUE);
}
static void delta_segments(const parts *p) {
    delta(p, 2, 4, sifr_slice(p->m, p->x, 0, 4), delta_vector(p, 4), p->x);
}

static void conv_weight(const parts *p) {
    convolve(p, p->x, SIFR_NO_WEIGHT, SIFR_NO_WEIGHT, SIFR_NO_VALUE);
}
static void conv_rows(const parts *p) {
    convolve(p, p->x, kernel(p, 11, 3), SIFR_NO_WEIGHT, SIFR_NO_VALUE);
}
static void conv_one(const parts *p) {
    convolve(p, p->x, kernel(p, WIDTH, 1), SIFR_NO_WEIGHT, SIFR_NO_VALUE);
}
static void conv_many(const parts *p) {
    convolve(p, p->x, kernel(p, WIDTH, 9), SIFR_NO_WEIGHT, SIFR_NO_VALUE);
}
static void conv_bias(const parts *p) {
    convolve(p, sifr_slice(p->m, p->x, 0, 5), kernel(p, 5, 3), p->vector, SIFR_NO_VALUE);
}
static void conv_segments(const parts *p) {
    convolve(p, p->x, kernel(p, WIDTH, 3), p->vector, p->x);
}
static void conv_table(const parts *p) {
    convolve(p, sifr_rows(p->m, p->table), kernel(p, WIDTH, 3), p->vector, SIFR_NO_VALUE);
}

static void relative(const parts *p, sifr_value keys, int64_t kv_heads) {
    sifr_attention(p->m, (sifr_attention_args){.q = p->x,
                                               .k = p->x,
                                               .v = p->x,
                                               .heads = 2,
                                               .kv_heads = kv_heads,
                                               .position_keys = keys,
                                               .bidirectional = true});
}

static void relative_odd(const parts *p) {
    relative(p, sifr_rows(p->m, p->table), 2);
}
static void relative_tokens(const parts *p) {
    relative(p, p->x, 2);
}
static void rows_query(const parts *p) {
    sifr_value rows = sifr_rows(p->m, p->table);
    sifr_attention(
        p->m, (sifr_attention_args){.q = rows, .k = p->x, .v = p->x, .heads = 2, .kv_heads = 2});
}

static void refusals(void **state) {
    (void)state;
    static const struct {
        void (*call)(const parts *p);
        const char *message;
    } cases[] = {
        {norm_heads, "unit u: rms_norm: 5 heads do not divide 12 columns"},
        {norm_heads_negative, "unit u: rms_norm: -1 heads"},
        {norm_scale, "unit u: rms_norm: v has 1 x 12 elements, but 4 are needed"},
        {norm_bias_alone, "unit u: layer_norm: it has a bias, so it needs a scale"},
        {rope_heads, "unit u: rope: heads of 5 do not divide 12 columns"},
        {rope_odd, "unit u: rope: 3 elements of heads of 3 cannot turn in pairs"},
        {rope_odd_part, "unit u: rope: 3 elements of heads of 6 cannot turn in pairs"},
        {rope_too_much, "unit u: rope: 8 elements of heads of 6 cannot turn in pairs"},
        {rope_scale, "unit u: rope: scale"},
        {split_qkv, "unit u: split_qkv: 4 groups of 2 parts do not divide 12 columns"},
        {split_qkv_none, "unit u: split_qkv: 0 groups"},
        {table_end, "unit u: embedding: id 0 is row 11 of t, which has 11"},
        {table_begin, "unit u: embedding: id 0 is row -1 of t"},
        {gate, "unit u: gelu_gate: 12 and 5 columns"},
        {scale, "unit u: scale: factor 1e+300"},
        {scale_by, "unit u: scale_by: v has 1 x 12 elements, but 1 are needed"},
        {scale_by_none, "unit u: scale_by: a weight is missing"},
        {swish, "unit u: swish: slope"},
        {clip, "unit u: clip: limit 0"},
        {xielu_wide, "unit u: xielu: v has 1 x 12 elements, but 1 are needed"},
        {xielu_epsilon, "unit u: xielu: beta 0.5 and epsilon 1e-06 must be finite"},
        {xielu_none, "unit u: xielu: a weight is missing"},
        {alibi, "unit u: attention: a bias by distance, 1, must not be negative"},
        {join_one, "unit u: join: 1 values, but 2 to 6 can be joined"},
        {join_tokens, "unit u: join: an operand is not an activation"},
        {join_rows, "unit u: join: input 1 has 11 rows"},
        {deviation, "weight d: deviation nan"},
        {relu, "unit u: relu: an operand is not an activation"},
        {head_bias, "unit u: head_loss: v has 1 x 12 elements, but 11 are needed"},
        {head_scale, "unit u: head_loss: scale 1e+39"},
        {head_softcap, "unit u: head_loss: scale 0, softcap -1"},
        {rows_add, "unit u: add: input 1 has 11 rows (0: one for each token)"},
        {rows_head, "unit u: head_loss: input 0 has 11 rows"},
        {rows_near, "unit u: unfold: input 0 has 11 rows"},
        {rows_query, "unit u: attention: input 0 has 11 rows"},
        {near_segments, "unit u: unfold: segments must be an input of whole numbers"},
        {conv_weight, "unit u: short_conv: a weight is missing"},
        {conv_rows, "unit u: short_conv: k has 11 x 3 elements; expected 12 rows of 2 to 8 taps"},
        {conv_one, "unit u: short_conv: k has 12 x 1 elements"},
        {conv_many, "unit u: short_conv: k has 12 x 9 elements"},
        {conv_bias, "unit u: short_conv: v has 1 x 12 elements, but 5 are needed"},
        {conv_segments, "unit u: short_conv: segments must be an input of whole numbers"},
        {conv_table, "unit u: short_conv: input 0 has 11 rows"},
        {delta_heads, "unit u: delta: 3 key heads and 4 value heads do not fit columns 12, 12, 12"},
        {delta_columns, "unit u: delta: 2 key heads and 4 value heads do not fit columns 12, 12, "
                        "12, 4, 3"},
        {delta_bias, "unit u: delta: B has 1 x 3 elements, but 4 are needed"},
        {delta_weight, "unit u: delta: a weight is missing"},
        {delta_segments, "unit u: delta: segments must be an input of whole numbers"},
        {relative_odd, "unit u: attention: tables of relative positions need 12 columns and an"},
        {relative_tokens, "unit u: attention: tables of relative positions need 12 columns"},
        {targets_none, "unit u: head_regression: the targets are missing"},
        {targets_labels, "unit u: head_regression: the targets must be sifr_targets of 11 columns"},
        {targets_few, "unit u: head_regression: the targets must be sifr_targets of 11 columns"},
        {targets_no_column, "targets: 0 columns"},
        {targets_twice, "targets: 3 columns, but the model has asked for 2 before"},
        {targets_whole, "input 5: there is no such input of whole numbers"},
        {targets_ids, "unit u: embedding: ids must be an input"},
        {targets_bias, "unit u: head_regression: v has 1 x 12 elements, but 11 are needed"},
        {targets_columns, "unit u: head_regression: t takes 12 columns, its input has 5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        parts p;
        sifr_error error = {0};
        assert_int_equal(sifr_model_create(&p.m, &error), SIFR_OK);
        sifr_unit(p.m, "u");
        p.table = sifr_weight_matrix(p.m, "t", WORDS, WIDTH, SIFR_INIT_NORMAL, 0.1);
        p.vector = sifr_weight_vector(p.m, "v", WIDTH, SIFR_INIT_ZERO);
        p.x = sifr_embedding(p.m, (sifr_embedding_args){.ids = sifr_tokens(p.m), .table = p.table});
        cases[i].call(&p);
        head(&p, SIFR_NO_WEIGHT, 0, 0);
        assert_int_equal(sifr_model_finish(p.m, &error), SIFR_USAGE);
        if (strncmp(error.message, cases[i].message, strlen(cases[i].message)) != 0)
            fail_msg("expected \"%s\", got \"%s\"", cases[i].message, error.message);
        sifr_model_free(p.m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
