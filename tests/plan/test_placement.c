/* Lives, places and the peak of memory, each found again the slow way: by looking at every
 * instruction, and at every two buffers. */
#include "base/checked.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "support/list_case.h"

enum { INSTRUCTIONS = 60, BUFFERS = 40, LISTS = 100, MOST = 4096 };

static uint32_t draw(uint64_t *random, uint32_t below) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*random >> 33) % below;
}

static void add_instruction(plan_schedule *s, plan_action action) {
    plan_instruction in = {.action = (uint8_t)action, .unit = -1, .call = -1, .wait = -1};
    list_case_instruction(s, in);
}

/* Buffers of any class, size and tier, some of no bytes and some that nobody uses, and a list that
 * uses them in any order. */
static plan_schedule *any_list(uint64_t seed) {
    plan_schedule *s = list_case_empty();
    uint64_t random = seed;
    for (int b = 0; b < BUFFERS; b++) {
        int64_t bytes = draw(&random, 8) ? 1 + draw(&random, 1 << (4 + draw(&random, 12))) : 0;
        int32_t buffer = list_case_buffer(s, (plan_class)draw(&random, PLAN_CLASSES), bytes,
                                          draw(&random, 6) == 0);
        if (draw(&random, 10) == 0) s->buffers[buffer].tier = PLAN_NVME;
    }
    for (int i = 0; i < INSTRUCTIONS; i++) {
        uint32_t around = (uint32_t)i * (BUFFERS - 10) / INSTRUCTIONS;
        for (uint32_t o = draw(&random, 4); o > 0; o--)
            list_case_operand(s, PLAN_X0, (int32_t)(around + draw(&random, 9)), 0);
        add_instruction(s, i == INSTRUCTIONS / 2 ? PLAN_NORM : PLAN_FORWARD);
    }
    return s;
}

static void place(plan_schedule *s) {
    assert_int_equal(plan_memory(s, NULL), SIFR_OK);
}

/* Always; or from first to last; or, where it lives on, all but what is between them. */
static bool is_there(const plan_schedule *s, size_t b, int32_t at) {
    const plan_buffer *buffer = &s->buffers[b];
    if (buffer->tier != PLAN_DEVICE) return false;
    if (buffer->first < 0) return true;
    if (buffer->last < 0) return false;
    if (buffer->last < buffer->first) return at >= buffer->first || at <= buffer->last;
    return at >= buffer->first && at <= buffer->last;
}

/* What a buffer of a device takes: whole lines, none where it is empty. */
static int64_t bytes_of(const plan_schedule *s, size_t b) {
    return base_ceil_to(s->buffers[b].bytes, PLAN_ALIGNMENT);
}

/* Those of some bytes that are there at an instruction. */
static size_t find_live(const plan_schedule *s, int32_t at, size_t live[MOST]) {
    size_t count = 0;
    assert_true(s->buffer_count <= MOST);
    for (size_t b = 0; b < s->buffer_count; b++)
        if (is_there(s, b, at) && s->buffers[b].bytes > 0) live[count++] = b;
    return count;
}

static void check_apart(const plan_schedule *s, int32_t at) {
    size_t live[MOST], count = find_live(s, at, live);
    for (size_t i = 0; i < count; i++) {
        int64_t begin = s->buffers[live[i]].offset, end = begin + bytes_of(s, live[i]);
        assert_int_equal(begin % PLAN_ALIGNMENT, 0);
        assert_true(begin >= 0);
        assert_true(end <= s->total_bytes);
        for (size_t j = 0; j < i; j++) {
            int64_t other = s->buffers[live[j]].offset;
            if (begin < other + bytes_of(s, live[j]) && other < end)
                fail_msg("buffers %zu and %zu overlap at #%d", live[j], live[i], (int)at);
        }
    }
}

/* The sums of every instruction, by class: the largest are those that plan_place recorded. */
static void check_peak(const plan_schedule *s) {
    int64_t most = -1, largest[PLAN_CLASSES] = {0}, at_peak[PLAN_CLASSES] = {0};
    for (int32_t i = 0; i < (int32_t)s->instruction_count; i++) {
        size_t live[MOST], count = find_live(s, i, live);
        int64_t here[PLAN_CLASSES] = {0}, sum = 0;
        for (size_t n = 0; n < count; n++) {
            here[s->buffers[live[n]].class] += bytes_of(s, live[n]);
            sum += bytes_of(s, live[n]);
        }
        for (int c = 0; c < PLAN_CLASSES; c++) largest[c] = base_max_i64(largest[c], here[c]);
        if (i == s->peak_instruction) memcpy(at_peak, here, sizeof here);
        most = base_max_i64(most, sum);
    }
    int64_t recorded = 0;
    for (int c = 0; c < PLAN_CLASSES; c++) {
        recorded += s->peak_bytes[c];
        assert_int_equal(s->largest_bytes[c], largest[c]);
        if (s->peak_instruction >= 0) assert_int_equal(s->peak_bytes[c], at_peak[c]);
    }
    assert_int_equal(recorded, most);
    assert_true(s->total_bytes >= most);
}

