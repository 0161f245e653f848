/* Collectives of values that belong to no segment, in lists by hand: verified, each kind of fault
 * in them found, printed, counted and priced. */
#include "plan/verify/verify.h"

#include <math.h>
#include <stdio.h>

#include "support/value_case.h"

static void finish(plan_schedule *s) {
    assert_int_equal(plan_pass_overlap(s, NULL), SIFR_OK);
    assert_int_equal(plan_memory(s, NULL), SIFR_OK);
}

static void expect(plan_schedule *s, const char *words) {
    sifr_error error = {0};
    assert_int_equal(plan_verify(s, &error), words[0] ? SIFR_FAILED : SIFR_OK);
    if (words[0] && !strstr(error.message, words)) fail_msg("%s", error.message);
}

/* And frees the list. */
static void expect_fault(plan_schedule *s, const char *words) {
    finish(s);
    expect(s, words);
    plan_free(s);
}

static plan_instruction *find(plan_schedule *s, plan_action action) {
    for (size_t i = 0; i < s->instruction_count; i++)
        if (s->instructions[i].action == action) return &s->instructions[i];
    fail();
    return NULL;
}

static void whole_lists_fit(void **state) {
    (void)state;
    const plan_schedule *of[VALUE_RANKS];
    sifr_error error = {0};
    for (int32_t r = 0; r < VALUE_RANKS; r++) {
        value_case c = value_case_whole(model, dev, r);
        expect(c.s, "");
        of[r] = c.s;
    }
    assert_int_equal(plan_verify_ranks(of, VALUE_RANKS, &error), SIFR_OK);
    for (int32_t r = 0; r < VALUE_RANKS; r++) plan_free((plan_schedule *)(uintptr_t)of[r]);
}

/* Each wait that is left out is missed. */
static void waits_are_needed(void **state) {
    (void)state;
    for (size_t n = 0;; n++) {
        value_case c = value_case_whole(model, dev, 0);
        size_t waits = 0, i = 0;
        for (; i < c.s->instruction_count; i++)
            if (c.s->instructions[i].action == PLAN_WAIT && waits++ == n) break;
        bool found = i < c.s->instruction_count;
        if (found) {
            size_t left = --c.s->instruction_count - i;
            plan_instruction *at = &c.s->instructions[i];
            memmove(at, at + 1, left * sizeof *at);
            for (size_t w = i; w < c.s->instruction_count; w++) {
                plan_instruction *wait = &c.s->instructions[w];
                if (wait->action == PLAN_WAIT && wait->wait > (int32_t)i) wait->wait--;
            }
            expect(c.s, "nothing waits for");
        }
        plan_free(c.s);
        if (!found) break;
    }
}

/* What is read while a sum is under way. */
static void no_wait_orders_them(void **state) {
    (void)state;
    value_case c = value_case_begin(model, dev, 0);
    value_case_make_part(&c);
    value_case_sum(c.s, PLAN_TENSORS, BASE_FP32, c.part, c.whole);
    value_case_kernel(c.s, DEVICE_CONVERT, c.whole, c.narrow, BASE_BF16);
    finish(c.s);
    expect(c.s, "");
    plan_instruction *wait = find(c.s, PLAN_WAIT), kept = *wait;
    assert_int_equal(wait[1].action, PLAN_ADD);
    wait[0] = wait[1];
    wait[1] = kept;
    expect(c.s, "no wait orders them");
    plan_free(c.s);
}

