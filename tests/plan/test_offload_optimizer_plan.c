/* Plans with optimizer state on disk: every element is read, updated and written once, in this
 * order; what moves is left alone; reads run ahead and writes behind. */
#include "base/checked.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "support/disk_plan.h"

/* Blocks of 4 KiB of the file, and what has been done to each: 0, read, updated, written. */
typedef struct disk_state {
    const plan_schedule *s;
    uint8_t *blocks;
    int64_t *holds; /* by buffer: the place in the file that it shows; -1 */
    bool *moving;   /* by buffer: a transfer is under way */
} disk_state;

static void advance(disk_state *d, int64_t at, int64_t bytes, uint8_t from) {
    assert_true(at % PLAN_DISK_ALIGNMENT == 0);
    assert_true(bytes % PLAN_DISK_ALIGNMENT == 0);
    for (int64_t b = at / PLAN_DISK_ALIGNMENT; b < (at + bytes) / PLAN_DISK_ALIGNMENT; b++) {
        assert_int_equal(d->blocks[b], from);
        d->blocks[b] = (uint8_t)(from + 1);
    }
}

static void check_disk(disk_state *d, const plan_instruction *i) {
    const plan_schedule *s = d->s;
    const plan_operand *x = &s->operands[i->first_operand], *y = x + 1;
    const plan_operand *file = i->action == PLAN_READ ? x : y;
    const plan_operand *memory = i->action == PLAN_READ ? y : x;
    int64_t at = s->buffers[file->buffer].offset + file->offset;
    assert_int_equal(i->queue, PLAN_DISK);
    assert_int_equal(s->buffers[file->buffer].tier, PLAN_NVME);
    assert_int_equal(s->buffers[memory->buffer].class, PLAN_SWAP);
    assert_true(file->offset + i->bytes <=
                base_ceil_to(s->buffers[file->buffer].bytes, PLAN_DISK_ALIGNMENT));
    assert_true(memory->offset == 0);
    assert_true(i->bytes + PLAN_DISK_ALIGNMENT <= s->buffers[memory->buffer].bytes);
    assert_false(d->moving[memory->buffer]);
    d->moving[memory->buffer] = true;
    if (i->action == PLAN_READ) d->holds[memory->buffer] = at;
    assert_int_equal(d->holds[memory->buffer], at);
    advance(d, at, i->bytes, i->action == PLAN_READ ? 0 : 2);
}

static void check_update(disk_state *d, const plan_instruction *i) {
    const plan_schedule *s = d->s;
    device_call call = s->calls[i->call];
    for (int32_t o = i->first_operand; o < i->first_operand + i->operands; o++) {
        int32_t buffer = s->operands[o].buffer;
        const device_matrix *m = plan_role_matrix(&call, (plan_role)s->operands[o].role);
        assert_int_equal(m->columns, call.x[0].columns);
        assert_int_not_equal(s->buffers[buffer].tier, PLAN_NVME); /* kernels reach no file */
        if (s->buffers[buffer].class != PLAN_SWAP) continue;
        assert_false(d->moving[buffer]);
        int64_t end = s->operands[o].offset + m->columns * base_dtype_bytes(m->dtype);
        assert_in_range(s->operands[o].offset, 0, PLAN_DISK_ALIGNMENT - 1);
        advance(d, d->holds[buffer], base_ceil_to(end, PLAN_DISK_ALIGNMENT), 1);
    }
}

static bool touches_state(const plan_schedule *s, const plan_instruction *i) {
    bool waits = i->action == PLAN_WAIT && disk_plan_moves(&s->instructions[i->wait]);
    return i->action == PLAN_UPDATE || disk_plan_moves(i) || waits;
}

