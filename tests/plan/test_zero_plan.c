/* What a plan says of ZeRO's stages at many rank counts, against the design's table: bytes held per
 * parameter, bytes on the wire, and the number of transfers. Worked out here from the flat
 * parameters' sizes alone, not from the schedule's own instructions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "model/registry.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "plan/schedule.h"

enum { BLOCK = 1024, LAYERS = 3, GRADIENT = 4 };

static const int32_t rank_counts[] = {2, 3, 4, 5, 8, 16, 64, 1000};
enum { RANK_COUNTS = sizeof rank_counts / sizeof *rank_counts };

typedef struct fixture {
    sifr_model *model;
    device *dev;
} fixture;

/* Embedding, blocks, head: large enough that padding to 64 ranks is little beside a block. */
static void open_fixture(fixture *f, bool tied) {
    model_config c = {.model_type = "llama",
                      .vocab_size = 4096,
                      .hidden_size = 512,
                      .num_hidden_layers = LAYERS,
                      .num_attention_heads = 8,
                      .num_key_value_heads = 4,
                      .head_dim = 64,
                      .intermediate_size = 1400,
                      .max_position_embeddings = 64,
                      .activation = MODEL_SILU,
                      .norm_eps = 1e-5,
                      .rope.theta = 1e4,
                      .rope.factor = 1,
                      .tie_word_embeddings = tied,
                      .initializer_range = 0.02};
    sifr_error error = {0};
    assert_int_equal(model_from_config(&c, &f->model, &error), SIFR_OK);
    assert_int_equal(device_open_cpu(1, NULL, &f->dev, &error), SIFR_OK);
}

static void close_fixture(fixture *f) {
    sifr_model_free(f->model);
    device_close(f->dev);
}

