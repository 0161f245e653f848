/* Plans of pipeline stages: every stage's list is valid, all finish together, each part is on one
 * stage, and the stages together hold and compute what one rank does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/registry.h"
#include "plan/pass/passes.h"
#include "plan/price/price.h"
#include "plan/queries.h"
#include "plan/verify/verify.h"

enum { MOST_STAGES = 4, LAYERS = 6 };

typedef struct fixture {
    sifr_model *model;
    device *dev;
} fixture;

static void open_words(fixture *f, const char *type, bool tied, int64_t words) {
    model_config c = {.vocab_size = words,
                      .hidden_size = 64,
                      .num_hidden_layers = LAYERS,
                      .num_attention_heads = 4,
                      .num_key_value_heads = 4,
                      .head_dim = 16,
                      .intermediate_size = 128,
                      .max_position_embeddings = 64,
                      .activation = strcmp(type, "gpt2") == 0 ? MODEL_GELU_TANH : MODEL_SILU,
                      .norm_eps = 1e-5,
                      .rope.theta = 1e4,
                      .rope.factor = 1,
                      .tie_word_embeddings = tied,
                      .initializer_range = 0.02};
    sifr_error error = {0};
    snprintf(c.model_type, sizeof c.model_type, "%s", type);
    if (model_from_config(&c, &f->model, &error) != SIFR_OK) fail_msg("%s", error.message);
    assert_int_equal(device_open_cpu(1, NULL, &f->dev, &error), SIFR_OK);
}

static void open_fixture(fixture *f, const char *type, bool tied) {
    open_words(f, type, tied, 512);
}

static void close_fixture(fixture *f) {
    sifr_model_free(f->model);
    device_close(f->dev);
}

static plan_settings base_settings(void) {
    plan_settings settings = {.mode = PLAN_TRAIN, .mesh = plan_mesh_flat(1, 0), .verify = true};
    settings.step = sifr_settings_defaults();
    settings.step.step_order = SIFR_STEP_BATCH;
    settings.step.micro_batch_size = 1;
    settings.step.seq_length = 16;
    settings.step.gradient_accumulation_steps = 4;
    return settings;
}

static void cut(const fixture *f, plan_settings *settings, int32_t stages, int32_t chunks,
                plan_walk_order order) {
    double weights[64];
    sifr_error error = {0};
    int32_t units = (int32_t)f->model->unit_count;
    settings->pipeline = (plan_pipeline){.stages = stages, .chunks = chunks, .order = order};
    for (int32_t u = 0; u < units; u++) weights[u] = 1;
    assert_int_equal(plan_cut_units(weights, units, &settings->pipeline, &error), SIFR_OK);
}

static plan_schedule *lower(const fixture *f, const plan_settings *settings) {
    plan_schedule *s;
    sifr_error error = {0};
    if (plan_lower(f->model, f->dev, settings, &s, &error) != SIFR_OK)
        fail_msg("stage %d, rank %d of %d, ZeRO %d: %s", settings->pipeline.stage,
                 plan_mesh_place(&settings->mesh, PLAN_DATA),
                 plan_mesh_ranks(&settings->mesh, PLAN_DATA), settings->step.zero.stage,
                 error.message);
    return s;
}

/* How many kernels of a list run each node forward, and make gradients of its inputs and weights.
 */
enum { COUNTS = 3 };

static bool has_role(const plan_schedule *s, const plan_instruction *in, plan_role from,
                     plan_role to) {
    for (int32_t o = in->first_operand; o < in->first_operand + in->operands; o++)
        if (s->operands[o].role >= from && s->operands[o].role <= to) return true;
    return false;
}

static void count_kernels(const plan_schedule *s, int32_t *count) {
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->node < 0) continue;
        int32_t *of = count + in->node * COUNTS;
        of[0] += in->action == PLAN_FORWARD;
        if (in->action != PLAN_BACKWARD) continue;
        of[1] += has_role(s, in, PLAN_DX0, PLAN_DX5);
        of[2] += has_role(s, in, PLAN_DW0, PLAN_DW1);
    }
}

