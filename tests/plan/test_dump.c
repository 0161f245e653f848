/* A schedule as text: what each kind of line says, on a list that is short enough to read. */
#include <stdio.h>

#include "support/list_case.h"

enum { LINES = 16, WIDTH = 1100 };

typedef struct page {
    size_t count, longest;
    char lines[LINES][WIDTH];
} page;

static void take_line(void *user, const char *text) {
    page *p = user;
    size_t length = strlen(text);
    if (length > p->longest) p->longest = length;
    if (p->count < LINES) strcpy(p->lines[p->count], text);
    p->count++;
}

static int32_t add_buffer(plan_schedule *s, plan_tier tier, int64_t offset) {
    int32_t buffer = list_case_buffer(s, PLAN_SWAP, 64, true);
    s->buffers[buffer].tier = tier;
    s->buffers[buffer].offset = offset;
    return buffer;
}

/* `pairs`: a buffer and an offset in it, for where it moves from and where to. */
static void add_move(plan_schedule *s, plan_action action, plan_queue queue,
                     const int32_t pairs[4]) {
    list_case_operand(s, PLAN_X0, pairs[0], pairs[1]);
    list_case_operand(s, PLAN_Y, pairs[2], pairs[3]);
    assert_int_equal(plan_add_transfer(s, action, queue, 1, 2, 4096, NULL), SIFR_OK);
}

static void add_kernel(plan_schedule *s, device_call call, plan_instruction in) {
    s->calls = realloc(s->calls, (s->call_count + 1) * sizeof *s->calls);
    assert_non_null(s->calls);
    s->calls[s->call_count] = call;
    in.call = (int32_t)s->call_count++;
    list_case_instruction(s, in);
}

/* Prints the list into a page and gives it back. */
static page print(plan_schedule *s) {
    page p = {0};
    plan_dump(s, take_line, &p);
    assert_int_equal(p.count, s->instruction_count);
    plan_free(s);
    return p;
}

static void moves(void **state) {
    (void)state;
    plan_schedule *s = list_case_empty();
    int32_t here = add_buffer(s, PLAN_DEVICE, 65536), disk = add_buffer(s, PLAN_NVME, 8192);
    int32_t host = add_buffer(s, PLAN_HOST, 12288);
    add_move(s, PLAN_READ, PLAN_DISK, (int32_t[]){disk, 0, here, 256});
    add_move(s, PLAN_WRITE, PLAN_DISK, (int32_t[]){here, 512, disk, 4096});
    assert_int_equal(plan_add_wait(s, 1, NULL), SIFR_OK);
    add_move(s, PLAN_READ, PLAN_COPY, (int32_t[]){host, 0, here, 0});
    s->instructions[3].deferred = true;
    page p = print(s);
    char unit[32];
    snprintf(unit, sizeof unit, " %-10s #2", model->units[1].name);
    static const char *const expected[][2] = {
        {"    0 disk read    ", " 4096 bytes file@8192 into @65792"},
        {"    1 disk write   ", " 4096 bytes @66048 into file@12288"},
        {"    2 compute wait    ", " after 1"},
        /* The host's memory is this device's: no name for it. */
        {"    3 copy read    ", " 4096 bytes @12288 into @65536 (of the step before)"}};
    for (size_t i = 0; i < 4; i++) {
        char line[256];
        snprintf(line, sizeof line, "%s%s%s", expected[i][0], unit, expected[i][1]);
        assert_string_equal(p.lines[i], line);
    }
}

/* A device with memory of its own: host memory is another place. */
static void host_memory_has_a_name(void **state) {
    (void)state;
    plan_schedule *s = list_case_empty();
    device *separate;
    assert_int_equal(device_open_separate(1, NULL, &separate, NULL), SIFR_OK);
    s->dev = separate;
    int32_t here = add_buffer(s, PLAN_DEVICE, 512), host = add_buffer(s, PLAN_HOST, 4096);
    add_move(s, PLAN_READ, PLAN_COPY, (int32_t[]){host, 0, here, 0});
    page p = print(s);
    assert_non_null(strstr(p.lines[0], " bytes host@4096 into @512"));
    device_close(separate);
}

