/* The checks of plans: each finds the fault that a plan is given here, and none finds one in the
 * plans that are made, for every rank of groups of 1 to 8, stages, orders, tiers and the rest. */
#include <stdio.h>

#include "plan/list.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "plan/verify/order_check.h"
#include "plan/verify/verify.h"
#include "support/disk_plan.h"

static void expect_fault(sifr_status status, const sifr_error *error, const char *text,
                         const char *more) {
    if (status == SIFR_OK) fail_msg("no fault is found, and not \"%s\"", text);
    assert_int_equal(status, SIFR_FAILED);
    if (!strstr(error->message, text) || !strstr(error->message, more))
        fail_msg("\"%s\" has no \"%s\" or no \"%s\"", error->message, text, more);
    assert_non_null(strstr(error->message, "please report it"));
}

static void expect_clean(const plan_schedule *s) {
    sifr_error error = {0};
    if (plan_verify(s, &error) != SIFR_OK) fail_msg("%s", error.message);
}

static void expect_faulty(const plan_schedule *s, const char *text, const char *more) {
    sifr_error error = {0};
    expect_fault(plan_verify(s, &error), &error, text, more);
}

/* --- where to break a plan --- */

static plan_instruction *find(plan_schedule *s, plan_action action, plan_action of) {
    for (size_t i = 0; i < s->instruction_count; i++) {
        plan_instruction *in = &s->instructions[i];
        if (in->action != action) continue;
        if (action != PLAN_WAIT || s->instructions[in->wait].action == of) return in;
    }
    fail_msg("the plan has no such instruction");
    return NULL;
}

static int32_t index_of(const plan_schedule *s, const plan_instruction *in) {
    return (int32_t)(in - s->instructions);
}

static plan_buffer *buffer_of(plan_schedule *s, const plan_instruction *in, int32_t operand) {
    return &s->buffers[s->operands[in->first_operand + operand].buffer];
}

/* Instruction `from` comes to be number `to`; what is waited for is the same. */
static void move(plan_schedule *s, int32_t from, int32_t to) {
    plan_instruction moved = s->instructions[from], *all = s->instructions;
    int32_t step = from < to ? 1 : -1;
    for (int32_t i = from; i != to; i += step) all[i] = all[i + step];
    all[to] = moved;
    for (size_t i = 0; i < s->instruction_count; i++) {
        int32_t *wait = &all[i].wait;
        if (*wait < 0) continue;
        if (*wait == from)
            *wait = to;
        else if ((*wait - from) * step > 0 && (*wait - to) * step <= 0)
            *wait -= step;
    }
}

/* The first that touches this operand's buffer behind `after` and is no wait. */
static int32_t next_use(const plan_schedule *s, int32_t buffer, int32_t after) {
    for (int32_t i = after + 1; i < (int32_t)s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        for (int32_t o = 0; o < in->operands && in->action != PLAN_WAIT; o++) {
            if (s->operands[in->first_operand + o].buffer == buffer) return i;
        }
    }
    return -1;
}

static plan_schedule *two_ranks(int stage) {
    plan_settings settings = disk_plan_settings(2, stage, SIFR_BF16, (sifr_offload){0});
    plan_schedule *s = disk_plan_lower(&settings);
    expect_clean(s);
    return s;
}

static plan_schedule *on_disk(void) {
    plan_settings settings = disk_plan_settings(1, 3, SIFR_BF16, disk_plan_all_on(SIFR_TIER_NVME));
    settings.step.micro_batch_size = 64;
    plan_schedule *s = disk_plan_lower(&settings);
    expect_clean(s);
    return s;
}

/* --- the list --- */