/* The stages together run the kernels of one rank without stages. */
static void check_kernels(const fixture *f, plan_schedule *const *stages, int32_t count,
                          plan_settings whole) {
    size_t nodes = f->model->node_count * COUNTS;
    int32_t *want = calloc(nodes, sizeof *want), *got = calloc(nodes, sizeof *got);
    whole.pipeline = (plan_pipeline){0};
    whole.mesh.ranks[PLAN_AXIS_STAGE] = 1;
    whole.mesh.place[PLAN_AXIS_STAGE] = 0;
    plan_schedule *one = lower(f, &whole);
    count_kernels(one, want);
    for (int32_t s = 0; s < count; s++) count_kernels(stages[s], got);
    for (size_t n = 0; n < nodes; n++) assert_int_equal(got[n], want[n]);
    plan_free(one);
    free(want);
    free(got);
}

/* Each segment's optimizer state is on one stage. */
static void check_states(const fixture *f, plan_schedule *const *stages, int32_t count) {
    for (size_t g = 0; g < f->model->segment_count; g++) {
        int32_t owners = 0;
        for (int32_t s = 0; s < count; s++) owners += stages[s]->states[0][g] >= 0;
        assert_int_equal(owners, 1);
    }
}

static void check_stages(const fixture *f, plan_settings settings) {
    plan_schedule *plans[MOST_STAGES];
    sifr_error error = {0};
    int32_t stages = settings.pipeline.stages;
    int32_t ranks = settings.mesh.ranks[PLAN_AXIS_SHARD];
    settings.mesh.ranks[PLAN_AXIS_STAGE] = stages;
    for (int32_t r = 0; r < ranks; r++) {
        settings.mesh.place[PLAN_AXIS_SHARD] = r;
        for (int32_t s = 0; s < stages; s++) {
            settings.pipeline.stage = settings.mesh.place[PLAN_AXIS_STAGE] = s;
            plans[s] = lower(f, &settings);
        }
        if (plan_verify_stages((const plan_schedule *const *)plans, (size_t)stages, &error) !=
            SIFR_OK)
            fail_msg("%s", error.message);
        check_kernels(f, plans, stages, settings);
        check_states(f, plans, stages);
        for (int32_t s = 0; s < stages; s++) plan_free(plans[s]);
    }
}

static void check_all(const char *type, bool tied) {
    fixture f;
    open_fixture(&f, type, tied);
    static const sifr_recompute kept[] = {SIFR_RECOMPUTE_NONE, SIFR_RECOMPUTE_UNIT};
    for (int32_t p = 2; p <= MOST_STAGES; p += 2) {
        for (int order = PLAN_WALK_GPIPE; order <= PLAN_WALK_ZB_H1; order++) {
            for (int32_t ranks = 1; ranks <= 2; ranks++) {
                for (int stage = 0; stage <= 3; stage++) {
                    plan_settings settings = base_settings();
                    settings.mesh = plan_mesh_flat(ranks, 0);
                    settings.step.zero.stage = stage;
                    settings.step.recompute = kept[stage % 2];
                    settings.step.precision = stage > 1 ? SIFR_BF16 : SIFR_FP32;
                    int32_t chunks = order == PLAN_WALK_INTERLEAVED ? 2 : 1;
                    cut(&f, &settings, p, chunks, (plan_walk_order)order);
                    check_stages(&f, settings);
                }
            }
        }
    }
    close_fixture(&f);
}

static void llama_apart(void **unused) {
    (void)unused;
    check_all("llama", false);
}

static void llama_tied(void **unused) {
    (void)unused;
    check_all("llama", true);
}

static void gpt2(void **unused) {
    (void)unused;
    check_all("gpt2", true);
}