static void sums_are_of_parts(void **state) {
    (void)state;
    value_case c = value_case_begin(model, dev, 0);
    value_case_sum(c.s, PLAN_TENSORS, BASE_FP32, c.part, c.whole);
    expect_fault(c.s, "which nothing has written before");
    c = value_case_begin(model, dev, 0);
    value_case_make_part(&c);
    value_case_sum(c.s, PLAN_TENSORS, BASE_FP32, c.part, c.part);
    value_case_sum(c.s, PLAN_TENSORS, BASE_FP32, c.part, c.whole);
    expect_fault(c.s, "has a value of all ranks of a span, not a value of this rank alone");
    c = value_case_begin(model, dev, 0);
    value_case_make_part(&c);
    value_case_kernel(c.s, DEVICE_CONVERT, c.part, c.narrow, BASE_BF16);
    value_case_sum(c.s, PLAN_TENSORS, BASE_FP32, c.part, c.whole);
    expect_fault(c.s, "has a value of this rank alone, which a kernel has read");
}

static void collectives_are_whole(void **state) {
    (void)state;
    value_case c = value_case_whole(model, dev, 0);
    plan_instruction *sum = find(c.s, PLAN_SUM), *exchange = find(c.s, PLAN_EXCHANGE), kept = *sum;
    sum->encoding = PLAN_CODE_BYTES;
    expect(c.s, "has no encoding that fits it");
    *sum = kept, sum->sum = BASE_FP16;
    expect(c.s, "has no encoding that fits it");
    *sum = kept, sum->segment = 0;
    expect(c.s, "has no encoding that fits it");
    *sum = kept, sum->queue = PLAN_COMMUNICATION;
    expect(c.s, "is on the communication queue, not the near queue");
    *sum = kept, sum->bytes *= 2;
    expect(c.s, "which has 96");
    *sum = kept;
    comm_run *received = c.s->runs + exchange->runs + VALUE_CONTEXTS, run = received[1];
    received[1].bytes -= 4;
    expect(c.s, "the parts that it gets do not make up");
    received[1] = (comm_run){run.at + 4, run.bytes};
    expect(c.s, "the parts that it gets do not make up");
    received[1] = run;
    exchange->runs = (int32_t)c.s->run_count - 1;
    expect(c.s, "the parts that it gets do not make up");
    plan_free(c.s);
}

/* Ranks that meet: one list is changed, and both are told. */
static void ranks_agree(void **state) {
    (void)state;
    const plan_schedule *of[VALUE_RANKS];
    plan_schedule *last = NULL;
    sifr_error error = {0};
    for (int32_t r = 0; r < VALUE_RANKS; r++) of[r] = last = value_case_whole(model, dev, r).s;
    plan_instruction *sum = find(last, PLAN_SUM), *exchange = find(last, PLAN_EXCHANGE),
                     kept = *sum;
    sum->bytes /= 2;
    assert_int_equal(plan_verify_ranks(of, VALUE_RANKS, &error), SIFR_FAILED);
    assert_non_null(strstr(error.message, "of rank 7 moves 12 bytes, #2 sum of rank 4 24"));
    *sum = kept;
    last->runs[exchange->runs].bytes += 4; /* what it sends to rank 3 */
    assert_int_equal(plan_verify_ranks(of, VALUE_RANKS, &error), SIFR_FAILED);
    assert_non_null(strstr(error.message, "exchange of rank 3: what one sends is not what"));
    last->runs[exchange->runs].bytes -= 4;
    sum->action = PLAN_GATHER;
    assert_int_equal(plan_verify_ranks(of, VALUE_RANKS, &error), SIFR_FAILED);
    assert_non_null(strstr(error.message, "where rank 0 comes to #2 sum"));
    for (int32_t r = 0; r < VALUE_RANKS; r++) plan_free((plan_schedule *)(uintptr_t)of[r]);
}

/* Bytes by hand: a sum of 96 bytes over 4 ranks is 3 slices of 24, twice; in bf16 over 2 ranks one
 * of 24, twice; this rank keeps its part of the exchange. */
