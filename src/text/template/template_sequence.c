/* Filters of sequences and dicts. */
#include "text/template/template_internal.h"

static const formats_value nothing = {.kind = FORMATS_ABSENT};

#define FILTER(name)                                                                               \
    static sifr_status name(formats_render *r, formats_value self, const formats_value *arguments, \
                            formats_value *out)

FILTER(filter_length) {
    int64_t length;
    (void)arguments;
    BASE_TRY(formats_length(r, self, &length));
    *out = formats_of_int(length);
    return SIFR_OK;
}

static sifr_status copy_items(formats_render *r, formats_value v, formats_value *out) {
    formats_items *items;
    BASE_TRY(formats_iterate(r, v, &items));
    BASE_TRY(formats_new_items(r, FORMATS_LIST, items->count, out));
    for (size_t i = 0; i < items->count; i++)
        BASE_TRY(formats_append(r, out->items, items->values[i]));
    return SIFR_OK;
}

FILTER(filter_list) {
    (void)arguments;
    return copy_items(r, self, out);
}

FILTER(filter_first) {
    formats_items *items;
    (void)arguments;
    BASE_TRY(formats_iterate(r, self, &items));
    *out = items->count ? items->values[0]
                        : formats_undefined(formats_literal("the first item of nothing"));
    return SIFR_OK;
}

FILTER(filter_last) {
    formats_items *items;
    (void)arguments;
    if (self.kind == FORMATS_GENERATOR)
        return formats_template_fail(&r->place, "last needs a list; write | list | last");
    BASE_TRY(formats_iterate(r, self, &items));
    *out = items->count ? items->values[items->count - 1]
                        : formats_undefined(formats_literal("the last item of nothing"));
    return SIFR_OK;
}

FILTER(filter_join) {
    formats_items *items;
    formats_builder b = {0};
    formats_text between = {"", 0};
    BASE_TRY(formats_iterate(r, self, &items));
    if (arguments[0].kind != FORMATS_ABSENT) BASE_TRY(formats_string(r, arguments[0], &between));
    for (size_t i = 0; i < items->count; i++) {
        formats_value v;
        BASE_TRY(formats_path(r, items->values[i], arguments[1], nothing, &v));
        if (i) BASE_TRY(formats_build(r, &b, between.bytes, between.size));
        BASE_TRY(formats_print(r, &b, v));
        BASE_TRY(formats_template_charge(r, 1));
    }
    *out = formats_of_text(formats_built(&b));
    return SIFR_OK;
}

FILTER(filter_reverse) {
    formats_items *items;
    const formats_value whole[3] = {
        {.kind = FORMATS_ABSENT}, {.kind = FORMATS_ABSENT}, {.kind = FORMATS_INT, .integer = -1}};
    (void)arguments;
    if (self.kind == FORMATS_STRING) return formats_slice(r, self, whole, out);
    BASE_TRY(formats_iterate(r, self, &items));
    BASE_TRY(formats_new_items(r, FORMATS_GENERATOR, items->count, out));
    for (size_t i = items->count; i-- > 0;)
        BASE_TRY(formats_append(r, out->items, items->values[i]));
    return SIFR_OK;
}

static sifr_status pairs(formats_render *r, const formats_dict *dict, formats_value_kind kind,
                         formats_value *out) {
    BASE_TRY(formats_new_items(r, kind, dict->count, out));
    for (size_t i = 0; i < dict->count; i++) {
        formats_value pair;
        BASE_TRY(formats_pair(r, dict->keys[i], dict->values[i], &pair));
        BASE_TRY(formats_append(r, out->items, pair));
    }
    return SIFR_OK;
}

FILTER(filter_items) {
    (void)arguments;
    if (self.kind == FORMATS_UNDEFINED) return formats_new_items(r, FORMATS_GENERATOR, 0, out);
    if (self.kind == FORMATS_DICT) return pairs(r, self.dict, FORMATS_GENERATOR, out);
    return formats_template_fail(&r->place, "items of a value of type %s", formats_kind_name(self));
}

/* ---- sorting ---- */

static sifr_status fold(formats_render *r, formats_value *v) {
    if (v->kind != FORMATS_STRING) return SIFR_OK;
    return formats_change_case(r, v->text, FORMATS_LOWER, &v->text);
}