static void waits(void **state) {
    (void)state;
    plan_schedule *s = two_ranks(3);
    plan_instruction *wait = find(s, PLAN_WAIT, PLAN_GATHER), kept = *wait;
    char name[64];
    snprintf(name, sizeof name, "nothing waits for #%d gather", wait->wait);
    *wait = (plan_instruction){.action = PLAN_COUNT,
                               .unit = -1,
                               .micro_batch = -1,
                               .node = -1,
                               .call = -1,
                               .wait = -1,
                               .first_operand = wait->first_operand};
    expect_faulty(s, name, "");
    *wait = kept;
    wait->wait = index_of(s, wait) + 1;
    expect_faulty(s, "which starts later", "wait");
    wait->wait = index_of(s, find(s, PLAN_COUNT, PLAN_ACTIONS));
    expect_faulty(s, "count, which is no transfer", "wait");
    wait->wait = -1;
    expect_faulty(s, "waits for instruction -1", "wait");
    *wait = kept;
    for (size_t i = 0; i < s->instruction_count; i++) {
        plan_instruction *in = &s->instructions[i];
        if (in == wait || in->wait < kept.wait) continue;
        in->wait = kept.wait;
        expect_faulty(s, "which is over already", "wait");
        break;
    }
    plan_free(s);
}

static void operands(void **state) {
    (void)state;
    plan_schedule *s = two_ranks(2);
    plan_instruction *in = find(s, PLAN_BACKWARD, PLAN_ACTIONS), *gather;
    plan_operand *operand = &s->operands[in->first_operand], kept = *operand;
    plan_buffer *buffer = buffer_of(s, in, 0);
    int64_t bytes = buffer->bytes;
    buffer->bytes /= 2;
    expect_faulty(s, "which has", plan_class_name(buffer->class));
    buffer->bytes = bytes;
    operand->offset = -4;
    expect_faulty(s, "is bytes -4 to", "backward");
    *operand = kept;
    operand->buffer = (int32_t)s->buffer_count;
    expect_faulty(s, "does not exist", "backward");
    *operand = kept;
    gather = find(s, PLAN_GATHER, PLAN_ACTIONS);
    gather->bytes *= 2;
    expect_faulty(s, "which has", "gather");
    gather->bytes = 0;
    expect_faulty(s, "moves 0 bytes", "gather");
    plan_free(s);
    s = two_ranks(2);
    find(s, PLAN_REDUCE, PLAN_ACTIONS)->queue = PLAN_DISK;
    expect_faulty(s, "is on the disk queue, not the communication queue", "reduce");
    plan_free(s);
    s = two_ranks(2);
    s->buffers[s->scratch].bytes = 0;
    expect_faulty(s, "scratch is bytes 0 to", "which has 0");
    plan_free(s);
}

/* The first kernel behind the second; a gather that leaves a bit of the whole out. */
static void order_of_contents(void **state) {
    (void)state;
    sifr_error error = {0};
    plan_schedule *s = two_ranks(1);
    int32_t first = index_of(s, find(s, PLAN_FORWARD, PLAN_ACTIONS));
    move(s, first, first + 1);
    expect_faulty(s, "which nothing has written before", "x0 reads");
    expect_fault(plan_verify_list(s, &error), &error, "which nothing has written", "activations");
    plan_free(s);
    s = two_ranks(3);
    int32_t gather = index_of(s, find(s, PLAN_WAIT, PLAN_GATHER));
    gather = s->instructions[gather].wait;
    s->instructions[gather].bytes -= 1024; /* of either rank's slice */
    expect_faulty(s, "which nothing has written before", "gathered of");
    plan_free(s);
    s = two_ranks(1); /* squares are added to what the count has set to zeros */
    move(s, index_of(s, find(s, PLAN_COUNT, PLAN_ACTIONS)),
         index_of(s, find(s, PLAN_SQUARES, PLAN_ACTIONS)));
    expect_faulty(s, "which nothing has written before", "squares");
    plan_free(s);
}

/* GPT-2's queries, keys and values are columns of one matrix, and so are their gradients, which
 * one kernel writes one by one and the next one reads as a whole. */
