/* Filters of sequences and dicts. */
#include "text/template/template_internal.h"

static const text_value nothing = {.kind = TEXT_ABSENT};

#define FILTER(name)                                                                               \
    static sifr_status name(text_render *r, text_value self, const text_value *arguments,          \
                            text_value *out)

FILTER(filter_length) {
    int64_t length;
    (void)arguments;
    BASE_TRY(text_length(r, self, &length));
    *out = text_of_int(length);
    return SIFR_OK;
}

static sifr_status copy_items(text_render *r, text_value v, text_value *out) {
    text_items *items;
    BASE_TRY(text_iterate(r, v, &items));
    BASE_TRY(text_new_items(r, TEXT_LIST, items->count, out));
    for (size_t i = 0; i < items->count; i++)
        BASE_TRY(text_append(r, out->items, items->values[i]));
    return SIFR_OK;
}

FILTER(filter_list) {
    (void)arguments;
    return copy_items(r, self, out);
}

FILTER(filter_first) {
    text_items *items;
    (void)arguments;
    BASE_TRY(text_iterate(r, self, &items));
    *out =
        items->count ? items->values[0] : text_undefined(text_literal("the first item of nothing"));
    return SIFR_OK;
}

FILTER(filter_last) {
    text_items *items;
    (void)arguments;
    if (self.kind == TEXT_GENERATOR)
        return text_template_fail(&r->place, "last needs a list; write | list | last");
    BASE_TRY(text_iterate(r, self, &items));
    *out = items->count ? items->values[items->count - 1]
                        : text_undefined(text_literal("the last item of nothing"));
    return SIFR_OK;
}

FILTER(filter_join) {
    text_items *items;
    text_builder b = {0};
    text_text between = {"", 0};
    BASE_TRY(text_iterate(r, self, &items));
    if (arguments[0].kind != TEXT_ABSENT) BASE_TRY(text_string(r, arguments[0], &between));
    for (size_t i = 0; i < items->count; i++) {
        text_value v;
        BASE_TRY(text_path(r, items->values[i], arguments[1], nothing, &v));
        if (i) BASE_TRY(text_build(r, &b, between.bytes, between.size));
        BASE_TRY(text_print(r, &b, v));
        BASE_TRY(text_template_charge(r, 1));
    }
    *out = text_of_text(text_built(&b));
    return SIFR_OK;
}

FILTER(filter_reverse) {
    text_items *items;
    const text_value whole[3] = {
        {.kind = TEXT_ABSENT}, {.kind = TEXT_ABSENT}, {.kind = TEXT_INT, .integer = -1}};
    (void)arguments;
    if (self.kind == TEXT_STRING) return text_slice(r, self, whole, out);
    BASE_TRY(text_iterate(r, self, &items));
    BASE_TRY(text_new_items(r, TEXT_GENERATOR, items->count, out));
    for (size_t i = items->count; i-- > 0;) BASE_TRY(text_append(r, out->items, items->values[i]));
    return SIFR_OK;
}

static sifr_status pairs(text_render *r, const text_dict *dict, text_value_kind kind,
                         text_value *out) {
    BASE_TRY(text_new_items(r, kind, dict->count, out));
    for (size_t i = 0; i < dict->count; i++) {
        text_value pair;
        BASE_TRY(text_pair(r, dict->keys[i], dict->values[i], &pair));
        BASE_TRY(text_append(r, out->items, pair));
    }
    return SIFR_OK;
}

FILTER(filter_items) {
    (void)arguments;
    if (self.kind == TEXT_UNDEFINED) return text_new_items(r, TEXT_GENERATOR, 0, out);
    if (self.kind == TEXT_DICT) return pairs(r, self.dict, TEXT_GENERATOR, out);
    return text_template_fail(&r->place, "items of a value of type %s", text_kind_name(self));
}

/* ---- sorting ---- */

static sifr_status fold(text_render *r, text_value *v) {
    if (v->kind != TEXT_STRING) return SIFR_OK;
    return text_change_case(r, v->text, TEXT_LOWER, &v->text);
}

FILTER(filter_dictsort) {
    bool by_value = false, sensitive = text_truth(arguments[0]);
    text_value keys;
    text_text by;
    if (self.kind != TEXT_DICT)
        return text_template_fail(&r->place, "dictsort of a value of type %s",
                                  text_kind_name(self));
    if (arguments[1].kind != TEXT_ABSENT) {
        BASE_TRY(text_want_text(r, arguments[1], "dictsort's by", &by));
        by_value = text_text_is(by, "value");
        if (!by_value && !text_text_is(by, "key"))
            return text_template_fail(&r->place, "dictsort: by must be key or value");
    }
    BASE_TRY(pairs(r, self.dict, TEXT_LIST, out));
    BASE_TRY(text_new_items(r, TEXT_LIST, self.dict->count, &keys));
    for (size_t i = 0; i < self.dict->count; i++) {
        text_value key = by_value ? self.dict->values[i] : self.dict->keys[i];
        if (!sensitive) BASE_TRY(fold(r, &key));
        BASE_TRY(text_append(r, keys.items, key));
    }
    return text_sort(r, out->items->values, keys.items->values, self.dict->count,
                     text_truth(arguments[2]));
}

