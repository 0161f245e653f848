/* Attention's segments reach its forward and its backward call; a cached call has positions there.
 * What the builder refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "model/description.h"
#include "plan/pass/passes.h"

enum { WIDTH = 12, HEADS = 3, WORDS = 31, LENGTH = 10, SEQUENCES = 2 };

/* An embedding, attention of slices of one product, and a head. */
static sifr_model *model_of(sifr_attention_args args, bool segments, sifr_value *hidden) {
    sifr_model *m;
    assert_int_equal(sifr_model_create(&m, NULL), SIFR_OK);
    sifr_unit(m, "all");
    sifr_weight table = sifr_weight_matrix(m, "table", WORDS, WIDTH, SIFR_INIT_NORMAL, 1);
    sifr_weight w = sifr_weight_matrix(m, "qkv", 3 * WIDTH, WIDTH, SIFR_INIT_NORMAL, 1);
    sifr_value x = sifr_embedding(m, (sifr_embedding_args){.ids = sifr_tokens(m), .table = table});
    sifr_value qkv = sifr_linear(m, x, w, SIFR_NO_WEIGHT);
    if (segments) args.segments = sifr_positions(m);
    if (hidden) args.segments = *hidden = x;
    args.q = sifr_slice(m, qkv, 0, WIDTH);
    args.k = sifr_slice(m, qkv, WIDTH, WIDTH);
    args.v = sifr_slice(m, qkv, 2 * (int64_t)WIDTH, WIDTH);
    args.heads = args.kv_heads = HEADS;
    sifr_value y = sifr_add(m, x, sifr_attention(m, args));
    sifr_head_loss(m, (sifr_head_args){.x = y, .weight = table});
    return m;
}

static plan_schedule *plan_of(const sifr_model *model, plan_mode mode, sifr_recompute recompute) {
    plan_settings settings = {.mode = mode,
                              .step.precision = SIFR_FP32,
                              .step.micro_batch_size = mode == PLAN_GENERATE ? 1 : SEQUENCES,
                              .step.seq_length = LENGTH,
                              .step.recompute = recompute,
                              .cache_length = LENGTH,
                              .step.gradient_accumulation_steps = 2,
                              .mesh = plan_mesh_flat(1, 0)};
    device *dev;
    plan_schedule *s;
    sifr_error error = {0};
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    assert_int_equal(plan_lower(model, dev, &settings, &s, &error), SIFR_OK);
    device_close(dev);
    return s;
}

/* How many calls of a kernel have x3, with `rows` rows; all must. */
static int calls_with_segments(const plan_schedule *s, device_kernel kernel, int64_t rows,
                               bool wanted) {
    int count = 0;
    for (size_t n = 0; n < s->instruction_count; n++) {
        const plan_instruction *in = &s->instructions[n];
        if (in->call < 0 || s->calls[in->call].kernel != kernel) continue;
        const device_matrix *x3 = &s->calls[in->call].x[3];
        assert_int_equal(x3->dtype, wanted ? BASE_INT32 : BASE_NONE);
        if (wanted) assert_int_equal(x3->rows, rows);
        int operands = 0;
        for (int32_t o = 0; o < in->operands; o++)
            operands += s->operands[in->first_operand + o].role == PLAN_X3;
        assert_int_equal(operands, wanted);
        count++;
    }
    return count;
}

static void segments_reach_the_calls(void **state) {
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        bool segments = variant % 2;
        sifr_error error = {0};
        sifr_model *m = model_of((sifr_attention_args){.window = 4}, segments, NULL);
        assert_int_equal(sifr_model_finish(m, &error), SIFR_OK);
        plan_schedule *s =
            plan_of(m, PLAN_TRAIN, variant < 2 ? SIFR_RECOMPUTE_NONE : SIFR_RECOMPUTE_UNIT);
        int64_t rows = (int64_t)SEQUENCES * LENGTH;
        assert_true(calls_with_segments(s, DEVICE_ATTENTION, rows, segments) >= 2);
        assert_int_equal(calls_with_segments(s, DEVICE_ATTENTION_BACKWARD, rows, segments), 2);
        plan_free(s);
        s = plan_of(m, PLAN_GENERATE, SIFR_RECOMPUTE_NONE);
        assert_true(calls_with_segments(s, DEVICE_ATTENTION_CACHED, LENGTH, true) >= 1);
        plan_free(s);
        sifr_model_free(m);
    }
}

static void refused(sifr_attention_args args, bool hidden, const char *what) {
    sifr_error error = {0};
    sifr_value x;
    sifr_model *m = model_of(args, false, hidden ? &x : NULL);
    assert_int_equal(sifr_model_finish(m, &error), SIFR_USAGE);
    if (!strstr(error.message, what)) fail_msg("\"%s\" lacks \"%s\"", error.message, what);
    sifr_model_free(m);
}

static void mistakes_are_named(void **state) {
    (void)state;
    refused((sifr_attention_args){.window = -1}, false, "window -1");
    refused((sifr_attention_args){.scale = -0.5}, false, "scale -0.5");
    refused((sifr_attention_args){.scale = NAN}, false, "scale");
    refused((sifr_attention_args){.softcap = -3}, false, "softcap -3");
    refused((sifr_attention_args){.softcap = INFINITY}, false, "softcap inf");
    refused((sifr_attention_args){0}, true, "segments must be an input");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(segments_reach_the_calls),
                                       cmocka_unit_test(mistakes_are_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