static void evaluation(void **unused) {
    (void)unused;
    fixture f;
    open_fixture(&f, "llama", true);
    plan_settings settings = base_settings();
    settings.mode = PLAN_EVALUATE;
    cut(&f, &settings, 4, 1, PLAN_WALK_1F1B);
    plan_schedule *plans[MOST_STAGES];
    sifr_error error = {0};
    for (int32_t s = 0; s < 4; s++) {
        settings.pipeline.stage = s;
        plans[s] = lower(&f, &settings);
    }
    if (plan_verify_stages((const plan_schedule *const *)plans, 4, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    for (int32_t s = 0; s < 4; s++) plan_free(plans[s]);
    close_fixture(&f);
}

/* A list whose receive is gone, or whose transfers are the other way round. */
static void faults(void **unused) {
    (void)unused;
    fixture f;
    open_fixture(&f, "llama", false);
    plan_settings settings = base_settings();
    cut(&f, &settings, 2, 1, PLAN_WALK_1F1B);
    plan_schedule *plans[2];
    sifr_error error = {0};
    for (int32_t s = 0; s < 2; s++) {
        settings.pipeline.stage = s;
        plans[s] = lower(&f, &settings);
    }
    const plan_schedule *const *both = (const plan_schedule *const *)plans;
    plan_instruction *in = plans[1]->instructions;
    while (in->action != PLAN_RECEIVE) in++;
    in->bytes += 256;
    assert_int_equal(plan_verify_stages(both, 2, &error), SIFR_FAILED);
    in->bytes -= 256;
    in->stream++;
    assert_int_equal(plan_verify_stages(both, 2, &error), SIFR_FAILED);
    in->stream--;
    assert_int_equal(plan_verify_stages(both, 2, &error), SIFR_OK);
    /* the norm before the last backward pass: stage 0 never gets its gradient */
    size_t last = plans[1]->instruction_count - 1, norm = last, send = last;
    while (plans[1]->instructions[norm].action != PLAN_NORM) norm--;
    while (plans[1]->instructions[send].action != PLAN_SEND) send--;
    plan_instruction kept = plans[1]->instructions[norm];
    memmove(&plans[1]->instructions[send + 1], &plans[1]->instructions[send],
            (norm - send) * sizeof kept);
    plans[1]->instructions[send] = kept;
    for (size_t i = send + 1; i <= last; i++) {
        if (plans[1]->instructions[i].wait >= (int32_t)send) plans[1]->instructions[i].wait++;
    }
    assert_int_equal(plan_verify_stages(both, 2, &error), SIFR_FAILED);
    assert_non_null(strstr(error.message, "waits for ever"));
    for (int32_t s = 0; s < 2; s++) plan_free(plans[s]);
    close_fixture(&f);
}

static void cuts(void **unused) {
    (void)unused;
    sifr_error error = {0};
    plan_pipeline p = {.stages = 3, .chunks = 1};
    const double weights[] = {5, 1, 1, 1, 1, 1, 4};
    assert_int_equal(plan_cut_units(weights, 7, &p, &error), SIFR_OK);
    const int32_t want[] = {0, 1, 6, 7};
    for (int i = 0; i < 4; i++) assert_int_equal(p.first_unit[i], want[i]);
    assert_int_equal(plan_stage_of(&p, 0), 0);
    assert_int_equal(plan_stage_of(&p, 5), 1);
    assert_int_equal(plan_stage_of(&p, 6), 2);
    const double zero[] = {0, 0, 0};
    assert_int_equal(plan_cut_units(zero, 3, &p, &error), SIFR_OK); /* a unit each */
    for (int i = 0; i < 4; i++) assert_int_equal(p.first_unit[i], i);
    assert_int_equal(plan_cut_units(zero, 2, &p, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "the model has 2"));
}

/* Against every cut of small lists: none has a smaller largest part. */
static void best_cuts(void **unused) {
    (void)unused;
    uint32_t random = 1;
    for (int trial = 0; trial < 300; trial++) {
        double weights[8], best = 1e9;
        sifr_error error = {0};
        plan_pipeline p = {.stages = 3, .chunks = 1};
        for (int u = 0; u < 8; u++) {
            random = random * 1664525u + 1013904223u;
            weights[u] = (double)(random >> 24);
        }
        assert_int_equal(plan_cut_units(weights, 8, &p, &error), SIFR_OK);
        double largest[2] = {0, 0};
        for (int a = 1; a < 7; a++) {
            for (int b = a + 1; b < 8; b++) {
                double sums[3] = {0}, most = 0;
                for (int u = 0; u < 8; u++) sums[(u >= a) + (u >= b)] += weights[u];
                for (int i = 0; i < 3; i++) most = sums[i] > most ? sums[i] : most;
                if (most < best) best = most;
                if (a == p.first_unit[1] && b == p.first_unit[2]) largest[0] = most;
            }
        }
        assert_true(largest[0] == best);
    }
}

/* Every kernel of the plan as long, without latency: the bubble of stages of as many kernels each
 * is that of the formula (p - 1) / k, as long as updates and sums take no time. */
static void predicted_bubbles(void **unused) {
    (void)unused;
    fixture f;
    open_fixture(&f, "llama", false);
    plan_machine machine = plan_machine_unknown();
    machine.fp32_operations = 1e9;
    machine.memory_bytes = 1e30;
    machine.instruction_seconds = 0;
    machine.host = (plan_link){.latency_seconds = 0, .bytes_per_second = 1e30};
    for (int32_t k = 4; k <= 16; k *= 2) {
        for (int order = PLAN_WALK_GPIPE; order <= PLAN_WALK_1F1B; order++) {
            plan_settings settings = base_settings();
            settings.step.gradient_accumulation_steps = k;
            cut(&f, &settings, 2, 1, (plan_walk_order)order);
            settings.mesh.ranks[PLAN_AXIS_STAGE] = 2;
            settings.pipeline.first_unit[1] = 4; /* embedding and 3 blocks, 3 blocks and the head */
            plan_schedule *plans[2];
            plan_prediction out[2];
            sifr_error error = {0};
            for (int32_t s = 0; s < 2; s++) {
                settings.pipeline.stage = settings.mesh.place[PLAN_AXIS_STAGE] = s;
                plans[s] = lower(&f, &settings);
            }
            assert_int_equal(
                plan_predict_stages((const plan_schedule *const *)plans, 2, &machine, out, &error),
                SIFR_OK);
            /* Stage 1 has the head too: it is the slower one, and waits for the first forward pass
             * of stage 0 and for its last backward pass. */
            double slow = out[1].computing / k, other = out[0].computing / k;
            double wanted = k * slow + other;
            if (fabs(out[0].step_seconds - wanted) > 0.05 * wanted)
                fail_msg("%d micro batches: %g s, not %g", k, out[0].step_seconds, wanted);
            assert_true(out[0].stages > 0);
            for (int32_t s = 0; s < 2; s++) plan_free(plans[s]);
        }
    }
    close_fixture(&f);
}

/* What a stage computes of a micro batch: forward, gradients of activations, and of weights. */
static void find_passes(const plan_schedule *s, const plan_machine *machine,
                        double seconds[COUNTS]) {
    for (int i = 0; i < COUNTS; i++) seconds[i] = 0;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->call < 0 || in->micro_batch != 0) continue;
        bool weights = in->action == PLAN_BACKWARD && !has_role(s, in, PLAN_DX0, PLAN_DX5);
        int pass = in->action == PLAN_FORWARD ? 0 : weights ? 2 : 1;
        seconds[pass] += plan_price(s, i, machine);
    }
}