FILTER(filter_dictsort) {
    bool by_value = false, sensitive = formats_truth(arguments[0]);
    formats_value keys;
    formats_text by;
    if (self.kind != FORMATS_DICT)
        return formats_template_fail(&r->place, "dictsort of a value of type %s",
                                     formats_kind_name(self));
    if (arguments[1].kind != FORMATS_ABSENT) {
        BASE_TRY(formats_want_text(r, arguments[1], "dictsort's by", &by));
        by_value = formats_text_is(by, "value");
        if (!by_value && !formats_text_is(by, "key"))
            return formats_template_fail(&r->place, "dictsort: by must be key or value");
    }
    BASE_TRY(pairs(r, self.dict, FORMATS_LIST, out));
    BASE_TRY(formats_new_items(r, FORMATS_LIST, self.dict->count, &keys));
    for (size_t i = 0; i < self.dict->count; i++) {
        formats_value key = by_value ? self.dict->values[i] : self.dict->keys[i];
        if (!sensitive) BASE_TRY(fold(r, &key));
        BASE_TRY(formats_append(r, keys.items, key));
    }
    return formats_sort(r, out->items->values, keys.items->values, self.dict->count,
                        formats_truth(arguments[2]));
}

/* The key of an item: one part for each of the attributes that commas divide. */
static sifr_status sort_key(formats_render *r, formats_value item, formats_value attribute,
                            bool sensitive, formats_value *out) {
    formats_value part;
    BASE_TRY(formats_new_items(r, FORMATS_LIST, 1, out));
    if (attribute.kind != FORMATS_STRING) {
        BASE_TRY(formats_path(r, item, attribute, nothing, &part));
        if (!sensitive) BASE_TRY(fold(r, &part));
        return formats_append(r, out->items, part);
    }
    for (size_t at = 0; at <= attribute.text.size;) {
        size_t end = formats_find(attribute.text, formats_literal(","), at);
        if (end == SIZE_MAX) end = attribute.text.size;
        formats_text path = {attribute.text.bytes + at, end - at};
        BASE_TRY(formats_path(r, item, formats_of_text(path), nothing, &part));
        if (!sensitive) BASE_TRY(fold(r, &part));
        BASE_TRY(formats_append(r, out->items, part));
        at = end + 1;
    }
    return SIFR_OK;
}

FILTER(filter_sort) {
    formats_value keys, key;
    BASE_TRY(copy_items(r, self, out));
    BASE_TRY(formats_new_items(r, FORMATS_LIST, out->items->count, &keys));
    for (size_t i = 0; i < out->items->count; i++) {
        BASE_TRY(
            sort_key(r, out->items->values[i], arguments[2], formats_truth(arguments[1]), &key));
        BASE_TRY(formats_append(r, keys.items, key));
    }
    return formats_sort(r, out->items->values, keys.items->values, out->items->count,
                        formats_truth(arguments[0]));
}

static sifr_status one_key(formats_render *r, formats_value item, const formats_value *arguments,
                           formats_value *out) {
    BASE_TRY(formats_path(r, item, arguments[1], nothing, out));
    return formats_truth(arguments[0]) ? SIFR_OK : fold(r, out);
}

FILTER(filter_unique) {
    formats_items *items;
    formats_value seen, key;
    BASE_TRY(formats_iterate(r, self, &items));
    BASE_TRY(formats_new_items(r, FORMATS_LIST, 0, &seen));
    BASE_TRY(formats_new_items(r, FORMATS_GENERATOR, 0, out));
    for (size_t i = 0; i < items->count; i++) {
        bool known;
        BASE_TRY(one_key(r, items->values[i], arguments, &key));
        if (key.kind == FORMATS_LIST || key.kind == FORMATS_DICT)
            return formats_template_fail(&r->place, "unique: a value of type %s",
                                         formats_kind_name(key));
        BASE_TRY(formats_contains(r, seen, key, &known));
        if (known) continue;
        BASE_TRY(formats_append(r, seen.items, key));
        BASE_TRY(formats_append(r, out->items, items->values[i]));
    }
    return SIFR_OK;
}

