/* Plans with parameters and gradients on disk: nothing is gathered or used before it is read, no
 * more slices are in memory than asked for, kernels reach no file; accumulation unit by unit reads
 * no more; the numbers that refusals name. */
#include <stdio.h>

#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "support/disk_plan.h"

static plan_settings settings_of(int32_t ranks, sifr_precision precision) {
    return disk_plan_settings(
        ranks, 3, precision,
        (sifr_offload){.optimizer = {.ratio = 1, .pipeline_read = true, .pipeline_write = true},
                       .param = {.device = SIFR_TIER_NVME},
                       .sub_group_size = 2048});
}

/* What a buffer shows: nothing, something that is still moving, or parameters of its unit. */
typedef enum { NOTHING, MOVING, READY } content;

/* The buffers that slices are read into. */
static bool is_slice(const plan_schedule *s, int32_t buffer) {
    const plan_buffer *b = &s->buffers[buffer];
    return b->aligned && b->unit >= 0;
}

static void check_read(const plan_schedule *s, const plan_instruction *i, content *has) {
    const plan_operand *x = &s->operands[i->first_operand], *y = x + 1;
    const plan_buffer *file = &s->buffers[x->buffer], *memory = &s->buffers[y->buffer];
    assert_int_equal(file->tier, PLAN_NVME);
    assert_true(x->offset == 0);
    assert_true(y->offset == 0);
    assert_true(file->unit == memory->unit);
    assert_true(i->bytes >= file->bytes);
    assert_true(i->bytes - file->bytes < PLAN_DISK_ALIGNMENT);
    assert_true(i->bytes % PLAN_DISK_ALIGNMENT == 0);
    assert_true(i->bytes + PLAN_DISK_ALIGNMENT <= memory->bytes);
    assert_int_equal(has[y->buffer], NOTHING);
    has[y->buffer] = MOVING;
}

/* Kernels and gathers find what they need, and reach no file. */
static void check_operands(const plan_schedule *s, const plan_instruction *i, const content *has) {
    bool gather = i->action == PLAN_GATHER;
    for (int32_t o = i->first_operand; o < i->first_operand + i->operands; o++) {
        int32_t buffer = s->operands[o].buffer;
        assert_int_not_equal(s->buffers[buffer].tier, PLAN_NVME);
        if (is_slice(s, buffer)) assert_int_equal(has[buffer], READY);
        bool disk = gather && s->buffers[s->parameters[i->unit]].tier == PLAN_NVME;
        if (disk && o == i->first_operand) assert_true(is_slice(s, buffer));
    }
}

static int32_t most_live(const plan_schedule *s) {
    int32_t most = 0;
    for (int32_t n = 0; n < (int32_t)s->instruction_count; n++) {
        int32_t live = 0;
        for (int32_t b = 0; b < (int32_t)s->buffer_count; b++)
            live += is_slice(s, b) && s->buffers[b].first <= n && s->buffers[b].last >= n;
        if (live > most) most = live;
    }
    return most;
}

/* Returns the reads of slices, and of the bytes that are written those of parameters. */
static int32_t check(const plan_schedule *s, int64_t *written) {
    content *has = calloc(s->buffer_count, sizeof *has);
    int32_t reads = 0;
    *written = 0;
    for (size_t n = 0; n < s->instruction_count; n++) {
        const plan_instruction *i = &s->instructions[n];
        const plan_operand *operands = &s->operands[i->first_operand];
        bool slice = i->action == PLAN_READ && is_slice(s, operands[1].buffer);
        if (slice) check_read(s, i, has);
        reads += slice;
        if (i->action == PLAN_WRITE && s->buffers[operands[1].buffer].class == PLAN_PARAMETERS)
            *written += i->bytes;
        if (i->action != PLAN_WAIT) {
            if (!disk_plan_moves(i)) check_operands(s, i, has);
        } else if (s->instructions[i->wait].action == PLAN_READ &&
                   is_slice(s, operands[1].buffer)) {
            assert_int_equal(has[operands[1].buffer], MOVING);
            has[operands[1].buffer] = READY;
        }
    }
    for (size_t b = 0; b < s->buffer_count; b++) assert_int_not_equal(has[b], MOVING);
    free(has);
    return reads;
}