/* Qi et al., arXiv 2401.10241, table 2: of stages that take as long as each other, a step of zb-h1
 * waits for (p - 1) (F + B - W), one of 1f1b for (p - 1) (F + B + W). The words are few, so that
 * the head takes hardly any time. */
static void split_bubbles(void **unused) {
    (void)unused;
    fixture f;
    open_words(&f, "llama", false, 16);
    plan_machine machine = plan_machine_unknown();
    machine.fp32_operations = 1e9;
    machine.memory_bytes = 1e30;
    machine.instruction_seconds = 0;
    machine.host = (plan_link){.latency_seconds = 0, .bytes_per_second = 1e30};
    for (int32_t p = 2; p <= 3; p++) {
        for (int32_t k = 4; k <= 16; k *= 2) {
            double step[2], pass[COUNTS];
            int64_t first[2], last[2]; /* bytes of activations of those stages */
            for (int i = 0; i < 2; i++) {
                plan_settings settings = base_settings();
                settings.step.gradient_accumulation_steps = k;
                settings.step.seq_length = 4;
                cut(&f, &settings, p, 1, i ? PLAN_WALK_1F1B : PLAN_WALK_ZB_H1);
                settings.mesh.ranks[PLAN_AXIS_STAGE] = p;
                for (int32_t s = 1; s < p; s++)
                    settings.pipeline.first_unit[s] = 1 + LAYERS / p * s; /* as many blocks each */
                plan_schedule *plans[MOST_STAGES];
                plan_prediction out[MOST_STAGES];
                sifr_error error = {0};
                for (int32_t s = 0; s < p; s++) {
                    settings.pipeline.stage = settings.mesh.place[PLAN_AXIS_STAGE] = s;
                    plans[s] = lower(&f, &settings);
                }
                assert_int_equal(plan_predict_stages((const plan_schedule *const *)plans, (size_t)p,
                                                     &machine, out, &error),
                                 SIFR_OK);
                step[i] = out[0].step_seconds;
                first[i] = plans[0]->largest_bytes[PLAN_ACTIVATIONS];
                last[i] = plans[p - 1]->largest_bytes[PLAN_ACTIVATIONS];
                if (i == 0) find_passes(plans[p - 1], &machine, pass);
                for (int32_t s = 0; s < p; s++) plan_free(plans[s]);
            }
            assert_int_equal(first[0], first[1]);
            assert_in_range(last[0], last[1] + 1,
                            (p + 1) * last[1]); /* what W reads of p - 1 more */
            double all = pass[0] + pass[1] + pass[2];
            double wanted[2] = {k * all + (p - 1) * (pass[0] + pass[1] - pass[2]),
                                (k + p - 1) * all};
            for (int i = 0; i < 2; i++)
                if (fabs(step[i] - wanted[i]) > 0.03 * wanted[i])
                    fail_msg("%d stages, %d micro batches, %s: %g s, not %g", p, k,
                             i ? "1f1b" : "zb-h1", step[i], wanted[i]);
        }
    }
    close_fixture(&f);
}

