/* The regular expressions of splitting patterns: what they match, what is refused and where, and
 * that no pattern takes more than bounded time.
 * sanitizers in the soak alone: what is hostile has a test of its own */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "text/tokenizer/tokenizer_regex.h"

static text_regex *compile(const char *pattern) {
    text_regex *regex = NULL;
    sifr_error error = {0};
    if (text_regex_compile(pattern, "input", &regex, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    return regex;
}

/* All matches, each with a | behind it. */
static void matches(const char *pattern, const char *text, const char *want) {
    text_regex *regex = compile(pattern);
    text_regex_state state = {.budget = text_regex_budget(strlen(text))};
    const uint8_t *begin = (const uint8_t *)text, *end = begin + strlen(text), *start, *stop;
    char got[256] = "";
    for (const uint8_t *at = begin;; at = stop) {
        assert_int_equal(text_regex_find(regex, &state, begin, at, end, &start, &stop, NULL),
                         SIFR_OK);
        if (!start) break;
        strncat(got, (const char *)start, (size_t)(stop - start));
        strcat(got, "|");
    }
    if (strcmp(got, want) != 0) fail_msg("/%s/ on '%s': %s, not %s", pattern, text, got, want);
    free(state.frames);
    text_regex_free(regex);
}

static void meaning(void **state) {
    (void)state;
    matches("a", "banana", "a|a|a|");
    matches("an|ana|nan", "banana", "an|an|");
    matches("ana|an", "banana", "ana|");
    matches("a*b", "aab b ab", "aab|b|ab|");
    matches("a+?", "aaa", "a|a|a|");
    matches("a{2}", "aaaaa", "aa|aa|");
    matches("a{2,}", "aaaaa a", "aaaaa|");
    matches("a{,2}b", "aaab", "aab|");
    matches("a{2,3}?", "aaaaa", "aa|aa|");
    matches("a{x", "a{x", "a{x|"); /* the brace is a character */
    matches("(?:ab){1,2}c", "abababc", "ababc|");
    matches("(ab|a)(bc)?c", "abc abbcc", "abc|abbcc|");
    matches("a++b|a", "aaab aa", "aaab|a|a|");
    matches("(?>a+)ab|c", "aaabc", "c|");
    matches("(?:ab)++abc|x", "ababcx", "x|");
    matches("a?+ab|b", "ab", "b|");
    matches("(?i:ab)c", "ABc abC aBc", "ABc|aBc|");
    matches("(?i)ab|cd", "AB Cd", "AB|Cd|");
    matches("(?i:'s)x?", "'S 's '\xC5\xBFx", "'S|'s|'\xC5\xBFx|");
    matches("(?i:[a-c\xC3\xA9])+", "AbC\xC3\x89", "AbC\xC3\x89|");
    matches("\\s+(?!\\S)|\\s", "a  b   ", " | |   |");
    matches("a(?=b)", "ab ac", "a|");
    matches("[^a\\s]+", "ab cab", "b|c|b|");
    matches("[\\]\\-x]+", "a]-x", "]-x|");
    matches("[]a]+", "]a", "]a|");
    matches("[a-]+", "-a", "-a|");
    matches("[^(\\s|[.,!])]+", "ab (c|d.", "ab|c|d|");
    matches("[[^a]b]", "abc", "b|c|");
    matches("\\p{Lu}\\p{Ll}*", "Ab\xC3\x89t x", "Ab|\xC3\x89t|");
    matches("\\P{L}|\\p{^N}", "1a", "1|a|");
    matches("\\p{Han}+", "a\xE5\xA4\xA9\xE5\x9C\xB0!", "\xE5\xA4\xA9\xE5\x9C\xB0|");
    matches("\\d+\\D", "12a", "12a|");
    matches("\\w+\\W", "ab_1 c", "ab_1 |");
    matches("\\x41\\x{e9}\\u4e2d", "A\xC3\xA9\xE4\xB8\xAD", "A\xC3\xA9\xE4\xB8\xAD|");
    matches("^a|b$", "a\nab\nb", "a|a|b|b|");
    matches("\\Aa|a\\z", "aaa", "a|a|");
    matches(".+", "ab\ncd", "ab|cd|");
    matches("\\.\\+\\\\", "a.+\\", ".+\\|");
    matches("\xE5\xA4\xA9?!", "\xE5\xA4\xA9!", "\xE5\xA4\xA9!|");
    matches("\\s+$", "  a \n b  ", " |  |");
}

static void refusals(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *part;
    } cases[] = {
        {"", "nothing"},
        {"a*", "may be empty"},
        {"a|", "may be empty"},
        {"^", "may be empty"},
        {"(?=a)", "may be empty"},
        {"(a", "without an end at byte 0"},
        {"a)", "parenthesis too many at byte 1"},
        {"[a", "class without an end at byte 0"},
        {"x[", "at byte 1"},
        {"[b-a]", "range"},
        {"[a-\\d]", "range"},
        {"[a&&b]", "intersection"},
        {"[[:alpha:]]", "POSIX"},
        {"*a", "repeat of nothing at byte 0"},
        {"a**b?*?+c{2}(?:)*", "empty"},
        {"^*a", "anchor"},
        {"(?<=a)b", "another kind at byte 0"},
        {"(?<name>b)", "another kind"},
        {"(?-i:b)", "another kind"},
        {"(a)\\1", "letter or digit at byte 3"},
        {"\\", "backslash at its end"},
        {"\\b", "letter or digit"},
        {"\\R", "letter or digit"},
        {"\\pL", "braces"},
        {"\\p{L", "braces"},
        {"\\p{Greek}", "general categories"},
        {"\\x{110000}", "no character"},
        {"\\ud800", "no character"},
        {"\\u12", "no character"},
        {"\\x{12", "unfinished"},
        {"a{1001}", "bounds"},
        {"a{3,2}", "bounds"},
        {"(?:(?:ab){1000}){1000}", "4,096 steps"},
        {"((((((((((((((((((((((((((a))))))))))))))))))))))))))", "too deep"},
        {"[[[[[[[[[[[[[[[[[[[[[[[[[[a]]]]]]]]]]]]]]]]]]]]]]]]]]", "too deep"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text_regex *regex = NULL;
        sifr_error error = {0};
        if (text_regex_compile(cases[i].pattern, "input", &regex, &error) != SIFR_USAGE)
            fail_msg("/%s/ is not refused", cases[i].pattern);
        if (!strstr(error.message, cases[i].part) || strchr(error.message, '\n'))
            fail_msg("no '%s' in: %s", cases[i].part, error.message);
    }
}

static void cuts(void **state) {
    (void)state;
    static const struct {
        const char *pattern;
        bool safe, ends;
    } cases[] = {
        {"\\s?\\p{L}+|\\s+", true, true},
        {"\\p{L}+ |\\s", false, false},
        {"[\\r\\n]", true, false},
        {"\\w+(?=\\W)", false, true},
        {"\\w+$|\\w", false, true},
        {"^\\w|\\w", false, true},
        {"\\s+(?!\\S)|\\s+|\\S+", true, true},
        {"\\S+(?!\\S)|\\S", true, true},
        {"a(?:b c)?|\\w", false, true},
        {"(?>\\w+) ?|x", false, false},
        {".+", false, false},
        {"\\w\\s+$|\\w+", false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text_regex *regex = compile(cases[i].pattern);
        if (text_regex_cut_is_safe(regex) != cases[i].safe ||
            text_regex_ends_at_blank(regex) != cases[i].ends)
            fail_msg("/%s/: safe %d, ends %d", cases[i].pattern, text_regex_cut_is_safe(regex),
                     text_regex_ends_at_blank(regex));
        text_regex_free(regex);
    }
}

/* Patterns that backtrack without end, and runs of which every beginning fails. */
static void bounded(void **state) {
    (void)state;
    static const struct {
        const char *pattern;
        char fill, last;
        sifr_status status;
    } cases[] = {
        {"(?:a+)+b", 'a', 'c', SIFR_FAILED},
        {"(?:a|a)+b", 'a', 'c', SIFR_FAILED},
        {"(?:a?a?)+?b|c", 'a', 'd', SIFR_USAGE},
        {"\\s+$", ' ', 'x', SIFR_OK},
        {"\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", ' ', 'x', SIFR_OK},
        {"a++b", 'a', 'c', SIFR_OK},
    };
    size_t size = 100000;
    uint8_t *text = malloc(size);
    assert_non_null(text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text_regex *regex = NULL;
        text_regex_state s = {.budget = text_regex_budget(size)};
        const uint8_t *start = text, *stop;
        sifr_error error = {0};
        memset(text, cases[i].fill, size);
        text[size - 1] = (uint8_t)cases[i].last;
        sifr_status status = text_regex_compile(cases[i].pattern, "input", &regex, &error);
        for (const uint8_t *at = text; status == SIFR_OK && start; at = stop)
            status = text_regex_find(regex, &s, text, at, text + size, &start, &stop, &error);
        if (status != cases[i].status) fail_msg("/%s/: %d", cases[i].pattern, (int)status);
        if (status == SIFR_FAILED) assert_non_null(strstr(error.message, "takes too long"));
        free(s.frames);
        text_regex_free(regex);
    }
    free(text);
}

static double processor_seconds(void) {
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6;
}

/* A set of characters is made once, however often the pattern has it: each looks at all of
 * Unicode. And the sets that are written in another way each time are counted. */
static void long_patterns(void **state) {
    (void)state;
    enum { LETTERS = 4000 };
    char pattern[LETTERS + 8] = "(?i)";
    text_regex *regex = NULL;
    sifr_error error = {0};
    double start = processor_seconds();
    for (size_t i = 0; i < LETTERS; i++) pattern[4 + i] = (char)('a' + i % 26);
    pattern[4 + LETTERS] = 0;
    text_regex_free(compile(pattern));
    assert_true(processor_seconds() - start < 3);
    pattern[0] = 0;
    for (int i = 0; i < 300; i++) { /* one set, [abcd…], said in 300 ways */
        char set[16];
        snprintf(set, sizeof set, "[%c%c%c%ca-f]", 'a' + i % 6, 'a' + i / 6 % 6, 'a' + i / 36 % 6,
                 'a' + i / 216);
        strcat(pattern, set);
    }
    assert_int_equal(text_regex_compile(pattern, "input", &regex, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "more than 256 ways to write a set"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(meaning), cmocka_unit_test(refusals),
                                       cmocka_unit_test(cuts), cmocka_unit_test(bounded),
                                       cmocka_unit_test(long_patterns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
