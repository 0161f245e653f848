/* Layers that attend to the keys and values of an earlier one: in generation they share its cache.
 * Nodes that share less have their own. Between stages of
 * a pipeline what they share travels in one message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/description.h"
#include "plan/pass/passes.h"
#include "plan/peers.h"
#include "plan/walk.h"

enum { WIDTH = 12, HEADS = 3, WORDS = 31, LENGTH = 10, ROOM = 16, LAYERS = 3 };

static sifr_value project(sifr_model *m, sifr_value x, const char *name) {
    return sifr_linear(m, x, sifr_weight_matrix(m, name, WIDTH, WIDTH, SIFR_INIT_NORMAL, 1),
                       SIFR_NO_WEIGHT);
}

static sifr_value attend(sifr_model *m, sifr_value x, const char *q, sifr_value k, sifr_value v) {
    sifr_attention_args args = {
        .q = project(m, x, q), .k = k, .v = v, .heads = HEADS, .kv_heads = HEADS};
    return sifr_add(m, x, sifr_attention(m, args));
}

/* The second layer has the first one's keys and values, the third its values alone. */
static sifr_model *model_of(void) {
    sifr_model *m;
    sifr_error error = {0};
    assert_int_equal(sifr_model_create(&m, NULL), SIFR_OK);
    sifr_unit(m, "embedding");
    sifr_weight table = sifr_weight_matrix(m, "table", WORDS, WIDTH, SIFR_INIT_NORMAL, 1);
    sifr_value x = sifr_embedding(m, (sifr_embedding_args){.ids = sifr_tokens(m), .table = table});
    sifr_unit(m, "first");
    sifr_value k = project(m, x, "k"), v = project(m, x, "v");
    x = attend(m, x, "q1", k, v);
    sifr_unit(m, "second");
    x = attend(m, x, "q2", k, v);
    sifr_unit(m, "third");
    x = attend(m, x, "q3", project(m, x, "k3"), v);
    sifr_unit(m, "head");
    sifr_head_loss(m, (sifr_head_args){.x = x, .weight = table});
    if (sifr_model_finish(m, &error) != SIFR_OK) fail_msg("%s", error.message);
    return m;
}

static plan_schedule *plan_of(const sifr_model *model, const plan_settings *settings) {
    device *dev;
    plan_schedule *s;
    sifr_error error = {0};
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    if (plan_lower(model, dev, settings, &s, &error) != SIFR_OK) fail_msg("%s", error.message);
    device_close(dev);
    return s;
}

static plan_settings settings_of(plan_mode mode) {
    return (plan_settings){.mode = mode,
                           .step.precision = SIFR_FP32,
                           .step.micro_batch_size = mode == PLAN_GENERATE ? 1 : 2,
                           .step.seq_length = LENGTH,
                           .step.gradient_accumulation_steps = mode == PLAN_TRAIN ? 2 : 1,
                           .cache_length = ROOM,
                           .mesh = plan_mesh_flat(1, 0)};
}

static void caches(void **state) {
    (void)state;
    sifr_model *m = model_of();
    plan_settings settings = settings_of(PLAN_GENERATE);
    plan_schedule *s = plan_of(m, &settings);
    int32_t found[LAYERS][2] = {{0}};
    int layers = 0, buffers = 0;
    for (size_t n = 0; n < m->node_count; n++) {
        if (s->caches[2 * n] < 0) continue;
        assert_in_range(layers, 0, LAYERS - 1);
        for (int i = 0; i < 2; i++) found[layers][i] = s->caches[2 * n + (size_t)i];
        layers++;
    }
    assert_int_equal(layers, LAYERS);
    for (size_t b = 0; b < s->buffer_count; b++) {
        if (s->buffers[b].class != PLAN_CACHE) continue;
        assert_int_equal(s->buffers[b].bytes, ROOM * WIDTH * 4);
        buffers++;
    }
    assert_int_equal(buffers, 4);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(found[1][i], found[0][i]);
        assert_int_not_equal(found[2][i], found[0][i]);
    }
    plan_free(s);
    sifr_model_free(m);
}

/* Gradients of the keys are added up where a later layer has made its part first. */
static void gradients(void **state) {
    (void)state;
    sifr_model *m = model_of();
    int32_t keys = -1;
    for (size_t n = 0; n < m->node_count && keys < 0; n++)
        if (m->nodes[n].op == &model_op_attention) keys = m->nodes[n].x[1];
    for (int checkpoints = 0; checkpoints < 3; checkpoints++) {
        plan_settings settings = settings_of(PLAN_TRAIN);
        settings.step.recompute = checkpoints ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE;
        settings.step.number_checkpoints = checkpoints - 1 > 0 ? 1 : 0;
        plan_schedule *s = plan_of(m, &settings);
        int added = 0;
        for (size_t i = 0; i < s->instruction_count; i++) {
            const plan_instruction *in = &s->instructions[i];
            if (in->call < 0 || s->calls[in->call].kernel != DEVICE_ACCUMULATE) continue;
            for (int32_t o = 0; o < in->operands; o++) {
                const plan_operand *operand = &s->operands[in->first_operand + o];
                added += operand->role == PLAN_Y && s->buffers[operand->buffer].index == keys;
            }
        }
        assert_int_equal(added, 2); /* once in each micro batch */
        plan_free(s);
    }
    sifr_model_free(m);
}

static int messages(const plan_schedule *s, plan_action action, int kind, int64_t bytes) {
    int count = 0;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->action != action || in->stream % PLAN_STREAMS != kind) continue;
        assert_int_equal(in->bytes, bytes);
        count++;
    }
    return count;
}

/* The border behind the first layer is crossed by its result, its keys and its values: they and
 * their gradients are one message for each micro batch. That behind the second is crossed by its
 * result and the values, one message each. */
static void stages(void **state) {
    (void)state;
    enum { VALUE = 2 * LENGTH * WIDTH * 4 };
    sifr_model *m = model_of();
    for (int32_t second = 0; second < 2; second++) {
        for (int32_t stage = 0; stage < 2; stage++) {
            plan_settings settings = settings_of(PLAN_TRAIN);
            settings.verify = true;
            settings.step.recompute = stage ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE;
            settings.mesh = plan_mesh_flat(2, stage);
            settings.mesh.ranks[PLAN_AXIS_STAGE] = 2;
            settings.mesh.ranks[PLAN_AXIS_SHARD] = 1;
            settings.mesh.place[PLAN_AXIS_STAGE] = stage;
            settings.mesh.place[PLAN_AXIS_SHARD] = 0;
            settings.pipeline = (plan_pipeline){.stages = 2,
                                                .chunks = 1,
                                                .stage = stage,
                                                .order = PLAN_WALK_1F1B,
                                                .first_unit = {0, 2 + second, 5}};
            plan_schedule *s = plan_of(m, &settings);
            int64_t bytes = second ? VALUE : 3 * VALUE;
            int wanted = second ? 4 : 2;
            plan_action values = stage ? PLAN_RECEIVE : PLAN_SEND;
            plan_action back = stage ? PLAN_SEND : PLAN_RECEIVE;
            assert_int_equal(messages(s, values, PLAN_STREAM_VALUES, bytes), wanted);
            assert_int_equal(messages(s, back, PLAN_STREAM_GRADIENTS, bytes), wanted);
            plan_free(s);
        }
    }
    sifr_model_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(caches), cmocka_unit_test(gradients),
                                       cmocka_unit_test(stages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
