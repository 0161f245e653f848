/* Editing a list: what is added stays as it was while lists grow, operands belong to one
 * instruction, waits follow what they wait for, and limits refuse. */
#include "base/checked.h"
#include "plan/pass/passes.h"
#include "support/list_case.h"

/* Not one that anything refers to. */
static const plan_instruction plain = {
    .action = PLAN_FORWARD, .unit = -1, .micro_batch = -1, .node = -1, .call = -1, .wait = -1};

/* A gather of `bytes` from one buffer into another one. */
static void add_gather(plan_schedule *s, int32_t from, int32_t into, int64_t bytes) {
    list_case_operand(s, PLAN_X0, from, 16);
    list_case_operand(s, PLAN_Y, into, 32);
    assert_int_equal(plan_add_transfer(s, PLAN_GATHER, PLAN_COMMUNICATION, 3, 7, bytes, NULL),
                     SIFR_OK);
}

static void buffers(void **state) {
    (void)state;
    plan_schedule *s = list_case_empty();
    for (int32_t b = 0; b < 100; b++)
        assert_int_equal(list_case_buffer(s, (plan_class)(b % PLAN_CLASSES), 64, b % 2), b);
    for (int32_t b = 0; b < 100; b++) {
        const plan_buffer *buffer = &s->buffers[b];
        assert_int_equal(buffer->class, b % PLAN_CLASSES);
        assert_int_equal(buffer->first, b % 2 ? -1 : INT32_MAX); /* no use found yet */
        assert_int_equal(buffer->last, b % 2 ? INT32_MAX : -1);
        assert_int_equal(buffer->unit, 3);
        assert_int_equal(buffer->index, 5);
        assert_int_equal(buffer->bytes, 64);
        assert_int_equal(buffer->tier, PLAN_DEVICE);
        assert_false(buffer->aligned);
    }
    plan_free(s);
}

/* Whole pages, and one more to move the start in. */
static void disk_buffers(void **state) {
    (void)state;
    static const int64_t pages[][2] = {{1, 2}, {4095, 2}, {4096, 2}, {4097, 3}, {1 << 20, 257}};
    plan_schedule *s = list_case_empty();
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        int32_t buffer;
        assert_int_equal(plan_add_disk_buffer(s, pages[i][0], 9, &buffer, NULL), SIFR_OK);
        assert_int_equal(s->buffers[buffer].bytes, pages[i][1] * PLAN_DISK_ALIGNMENT);
        assert_int_equal(s->buffers[buffer].class, PLAN_SWAP);
        assert_int_equal(s->buffers[buffer].unit, 9);
        assert_true(s->buffers[buffer].aligned);
        assert_true(s->buffers[buffer].first >= 0);
    }
    plan_free(s);
}

/* Instruction n has n % (PLAN_ROLES + 1) operands, and each says whose it is. */
static void operands_belong_to_the_next(void **state) {
    (void)state;
    enum { COUNT = 1000 };
    plan_schedule *s = list_case_empty();
    int32_t buffer = list_case_buffer(s, PLAN_ACTIVATIONS, 64, false);
    for (int32_t n = 0; n < COUNT; n++) {
        plan_instruction in = plain;
        in.micro_batch = n;
        in.first_operand = in.operands = 77; /* whatever it was in another list */
        for (int32_t r = 0; r < n % (PLAN_ROLES + 1); r++)
            list_case_operand(s, (plan_role)r, buffer, n);
        list_case_instruction(s, in);
    }
    int32_t next = 0;
    for (int32_t n = 0; n < COUNT; n++) {
        const plan_instruction *in = &s->instructions[n];
        assert_int_equal(in->micro_batch, n);
        assert_int_equal(in->first_operand, next);
        assert_int_equal(in->operands, n % (PLAN_ROLES + 1));
        for (int32_t r = 0; r < in->operands; r++, next++) {
            assert_int_equal(s->operands[next].role, r);
            assert_int_equal(s->operands[next].offset, n);
        }
    }
    assert_int_equal(s->operand_count, next);
    plan_free(s);
}

