/* Tests: what stands behind `is`. */
#include "text/template/template_internal.h"

#define TEST(name)                                                                                 \
    static sifr_status name(formats_render *r, formats_value self, const formats_value *arguments, \
                            formats_value *out)
/* A test that looks at the kind alone. */
#define KIND_TEST(name, truth)                                                                     \
    TEST(name) {                                                                                   \
        (void)r;                                                                                   \
        (void)arguments;                                                                           \
        *out = formats_of_bool(truth);                                                             \
        return SIFR_OK;                                                                            \
    }

KIND_TEST(test_defined, self.kind != FORMATS_UNDEFINED)
KIND_TEST(test_undefined, self.kind == FORMATS_UNDEFINED)
KIND_TEST(test_none, self.kind == FORMATS_NONE)
KIND_TEST(test_boolean, self.kind == FORMATS_BOOL)
KIND_TEST(test_true, self.kind == FORMATS_BOOL && self.truth)
KIND_TEST(test_false, self.kind == FORMATS_BOOL && !self.truth)
KIND_TEST(test_integer, self.kind == FORMATS_INT)
KIND_TEST(test_float, self.kind == FORMATS_FLOAT)
KIND_TEST(test_number, formats_is_number(self))
KIND_TEST(test_string, self.kind == FORMATS_STRING || self.kind == FORMATS_SAFE)
KIND_TEST(test_mapping, self.kind == FORMATS_DICT)
KIND_TEST(test_callable,
          self.kind >= FORMATS_MACRO || self.kind == FORMATS_LOOP || self.kind == FORMATS_UNDEFINED)
KIND_TEST(test_iterable, self.kind == FORMATS_STRING || self.kind == FORMATS_SAFE ||
                             formats_is_items(self) || self.kind == FORMATS_DICT ||
                             self.kind == FORMATS_UNDEFINED || self.kind == FORMATS_LOOP)
KIND_TEST(test_sequence, self.kind == FORMATS_STRING || self.kind == FORMATS_SAFE ||
                             self.kind == FORMATS_LIST || self.kind == FORMATS_TUPLE ||
                             self.kind == FORMATS_RANGE || self.kind == FORMATS_DICT ||
                             self.kind == FORMATS_UNDEFINED)

static sifr_status remainder_of(formats_render *r, formats_value self, int64_t by,
                                formats_value *out) {
    return formats_binary(r, '%', self, formats_of_int(by), out);
}

TEST(test_odd) {
    formats_value rest;
    (void)arguments;
    BASE_TRY(remainder_of(r, self, 2, &rest));
    *out = formats_of_bool(formats_number(rest) == 1);
    return SIFR_OK;
}

TEST(test_even) {
    formats_value rest;
    (void)arguments;
    BASE_TRY(remainder_of(r, self, 2, &rest));
    *out = formats_of_bool(formats_number(rest) == 0);
    return SIFR_OK;
}

TEST(test_divisibleby) {
    formats_value rest;
    BASE_TRY(formats_binary(r, '%', self, arguments[0], &rest));
    *out = formats_of_bool(formats_number(rest) == 0);
    return SIFR_OK;
}

static sifr_status compare(formats_render *r, int op, formats_value a, formats_value b,
                           formats_value *out) {
    bool truth;
    BASE_TRY(formats_compare(r, op, a, b, &truth));
    *out = formats_of_bool(truth);
    return SIFR_OK;
}

#define COMPARE_TEST(name, op)                                                                     \
    TEST(name) {                                                                                   \
        return compare(r, (op), self, arguments[0], out);                                          \
    }

COMPARE_TEST(test_eq, FORMATS_OP_EQ)
COMPARE_TEST(test_ne, FORMATS_OP_NE)
COMPARE_TEST(test_lt, '<')
COMPARE_TEST(test_gt, '>')
COMPARE_TEST(test_le, FORMATS_OP_LE)
COMPARE_TEST(test_ge, FORMATS_OP_GE)
COMPARE_TEST(test_in, FORMATS_OP_IN)

/* Python's `is`; of numbers and strings, where that is no property of a value, the same value. */
TEST(test_sameas) {
    bool same = self.kind == arguments[0].kind;
    if (same && self.kind > FORMATS_STRING) {
        same = self.items == arguments[0].items;
    } else if (same) {
        BASE_TRY(formats_equal(r, self, arguments[0], &same));
    }
    *out = formats_of_bool(same);
    return SIFR_OK;
}

static sifr_status is_case(formats_render *r, formats_value self, bool upper, formats_value *out) {
    formats_text text;
    BASE_TRY(formats_string(r, self, &text));
    *out = formats_of_bool(formats_is_case(text, upper));
    return formats_template_charge(r, text.size / 16);
}

TEST(test_upper) {
    (void)arguments;
    return is_case(r, self, true, out);
}

TEST(test_lower) {
    (void)arguments;
    return is_case(r, self, false, out);
}

static const formats_builtin tests[] = {{"!=", "other", 1, test_ne, NULL},
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

const formats_builtin *formats_test_find(formats_text name, bool *known) {
    *known = formats_text_is(name, "filter") || formats_text_is(name, "test") ||
             formats_text_is(name, "escaped");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (!formats_text_is(name, tests[i].name)) continue;
        *known = true;
        return &tests[i];
    }
    return NULL;
}