static void check(const plan_schedule *s) {
    disk_state d = {.s = s};
    bool decided = false, deferred = false;
    d.blocks = calloc((size_t)(s->nvme_bytes / PLAN_DISK_ALIGNMENT), 1);
    d.holds = calloc(s->buffer_count, sizeof *d.holds);
    d.moving = calloc(s->buffer_count, sizeof *d.moving);
    for (size_t n = 0; n < s->instruction_count; n++) {
        const plan_instruction *i = &s->instructions[n];
        decided |= i->action == PLAN_NORM;
        deferred |= i->deferred; /* what another step has decided */
        assert_true(deferred ? i->deferred || !touches_state(s, i)
                             : decided || i->action != PLAN_WRITE);
        if (disk_plan_moves(i)) check_disk(&d, i);
        if (i->action == PLAN_UPDATE) check_update(&d, i);
        if (i->action != PLAN_WAIT || !disk_plan_moves(&s->instructions[i->wait])) continue;
        assert_int_equal(i->operands, 2);
        for (int32_t o = i->first_operand; o < i->first_operand + 2; o++)
            d.moving[s->operands[o].buffer] = false;
    }
    for (size_t b = 0; b < s->buffer_count; b++) assert_false(d.moving[b]);
    int64_t read, written, bytes = 0;
    plan_disk(s, &read, &written);
    for (int64_t b = 0; b < s->nvme_bytes / PLAN_DISK_ALIGNMENT; b++) {
        assert_int_equal(d.blocks[b], 3);
        bytes += PLAN_DISK_ALIGNMENT;
    }
    assert_true(read == bytes);
    assert_true(written == bytes);
    free(d.blocks);
    free(d.holds);
    free(d.moving);
}

static void everything_once(void **state) {
    (void)state;
    for (int n = 0; n < 96; n++) {
        plan_settings settings =
            disk_plan_state_settings(1 << n % 4, n / 4 % 4, n % 3 ? SIFR_BF16 : SIFR_FP32);
        static const int64_t groups[] = {1, 3000, 4096, 100000, 0};
        settings.step.offload.sub_group_size = groups[n % 5];
        settings.step.offload.optimizer.pipeline_read = n & 1;
        settings.step.offload.optimizer.pipeline_write = n >> 1 & 1;
        settings.step.offload.optimizer.buffer_count = n % 7 ? 2 + n % 7 * 2 : 0;
        if (settings.step.offload.optimizer.buffer_count &&
            settings.step.offload.optimizer.buffer_count < 3)
            settings.step.offload.optimizer.buffer_count = 3;
        settings.step.step_order = n / 16 % 2 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
        settings.step.bf16_optimizer_states = n % 3 == 2; /* a page is two blocks */
        settings.step.bf16_master_weights = n % 6 == 5;
        plan_schedule *s = disk_plan_lower(&settings);
        check(s);
        plan_free(s);
    }
}

/* Each kind of state by itself. */
static void one_tier_each(void **state) {
    (void)state;
    for (int n = 0; n < 3; n++) {
        plan_settings settings = disk_plan_state_settings(2, 2, SIFR_BF16), memory = settings;
        memory.step.offload = (sifr_offload){0};
        static const sifr_offload_state states[] = {SIFR_STATE_MASTER_WEIGHTS, SIFR_STATE_MOMENTS,
                                                    SIFR_STATE_ALL};
        settings.step.offload.optimizer.state = states[n];
        if (n == 2) settings.step.offload.optimizer.device = SIFR_TIER_CPU;
        plan_schedule *s = disk_plan_lower(&settings), *all = disk_plan_lower(&memory);
        int64_t masters = all->largest_bytes[PLAN_MASTERS];
        int64_t moments = all->largest_bytes[PLAN_MOMENTS];
        assert_int_equal(s->largest_bytes[PLAN_MASTERS], n == 0 ? 0 : masters);
        assert_int_equal(s->largest_bytes[PLAN_MOMENTS], n == 1 ? 0 : moments);
        assert_int_equal(s->nvme_bytes, n == 0 ? masters : n == 1 ? moments : 0);
        if (n < 2) check(s);
        plan_free(s);
        plan_free(all);
    }
}

/* Between the start of a group's reads and their wait there is another group's update, and so
 * between the start of writes and theirs; not so where that is switched off. */
static void overlap(void **state) {
    (void)state;
    for (int n = 0; n < 4; n++) {
        plan_settings settings = disk_plan_state_settings(1, 0, SIFR_BF16);
        settings.step.offload.optimizer.pipeline_read = n & 1;
        settings.step.offload.optimizer.pipeline_write = n >> 1;
        plan_schedule *s = disk_plan_lower(&settings);
        int32_t updates = 0, seen[2] = {0}, beside[2] = {0};
        int32_t *before = calloc(s->instruction_count, sizeof *before);
        for (size_t i = 0; i < s->instruction_count; i++) {
            const plan_instruction *in = &s->instructions[i];
            updates += in->action == PLAN_UPDATE;
            before[i] = updates;
            if (in->action != PLAN_WAIT) continue;
            int write = s->instructions[in->wait].action == PLAN_WRITE;
            seen[write]++;
            beside[write] += updates > before[in->wait];
        }
        /* all but the first of reads, all but the last of writes */
        assert_true(updates > 20);
        assert_true(seen[0] == updates * 3);
        assert_true(seen[1] == updates * 3);
        assert_true(settings.step.offload.optimizer.pipeline_read ? beside[0] >= seen[0] - 9
                                                                  : beside[0] == 0);
        assert_true(settings.step.offload.optimizer.pipeline_write ? beside[1] >= seen[1] - 9
                                                                   : beside[1] == 0);
        free(before);
        plan_free(s);
    }
}