/* At its limit a list says so, and stays as it is. */
static void limits(void **state) {
    (void)state;
    plan_schedule *s = list_case_empty();
    sifr_error error = {0};
    int32_t buffer = -5;
    s->buffer_count = INT32_MAX;
    assert_int_equal(plan_add_buffer(s, PLAN_SWAP, 1, 0, 0, true, &buffer, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "too many buffers"));
    assert_int_equal(plan_add_disk_buffer(s, 1, 0, &buffer, &error), SIFR_USAGE);
    assert_int_equal(buffer, -5);
    assert_int_equal(s->buffer_count, INT32_MAX);
    s->instruction_count = PLAN_INSTRUCTION_LIMIT;
    assert_int_equal(plan_add_instruction(s, plain, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "more than 4194304 instructions"));
    assert_int_equal(s->instruction_count, PLAN_INSTRUCTION_LIMIT);
    s->instruction_count = 0;
    s->operand_count = INT32_MAX;
    assert_int_equal(plan_add_instruction(s, plain, &error), SIFR_USAGE);
    assert_int_equal(s->instruction_count, 0);
    plan_free(s);
}

static void waits_have_operands(void **state) {
    (void)state;
    plan_schedule *s = list_case_empty();
    int32_t from = list_case_buffer(s, PLAN_PARAMETERS, 64, true),
            into = list_case_buffer(s, PLAN_GATHERED, 64, false);
    list_case_instruction(s, plain);
    add_gather(s, from, into, 48);
    list_case_instruction(s, plain);
    assert_int_equal(plan_add_wait(s, 1, NULL), SIFR_OK);
    const plan_instruction *wait = &s->instructions[3];
    assert_int_equal(wait->action, PLAN_WAIT);
    assert_int_equal(wait->queue, PLAN_COMPUTE);
    assert_int_equal(wait->wait, 1);
    assert_int_equal(wait->unit, 3);
    assert_int_equal(wait->micro_batch, 7);
    assert_int_equal(wait->call, -1);
    assert_int_equal(wait->operands, 2);
    const plan_operand *of = &s->operands[wait->first_operand];
    assert_int_equal(of[0].buffer, from);
    assert_int_equal(of[0].offset, 16);
    assert_int_equal(of[1].buffer, into);
    assert_int_equal(of[1].offset, 32);
    assert_int_equal(of[1].role, PLAN_Y);
    plan_find_lives(s); /* what is gathered lives until then */
    assert_int_equal(s->buffers[into].first, 1);
    assert_int_equal(s->buffers[into].last, 3);
    plan_free(s);
}

/* Gathers and their waits, with a kernel between them. */
static void add_rounds(plan_schedule *s, int32_t rounds) {
    int32_t from = list_case_buffer(s, PLAN_PARAMETERS, 64, true),
            into = list_case_buffer(s, PLAN_GATHERED, 64, false);
    for (int32_t n = 0; n < rounds; n++) {
        add_gather(s, from, into, n);
        list_case_operand(s, PLAN_X0, into, n);
        list_case_instruction(s, plain);
        assert_int_equal(plan_add_wait(s, 3 * n, NULL), SIFR_OK);
    }
}

/* A pass that puts an instruction before each old one: waits are for the same transfers. */
static void kept_instructions_move(void **state) {
    (void)state;
    enum { ROUNDS = 200, COUNT = 3 * ROUNDS };
    plan_schedule *s = list_case_empty();
    int32_t moved[COUNT];
    add_rounds(s, ROUNDS);
    plan_list old = plan_take_list(s);
    assert_int_equal(old.count, COUNT);
    assert_int_equal(s->instruction_count + s->operand_count, 0);
    for (size_t i = 0; i < COUNT; i++) {
        list_case_instruction(s, plain);
        assert_int_equal(plan_keep(s, &old, i, moved, NULL), SIFR_OK);
        assert_int_equal(moved[i], 2 * i + 1);
    }
    for (size_t i = 0; i < COUNT; i++) {
        const plan_instruction *was = &old.instructions[i], *is = &s->instructions[moved[i]];
        assert_int_equal(is->action, was->action);
        assert_int_equal(is->bytes, was->bytes);
        assert_int_equal(is->operands, was->operands);
        assert_int_equal(is->wait, was->wait < 0 ? -1 : moved[was->wait]);
        assert_memory_equal(&s->operands[is->first_operand], &old.operands[was->first_operand],
                            (size_t)is->operands * sizeof *s->operands);
    }
    plan_free_list(&old);
    assert_null(old.instructions);
    assert_null(old.operands);
    assert_int_equal(old.count, 0);
    plan_free(s);
}