static void read_before_use(void **state) {
    (void)state;
    for (int n = 0; n < 48; n++) {
        plan_settings settings = settings_of(1 << n % 4, n % 3 ? SIFR_BF16 : SIFR_FP32);
        int64_t written, slices = 0;
        settings.step.step_order = n / 4 % 2 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
        settings.step.recompute = n % 5 == 0;
        settings.step.zero.overlap_comm = n % 6 != 0;
        settings.step.zero.prefetch_bucket_size = n % 7 * 20000;
        settings.step.zero.max_reuse_distance = n % 9 == 8 ? 100000 : 0;
        settings.step.offload.param.buffer_count = n % 2 ? 16 + n % 11 : 0;
        settings.step.offload.optimizer.device = n % 8 < 4 ? SIFR_TIER_NVME : SIFR_TIER_CPU;
        plan_schedule *s = disk_plan_lower(&settings);
        check(s, &written);
        for (size_t u = 0; u < model->unit_count; u++) {
            int64_t slice = s->segment_elements[u] / plan_mesh_ranks(&settings.mesh, PLAN_STATE);
            slice *= base_dtype_bytes(plan_dtype(&settings));
            slices += (slice + PLAN_DISK_ALIGNMENT - 1) / PLAN_DISK_ALIGNMENT * PLAN_DISK_ALIGNMENT;
        }
        assert_int_equal(written, slices);
        if (settings.step.offload.param.buffer_count)
            assert_true(most_live(s) <= settings.step.offload.param.buffer_count);
        assert_int_equal(s->largest_bytes[PLAN_PARAMETERS], 0);
        plan_free(s);
    }
}

/* Where not given: one slice more than is needed, so that one is read while others are used. */
static void ahead(void **state) {
    (void)state;
    for (int n = 0; n < 4; n++) {
        plan_settings settings = settings_of(1 + n % 2, SIFR_BF16);
        settings.step.step_order = n / 2 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
        plan_schedule *s = disk_plan_lower(&settings), *none = NULL;
        int32_t most = most_live(s), beside = 0, reads = 0, kernels = 0;
        int32_t *before = calloc(s->instruction_count, sizeof *before);
        for (size_t i = 0; i < s->instruction_count; i++) {
            const plan_instruction *in = &s->instructions[i];
            before[i] = kernels += in->call >= 0;
            if (in->action != PLAN_WAIT || s->instructions[in->wait].action != PLAN_READ) continue;
            reads++;
            beside += before[i] > before[in->wait];
        }
        assert_true(beside >= reads - most); /* all but those that the step begins with */
        settings.step.offload.param.buffer_count = most - 1;
        plan_free(s);
        s = disk_plan_lower(&settings);
        assert_int_equal(most_live(s), most - 1);
        settings.step.offload.param.buffer_count = most - 2;
        sifr_error error = {0};
        if (most > 2)
            assert_int_equal(plan_lower(model, dev, &settings, &none, &error), SIFR_USAGE);
        free(before);
        plan_free(s);
    }
}

/* The promise of accumulation: unit by unit a step reads the same for any number of micro batches,
 * batch by batch as often as there are such. */
static void accumulation(void **state) {
    (void)state;
    for (int ranks = 1; ranks <= 2; ranks++) {
        int32_t once[2], more;
        int64_t written;
        for (int order = 0; order < 2; order++) {
            for (int32_t k = 1; k <= 4; k *= 4) {
                plan_settings settings = settings_of(ranks, SIFR_BF16);
                settings.step.step_order = order ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
                settings.step.gradient_accumulation_steps = k;
                plan_schedule *s = disk_plan_lower(&settings);
                more = check(s, &written);
                if (k == 1) once[order] = more;
                plan_free(s);
            }
            assert_true(
                more == (order ? 1 : 4) * once[order] ||
                (!order && more >= 4 * once[order] - 3)); /* a batch ends as the next begins */
        }
        assert_int_equal(once[0], once[1]);
    }
}

/* A plan that is refused: the number in the message, by a pattern for sscanf. */
static long long refused(const plan_settings *settings, const char *pattern) {
    plan_schedule *s = NULL;
    sifr_error error = {0};
    long long number = 0;
    assert_int_equal(plan_lower(model, dev, settings, &s, &error), SIFR_USAGE);
    if (sscanf(error.message, pattern, &number) != 1) fail_msg("%s", error.message);
    return number;
}

static void accepted(plan_settings settings) {
    plan_free(disk_plan_lower(&settings));
    settings.mode = PLAN_EVALUATE; /* with the same buffers, in the middle of a run */
    settings.step.gradient_accumulation_steps = 1;
    settings.step.step_order = SIFR_STEP_BATCH;
    settings.step.recompute = SIFR_RECOMPUTE_NONE;
    settings.external_parameters = true;
    plan_free(disk_plan_lower(&settings));
}