static void columns_of_one_matrix(void **state) {
    (void)state;
    sifr_error error = {0};
    model_config config = model_case_llama();
    strcpy(config.model_type, "gpt2");
    config.num_key_value_heads = config.num_attention_heads;
    config.activation = MODEL_GELU_TANH;
    sifr_model *kept = model;
    assert_int_equal(model_from_config(&config, &model, &error), SIFR_OK);
    plan_schedule *s = two_ranks(0);
    int found = 0;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->call < 0 || s->calls[in->call].kernel != DEVICE_ATTENTION_BACKWARD) continue;
        for (int32_t o = 0; o < in->operands; o++) { /* the third writes where the first does */
            plan_operand *operand = &s->operands[in->first_operand + o];
            if (operand->role == PLAN_DX2) operand->offset = 0, found++;
        }
        break;
    }
    assert_int_equal(found, 1);
    expect_faulty(s, "which nothing has written before", "backward");
    plan_free(s);
    sifr_model_free(model);
    model = kept;
}

/* --- memory --- */

static void places(void **state) {
    (void)state;
    plan_schedule *s = two_ranks(2);
    plan_instruction *in = find(s, PLAN_BACKWARD, PLAN_ACTIONS);
    plan_buffer *a = buffer_of(s, in, 0), *b = NULL, kept;
    for (int32_t o = 1; o < in->operands; o++) {
        if (buffer_of(s, in, o) != a) b = buffer_of(s, in, o);
    }
    kept = *b;
    b->offset = a->offset + a->bytes - 1;
    expect_faulty(s, "is at bytes", "and buffer");
    b->offset = s->total_bytes - b->bytes + 1;
    expect_faulty(s, "is at bytes", "");
    b->offset = -1;
    expect_faulty(s, "is at bytes -1 to", "");
    *b = kept;
    expect_clean(s);
    s->buffers[s->losses[0]].offset = s->buffers[s->inputs[SIFR_LABELS][0]].offset;
    expect_faulty(s, "inputs", "and buffer");
    plan_free(s);
    s = two_ranks(2);
    a = buffer_of(s, find(s, PLAN_REDUCE, PLAN_ACTIONS), 0);
    a->last--;
    expect_faulty(s, "lives from", "gradients of");
    plan_free(s);
    s = two_ranks(2);
    s->buffers[s->inputs[SIFR_TOKENS][0]].tier = PLAN_NVME;
    expect_faulty(s, "outside the device's memory", "forward");
    plan_free(s);
    s = on_disk();
    in = find(s, PLAN_READ, PLAN_ACTIONS);
    buffer_of(s, in, 0)->offset = s->nvme_bytes;
    expect_faulty(s, "is at bytes", "");
    plan_free(s);
}

/* --- order --- */

/* Each wait in turn behind the next use of what comes from its transfer. Found, but where that use
 * is a collective as well, or comes after the wait for one that started later. */
static void late_waits(plan_schedule *s, int *found) {
    size_t bytes = s->instruction_count * sizeof *s->instructions;
    plan_instruction *kept = malloc(bytes);
    assert_non_null(kept);
    memcpy(kept, s->instructions, bytes);
    for (int32_t w = 0; w < (int32_t)s->instruction_count; w++) {
        if (kept[w].action != PLAN_WAIT) continue;
        const plan_instruction *transfer = &kept[kept[w].wait];
        if (transfer->action == PLAN_WRITE) continue; /* others write elsewhere in the file */
        int32_t use = next_use(s, s->operands[transfer->first_operand + 1].buffer, w);
        if (use < 0) continue;
        bool collective = transfer->queue == PLAN_COMMUNICATION;
        bool in_line = kept[use].queue == PLAN_COMMUNICATION;
        for (int32_t i = kept[w].wait; i < use; i++) {
            int32_t other = kept[i].wait;
            in_line |= other > kept[w].wait && kept[other].queue == PLAN_COMMUNICATION;
        }
        move(s, w, use);
        sifr_error error = {0};
        sifr_status status = plan_check_order(s, &error);
        memcpy(s->instructions, kept, bytes);
        if (status == SIFR_OK && collective && in_line) continue;
        expect_fault(status, &error, "no wait orders them", "moves");
        ++*found;
    }
    free(kept);
}