static int32_t first_index(const plan_schedule *s, plan_action action) {
    int32_t i = 0;
    while (s->instructions[i].action != action) i++;
    return i;
}

/* Bytes of what is in memory throughout. */
static int64_t permanent(const plan_schedule *s) {
    int64_t bytes = 0;
    for (size_t b = 0; b < s->buffer_count; b++) {
        const plan_buffer *buffer = &s->buffers[b];
        if (buffer->first < 0 && buffer->tier == PLAN_DEVICE) bytes += plan_capacity(buffer->bytes);
    }
    return bytes;
}

/* Of an update that its own step carries out, reads begin with the step where gradients take more
 * than activations ever do, and take no memory for it; else behind the backward pass. */
static void begin_early(void **state) {
    (void)state;
    sifr_error error = {0};
    sifr_model *tied = model;
    model_config config = model_case_llama();
    config.num_hidden_layers = 12;
    config.tie_word_embeddings = false;
    assert_int_equal(model_from_config(&config, &model, &error), SIFR_OK);
    for (int n = 0; n < 2; n++) {
        plan_settings settings = disk_plan_state_settings(1, 0, SIFR_BF16);
        settings.step.gradient_accumulation_steps = 1;
        settings.step.seq_length = n ? 128 : 2;
        settings.step.offload.optimizer.pipeline_write = false;
        plan_schedule *s = disk_plan_lower(&settings);
        int64_t updating = s->largest_bytes[PLAN_GRADIENTS] + s->largest_bytes[PLAN_SWAP];
        int32_t read = first_index(s, PLAN_READ);
        if (n == 0) {
            assert_int_equal(read, 0);
            assert_true(s->total_bytes <= permanent(s) + updating + updating / 256);
        } else {
            assert_int_equal(s->instructions[read + 6].action, PLAN_SQUARES);
        }
        plan_free(s);
    }
    sifr_model_free(model);
    model = tied;
}

/* Buffers: as many as asked for, no more than there is use for, no larger than a unit's slice. */
static void buffers(void **state) {
    (void)state;
    static const int32_t asked[] = {0, 3, 8, 12, 1000000};
    static const int64_t taken[] = {9, 3, 6, 12, -1};
    for (int n = 0; n < 5; n++) {
        plan_settings settings = disk_plan_state_settings(1, 0, SIFR_BF16);
        settings.step.offload.optimizer.buffer_count = asked[n];
        if (n == 4) settings.step.offload.sub_group_size = 1000000000;
        plan_schedule *s = disk_plan_lower(&settings);
        int64_t count = 0, bytes = 0, groups = 0, longest = 0;
        for (size_t b = 0; b < s->buffer_count; b++) {
            if (s->buffers[b].class != PLAN_SWAP) continue;
            count++;
            bytes = s->buffers[b].bytes;
        }
        for (size_t u = 0; u < model->unit_count; u++)
            if (s->segment_elements[u] > longest) longest = s->segment_elements[u];
        for (size_t i = 0; i < s->instruction_count; i++)
            groups += s->instructions[i].action == PLAN_UPDATE;
        assert_int_equal(count, taken[n] < 0 ? 3 * groups : taken[n]);
        assert_int_equal(bytes, (n == 4 ? longest : 2048) * 4 + PLAN_DISK_ALIGNMENT);
        plan_free(s);
    }
    plan_settings settings = disk_plan_state_settings(1, 0, SIFR_FP32);
    settings.step.offload.optimizer.buffer_count = 1;
    plan_schedule *s = NULL;
    sifr_error error = {0};
    assert_int_equal(plan_lower(model, dev, &settings, &s, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "2 kinds of state"));
}

static void price(void **state) {
    (void)state;
    plan_settings settings = disk_plan_state_settings(1, 0, SIFR_BF16);
    disk_plan_price(&settings);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_once), cmocka_unit_test(one_tier_each),
        cmocka_unit_test(overlap),         cmocka_unit_test(begin_early),
        cmocka_unit_test(buffers),         cmocka_unit_test(price)};
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}