/* The first number that a refusal names works, for evaluation, too, and one less does not. */
static void named(void **state) {
    (void)state;
    static const char size_of[] =
        "offload_param: buffer_size %*d: a rank's slice of layers.%*s has %lld";
    static const char count_of[] = "offload_param: buffer_count %*d: %lld slices";
    for (int n = 0; n < 48; n++) {
        plan_settings settings = settings_of(1 << n % 3, n % 5 ? SIFR_BF16 : SIFR_FP32);
        settings.step.step_order = n / 3 % 2 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
        settings.step.recompute = n / 6 % 2 ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE;
        settings.step.zero.overlap_comm = n / 12 % 2;
        settings.step.zero.prefetch_bucket_size = n % 4 * 20000;
        settings.step.zero.max_reuse_distance = n % 7 == 6 ? 100000 : 0;
        settings.step.offload.param.buffer_size =
            1; /* an embedding is first, and smaller than a block */
        long long size = refused(&settings, size_of);
        settings.step.offload.param.buffer_size = size - 1;
        assert_int_equal(refused(&settings, size_of), size);
        settings.step.offload.param.buffer_size = size;
        accepted(settings);
        plan_schedule *s = disk_plan_lower(&settings);
        settings.step.offload.param.buffer_count =
            most_live(s) > 2 ? 1 : 0; /* two where one is read ahead */
        plan_free(s);
        if (!settings.step.offload.param.buffer_count) continue;
        long long count = refused(&settings, count_of);
        settings.step.offload.param.buffer_count = (int32_t)count - 1;
        assert_int_equal(refused(&settings, count_of), count);
        settings.step.offload.param.buffer_count = (int32_t)count;
        accepted(settings);
    }
}

/* Slices that stay in memory are neither read nor written. */
static void kept(void **state) {
    (void)state;
    for (int n = 0; n < 8; n++) {
        plan_settings settings = settings_of(1 + n % 2, SIFR_BF16);
        int64_t written, slices[32], all = 0;
        plan_schedule *s = disk_plan_lower(&settings);
        for (size_t u = 0; u < model->unit_count; u++)
            all += slices[u] = s->segment_elements[u] / plan_mesh_ranks(&settings.mesh, PLAN_STATE);
        plan_free(s);
        settings.step.offload.param.max_in_cpu = n / 2 == 3 ? all : slices[0] + n / 2 * slices[1];
        int64_t stays = settings.step.offload.param.max_in_cpu * 2;
        s = disk_plan_lower(&settings);
        check(s, &written);
        assert_int_equal(s->largest_bytes[PLAN_PARAMETERS], stays);
        assert_int_equal(s->nvme_bytes > 0, stays < 2 * all);
        plan_free(s);
    }
}

/* Gradients on disk: squares are taken of what is final and in memory, a sum is written once and
 * before the norm, and unit by unit only a few units' sums are in memory at a time. */
static void gradients(void **state) {
    (void)state;
    for (int n = 0; n < 8; n++) {
        plan_settings settings = settings_of(1 + n % 2, SIFR_BF16);
        settings.step.step_order = SIFR_STEP_UNIT;
        settings.step.gradient_accumulation_steps = n / 2 % 2 ? 1 : 4;
        settings.step.zero.stage = n / 4 ? 3 : 2;
        settings.step.offload.optimizer.device = SIFR_TIER_NVME;
        plan_schedule *memory = disk_plan_lower(&settings);
        settings.step.offload.gradients = SIFR_TIER_NVME;
        plan_schedule *s = disk_plan_lower(&settings);
        int64_t bytes[PLAN_CLASSES], written = 0, sums = 0;
        bool decided = false;
        int32_t squares = 0;
        plan_offloaded_classes(s, PLAN_NVME, bytes);
        for (size_t u = 0; u < model->unit_count; u++)
            sums += s->segment_elements[u] / plan_mesh_ranks(&settings.mesh, PLAN_STATE) * 4;
        for (size_t i = 0; i < s->instruction_count; i++) {
            const plan_instruction *in = &s->instructions[i];
            const plan_operand *operands = &s->operands[in->first_operand];
            decided |= in->action == PLAN_NORM;
            squares += in->action == PLAN_SQUARES;
            if (in->action == PLAN_SQUARES) {
                const plan_instruction *next = in + 1;
                while (next->action == PLAN_WAIT) next++; /* of the sum that was written before */
                assert_int_equal(next->action, PLAN_WRITE);
                assert_int_equal(s->operands[next->first_operand].buffer, operands[0].buffer);
            }
            if (in->action == PLAN_WRITE &&
                s->buffers[operands[1].buffer].class == PLAN_GRADIENTS) {
                assert_false(decided);
                written += in->bytes;
            }
        }
        assert_int_equal(squares, model->unit_count);
        assert_int_equal(bytes[PLAN_GRADIENTS], sums);
        assert_int_equal(written, sums);
        assert_true(s->largest_bytes[PLAN_GRADIENTS] < memory->largest_bytes[PLAN_GRADIENTS]);
        plan_free(s);
        plan_free(memory);
    }
}

static void price(void **state) {
    (void)state;
    plan_settings settings = settings_of(1, SIFR_BF16);
    disk_plan_price(&settings);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(read_before_use),
                                       cmocka_unit_test(ahead),
                                       cmocka_unit_test(accumulation),
                                       cmocka_unit_test(named),
                                       cmocka_unit_test(kept),
                                       cmocka_unit_test(gradients),
                                       cmocka_unit_test(price)};
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}
