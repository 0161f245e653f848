/* The map between logical and local weights, against a table of all elements, for random cuts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "model/description.h"

enum { MOST = 9, ELEMENTS = MOST * MOST };

static uint64_t drawn;

static int64_t draw(int64_t below) {
    return base_philox(7, drawn++, 0).v[0] % below;
}

/* A local weight, and the logical element of each of its elements. */
typedef struct local_case {
    model_weight w;
    int64_t rows, columns; /* logical */
    int64_t logical[ELEMENTS], count;
} local_case;

/* Up to three runs of 0 … length - 1 in any order, with gaps or without. */
static int32_t draw_runs(int64_t length, int64_t runs[MODEL_BLOCKS][2]) {
    int32_t count = 0;
    for (int64_t at = 0; at < length && count < MODEL_BLOCKS;) {
        int64_t first = at + draw(2) * draw(length - at), end = first + 1 + draw(length - first);
        int32_t place = (int32_t)draw(count + 1);
        memmove(runs + place + 1, runs + place, sizeof *runs * (size_t)(count - place));
        runs[place][0] = first, runs[place][1] = end;
        at = end, count++;
    }
    return count;
}

static local_case draw_case(void) {
    local_case c = {.rows = 1 + draw(MOST), .columns = 1 + draw(MOST)};
    int64_t runs[MODEL_BLOCKS][2];
    bool by_rows = draw(2);
    int64_t along = by_rows ? c.rows : c.columns, across = by_rows ? c.columns : c.rows;
    int64_t from = draw(2) * draw(across), to = from + 1 + draw(across - from), length = 0;
    model_cut cut = {.rows = c.rows, .columns = c.columns, .count = draw_runs(along, runs)};
    for (int32_t b = 0; b < cut.count; b++) {
        int64_t other[2] = {from, to};
        memcpy(cut.blocks[b].rows, by_rows ? runs[b] : other, sizeof other);
        memcpy(cut.blocks[b].columns, by_rows ? other : runs[b], sizeof other);
        length += runs[b][1] - runs[b][0];
    }
    c.w = (model_weight){
        .rows = by_rows ? length : to - from, .columns = by_rows ? to - from : length, .cut = cut};
    for (int64_t r = 0; r < c.w.rows; r++)
        for (int64_t k = 0; k < c.w.columns; k++) {
            int64_t inside = by_rows ? r : k, row = r + from, column = k + from;
            int32_t b = 0;
            while (inside >= runs[b][1] - runs[b][0]) inside -= runs[b][1] - runs[b][0], b++;
            if (by_rows)
                row = runs[b][0] + inside;
            else
                column = runs[b][0] + inside;
            c.logical[c.count++] = row * c.columns + column;
        }
    return c;
}

/* Of elements at … end - 1 of the logical weight, each that the local one has, in order. */
static void expect_locals(const local_case *c, int64_t at, int64_t end) {
    model_stretch s = {0};
    int64_t given = 0;
    for (int64_t e = at; e < end; e++) {
        int64_t place = 0;
        while (place < c->count && c->logical[place] != e) place++;
        if (place == c->count) continue;
        if (!given) {
            assert_true(model_local_next(&c->w, at, end, &s));
            assert_true(s.count > 0);
        }
        assert_int_equal(s.at + given, e);
        assert_int_equal(s.place + given, place);
        if (++given == s.count) at = e + 1, given = 0;
    }
    assert_int_equal(given, 0);
    assert_false(model_local_next(&c->w, at, end, &s));
}

static void expect_logicals(const local_case *c, int64_t first, int64_t end) {
    while (first < end) {
        model_stretch s = model_logical_at(&c->w, first, end);
        assert_int_equal(s.place, first);
        assert_in_range(s.count, 1, end - first);
        for (int64_t i = 0; i < s.count; i++) assert_int_equal(s.at + i, c->logical[first + i]);
        first += s.count;
    }
}

/* The spans of local elements have these and no others, in the order of their blocks. */
static void expect_spans(const local_case *c, int64_t first, int64_t count) {
    model_span spans[MODEL_BLOCKS];
    int64_t left = count, all = c->rows * c->columns;
    int32_t blocks = model_local_spans(&c->w, first, count, spans);
    assert_int_equal(blocks, c->w.cut.count);
    for (int32_t b = 0; b < blocks; b++) {
        model_stretch s;
        int64_t place = 0, from = draw(all), end = from + draw(all - from + 1), some = 0;
        assert_true(model_same_block(&spans[b].block, &c->w.cut.blocks[b]));
        for (int64_t at = 0; model_span_next(&spans[b], c->columns, at, all, &s);
             at = s.at + s.count) {
            assert_int_equal(s.place, place);
            for (int64_t i = 0; i < s.count; i++, place++) {
                int64_t local = first;
                while (local < first + count && c->logical[local] != s.at + i) local++;
                assert_true(local < first + count);
                some += s.at + i >= from && s.at + i < end;
            }
        }
        assert_int_equal(place, spans[b].count);
        left -= place;
        for (int64_t at = from; model_span_next(&spans[b], c->columns, at, end, &s);
             at = s.at + s.count) {
            assert_true(s.at >= at);
            assert_true(s.at + s.count <= end);
            some -= s.count;
        }
        assert_int_equal(some, 0);
    }
    assert_int_equal(left, 0);
}

static void any_cut(void **state) {
    (void)state;
    int32_t seen[MODEL_BLOCKS + 1] = {0};
    for (int n = 0; n < 4000; n++) {
        local_case c = draw_case();
        int64_t all = c.rows * c.columns, at = draw(all), first = draw(c.count);
        seen[c.w.cut.count]++;
        assert_int_equal(model_logical_elements(&c.w), all);
        expect_locals(&c, 0, all);
        expect_locals(&c, at, at + draw(all - at + 1));
        expect_logicals(&c, 0, c.count);
        expect_logicals(&c, first, first + 1 + draw(c.count - first));
        expect_spans(&c, 0, c.count);
        expect_spans(&c, first, draw(c.count - first + 1));
    }
    for (int b = 1; b <= MODEL_BLOCKS; b++) assert_true(seen[b] > 100);
}

/* A weight that is whole is one stretch. */
static void whole(void **state) {
    (void)state;
    model_weight w = {.rows = 5, .columns = 7};
    model_span spans[MODEL_BLOCKS];
    model_stretch s;
    assert_int_equal(model_local_spans(&w, 3, 20, spans), 1);
    assert_int_equal(model_block_elements(&spans[0].block), 35);
    assert_true(model_span_next(spans, 7, 1, 35, &s));
    assert_true(s.at == 3);
    assert_true(s.place == 0);
    assert_true(s.count == 20);
    assert_true(model_local_next(&w, 4, 9, &s));
    assert_true(s.at == 4);
    assert_true(s.place == 4);
    assert_true(s.count == 5);
    assert_false(model_local_next(&w, 9, 9, &s));
    s = model_logical_at(&w, 6, 30);
    assert_true(s.at == 6);
    assert_true(s.place == 6);
    assert_true(s.count == 24);
    assert_int_equal(model_logical_elements(&w), 35);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_cut), cmocka_unit_test(whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