/* The key of an item: one part for each of the attributes that commas divide. */
static sifr_status sort_key(text_render *r, text_value item, text_value attribute, bool sensitive,
                            text_value *out) {
    text_value part;
    BASE_TRY(text_new_items(r, TEXT_LIST, 1, out));
    if (attribute.kind != TEXT_STRING) {
        BASE_TRY(text_path(r, item, attribute, nothing, &part));
        if (!sensitive) BASE_TRY(fold(r, &part));
        return text_append(r, out->items, part);
    }
    for (size_t at = 0; at <= attribute.text.size;) {
        size_t end = text_find(attribute.text, text_literal(","), at);
        if (end == SIZE_MAX) end = attribute.text.size;
        text_text path = {attribute.text.bytes + at, end - at};
        BASE_TRY(text_path(r, item, text_of_text(path), nothing, &part));
        if (!sensitive) BASE_TRY(fold(r, &part));
        BASE_TRY(text_append(r, out->items, part));
        at = end + 1;
    }
    return SIFR_OK;
}

FILTER(filter_sort) {
    text_value keys, key;
    BASE_TRY(copy_items(r, self, out));
    BASE_TRY(text_new_items(r, TEXT_LIST, out->items->count, &keys));
    for (size_t i = 0; i < out->items->count; i++) {
        BASE_TRY(sort_key(r, out->items->values[i], arguments[2], text_truth(arguments[1]), &key));
        BASE_TRY(text_append(r, keys.items, key));
    }
    return text_sort(r, out->items->values, keys.items->values, out->items->count,
                     text_truth(arguments[0]));
}

static sifr_status one_key(text_render *r, text_value item, const text_value *arguments,
                           text_value *out) {
    BASE_TRY(text_path(r, item, arguments[1], nothing, out));
    return text_truth(arguments[0]) ? SIFR_OK : fold(r, out);
}

FILTER(filter_unique) {
    text_items *items;
    text_value seen, key;
    BASE_TRY(text_iterate(r, self, &items));
    BASE_TRY(text_new_items(r, TEXT_LIST, 0, &seen));
    BASE_TRY(text_new_items(r, TEXT_GENERATOR, 0, out));
    for (size_t i = 0; i < items->count; i++) {
        bool known;
        BASE_TRY(one_key(r, items->values[i], arguments, &key));
        if (key.kind == TEXT_LIST || key.kind == TEXT_DICT)
            return text_template_fail(&r->place, "unique: a value of type %s", text_kind_name(key));
        BASE_TRY(text_contains(r, seen, key, &known));
        if (known) continue;
        BASE_TRY(text_append(r, seen.items, key));
        BASE_TRY(text_append(r, out->items, items->values[i]));
    }
    return SIFR_OK;
}

FILTER(filter_batch) {
    text_items *items;
    text_value part;
    int64_t size;
    BASE_TRY(text_want_int(r, arguments[0], "batch's linecount", &size));
    BASE_TRY(text_iterate(r, self, &items));
    BASE_TRY(text_new_items(r, TEXT_GENERATOR, 0, out));
    BASE_TRY(text_new_items(r, TEXT_LIST, 0, &part));
    for (size_t i = 0; i < items->count; i++) {
        if ((int64_t)part.items->count == size) {
            BASE_TRY(text_append(r, out->items, part));
            BASE_TRY(text_new_items(r, TEXT_LIST, 0, &part));
        }
        BASE_TRY(text_append(r, part.items, items->values[i]));
    }
    if (!part.items->count) return SIFR_OK;
    bool fills = arguments[1].kind != TEXT_ABSENT && arguments[1].kind != TEXT_NONE;
    while (fills && (int64_t)part.items->count < size)
        BASE_TRY(text_append(r, part.items, arguments[1]));
    return text_append(r, out->items, part);
}

/* The attribute that items are grouped by, as it stands, and as it is compared. */
static sifr_status group_key(text_render *r, text_value item, const text_value *arguments,
                             text_value *plain, text_value *folded) {
    bool fallback = arguments[1].kind != TEXT_ABSENT && arguments[1].kind != TEXT_NONE;
    BASE_TRY(text_path(r, item, arguments[0], fallback ? arguments[1] : nothing, plain));
    *folded = *plain;
    return text_truth(arguments[2]) ? SIFR_OK : fold(r, folded);
}

