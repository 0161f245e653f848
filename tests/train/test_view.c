/* What `sifr report` reads and writes: records and lines as they may lie in a log, thinning that
 * loses no peak, texts that are no markup.
 * in test_asan */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "support/scratch.h"
#include "train/view/html.h"
#include "train/view/view_lines.h"
#include "train/view/view_record.h"
#include "train/view/view_series.h"

static bool reads(const char *line, train_view_record *out) {
    return train_view_record_read(line, strlen(line), out);
}

static void records_are_flat_objects(void **state) {
    (void)state;
    static const char *const bad[] = {"",
                                      "{}",
                                      "[]",
                                      "{\"loss\":1}",
                                      "{\"step\":-1}",
                                      "{\"step\":1.5}",
                                      "{\"step\":1e300}",
                                      "{\"step\":null}",
                                      "{\"step\":1",
                                      "{\"step\":1}x",
                                      "{\"step\":1,}",
                                      "{\"step\":1,\"a\":{}}",
                                      "{\"step\":1,\"a\":-}",
                                      "{\"step\":1,\"a\":1.}",
                                      "{\"step\":1,\"a\":1e}",
                                      "{\"step\":1,\"a\":NaN}",
                                      "{\"step\":1,\"a\\"};
    train_view_record record;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(reads(bad[i], &record));
    assert_true(
        reads(" { \"step\" : 7 , \"a\":\"x\\\"y\",\"b\":true,\"c\":null,\"d\":2 } ", &record));
    assert_int_equal(record.step, 7);
    assert_int_equal(record.count, 2);
    assert_true(isnan(record.fields[0].value));
    assert_int_equal(record.fields[1].length, 1);
    assert_true(record.fields[1].value == 2);
}

/* To the last bit what strtod reads. */
static void numbers_are_exact(void **state) {
    (void)state;
    static const char *const texts[] = {"0",
                                        "-0",
                                        "5.67333428",
                                        "0.007330971",
                                        "1e-05",
                                        "1.25e+300",
                                        "4e-324",
                                        "123456789e15",
                                        "1e23",
                                        "9007199254740993",
                                        "0.1234567890123456789012345",
                                        "-2.2250738585072011e-308"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char line[128];
        train_view_record record;
        snprintf(line, sizeof line, "{\"step\":1,\"a\":%s}", texts[i]);
        double want = strtod(texts[i], NULL);
        assert_true(reads(line, &record));
        assert_memory_equal(&record.fields[0].value, &want, sizeof want);
    }
}

static void thinning_keeps_peaks(void **state) {
    (void)state;
    enum { COUNT = 100000 };
    train_view_series s;
    assert_int_equal(train_view_series_open(&s, "loss", 4, 64, NULL), SIFR_OK);
    for (int i = 1; i <= COUNT; i++) {
        double value = 1 + i % 2;
        if (i == 5) value = NAN;
        if (i == 31) value = 50;
        if (i == 77777) value = -3;
        train_view_series_add(&s, i, value);
    }
    int64_t count = 0;
    bool high = false, low = false;
    assert_true(s.used <= 64 && s.used >= 32);
    for (size_t i = 0; i < s.used; i++) {
        count += s.bins[i].count;
        high = high || (s.bins[i].high == 50 && s.bins[i].high_step == 31);
        low = low || (s.bins[i].low == -3 && s.bins[i].low_step == 77777);
        assert_true(i == 0 || s.bins[i].low_step > s.bins[i - 1].last_step);
    }
    assert_true(high && low);
    assert_int_equal(count, COUNT - 1);
    assert_int_equal(s.count, COUNT);
    assert_int_equal(s.undefined, 1);
    assert_int_equal(s.bins[s.used - 1].last_step, COUNT);
    train_view_series_close(&s);
}

typedef struct seen {
    int lines;
    size_t longest;
} seen;

static sifr_status see(void *user, const char *line, size_t size, sifr_error *error) {
    seen *s = user;
    (void)error;
    (void)line;
    s->lines++;
    if (size > s->longest) s->longest = size;
    return SIFR_OK;
}

/* A line that is longer than the buffer, in the middle of a file, and a last one without its end.
 */
static void long_lines_are_passed_over(void **state) {
    (void)state;
    const char *path = scratch_path("log");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("first\n", file);
    for (int i = 0; i < 3 << 20; i++) fputc('x', file);
    fputs("\nsecond\n\nhalf", file);
    fclose(file);
    train_view_lines lines;
    seen s = {0};
    assert_int_equal(train_view_each_line(path, &s, see, &lines, NULL), SIFR_OK);
    assert_int_equal(s.lines, 3);
    assert_int_equal(s.longest, 6);
    assert_int_equal(lines.lines, 4);
    assert_int_equal(lines.passed, 1);
    assert_int_equal(lines.rest, 4);
}

/* Of a log and of what an editor made of it: the mark is not of the first line, and of no other is
 * it left out. */
static void a_byte_order_mark_is_no_text(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int lines;
        size_t longest;
    } logs[] = {{"\xef\xbb\xbf{}\n\n", 2, 2},
                {"{}\n\xef\xbb\xbf{}\n", 2, 5},
                {"\xef\xbb\xbf\n", 1, 0},
                {"\xef\xbb\n", 1, 2}};
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        const char *path = scratch_path("marked");
        train_view_lines lines;
        seen s = {0};
        assert_int_equal(base_write_file(path, logs[i].text, strlen(logs[i].text), NULL), SIFR_OK);
        assert_int_equal(train_view_each_line(path, &s, see, &lines, NULL), SIFR_OK);
        assert_int_equal(s.lines, logs[i].lines);
        assert_int_equal(s.longest, logs[i].longest);
        assert_int_equal(lines.rest, 0);
    }
}

static void texts_are_escaped(void **state) {
    (void)state;
    static const char text[] =
        "<a b='c'>&\"\xff\x01\xc3\xa9\xed\xa0\x80\x7f\xc2\x9b\xf0\x9f\x98\x80\xe2\x82";
    static const char bad[] = "\xef\xbf\xbd";
    char want[256], *data;
    size_t size;
    train_html html;
    const char *path = scratch_path("page");
    snprintf(want, sizeof want,
             "<p>&lt;a b=&#39;c&#39;&gt;&amp;&quot;%s%s\xc3\xa9%s%s%s%s%s%s\xf0\x9f\x98\x80%s%s",
             bad, bad, bad, bad, bad, bad, bad, bad, bad, bad);
    assert_int_equal(train_html_open(&html, path, NULL), SIFR_OK);
    train_html_put(&html, "<p>");
    train_html_text(&html, text);
    assert_int_equal(train_html_commit(&html, NULL), SIFR_OK);
    train_html_close(&html);
    assert_int_equal(base_read_file(path, 1000, &data, &size, NULL), SIFR_OK);
    assert_string_equal(data, want);
    free(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(records_are_flat_objects),
                                       cmocka_unit_test(numbers_are_exact),
                                       cmocka_unit_test(thinning_keeps_peaks),
                                       cmocka_unit_test(long_lines_are_passed_over),
                                       cmocka_unit_test(a_byte_order_mark_is_no_text),
                                       cmocka_unit_test(texts_are_escaped)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