static void check_places(const plan_schedule *s) {
    for (int32_t i = 0; i < (int32_t)s->instruction_count; i++) check_apart(s, i);
    check_peak(s);
}

static void any_lists(void **state) {
    (void)state;
    double taken = 0, least = 0;
    for (uint64_t seed = 1; seed <= LISTS; seed++) {
        plan_schedule *s = any_list(seed);
        place(s);
        check_places(s);
        taken += (double)s->total_bytes;
        for (int c = 0; c < PLAN_CLASSES; c++) least += (double)s->peak_bytes[c];
        plan_free(s);
    }
    assert_true(taken < 1.2 * least); /* gaps there are, but few */
}

static bool uses(const plan_schedule *s, int32_t at, int32_t buffer) {
    const plan_instruction *in = &s->instructions[at];
    for (int32_t o = in->first_operand; o < in->first_operand + in->operands; o++)
        if (s->operands[o].buffer == buffer) return true;
    return false;
}

/* From the first use to the last one; what nobody uses never lives. */
static void lives(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= LISTS; seed++) {
        plan_schedule *s = any_list(seed);
        plan_find_lives(s);
        plan_find_lives(s); /* what was found before does not count */
        for (int32_t b = 0; b < (int32_t)s->buffer_count; b++) {
            int32_t first = INT32_MAX, last = -1;
            for (int32_t i = 0; i < INSTRUCTIONS; i++) {
                if (!uses(s, i, b)) continue;
                first = (int32_t)base_min_i64(first, i);
                last = i;
            }
            bool always = s->buffers[b].first < 0, away = s->buffers[b].tier == PLAN_NVME;
            if (!always) assert_int_equal(s->buffers[b].first, first);
            assert_int_equal(s->buffers[b].last, always ? INT32_MAX : last);
            assert_int_equal(plan_comes_and_goes(s, b), !always && !away && last >= 0);
        }
        plan_free(s);
    }
}

/* Another list of the same makes the same places, and so does placing twice. */
static void the_same_places(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= LISTS; seed++) {
        plan_schedule *s = any_list(seed), *again = any_list(seed);
        place(s);
        place(again);
        place(again);
        assert_int_equal(s->total_bytes, again->total_bytes);
        assert_int_equal(s->nvme_bytes, again->nvme_bytes);
        for (size_t b = 0; b < s->buffer_count; b++)
            assert_int_equal(s->buffers[b].offset, again->buffers[b].offset);
        plan_free(s);
        plan_free(again);
    }
}

/* A gradient that the next step still reads is in nobody's way there. */
static void over_the_end_of_the_step(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= LISTS; seed++) {
        plan_schedule *s = any_list(seed);
        plan_find_lives(s);
        for (int i = 0; i < 3; i++) {
            plan_buffer *on =
                &s->buffers[list_case_buffer(s, PLAN_GRADIENTS, 5000 + 999 * i, false)];
            on->first = INSTRUCTIONS - 15 + 4 * i;
            on->last = 20 - 6 * i;
        }
        assert_int_equal(plan_place(s, NULL), SIFR_OK);
        check_places(s);
        plan_free(s);
    }
}

static void an_empty_list(void **state) {
    (void)state;
    plan_schedule *s = list_case_empty();
    s->total_bytes = s->nvme_bytes = s->host_bytes = 1;
    place(s);
    assert_int_equal(s->total_bytes + s->nvme_bytes + s->host_bytes, 0);
    int32_t only = list_case_buffer(s, PLAN_PARAMETERS, 257, true);
    place(s);
    assert_int_equal(s->buffers[only].offset, 0);
    assert_int_equal(s->total_bytes, 512);
    assert_int_equal(s->peak_bytes[PLAN_PARAMETERS], 512);
    assert_int_equal(s->peak_instruction, -1); /* it is there always */
    plan_free(s);
}

/* Lists as the planner makes them: gathered, on disk, delayed. */
static void real_plans(void **state) {
    (void)state;
    for (int variant = 0; variant < 8; variant++) {
        sifr_tier tier = variant & 1 ? SIFR_TIER_NVME : SIFR_TIER_NONE;
        plan_settings settings = disk_plan_settings(
            variant & 2 ? 4 : 1, 3, variant & 4 ? SIFR_BF16 : SIFR_FP32, disk_plan_all_on(tier));
        if (variant & 4) settings = disk_plan_state_settings(2, variant & 2, SIFR_BF16);
        plan_schedule *s = disk_plan_lower(&settings);
        check_places(s);
        plan_free(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_lists),       cmocka_unit_test(lives),
        cmocka_unit_test(the_same_places), cmocka_unit_test(over_the_end_of_the_step),
        cmocka_unit_test(an_empty_list),   cmocka_unit_test(real_plans)};
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}