static void wire(void **state) {
    (void)state;
    int64_t gathered, reduced, gathers, reductions;
    value_case c = value_case_whole(model, dev, 5);
    plan_wire_of(c.s, PLAN_TENSORS, &gathered, &reduced);
    assert_int_equal(gathered, 72);
    assert_int_equal(reduced, 72);
    plan_wire_of(c.s, PLAN_CONTEXTS, &gathered, &reduced);
    assert_int_equal(gathered, 24);
    assert_int_equal(reduced, 24);
    plan_wire_of(c.s, PLAN_HOSTS, &gathered, &reduced);
    assert_int_equal(gathered, 96);
    assert_int_equal(plan_exchanged_of(c.s, PLAN_CONTEXTS), value_case_part(0, 1));
    assert_int_equal(plan_exchanged(c.s), value_case_part(0, 1));
    assert_int_equal(plan_exchanged_of(c.s, PLAN_TENSORS), 0);
    assert_int_equal(plan_wire_crossing(c.s, PLAN_TENSORS, 4), 0);
    assert_int_equal(plan_wire_crossing(c.s, PLAN_CONTEXTS, 4), 48 + value_case_part(0, 1));
    assert_int_equal(plan_wire_crossing(c.s, PLAN_TENSORS, 2), 24 + 24); /* hosts add first */
    plan_calls(c.s, &gathers, &reductions);
    assert_int_equal(gathers, 3);
    assert_int_equal(reductions, 2);
    plan_free(c.s);
}

/* A byte and a call take a second each; the near queue does not wait for the bulk. */
static void prices(void **state) {
    (void)state;
    plan_machine slow = {.fp32_operations = 1e30, .memory_bytes = 1e30, .host = {1, 1}};
    plan_prediction p;
    value_case c = value_case_begin(model, dev, 0);
    value_case_make_part(&c);
    value_case_gather(c.s, c.given, c.gathered);                   /* 1 + 96 */
    value_case_sum(c.s, PLAN_TENSORS, BASE_FP32, c.part, c.whole); /* 2 + 2 x 72 */
    value_case_exchange(c.s, c.whole, c.taken);                    /* 1 + 8: behind the sum */
    finish(c.s);
    expect(c.s, "");
    double last = 1 + (double)value_case_part(1, 0);
    size_t sum = (size_t)(find(c.s, PLAN_SUM) - c.s->instructions);
    assert_true(fabs(plan_price(c.s, sum, &slow) - 146) < 1e-6);
    assert_int_equal(plan_predict(c.s, &slow, &p, NULL, NULL), SIFR_OK);
    assert_true(fabs(p.communication - (97 + 146 + last)) < 1e-6);
    assert_true(fabs(p.step_seconds - (146 + last)) < 1e-6);
    plan_free(c.s);
}

static void keep_exchange(void *user, const char *text) {
    if (strstr(text, "exchange") || strstr(text, "sum")) strcat(strcat(user, text), "\n");
}

static void lines(void **state) {
    (void)state;
    char text[1024] = "", expected[1024];
    value_case c = value_case_whole(model, dev, 0);
    const plan_buffer *b = c.s->buffers;
    plan_dump(c.s, keep_exchange, text);
    snprintf(expected, sizeof expected,
             "    2 near sum                 24 bytes fp32 @%lld into @%lld tensors\n",
             (long long)b[c.part].offset, (long long)b[c.whole].offset);
    assert_non_null(strstr(text, expected));
    snprintf(expected, sizeof expected, "%lld bytes fp32 @%lld into @%lld contexts\n",
             (long long)(value_case_part(0, 0) + value_case_part(1, 0)),
             (long long)b[c.whole].offset, (long long)b[c.taken].offset);
    assert_non_null(strstr(text, expected));
    plan_free(c.s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole_lists_fit),
                                       cmocka_unit_test(waits_are_needed),
                                       cmocka_unit_test(no_wait_orders_them),
                                       cmocka_unit_test(sums_are_of_parts),
                                       cmocka_unit_test(collectives_are_whole),
                                       cmocka_unit_test(ranks_agree),
                                       cmocka_unit_test(wire),
                                       cmocka_unit_test(prices),
                                       cmocka_unit_test(lines)};
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}