static void late_waits_are_found(void **state) {
    (void)state;
    for (int stage = 0; stage < 5; stage++) {
        int found = 0;
        plan_schedule *s = stage < 4 ? two_ranks(stage) : on_disk();
        late_waits(s, &found);
        assert_true(found > 0);
        plan_free(s);
    }
}

/* Two transfers of a disk have no order, though they are on one queue. */
static void disk_has_no_order(void **state) {
    (void)state;
    plan_schedule *s = on_disk();
    const plan_instruction *first = NULL, *second = NULL; /* reads that are under way together */
    for (size_t i = 0; i < s->instruction_count && !second; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (first && in->wait == index_of(s, first)) first = NULL;
        if (in->action != PLAN_READ) continue;
        if (first && in->bytes == first->bytes) second = in;
        first = in;
    }
    assert_non_null(second);
    first = second - 1;
    while (first->action != PLAN_READ || first->bytes != second->bytes) first--;
    s->operands[second->first_operand + 1] = s->operands[first->first_operand + 1];
    sifr_error error = {0};
    expect_fault(plan_check_order(s, &error), &error, "no wait orders them", "read");
    plan_free(s);
}

/* What a step does to gradients, or reads of weights, before the update of the step before that is
 * still to use or to make them. */
static void deferred(void **state) {
    (void)state;
    for (int n = 0; n < 2; n++) {
        plan_settings settings = disk_plan_state_settings(1, 0, SIFR_BF16);
        settings.step.seq_length = 128;
        plan_schedule *s = disk_plan_lower(&settings);
        expect_clean(s);
        assert_true(s->spread > 0);
        int32_t update = 0;
        const plan_instruction *in = s->instructions;
        while (!in->deferred || in->action != PLAN_UPDATE) in++, update++;
        plan_role role = n ? PLAN_X0 : PLAN_W1; /* the gradient, or the weights */
        const plan_operand *operand = &s->operands[in->first_operand];
        while (operand->role != role) operand++;
        int32_t use = next_use(s, operand->buffer, update);
        while (s->instructions[use].deferred) use = next_use(s, operand->buffer, use);
        move(s, use, 0);
        sifr_error error = {0};
        expect_fault(plan_check_order(s, &error), &error, ", of the step before, ",
                     n ? "after this step has written it" : "after this step has read it");
        plan_free(s);
    }
}

/* --- all ranks --- */

static void lower_ranks(plan_settings settings, int32_t count, plan_schedule **out) {
    for (int32_t r = 0; r < count; r++) {
        settings.mesh = plan_mesh_flat(count, r);
        settings.mesh.near = plan_mesh_near(&settings.step.zero, &settings.mesh);
        out[r] = disk_plan_lower(&settings);
    }
}

static void free_ranks(int32_t count, plan_schedule **plans) {
    for (int32_t r = 0; r < count; r++) plan_free(plans[r]);
}

static sifr_status check_ranks(plan_schedule **plans, size_t count, sifr_error *error) {
    return plan_verify_ranks((const plan_schedule *const *)plans, count, error);
}

static void ranks(void **state) {
    (void)state;
    sifr_error error = {0};
    plan_schedule *plans[4];
    lower_ranks(disk_plan_settings(4, 2, SIFR_BF16, (sifr_offload){0}), 4, plans);
    assert_int_equal(check_ranks(plans, 4, &error), SIFR_OK);
    expect_fault(check_ranks(plans, 3, &error), &error, "is that of rank 0 of 4", "");
    plan_schedule *s = plans[2];
    plan_instruction *one = find(s, PLAN_GATHER, PLAN_ACTIONS), *two = one + 1, kept;
    while (two->action != PLAN_GATHER || two->unit == one->unit) two++;
    kept = *one;
    *one = *two;
    *two = kept;
    expect_fault(check_ranks(plans, 4, &error), &error, "rank 2 comes to", "gather of");
    *two = *one;
    *one = kept;
    assert_int_equal(check_ranks(plans, 4, &error), SIFR_OK);
    one->bytes += 1024;
    expect_fault(check_ranks(plans, 4, &error), &error, "of rank 2 moves", "of rank 0");
    one->bytes -= 1024;
    while (two < s->instructions + s->instruction_count - 1) two++;
    while (two->action != PLAN_GATHER) two--;
    two->action = PLAN_WAIT;
    expect_fault(check_ranks(plans, 4, &error), &error, "rank 2 comes to the end of its list",
                 "rank 0 comes to");
    free_ranks(4, plans);
}