FILTER(filter_batch) {
    formats_items *items;
    formats_value part;
    int64_t size;
    BASE_TRY(formats_want_int(r, arguments[0], "batch's linecount", &size));
    BASE_TRY(formats_iterate(r, self, &items));
    BASE_TRY(formats_new_items(r, FORMATS_GENERATOR, 0, out));
    BASE_TRY(formats_new_items(r, FORMATS_LIST, 0, &part));
    for (size_t i = 0; i < items->count; i++) {
        if ((int64_t)part.items->count == size) {
            BASE_TRY(formats_append(r, out->items, part));
            BASE_TRY(formats_new_items(r, FORMATS_LIST, 0, &part));
        }
        BASE_TRY(formats_append(r, part.items, items->values[i]));
    }
    if (!part.items->count) return SIFR_OK;
    bool fills = arguments[1].kind != FORMATS_ABSENT && arguments[1].kind != FORMATS_NONE;
    while (fills && (int64_t)part.items->count < size)
        BASE_TRY(formats_append(r, part.items, arguments[1]));
    return formats_append(r, out->items, part);
}

/* The attribute that items are grouped by, as it stands, and as it is compared. */
static sifr_status group_key(formats_render *r, formats_value item, const formats_value *arguments,
                             formats_value *plain, formats_value *folded) {
    bool fallback = arguments[1].kind != FORMATS_ABSENT && arguments[1].kind != FORMATS_NONE;
    BASE_TRY(formats_path(r, item, arguments[0], fallback ? arguments[1] : nothing, plain));
    *folded = *plain;
    return formats_truth(arguments[2]) ? SIFR_OK : fold(r, folded);
}

static sifr_status add_group(formats_render *r, formats_value grouper, formats_items *groups,
                             formats_value *list) {
    formats_value pair;
    BASE_TRY(formats_new_items(r, FORMATS_LIST, 0, list));
    BASE_TRY(formats_pair(r, grouper, *list, &pair));
    pair.items->group = true;
    return formats_append(r, groups, pair);
}

FILTER(filter_groupby) {
    formats_value sorted, keys, plain, key, list = nothing;
    BASE_TRY(copy_items(r, self, &sorted));
    BASE_TRY(formats_new_items(r, FORMATS_LIST, sorted.items->count, &keys));
    for (size_t i = 0; i < sorted.items->count; i++) {
        BASE_TRY(group_key(r, sorted.items->values[i], arguments, &plain, &key));
        BASE_TRY(formats_append(r, keys.items, key));
    }
    BASE_TRY(formats_sort(r, sorted.items->values, keys.items->values, sorted.items->count, false));
    BASE_TRY(formats_new_items(r, FORMATS_LIST, 0, out));
    for (size_t i = 0; i < sorted.items->count; i++) {
        bool same = false;
        formats_value before = key;
        BASE_TRY(group_key(r, sorted.items->values[i], arguments, &plain, &key));
        if (i) BASE_TRY(formats_equal(r, before, key, &same));
        if (!same) BASE_TRY(add_group(r, plain, out->items, &list));
        BASE_TRY(formats_append(r, list.items, sorted.items->values[i]));
    }
    return SIFR_OK;
}