/* At ZeRO stage 3 parameters are on disk, but for those that two stages read; each state is on the
 * disk of one stage. */
static void tiers(void **unused) {
    (void)unused;
    fixture f;
    open_fixture(&f, "llama", true);
    plan_settings settings = base_settings();
    settings.step.zero.stage = 3;
    settings.step.offload.optimizer.device = settings.step.offload.param.device = SIFR_TIER_NVME;
    for (int32_t ranks = 1; ranks <= 2; ranks++) {
        settings.mesh = plan_mesh_flat(ranks, 0);
        cut(&f, &settings, 4, 1, PLAN_WALK_1F1B);
        check_stages(&f, settings);
        settings.mesh.ranks[PLAN_AXIS_STAGE] = 4;
        for (int32_t stage = 0; stage < 4; stage++) {
            settings.pipeline.stage = settings.mesh.place[PLAN_AXIS_STAGE] = stage;
            plan_schedule *s = lower(&f, &settings);
            for (int32_t g = 0; g < (int32_t)f.model->segment_count; g++) {
                if (!plan_reads_segment(f.model, &s->settings.pipeline, stage, g)) continue;
                bool embedding = f.model->segments[g].unit == 0;
                assert_int_equal(s->buffers[s->parameters[g]].tier,
                                 embedding ? PLAN_DEVICE : PLAN_NVME);
                bool owns = plan_has_unit(&s->settings.pipeline, f.model->segments[g].unit);
                assert_int_equal(s->states[0][g] >= 0, owns);
                if (owns) assert_int_equal(s->buffers[s->states[0][g]].tier, PLAN_NVME);
            }
            assert_int_equal(s->spread, 0); /* no update is delayed */
            plan_free(s);
        }
    }
    close_fixture(&f);
}

/* Activations on disk in every schedule: the lists are right, what is offloaded is not in memory,
 * and the file has room for the micro batches of a stage that are under way. */