/* --- all that is made is clean --- */

static const sifr_zero all_transfers[] = {
    {0, true, false, false, INT64_MAX, INT64_MAX, 1, INT64_MAX, 0, 0, 0, 2},
    {0, true, false, false, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, 0, 0, 0},
    {0, false, false, false, 1, 1, 1, 1, 20000, 2048, 4096, 3},
};

static sifr_offload offload_of(int kind, sifr_tier tier, const plan_settings *settings) {
    sifr_offload f = {.optimizer = {.ratio = 1, .pipeline_read = true, .pipeline_write = true},
                      .sub_group_size = kind % 2 ? 2048 : 0};
    bool slices =
        plan_mesh_ranks(&settings->mesh, PLAN_STATE) == 1 || settings->step.zero.stage >= 2;
    if (kind & 1) f.optimizer.device = tier;
    if (kind & 2 && settings->step.zero.stage == 3) f.param.device = tier;
    if (kind & 2 && slices) f.gradients = tier;
    if (kind & 4) f.activations = tier;
    if (kind == 5) f.optimizer.pipeline_write = false;
    if (kind == 7) f.param.max_in_cpu = 5000, f.optimizer.ratio = 0.7;
    return f;
}

static void sweep_ranks(const plan_settings *settings, int32_t count) {
    sifr_error error = {0};
    plan_schedule *plans[8] = {0};
    lower_ranks(*settings, count, plans);
    for (int32_t r = 0; r < count; r++) expect_clean(plans[r]);
    if (check_ranks(plans, (size_t)count, &error) != SIFR_OK) fail_msg("%s", error.message);
    free_ranks(count, plans);
}

static void sweep(const model_config *config, const char *freeze, sifr_tier tier) {
    static const sifr_precision types[] = {SIFR_FP32, SIFR_BF16, SIFR_FP16};
    sifr_error error = {0};
    sifr_model *kept = model;
    uint32_t random = 7;
    assert_int_equal(model_from_config(config, &model, &error), SIFR_OK);
    if (freeze) assert_int_equal(sifr_model_freeze(model, freeze, &error), SIFR_OK);
    for (int n = 0; n < 8 * 4 * 8; n++) { /* ranks, stage, offload; the rest by chance */
        random = random * 1664525 + 1013904223;
        int32_t count = n % 8 + 1, dice = (int32_t)(random >> 8);
        plan_settings settings =
            disk_plan_settings(count, n / 8 % 4, types[dice % 3], (sifr_offload){0});
        settings.step.step_order = dice / 3 % 2 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
        settings.step.gradient_accumulation_steps = 1 + dice / 6 % 3;
        settings.step.recompute = dice / 18 % 2 ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE;
        settings.step.number_checkpoints = dice / 36 % 2;
        settings.step.gradient_order =
            dice / 72 % 3 == 2 ? SIFR_GRADIENT_SEQUENTIAL : SIFR_GRADIENT_TREE;
        int32_t stage = settings.step.zero.stage;
        settings.step.zero = all_transfers[dice / 216 % 3];
        settings.step.zero.stage = stage;
        settings.step.communication_data_type = dice / 648 % 3 == 2 ? SIFR_BF16 : SIFR_FP32;
        settings.step.grad_accum_dtype = dice / 1944 % 4 == 3 ? SIFR_BF16 : SIFR_FP32;
        settings.step.zero.quantized_gradients = n % 5 == 4 &&
                                                 plan_cuts(&settings, PLAN_CUT_SUMS) &&
                                                 !plan_converts_gradients(&settings);
        bool tiles = dice / 7776 % 8 == 7;
        if (tiles) settings.step.tile_tokens = 1024;
        settings.step.micro_batch_size = tiles ? 80 : dice / 62208 % 2 ? 16 : 2;
        settings.step.offload = offload_of(n / 32, tier, &settings);
        sweep_ranks(&settings, count);
    }
    sifr_model_free(model);
    model = kept;
}

