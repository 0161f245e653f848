/* Best-fit packing: the same sequences as TRL's, and what holds for any rows. */
#include <jansson.h>

#include "support/scratch.h"

#include "base/heap.h"
#include "data/chat/chat_packs.h"

static json_t *read_golden(void) {
    char path[BASE_PATH_LENGTH];
    const char *source = getenv("SOURCE");
    json_error_t error;
    snprintf(path, sizeof path, "%s/tests/golden/packs.json", source ? source : ".");
    json_t *golden = json_load_file(path, 0, &error);
    if (!golden) fail_msg("%s: %s", path, error.text);
    return golden;
}

static data_chat_packs make(const int64_t *lengths, int64_t count, int64_t capacity) {
    data_chat_packs packs;
    sifr_error error = {0};
    if (data_chat_packs_make(lengths, count, capacity, &packs, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    return packs;
}

static void as_trl(void **state) {
    (void)state;
    json_t *golden = read_golden(), *cases = json_object_get(golden, "cases");
    assert_true(json_array_size(cases) >= 5);
    for (size_t c = 0; c < json_array_size(cases); c++) {
        const json_t *item = json_array_get(cases, c), *given = json_object_get(item, "lengths");
        const json_t *want = json_object_get(item, "packs");
        int64_t lengths[256], count = (int64_t)json_array_size(given);
        for (int64_t i = 0; i < count; i++)
            lengths[i] = json_integer_value(json_array_get(given, (size_t)i));
        data_chat_packs have =
            make(lengths, count, json_integer_value(json_object_get(item, "room")));
        assert_int_equal(have.count, json_array_size(want));
        for (int64_t p = 0; p < have.count; p++) {
            const json_t *rows = json_array_get(want, (size_t)p);
            assert_int_equal(have.starts[p + 1] - have.starts[p], json_array_size(rows));
            for (size_t i = 0; i < json_array_size(rows); i++)
                assert_int_equal(have.rows[have.starts[p] + (int64_t)i],
                                 json_integer_value(json_array_get(rows, i)));
        }
        data_chat_packs_free(&have);
    }
    json_decref(golden);
}

/* Each row once, no sequence too long, and no two that would fit into one. */
static void any_rows(void **state) {
    (void)state;
    enum { ROWS = 3000 };
    static int64_t lengths[ROWS], seen[ROWS], used[ROWS];
    uint32_t x = 1;
    for (int64_t capacity = 1; capacity < 700; capacity = capacity * 3 + 1) {
        for (int i = 0; i < ROWS; i++) {
            x = x * 1664525 + 1013904223;
            lengths[i] = 1 + (int64_t)(x >> 8) % capacity;
        }
        data_chat_packs packs = make(lengths, ROWS, capacity);
        memset(seen, 0, sizeof seen);
        memset(used, 0, sizeof used);
        int64_t least = INT64_MAX, second = INT64_MAX;
        for (int64_t p = 0; p < packs.count; p++) {
            assert_true(packs.starts[p] < packs.starts[p + 1]);
            for (int64_t i = packs.starts[p]; i < packs.starts[p + 1]; i++) {
                seen[packs.rows[i]]++;
                used[p] += lengths[packs.rows[i]];
            }
            assert_true(used[p] <= capacity);
            if (used[p] < least)
                second = least, least = used[p];
            else if (used[p] < second)
                second = used[p];
        }
        assert_int_equal(packs.starts[packs.count], ROWS);
        for (int i = 0; i < ROWS; i++) assert_int_equal(seen[i], 1);
        assert_true(packs.count == 1 || least + second > capacity);
        data_chat_packs_free(&packs);
    }
    data_chat_packs none = make(lengths, 0, 10);
    assert_int_equal(none.count, 0);
    data_chat_packs_free(&none);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_trl), cmocka_unit_test(any_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