static void kernels(void **state) {
    (void)state;
    plan_schedule *s = list_case_empty();
    int32_t x = add_buffer(s, PLAN_DEVICE, 1024), y = add_buffer(s, PLAN_DEVICE, 2048);
    device_call call = {.kernel = DEVICE_ADD_INTO};
    call.x[0] = (device_matrix){NULL, 1, 5, 5, BASE_BF16};
    call.y = (device_matrix){NULL, 3, 7, 7, BASE_FP32};
    plan_instruction in = {.action = PLAN_ADD, .unit = -1, .micro_batch = -1, .wait = -1};
    for (int n = 0; n < 2; n++) {
        list_case_operand(s, PLAN_X0, x, 0);
        list_case_operand(s, PLAN_Y, y, 64);
        in.accumulate_dw = n;
        add_kernel(s, call, in);
    }
    page p = print(s);
    assert_string_equal(p.lines[0], "    0 compute add                 add_into x0=1x5 bf16@1024 "
                                    "y=3x7 fp32@2112");
    assert_string_equal(p.lines[1], "    1 compute add                 add_into x0=1x5 bf16@1024 "
                                    "y=3x7 fp32@2112 (adds)");
}

/* All operands that a call can have, with the longest numbers: cut, and no byte behind it. */
static void long_lines_are_cut(void **state) {
    (void)state;
    plan_schedule *s = list_case_empty();
    int32_t buffer = add_buffer(s, PLAN_DEVICE, INT64_MAX - 1);
    device_call call = {.kernel = DEVICE_SILU_GATE_BACKWARD};
    for (int r = 0; r < PLAN_ROLES; r++) {
        *plan_role_matrix(&call, (plan_role)r) =
            (device_matrix){NULL, INT64_MAX, INT64_MAX, INT64_MAX, BASE_INT32};
        list_case_operand(s, (plan_role)r, buffer, 0);
    }
    add_kernel(s, call, (plan_instruction){.unit = 0, .wait = -1, .deferred = true});
    page p = print(s);
    assert_int_equal(p.longest, 1023);
}

typedef const char *name_of(int index);

static const char *action_name(int i) {
    return plan_action_name((plan_action)i);
}

static const char *class_name(int i) {
    return plan_class_name((plan_class)i);
}

static const char *queue_name(int i) {
    return plan_queue_name((plan_queue)i);
}

static const char *role_name(int i) {
    return plan_role_name((plan_role)i);
}

static void check_names(name_of *name, int count) {
    for (int i = 0; i < count; i++) {
        assert_non_null(name(i));
        assert_true(name(i)[0]);
        for (int j = 0; j < i; j++) assert_string_not_equal(name(i), name(j));
    }
}

/* One each, by which lines and tables can be told apart. */
static void all_have_names(void **state) {
    (void)state;
    check_names(action_name, PLAN_ACTIONS);
    check_names(class_name, PLAN_CLASSES);
    check_names(queue_name, PLAN_QUEUES);
    check_names(role_name, PLAN_ROLES);
    assert_string_equal(plan_action_name(PLAN_WAIT), "wait");
    assert_string_equal(plan_class_name(PLAN_SCRATCH), "scratch");
    assert_string_equal(plan_role_name(PLAN_DW1), "dw1");
}

/* Each role is a matrix of the call, and no two are the same one. */
static void roles_have_places(void **state) {
    (void)state;
    device_call call;
    memset(&call, 0, sizeof call);
    for (int r = 0; r < PLAN_ROLES; r++) {
        device_matrix *m = plan_role_matrix(&call, (plan_role)r);
        assert_int_equal(m->rows, 0);
        m->rows = r + 1;
    }
    assert_int_equal(call.x[3].rows, PLAN_X3 + 1);
    assert_int_equal(call.w[0].rows, PLAN_W0 + 1);
    assert_int_equal(call.y.rows, PLAN_Y + 1);
    assert_int_equal(call.saved[1].rows, PLAN_SAVED1 + 1);
    assert_int_equal(call.dy.rows, PLAN_DY + 1);
    assert_int_equal(call.dx[2].rows, PLAN_DX2 + 1);
    assert_int_equal(call.dw[1].rows, PLAN_DW1 + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves),          cmocka_unit_test(host_memory_has_a_name),
        cmocka_unit_test(kernels),        cmocka_unit_test(long_lines_are_cut),
        cmocka_unit_test(all_have_names), cmocka_unit_test(roles_have_places)};
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}