static void clean(void **state) {
    (void)state;
    sifr_error error = {0};
    model_config config = model_case_llama();
    config.tie_word_embeddings = true;
    config.num_hidden_layers = 3;
    sweep(&config, NULL, SIFR_TIER_NVME);
    config.tie_word_embeddings = false;
    sweep(&config, "model.layers.1.*.weight", SIFR_TIER_NVME);
    device *cpu = dev;
    assert_int_equal(device_open_separate(1, NULL, &dev, &error), SIFR_OK);
    sweep(&config, "*.mlp.*", SIFR_TIER_CPU);
    device_close(dev);
    dev = cpu;
}

/* What the sweep has found: buffers of a deferred update whose lives go on where the placing of the
 * block's top begins; a rank whose slices are frozen or stay, which did not defer like the rest. */
static void once_faulty(void **state) {
    (void)state;
    sifr_error error = {0};
    sifr_model *kept = model;
    for (int n = 0; n < 2; n++) {
        model_config config = model_case_llama();
        config.num_hidden_layers = 3;
        config.tie_word_embeddings = n == 0;
        assert_int_equal(model_from_config(&config, &model, &error), SIFR_OK);
        if (n) assert_int_equal(sifr_model_freeze(model, "*.mlp.*", &error), SIFR_OK);
        plan_settings settings = disk_plan_settings(n ? 4 : 5, 1, SIFR_FP32, (sifr_offload){0});
        settings.step.step_order = n ? SIFR_STEP_BATCH : SIFR_STEP_UNIT;
        settings.step.gradient_accumulation_steps = 3;
        settings.step.micro_batch_size = n ? 2 : 16;
        int32_t stage = settings.step.zero.stage;
        settings.step.zero = all_transfers[n ? 0 : 1];
        settings.step.zero.stage = stage;
        settings.step.communication_data_type = SIFR_BF16;
        settings.step.offload = offload_of(n ? 7 : 3, SIFR_TIER_NVME, &settings);
        sweep_ranks(&settings, plan_mesh_ranks(&settings.mesh, PLAN_WORLD));
        sifr_model_free(model);
    }
    model = kept;
}

/* Forward passes alone, as evaluation and generation plan them. */
static void other_modes(void **state) {
    (void)state;
    for (int n = 0; n < 3 * 2 * 4; n++) {
        plan_settings settings =
            disk_plan_settings(1 << n % 3, n / 6 % 4, SIFR_BF16, (sifr_offload){0});
        static const plan_mode modes[] = {PLAN_EVALUATE, PLAN_LOGITS, PLAN_GENERATE};
        settings.mode = modes[n % 3];
        settings.step.gradient_accumulation_steps = 1;
        settings.external_parameters = n / 3 % 2;
        settings.cache_length = 16;
        if (settings.mode == PLAN_GENERATE) settings.step.zero.stage = 0;
        plan_schedule *s = disk_plan_lower(&settings);
        expect_clean(s);
        plan_free(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits),
        cmocka_unit_test(operands),
        cmocka_unit_test(order_of_contents),
        cmocka_unit_test(columns_of_one_matrix),
        cmocka_unit_test(places),
        cmocka_unit_test(late_waits_are_found),
        cmocka_unit_test(disk_has_no_order),
        cmocka_unit_test(deferred),
        cmocka_unit_test(ranks),
        cmocka_unit_test(clean),
        cmocka_unit_test(once_faulty),
        cmocka_unit_test(other_modes),
    };
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}