static plan_schedule *lower(const fixture *f, plan_settings settings) {
    plan_schedule *s;
    sifr_error error = {0};
    settings.mode = PLAN_TRAIN;
    settings.step.precision = SIFR_BF16;
    settings.step.micro_batch_size = 1;
    settings.step.seq_length = 16;
    settings.mesh = plan_mesh_at(&settings.mesh, plan_mesh_ranks(&settings.mesh, PLAN_WORLD) - 1);
    if (plan_lower(f->model, f->dev, &settings, &s, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    return s;
}

/* A unit's parameters, each on blocks, and the whole cut into equal slices of blocks. */
static int64_t padded(const sifr_model *model, size_t unit, int64_t ranks) {
    int64_t blocks = 0;
    for (size_t w = 0; w < model->weight_count; w++) {
        const model_weight *weight = &model->weights[w];
        if ((size_t)weight->unit == unit)
            blocks += (weight->rows * weight->columns + BLOCK - 1) / BLOCK;
    }
    return (blocks + ranks - 1) / ranks * ranks * BLOCK;
}

static int64_t padded_all(const sifr_model *model, int64_t ranks) {
    int64_t sum = 0;
    for (size_t u = 0; u < model->unit_count; u++) sum += padded(model, u, ranks);
    return sum;
}

/* --- memory --- */

/* Most bytes of gradients of units that live at once. */
static int64_t gradients_at_once(const plan_schedule *s) {
    int64_t now = 0, most = 0;
    int64_t *change = calloc(s->instruction_count + 1, sizeof *change);
    for (size_t b = 0; b < s->buffer_count; b++) {
        const plan_buffer *buffer = &s->buffers[b];
        if (buffer->class != PLAN_GRADIENTS || buffer->unit < 0 || buffer->first < 0) continue;
        change[buffer->first] += buffer->bytes;
        change[buffer->last + 1] -= buffer->bytes;
    }
    for (size_t i = 0; i <= s->instruction_count; i++) {
        now += change[i];
        if (now > most) most = now;
    }
    free(change);
    return most;
}

static int64_t held(const plan_schedule *s, plan_class class) {
    int64_t sum = 0;
    for (size_t b = 0; b < s->buffer_count; b++) {
        if (s->buffers[b].class == class && s->buffers[b].first < 0) sum += s->buffers[b].bytes;
    }
    return sum;
}

/* Parameters, gradients, optimizer state; where gradients are slices, two units at most are whole
 * beside them: the one that is made, and the one that is on its way. */
static void check_memory(const fixture *f, int32_t ranks, int stage, sifr_step_order order) {
    int64_t k =
        order == SIFR_STEP_UNIT ? 2 : 1; /* k > 1 costs one unit's partial sum in that order */
    plan_settings settings = {.mesh = plan_mesh_flat(ranks, 0),
                              .step.zero.stage = stage,
                              .step.step_order = order,
                              .step.gradient_accumulation_steps = (int32_t)k};
    plan_schedule *s = lower(f, settings);
    int64_t elements = padded_all(f->model, ranks), largest = 0;
    for (size_t u = 0; u < f->model->unit_count; u++) {
        if (padded(f->model, u, ranks) > largest) largest = padded(f->model, u, ranks);
    }
    int64_t n = ranks, slice = elements / n;
    assert_int_equal(held(s, PLAN_PARAMETERS), 2 * (stage == 3 ? slice : elements));
    assert_int_equal(held(s, PLAN_MASTERS), 4 * (stage >= 1 ? slice : elements));
    assert_int_equal(held(s, PLAN_MOMENTS), 8 * (stage >= 1 ? slice : elements));
    int64_t gradients = gradients_at_once(s);
    if (stage < 2) {
        assert_true(gradients >= GRADIENT * elements);
        assert_true(gradients <= GRADIENT * (elements + (k - 1) * largest));
    } else {
        assert_true(gradients > GRADIENT * slice);
        assert_true(gradients <= GRADIENT * (slice + (1 + k) * largest));
    }
    /* The table: bytes a parameter, and what padding and units in flight add. */
    static const int64_t whole[] = {18, 6, 2, 0}, cut[] = {0, 12, 16, 18};
    int64_t parameters = sifr_model_parameters(f->model);
    int64_t table = whole[stage] * parameters + cut[stage] * parameters / n;
    int64_t all = held(s, PLAN_PARAMETERS) + held(s, PLAN_MASTERS) + held(s, PLAN_MOMENTS) +
                  GRADIENT * (stage < 2 ? elements : slice);
    int64_t pads = elements - parameters;
    int64_t weights = (int64_t)f->model->weight_count, units = (int64_t)f->model->unit_count;
    assert_true(pads >= 0);
    assert_true(pads <= (weights + units * n) * BLOCK);
    assert_true(all >= table);
    assert_true(all <= table + whole[stage] * pads + cut[stage] * pads / n + 18);
    /* Stage 3 has never more than few units whole. */
    if (stage == 3) assert_true(s->peak_bytes[PLAN_GATHERED] <= 2 * 2 * largest);
    plan_free(s);
}

static void memory(void **state) {
    fixture f;
    (void)state;
    open_fixture(&f, false);
    for (int i = 0; i < RANK_COUNTS; i++) {
        for (int stage = 0; stage < 4; stage++) {
            check_memory(&f, rank_counts[i], stage, SIFR_STEP_BATCH);
            check_memory(&f, rank_counts[i], stage, SIFR_STEP_UNIT);
        }
    }
    close_fixture(&f);
}

/* --- the wire --- */

typedef struct wire {
    int64_t gathered, reduced; /* bytes to this rank */
    int64_t gather_calls, reduce_calls;
} wire;

static void pass(int64_t elements, int64_t bytes, int64_t ranks, int64_t times, int64_t *sum,
                 int64_t *calls) {
    *sum += times * (elements / ranks) * (ranks - 1) * bytes;
    *calls += times;
}

/* The table's last column, unit by unit, and in bf16. The embedding's backward pass reads no
 * parameters and the head has forward and backward in one: one gather. A tied head reads the
 * embedding's table, and sends a gradient for it. */
static wire table_wire(const sifr_model *model, const plan_settings *settings, bool tied) {
    wire w = {0};
    int64_t n = plan_mesh_ranks(&settings->mesh, PLAN_STATE);
    bool often = settings->step.step_order == SIFR_STEP_BATCH && settings->step.zero.stage >= 2;
    int64_t times = often ? settings->step.gradient_accumulation_steps : 1;
    for (size_t u = 0; u < model->unit_count; u++) {
        int64_t elements = padded(model, u, plan_mesh_ranks(&settings->mesh, PLAN_DATA));
        bool first = u == 0, last = u + 1 == model->unit_count;
        int64_t uses = tied && first ? 2 : 1;
        pass(elements, 4, n, times * uses, &w.reduced, &w.reduce_calls);
        if (settings->step.zero.stage == 0) {
            pass(elements, 4, n, 1, &w.gathered, &w.gather_calls);
        } else if (settings->step.zero.stage < 3) {
            pass(elements, 2, n, 1, &w.gathered, &w.gather_calls);
        } else {
            int64_t gathers = first ? uses : last ? 1 : 2;
            pass(elements, 2, n, times * gathers, &w.gathered, &w.gather_calls);
        }
    }
    return w;
}

/* Once a step the slices of each unit's sums, and of each further use of its weights, are added and
 * gathered between copies. */
static wire table_between(const sifr_model *model, const plan_settings *settings, bool tied) {
    wire w = {0};
    int64_t n = plan_mesh_ranks(&settings->mesh, PLAN_STATE);
    int64_t copies = plan_mesh_ranks(&settings->mesh, PLAN_REPLICAS);
    for (size_t u = 0; u < model->unit_count && copies > 1; u++) {
        int64_t slice = padded(model, u, n * copies) / n, times = tied && u == 0 ? 2 : 1;
        pass(slice, 4, copies, times, &w.reduced, &w.reduce_calls);
        pass(slice, 4, copies, times, &w.gathered, &w.gather_calls);
    }
    return w;
}

static wire planned_wire(const plan_schedule *s, plan_span span) {
    wire w = {0};
    plan_wire_of(s, span, &w.gathered, &w.reduced);
    for (size_t i = 0; i < s->instruction_count; i++) {
        if (s->instructions[i].span != span) continue;
        w.gather_calls += s->instructions[i].action == PLAN_GATHER;
        w.reduce_calls += s->instructions[i].action == PLAN_REDUCE;
    }
    return w;
}

static void check_wire(const fixture *f, const plan_settings *settings, bool tied) {
    plan_schedule *s = lower(f, *settings);
    for (int axis = 0; axis < 2; axis++) {
        plan_span span = axis ? PLAN_REPLICAS : PLAN_STATE;
        wire want = (axis ? table_between : table_wire)(f->model, settings, tied);
        wire have = planned_wire(s, span);
        char mesh[PLAN_MESH_LENGTH];
        if (memcmp(&want, &have, sizeof want) == 0) continue;
        fail_msg(
            "stage %d, %s, k %d, %s order%s, %s: gathered %lld in %lld, not %lld in %lld; "
            "reduced %lld in %lld, not %lld in %lld",
            settings->step.zero.stage, plan_mesh_text(&settings->mesh, mesh),
            settings->step.gradient_accumulation_steps,
            settings->step.step_order == SIFR_STEP_UNIT ? "unit" : "batch", tied ? ", tied" : "",
            plan_span_name(span), (long long)have.gathered, (long long)have.gather_calls,
            (long long)want.gathered, (long long)want.gather_calls, (long long)have.reduced,
            (long long)have.reduce_calls, (long long)want.reduced, (long long)want.reduce_calls);
    }
    int64_t gathered, reduced, of[4];
    plan_wire(s, &gathered, &reduced);
    plan_wire_of(s, PLAN_STATE, &of[0], &of[1]);
    plan_wire_of(s, PLAN_REPLICAS, &of[2], &of[3]);
    assert_int_equal(gathered, of[0] + of[2]);
    assert_int_equal(reduced, of[1] + of[3]);
    plan_free(s);
}

static void wires(void **state) {
    (void)state;
    for (int tied = 0; tied < 2; tied++) {
        fixture f;
        open_fixture(&f, tied);
        for (int i = 0; i < RANK_COUNTS; i++) {
            for (int stage = 0; stage < 4; stage++) {
                for (int32_t k = 1; k <= 4; k += 3) {
                    plan_settings settings = {.mesh = plan_mesh_flat(rank_counts[i], 0),
                                              .step.zero.stage = stage,
                                              .step.gradient_accumulation_steps = k};
                    check_wire(&f, &settings, tied);
                    settings.step.step_order = SIFR_STEP_UNIT;
                    check_wire(&f, &settings, tied);
                }
            }
        }
        close_fixture(&f);
    }
}

/* Copies of the state, each cut over a few ranks. */
static void wires_of_copies(void **state) {
    static const int32_t sizes[] = {2, 3, 8};
    (void)state;
    for (int tied = 0; tied < 2; tied++) {
        fixture f;
        open_fixture(&f, tied);
        for (int i = 0; i < 9; i++) {
            for (int n = 0; n < 16; n++) {
                plan_settings settings = {.step.zero.stage = n % 4,
                                          .step.step_order =
                                              n / 4 % 2 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH,
                                          .step.gradient_accumulation_steps = n / 8 ? 4 : 1};
                sifr_error error = {0};
                int32_t shards = sizes[i % 3], copies = sizes[i / 3];
                assert_int_equal(plan_mesh_make(shards * copies, 0, shards, &settings.mesh, &error),
                                 SIFR_OK);
                check_wire(&f, &settings, tied);
            }
        }
        close_fixture(&f);
    }
}

/* Bytes from other hosts: a slice once for each host, a sum of each host's ranks, and nothing of an
 * axis that stays inside. */
static void crossing(void **state) {
    fixture f;
    (void)state;
    open_fixture(&f, false);
    plan_settings settings = {.step.zero.stage = 3, .step.gradient_accumulation_steps = 1};
    sifr_error error = {0};
    assert_int_equal(plan_mesh_make(16, 0, 4, &settings.mesh, &error), SIFR_OK);
    plan_schedule *s = lower(&f, settings);
    int64_t gathered[2], reduced[2];
    plan_wire_of(s, PLAN_STATE, &gathered[0], &reduced[0]);
    plan_wire_of(s, PLAN_REPLICAS, &gathered[1], &reduced[1]);
    assert_int_equal(plan_wire_crossing(s, PLAN_STATE, 0), 0);
    assert_int_equal(plan_wire_crossing(s, PLAN_STATE, 4), 0);
    assert_int_equal(plan_wire_crossing(s, PLAN_STATE, 2), (gathered[0] + reduced[0]) / 3);
    assert_int_equal(plan_wire_crossing(s, PLAN_STATE, 1), gathered[0] + reduced[0]);
    assert_int_equal(plan_wire_crossing(s, PLAN_REPLICAS, 0), 0);
    assert_int_equal(plan_wire_crossing(s, PLAN_REPLICAS, 4), gathered[1] + reduced[1]);
    assert_int_equal(plan_wire_crossing(s, PLAN_REPLICAS, 8), (gathered[1] + reduced[1]) / 3);
    plan_free(s);
    close_fixture(&f);
}

/* Where stage 3 gathers twice and all that is sent is 16 bits wide, it costs one and a half times
 * what data parallelism does: three passes instead of two. Here gradients are fp32, so its share is
 * smaller: 2 + 2 + 4 bytes a parameter beside 4 + 4. */
static void stage3_beside_stage0(void **state) {
    fixture f;
    (void)state;
    open_fixture(&f, false);
    int64_t elements = padded_all(f.model, 8), ends = padded(f.model, 0, 8);
    ends += padded(f.model, f.model->unit_count - 1, 8);
    for (int stage = 0; stage < 4; stage += 3) {
        plan_settings settings = {.mesh = plan_mesh_flat(8, 0),
                                  .step.zero.stage = stage,
                                  .step.gradient_accumulation_steps = 1};
        plan_schedule *s = lower(&f, settings);
        int64_t gathered, reduced, each = elements / 8 * 7;
        plan_wire(s, &gathered, &reduced);
        assert_int_equal(reduced, 4 * each);
        assert_int_equal(gathered, 4 * each - (stage == 3 ? 2 * (ends / 8 * 7) : 0));
        plan_free(s);
    }
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory), cmocka_unit_test(wires), cmocka_unit_test(wires_of_copies),
        cmocka_unit_test(crossing), cmocka_unit_test(stage3_beside_stage0)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