static void activations_away(void **unused) {
    (void)unused;
    fixture f;
    open_fixture(&f, "llama", true);
    for (int order = PLAN_WALK_GPIPE; order <= PLAN_WALK_ZB_H1; order++) {
        for (int again = 0; again < 2; again++) {
            plan_settings s = base_settings();
            bool interleaved = order == PLAN_WALK_INTERLEAVED;
            s.step.micro_batch_size = 4;
            s.step.seq_length = 64;
            s.step.gradient_accumulation_steps = 8;
            s.step.recompute = again ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE;
            cut(&f, &s, interleaved ? 2 : 4, interleaved ? 2 : 1, (plan_walk_order)order);
            s.mesh.ranks[PLAN_AXIS_STAGE] = s.pipeline.stages;
            plan_schedule *here = lower(&f, &s);
            s.step.offload.activations = SIFR_TIER_NVME;
            check_stages(&f, s);
            plan_schedule *offloaded = lower(&f, &s);
            int64_t before = here->largest_bytes[PLAN_ACTIVATIONS];
            int64_t after = offloaded->largest_bytes[PLAN_ACTIVATIONS], read, written;
            plan_disk(offloaded, &read, &written);
            assert_int_equal(read, written);
            assert_true(offloaded->nvme_bytes > 0);
            assert_true(read >= offloaded->nvme_bytes);
            if (after > before * (again ? 10 : 7) / 10)
                fail_msg("order %d, again %d: %lld bytes of activations, in memory %lld", order,
                         again, (long long)after, (long long)before);
            assert_in_range(after + offloaded->nvme_bytes, before * 3 / 4, before * 2);
            plan_free(here);
            plan_free(offloaded);
        }
    }
    close_fixture(&f);
}

static void expect_refused(const fixture *f, const plan_settings *settings, const char *what) {
    plan_schedule *s;
    sifr_error error = {0};
    assert_int_equal(plan_lower(f->model, f->dev, settings, &s, &error), SIFR_USAGE);
    if (!strstr(error.message, what)) fail_msg("no '%s': %s", what, error.message);
    assert_non_null(strstr(error.message, "; ")); /* and what would do */
}

/* What stages do not go with, and more stages than there are units. */
static void refused(void **unused) {
    (void)unused;
    fixture f;
    open_fixture(&f, "llama", true);
    plan_settings base = base_settings(), s;
    base.mesh.ranks[PLAN_AXIS_STAGE] = 2;
    base.step.pipeline = (sifr_pipeline){.stages = 2, .chunks = 1, .schedule = SIFR_SCHEDULE_1F1B};
    s = base;
    s.mode = PLAN_GENERATE;
    s.cache_length = 32;
    expect_refused(&f, &s, "generation with stages is not supported yet");
    s = base;
    s.step.step_order = SIFR_STEP_UNIT;
    expect_refused(&f, &s, "step_order unit with stages is not supported yet");
    s = base;
    s.step.recompute = SIFR_RECOMPUTE_AUTO;
    expect_refused(&f, &s, "recompute auto without activation_memory with stages");
    s = base;
    s.step.tile_tokens = 1024;
    s.step.pipeline.schedule = SIFR_SCHEDULE_ZB_H1;
    expect_refused(&f, &s, "tile_tokens beside zb-h1 with stages is not supported yet");
    s = base;
    s.mesh.ranks[PLAN_AXIS_STAGE] = s.step.pipeline.stages = 9;
    expect_refused(&f, &s, "9 stages of 1 chunks need 9 units, but the model has 8");
    s.step.pipeline.schedule = SIFR_SCHEDULE_INTERLEAVED;
    s.mesh.ranks[PLAN_AXIS_STAGE] = s.step.pipeline.stages = 4;
    s.step.pipeline.chunks = 3;
    expect_refused(&f, &s, "4 stages of 3 chunks need 12 units, but the model has 8");
    s.step.pipeline.chunks = 2;
    s.step.gradient_accumulation_steps = 6;
    expect_refused(&f, &s, "give 4 or 8, or schedule 1f1b");
    s.step.gradient_accumulation_steps =
        8; /* the same of a cut that is known, as a search has it */
    plan_schedule *known = lower(&f, &s);
    s = known->settings;
    s.step.gradient_accumulation_steps = 2;
    expect_refused(&f, &s, "give 4, or schedule 1f1b");
    plan_free(known);
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama_apart),   cmocka_unit_test(llama_tied),
        cmocka_unit_test(gpt2),          cmocka_unit_test(evaluation),
        cmocka_unit_test(faults),        cmocka_unit_test(cuts),
        cmocka_unit_test(best_cuts),     cmocka_unit_test(predicted_bubbles),
        cmocka_unit_test(split_bubbles), cmocka_unit_test(refused),
        cmocka_unit_test(tiers),         cmocka_unit_test(activations_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