static sifr_status add_group(text_render *r, text_value grouper, text_items *groups,
                             text_value *list) {
    text_value pair;
    BASE_TRY(text_new_items(r, TEXT_LIST, 0, list));
    BASE_TRY(text_pair(r, grouper, *list, &pair));
    pair.items->group = true;
    return text_append(r, groups, pair);
}

FILTER(filter_groupby) {
    text_value sorted, keys, plain, key, list = nothing;
    BASE_TRY(copy_items(r, self, &sorted));
    BASE_TRY(text_new_items(r, TEXT_LIST, sorted.items->count, &keys));
    for (size_t i = 0; i < sorted.items->count; i++) {
        BASE_TRY(group_key(r, sorted.items->values[i], arguments, &plain, &key));
        BASE_TRY(text_append(r, keys.items, key));
    }
    BASE_TRY(text_sort(r, sorted.items->values, keys.items->values, sorted.items->count, false));
    BASE_TRY(text_new_items(r, TEXT_LIST, 0, out));
    for (size_t i = 0; i < sorted.items->count; i++) {
        bool same = false;
        text_value before = key;
        BASE_TRY(group_key(r, sorted.items->values[i], arguments, &plain, &key));
        if (i) BASE_TRY(text_equal(r, before, key, &same));
        if (!same) BASE_TRY(add_group(r, plain, out->items, &list));
        BASE_TRY(text_append(r, list.items, sorted.items->values[i]));
    }
    return SIFR_OK;
}

static sifr_status extreme(text_render *r, text_value self, const text_value *arguments, int sign,
                           text_value *out) {
    text_items *items;
    text_value best = text_none(), key;
    BASE_TRY(text_iterate(r, self, &items));
    *out = text_undefined(text_literal("the least or greatest of nothing"));
    for (size_t i = 0; i < items->count; i++) {
        int order = 1;
        BASE_TRY(one_key(r, items->values[i], arguments, &key));
        if (i) BASE_TRY(text_order(r, key, best, &order));
        if (i && order * sign <= 0) continue;
        best = key;
        *out = items->values[i];
    }
    return SIFR_OK;
}

FILTER(filter_min) {
    return extreme(r, self, arguments, -1, out);
}

FILTER(filter_max) {
    return extreme(r, self, arguments, 1, out);
}

FILTER(filter_sum) {
    text_items *items;
    BASE_TRY(text_iterate(r, self, &items));
    *out = arguments[1].kind == TEXT_ABSENT ? text_of_int(0) : arguments[1];
    if (out->kind == TEXT_STRING)
        return text_template_fail(&r->place, "sum does not join strings; use join");
    for (size_t i = 0; i < items->count; i++) {
        text_value v;
        BASE_TRY(text_path(r, items->values[i], arguments[0], nothing, &v));
        BASE_TRY(text_binary(r, '+', *out, v, out));
        BASE_TRY(text_template_charge(r, 1));
    }
    return SIFR_OK;
}

/* ---- filters that take other filters and tests ---- */

/* Jinja asks first whether there is anything: none and false have no items here. */
static sifr_status iterate_true(text_render *r, text_value v, text_items **out) {
    const text_value empty = {.kind = TEXT_UNDEFINED};
    return text_iterate(r, text_truth(v) ? v : empty, out);
}

static text_call rest_of(const text_call *call, size_t used) {
    text_call rest = *call;
    rest.values += used;
    rest.count -= used;
    return rest;
}

static sifr_status map_attribute(text_render *r, const text_items *items, const text_call *call,
                                 text_value *out) {
    text_value attribute = {.kind = TEXT_ABSENT}, fallback = attribute, v;
    for (size_t i = 0; i < call->named; i++) {
        if (text_text_is(call->names[i], "attribute"))
            attribute = call->values[i];
        else if (text_text_is(call->names[i], "default"))
            fallback = call->values[i];
        else
            return text_template_fail(&r->place, "map has no argument %.*s",
                                      (int)call->names[i].size, call->names[i].bytes);
    }
    if (attribute.kind == TEXT_ABSENT)
        return text_template_fail(&r->place, "map needs a filter or attribute=");
    for (size_t i = 0; i < items->count; i++) {
        BASE_TRY(text_path(r, items->values[i], attribute, fallback, &v));
        BASE_TRY(text_append(r, out->items, v));
    }
    return SIFR_OK;
}