/* A pass may put other buffers in, and the old list does not see it. */
static void copied_operands_are_free(void **state) {
    (void)state;
    plan_schedule *s = list_case_empty();
    plan_operand *copy;
    add_rounds(s, 2);
    int32_t other = list_case_buffer(s, PLAN_SWAP, 64, false);
    plan_list old = plan_take_list(s);
    assert_int_equal(plan_add_operands(s, &old, &old.instructions[3], &copy, NULL), SIFR_OK);
    assert_int_equal(s->operand_count, 2);
    copy[1].buffer = other;
    list_case_instruction(s, plain);
    assert_int_equal(s->operands[s->instructions[0].first_operand + 1].buffer, other);
    assert_int_not_equal(old.operands[old.instructions[3].first_operand + 1].buffer, other);
    plan_free_list(&old);
    plan_free(s);
}

/* Where there is room nothing is copied; an emptied list keeps it. */
static void room_is_kept(void **state) {
    (void)state;
    plan_schedule *s = list_case_empty();
    plan_reserve(s, 600, 1000);
    assert_true(s->instruction_capacity >= 600);
    assert_true(s->operand_capacity >= 1000);
    const plan_instruction *instructions = s->instructions;
    const plan_operand *operands = s->operands;
    for (int i = 0; i < 2; i++) {
        add_rounds(s, 200);
        assert_int_equal(s->instruction_count, 600);
        assert_ptr_equal(s->instructions, instructions);
        assert_ptr_equal(s->operands, operands);
        plan_empty_list(s);
        assert_int_equal(s->instruction_count + s->operand_count, 0);
    }
    plan_free(s);
}

/* Only a gather, and only into what is there for its use. */
static void gathers_for_use(void **state) {
    (void)state;
    plan_schedule *s = list_case_empty();
    int32_t slice = list_case_buffer(s, PLAN_PARAMETERS, 64, true),
            whole = list_case_buffer(s, PLAN_PARAMETERS, 64, true);
    add_rounds(s, 1);
    add_gather(s, slice, whole, 8);
    plan_list list = plan_take_list(s);
    static const bool expected[] = {true, false, false, false};
    for (size_t i = 0; i < list.count; i++)
        assert_int_equal(plan_is_gather_for_use(s, &list, &list.instructions[i]), expected[i]);
    plan_free_list(&list);
    plan_free(s);
}

static device_matrix matrix(int64_t rows, int64_t columns) {
    return (device_matrix){NULL, rows, columns, columns, BASE_FP32};
}

/* A kernel that adds up columns, for which it needs scratch. */
static device_call norm_of(int64_t rows) {
    device_call call = {.kernel = DEVICE_RMS_NORM_BACKWARD};
    call.x[0] = call.dy = call.dx[0] = matrix(rows, 40);
    call.w[0] = call.dw[0] = matrix(1, 40);
    call.saved[0] = matrix(rows, 1);
    return call;
}

/* Scratch has room for the call that takes most; one that no device runs is not stored. */
static void calls(void **state) {
    (void)state;
    plan_schedule *s = list_case_empty();
    sifr_error error = {0};
    int32_t index;
    s->scratch = list_case_buffer(s, PLAN_SCRATCH, 0, true);
    int64_t most = 0, least = INT64_MAX;
    for (int32_t n = 0; n < 50; n++) {
        assert_int_equal(plan_add_call(s, norm_of(5000 * (n % 7 + 1)), &index, NULL), SIFR_OK);
        assert_int_equal(index, n);
        most = base_max_i64(most, s->calls[n].scratch_bytes);
        least = base_min_i64(least, s->calls[n].scratch_bytes);
        assert_int_equal(s->buffers[s->scratch].bytes, most);
    }
    assert_true(least < most);
    for (int32_t n = 0; n < 50; n++) assert_int_equal(s->calls[n].x[0].rows, 5000 * (n % 7 + 1));
    device_call wrong = norm_of(5000000);
    wrong.saved[0].dtype = BASE_INT32;
    assert_int_equal(plan_add_call(s, wrong, &index, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "int32"));
    assert_int_equal(s->call_count, 50);
    assert_int_equal(s->buffers[s->scratch].bytes, most);
    plan_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(buffers),
                                       cmocka_unit_test(disk_buffers),
                                       cmocka_unit_test(operands_belong_to_the_next),
                                       cmocka_unit_test(limits),
                                       cmocka_unit_test(waits_have_operands),
                                       cmocka_unit_test(kept_instructions_move),
                                       cmocka_unit_test(copied_operands_are_free),
                                       cmocka_unit_test(room_is_kept),
                                       cmocka_unit_test(gathers_for_use),
                                       cmocka_unit_test(calls)};
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}
