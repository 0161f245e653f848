/* Tests: what stands behind `is`. */
#include "text/template/template_internal.h"

#define TEST(name)                                                                                 \
    static sifr_status name(text_render *r, text_value self, const text_value *arguments,          \
                            text_value *out)
/* A test that looks at the kind alone. */
#define KIND_TEST(name, truth)                                                                     \
    TEST(name) {                                                                                   \
        (void)r;                                                                                   \
        (void)arguments;                                                                           \
        *out = text_of_bool(truth);                                                                \
        return SIFR_OK;                                                                            \
    }

KIND_TEST(test_defined, self.kind != TEXT_UNDEFINED)
KIND_TEST(test_undefined, self.kind == TEXT_UNDEFINED)
KIND_TEST(test_none, self.kind == TEXT_NONE)
KIND_TEST(test_boolean, self.kind == TEXT_BOOL)
KIND_TEST(test_true, self.kind == TEXT_BOOL && self.truth)
KIND_TEST(test_false, self.kind == TEXT_BOOL && !self.truth)
KIND_TEST(test_integer, self.kind == TEXT_INT)
KIND_TEST(test_float, self.kind == TEXT_FLOAT)
KIND_TEST(test_number, text_is_number(self))
KIND_TEST(test_string, self.kind == TEXT_STRING || self.kind == TEXT_SAFE)
KIND_TEST(test_mapping, self.kind == TEXT_DICT)
KIND_TEST(test_callable,
          self.kind >= TEXT_MACRO || self.kind == TEXT_LOOP || self.kind == TEXT_UNDEFINED)
KIND_TEST(test_iterable, self.kind == TEXT_STRING || self.kind == TEXT_SAFE ||
                             text_is_items(self) || self.kind == TEXT_DICT ||
                             self.kind == TEXT_UNDEFINED || self.kind == TEXT_LOOP)
KIND_TEST(test_sequence, self.kind == TEXT_STRING || self.kind == TEXT_SAFE ||
                             self.kind == TEXT_LIST || self.kind == TEXT_TUPLE ||
                             self.kind == TEXT_RANGE || self.kind == TEXT_DICT ||
                             self.kind == TEXT_UNDEFINED)

static sifr_status remainder_of(text_render *r, text_value self, int64_t by, text_value *out) {
    return text_binary(r, '%', self, text_of_int(by), out);
}

TEST(test_odd) {
    text_value rest;
    (void)arguments;
    BASE_TRY(remainder_of(r, self, 2, &rest));
    *out = text_of_bool(text_number(rest) == 1);
    return SIFR_OK;
}

TEST(test_even) {
    text_value rest;
    (void)arguments;
    BASE_TRY(remainder_of(r, self, 2, &rest));
    *out = text_of_bool(text_number(rest) == 0);
    return SIFR_OK;
}

TEST(test_divisibleby) {
    text_value rest;
    BASE_TRY(text_binary(r, '%', self, arguments[0], &rest));
    *out = text_of_bool(text_number(rest) == 0);
    return SIFR_OK;
}

static sifr_status compare(text_render *r, int op, text_value a, text_value b, text_value *out) {
    bool truth;
    BASE_TRY(text_compare(r, op, a, b, &truth));
    *out = text_of_bool(truth);
    return SIFR_OK;
}

#define COMPARE_TEST(name, op)                                                                     \
    TEST(name) {                                                                                   \
        return compare(r, (op), self, arguments[0], out);                                          \
    }

COMPARE_TEST(test_eq, TEXT_OP_EQ)
COMPARE_TEST(test_ne, TEXT_OP_NE)
COMPARE_TEST(test_lt, '<')
COMPARE_TEST(test_gt, '>')
COMPARE_TEST(test_le, TEXT_OP_LE)
COMPARE_TEST(test_ge, TEXT_OP_GE)
COMPARE_TEST(test_in, TEXT_OP_IN)

/* Python's `is`; of numbers and strings, where that is no property of a value, the same value. */
TEST(test_sameas) {
    bool same = self.kind == arguments[0].kind;
    if (same && self.kind > TEXT_STRING) {
        same = self.items == arguments[0].items;
    } else if (same) {
        BASE_TRY(text_equal(r, self, arguments[0], &same));
    }
    *out = text_of_bool(same);
    return SIFR_OK;
}

static sifr_status is_case(text_render *r, text_value self, bool upper, text_value *out) {
    text_text text;
    BASE_TRY(text_string(r, self, &text));
    *out = text_of_bool(text_is_case(text, upper));
    return text_template_charge(r, text.size / 16);
}

TEST(test_upper) {
    (void)arguments;
    return is_case(r, self, true, out);
}

TEST(test_lower) {
    (void)arguments;
    return is_case(r, self, false, out);
}

static const text_builtin tests[] = {{"!=", "other", 1, test_ne, NULL},
                                     {"<", "other", 1, test_lt, NULL},
                                     {"<=", "other", 1, test_le, NULL},
                                     {"==", "other", 1, test_eq, NULL},
                                     {">", "other", 1, test_gt, NULL},
                                     {">=", "other", 1, test_ge, NULL},
                                     {"boolean", NULL, 0, test_boolean, NULL},
                                     {"callable", NULL, 0, test_callable, NULL},
                                     {"defined", NULL, 0, test_defined, NULL},
                                     {"divisibleby", "num", 1, test_divisibleby, NULL},
                                     {"eq", "other", 1, test_eq, NULL},
                                     {"equalto", "other", 1, test_eq, NULL},
                                     {"even", NULL, 0, test_even, NULL},
                                     {"false", NULL, 0, test_false, NULL},
                                     {"float", NULL, 0, test_float, NULL},
                                     {"ge", "other", 1, test_ge, NULL},
                                     {"greaterthan", "other", 1, test_gt, NULL},
                                     {"gt", "other", 1, test_gt, NULL},
                                     {"in", "seq", 1, test_in, NULL},
                                     {"integer", NULL, 0, test_integer, NULL},
                                     {"iterable", NULL, 0, test_iterable, NULL},
                                     {"le", "other", 1, test_le, NULL},
                                     {"lessthan", "other", 1, test_lt, NULL},
                                     {"lower", NULL, 0, test_lower, NULL},
                                     {"lt", "other", 1, test_lt, NULL},
                                     {"mapping", NULL, 0, test_mapping, NULL},
                                     {"ne", "other", 1, test_ne, NULL},
                                     {"none", NULL, 0, test_none, NULL},
                                     {"number", NULL, 0, test_number, NULL},
                                     {"odd", NULL, 0, test_odd, NULL},
                                     {"sameas", "other", 1, test_sameas, NULL},
                                     {"sequence", NULL, 0, test_sequence, NULL},
                                     {"string", NULL, 0, test_string, NULL},
                                     {"true", NULL, 0, test_true, NULL},
                                     {"undefined", NULL, 0, test_undefined, NULL},
                                     {"upper", NULL, 0, test_upper, NULL}};

const text_builtin *text_test_find(text_text name, bool *known) {
    *known =
        text_text_is(name, "filter") || text_text_is(name, "test") || text_text_is(name, "escaped");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (!text_text_is(name, tests[i].name)) continue;
        *known = true;
        return &tests[i];
    }
    return NULL;
}