static sifr_status extreme(formats_render *r, formats_value self, const formats_value *arguments,
                           int sign, formats_value *out) {
    formats_items *items;
    formats_value best = formats_none(), key;
    BASE_TRY(formats_iterate(r, self, &items));
    *out = formats_undefined(formats_literal("the least or greatest of nothing"));
    for (size_t i = 0; i < items->count; i++) {
        int order = 1;
        BASE_TRY(one_key(r, items->values[i], arguments, &key));
        if (i) BASE_TRY(formats_order(r, key, best, &order));
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
    formats_items *items;
    BASE_TRY(formats_iterate(r, self, &items));
    *out = arguments[1].kind == FORMATS_ABSENT ? formats_of_int(0) : arguments[1];
    if (out->kind == FORMATS_STRING)
        return formats_template_fail(&r->place, "sum does not join strings; use join");
    for (size_t i = 0; i < items->count; i++) {
        formats_value v;
        BASE_TRY(formats_path(r, items->values[i], arguments[0], nothing, &v));
        BASE_TRY(formats_binary(r, '+', *out, v, out));
        BASE_TRY(formats_template_charge(r, 1));
    }
    return SIFR_OK;
}

/* ---- filters that take other filters and tests ---- */

/* Jinja asks first whether there is anything: none and false have no items here. */
static sifr_status iterate_true(formats_render *r, formats_value v, formats_items **out) {
    const formats_value empty = {.kind = FORMATS_UNDEFINED};
    return formats_iterate(r, formats_truth(v) ? v : empty, out);
}

static formats_call rest_of(const formats_call *call, size_t used) {
    formats_call rest = *call;
    rest.values += used;
    rest.count -= used;
    return rest;
}

static sifr_status map_attribute(formats_render *r, const formats_items *items,
                                 const formats_call *call, formats_value *out) {
    formats_value attribute = {.kind = FORMATS_ABSENT}, fallback = attribute, v;
    for (size_t i = 0; i < call->named; i++) {
        if (formats_text_is(call->names[i], "attribute"))
            attribute = call->values[i];
        else if (formats_text_is(call->names[i], "default"))
            fallback = call->values[i];
        else
            return formats_template_fail(&r->place, "map has no argument %.*s",
                                         (int)call->names[i].size, call->names[i].bytes);
    }
    if (attribute.kind == FORMATS_ABSENT)
        return formats_template_fail(&r->place, "map needs a filter or attribute=");
    for (size_t i = 0; i < items->count; i++) {
        BASE_TRY(formats_path(r, items->values[i], attribute, fallback, &v));
        BASE_TRY(formats_append(r, out->items, v));
    }
    return SIFR_OK;
}

static sifr_status find_function(formats_render *r, formats_value name, bool filter,
                                 const formats_builtin **out) {
    formats_text text;
    bool known;
    BASE_TRY(formats_want_text(r, name, filter ? "a filter's name" : "a test's name", &text));
    *out = (filter ? formats_filter_find : formats_test_find)(text, &known);
    if (*out) return SIFR_OK;
    return formats_template_fail(&r->place, "%s the %s \"%.*s\"",
                                 known ? "not supported yet:" : "Jinja does not have",
                                 filter ? "filter" : "test", (int)text.size, text.bytes);
}

static sifr_status filter_map(formats_render *r, formats_value self, const formats_call *call,
                              formats_value *out) {
    formats_items *items;
    const formats_builtin *function;
    formats_value v;
    BASE_TRY(iterate_true(r, self, &items));
    BASE_TRY(formats_new_items(r, FORMATS_GENERATOR, items->count, out));
    if (call->count == 0) return map_attribute(r, items, call, out);
    formats_call rest = rest_of(call, 1);
    BASE_TRY(find_function(r, call->values[0], true, &function));
    for (size_t i = 0; i < items->count; i++) {
        BASE_TRY(formats_call_builtin(r, function, items->values[i], &rest, &v));
        BASE_TRY(formats_append(r, out->items, v));
    }
    return SIFR_OK;
}

/* select and its kin: items, or their attributes, for which the test is `wanted`. */
static sifr_status choose(formats_render *r, formats_value self, const formats_call *call,
                          bool by_attribute, bool wanted, formats_value *out) {
    formats_items *items;
    const formats_builtin *test = NULL;
    formats_call rest = {0};
    size_t first = by_attribute;
    formats_value attribute = {.kind = FORMATS_ABSENT}, v, truth;
    BASE_TRY(iterate_true(r, self, &items));
    BASE_TRY(formats_new_items(r, FORMATS_GENERATOR, items->count, out));
    if (by_attribute && call->count == 0)
        return formats_template_fail(&r->place, "selectattr and rejectattr need an attribute");
    if (by_attribute) attribute = call->values[0];
    if (call->count > first) {
        BASE_TRY(find_function(r, call->values[first], false, &test));
        rest = rest_of(call, first + 1);
    }
    for (size_t i = 0; i < items->count; i++) {
        BASE_TRY(formats_path(r, items->values[i], attribute, nothing, &v));
        truth = v;
        if (test) BASE_TRY(formats_call_builtin(r, test, v, &rest, &truth));
        if (formats_truth(truth) == wanted)
            BASE_TRY(formats_append(r, out->items, items->values[i]));
    }
    return SIFR_OK;
}

static sifr_status filter_select(formats_render *r, formats_value self, const formats_call *call,
                                 formats_value *out) {
    return choose(r, self, call, false, true, out);
}

static sifr_status filter_reject(formats_render *r, formats_value self, const formats_call *call,
                                 formats_value *out) {
    return choose(r, self, call, false, false, out);
}

static sifr_status filter_selectattr(formats_render *r, formats_value self,
                                     const formats_call *call, formats_value *out) {
    return choose(r, self, call, true, true, out);
}

static sifr_status filter_rejectattr(formats_render *r, formats_value self,
                                     const formats_call *call, formats_value *out) {
    return choose(r, self, call, true, false, out);
}

const formats_builtin *formats_sequence_filters(size_t *count) {
    static const formats_builtin rows[] = {
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