static sifr_status find_function(text_render *r, text_value name, bool filter,
                                 const text_builtin **out) {
    text_text text;
    bool known;
    BASE_TRY(text_want_text(r, name, filter ? "a filter's name" : "a test's name", &text));
    *out = (filter ? text_filter_find : text_test_find)(text, &known);
    if (*out) return SIFR_OK;
    return text_template_fail(&r->place, "%s the %s \"%.*s\"",
                              known ? "not supported yet:" : "Jinja does not have",
                              filter ? "filter" : "test", (int)text.size, text.bytes);
}

static sifr_status filter_map(text_render *r, text_value self, const text_call *call,
                              text_value *out) {
    text_items *items;
    const text_builtin *function;
    text_value v;
    BASE_TRY(iterate_true(r, self, &items));
    BASE_TRY(text_new_items(r, TEXT_GENERATOR, items->count, out));
    if (call->count == 0) return map_attribute(r, items, call, out);
    text_call rest = rest_of(call, 1);
    BASE_TRY(find_function(r, call->values[0], true, &function));
    for (size_t i = 0; i < items->count; i++) {
        BASE_TRY(text_call_builtin(r, function, items->values[i], &rest, &v));
        BASE_TRY(text_append(r, out->items, v));
    }
    return SIFR_OK;
}

/* select and its kin: items, or their attributes, for which the test is `wanted`. */
static sifr_status choose(text_render *r, text_value self, const text_call *call, bool by_attribute,
                          bool wanted, text_value *out) {
    text_items *items;
    const text_builtin *test = NULL;
    text_call rest = {0};
    size_t first = by_attribute;
    text_value attribute = {.kind = TEXT_ABSENT}, v, truth;
    BASE_TRY(iterate_true(r, self, &items));
    BASE_TRY(text_new_items(r, TEXT_GENERATOR, items->count, out));
    if (by_attribute && call->count == 0)
        return text_template_fail(&r->place, "selectattr and rejectattr need an attribute");
    if (by_attribute) attribute = call->values[0];
    if (call->count > first) {
        BASE_TRY(find_function(r, call->values[first], false, &test));
        rest = rest_of(call, first + 1);
    }
    for (size_t i = 0; i < items->count; i++) {
        BASE_TRY(text_path(r, items->values[i], attribute, nothing, &v));
        truth = v;
        if (test) BASE_TRY(text_call_builtin(r, test, v, &rest, &truth));
        if (text_truth(truth) == wanted) BASE_TRY(text_append(r, out->items, items->values[i]));
    }
    return SIFR_OK;
}

static sifr_status filter_select(text_render *r, text_value self, const text_call *call,
                                 text_value *out) {
    return choose(r, self, call, false, true, out);
}

static sifr_status filter_reject(text_render *r, text_value self, const text_call *call,
                                 text_value *out) {
    return choose(r, self, call, false, false, out);
}

static sifr_status filter_selectattr(text_render *r, text_value self, const text_call *call,
                                     text_value *out) {
    return choose(r, self, call, true, true, out);
}

static sifr_status filter_rejectattr(text_render *r, text_value self, const text_call *call,
                                     text_value *out) {
    return choose(r, self, call, true, false, out);
}

const text_builtin *text_sequence_filters(size_t *count) {
    static const text_builtin rows[] = {
        {"batch", "linecount fill_with", 1, filter_batch, NULL},
        {"count", NULL, 0, filter_length, NULL},
        {"dictsort", "case_sensitive by reverse", 0, filter_dictsort, NULL},
        {"first", NULL, 0, filter_first, NULL},
        {"groupby", "attribute default case_sensitive", 1, filter_groupby, NULL},
        {"items", NULL, 0, filter_items, NULL},
        {"join", "d attribute", 0, filter_join, NULL},
        {"last", NULL, 0, filter_last, NULL},
        {"length", NULL, 0, filter_length, NULL},
        {"list", NULL, 0, filter_list, NULL},
        {"map", NULL, 0, NULL, filter_map},
        {"max", "case_sensitive attribute", 0, filter_max, NULL},
        {"min", "case_sensitive attribute", 0, filter_min, NULL},
        {"reject", NULL, 0, NULL, filter_reject},
        {"rejectattr", NULL, 0, NULL, filter_rejectattr},
        {"reverse", NULL, 0, filter_reverse, NULL},
        {"select", NULL, 0, NULL, filter_select},
        {"selectattr", NULL, 0, NULL, filter_selectattr},
        {"sort", "reverse case_sensitive attribute", 0, filter_sort, NULL},
        {"sum", "attribute start", 0, filter_sum, NULL},
        {"unique", "case_sensitive attribute", 0, filter_unique, NULL}};
    *count = sizeof rows / sizeof *rows;
    return rows;
}
