/* Equality, order and containment, as Python has them. */
#include "text/template/template_internal.h"

static sifr_status items_equal(text_render *r, const text_items *a, const text_items *b,
                               bool *out) {
    *out = a->count == b->count;
    for (size_t i = 0; *out && i < a->count; i++)
        BASE_TRY(text_equal(r, a->values[i], b->values[i], out));
    return SIFR_OK;
}

static sifr_status dicts_equal(text_render *r, const text_dict *a, const text_dict *b, bool *out) {
    *out = a->count == b->count;
    for (size_t i = 0; *out && i < a->count; i++) {
        text_value other;
        BASE_TRY(text_dict_get(r, b, a->keys[i], out, &other));
        if (*out) BASE_TRY(text_equal(r, a->values[i], other, out));
    }
    return SIFR_OK;
}

static bool numbers_equal(text_value a, text_value b) {
    if (a.kind == TEXT_FLOAT || b.kind == TEXT_FLOAT) return text_number(a) == text_number(b);
    int64_t x = a.kind == TEXT_INT ? a.integer : a.truth;
    int64_t y = b.kind == TEXT_INT ? b.integer : b.truth;
    return x == y;
}

sifr_status text_equal(text_render *r, text_value a, text_value b, bool *out) {
    sifr_status status = SIFR_OK;
    BASE_TRY(text_template_charge(r, 1));
    if (text_is_number(a) && text_is_number(b)) {
        *out = numbers_equal(a, b);
        return SIFR_OK;
    }
    if (a.kind == TEXT_SAFE || b.kind == TEXT_SAFE)
        return text_template_fail(&r->place, "comparing a string marked safe is not supported");
    *out = a.kind == b.kind;
    if (!*out) return SIFR_OK;
    BASE_TRY(text_template_enter(r));
    if (a.kind == TEXT_STRING) {
        *out = text_text_equal(a.text, b.text);
        status = text_template_charge(r, a.text.size / 64);
    } else if (a.kind == TEXT_LIST || a.kind == TEXT_TUPLE || a.kind == TEXT_RANGE) {
        status = items_equal(r, a.items, b.items, out);
    } else if (a.kind == TEXT_DICT) {
        status = dicts_equal(r, a.dict, b.dict, out);
    } else if (a.kind > TEXT_NONE) {
        *out = a.items == b.items; /* the same thing */
    }
    r->depth--;
    return status;
}

static int order_texts(text_text a, text_text b) {
    size_t least = a.size < b.size ? a.size : b.size;
    int order = least ? memcmp(a.bytes, b.bytes, least) : 0; /* of UTF-8: that of characters */
    return order ? (order > 0) - (order < 0) : (a.size > b.size) - (a.size < b.size);
}

static sifr_status order_items(text_render *r, const text_items *a, const text_items *b, int *out) {
    bool equal;
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        BASE_TRY(text_equal(r, a->values[i], b->values[i], &equal));
        if (!equal) return text_order(r, a->values[i], b->values[i], out);
    }
    *out = (a->count > b->count) - (a->count < b->count);
    return SIFR_OK;
}

sifr_status text_order(text_render *r, text_value a, text_value b, int *out) {
    sifr_status status = SIFR_OK;
    BASE_TRY(text_template_charge(r, 1));
    if (text_is_number(a) && text_is_number(b)) {
        if (a.kind == TEXT_INT && b.kind == TEXT_INT) {
            *out = (a.integer > b.integer) - (a.integer < b.integer);
        } else {
            double x = text_number(a), y = text_number(b);
            *out = (x > y) - (x < y);
        }
    } else if (a.kind == TEXT_STRING && b.kind == TEXT_STRING) {
        *out = order_texts(a.text, b.text);
        status = text_template_charge(r, a.text.size / 64);
    } else if (a.kind == b.kind && (a.kind == TEXT_LIST || a.kind == TEXT_TUPLE)) {
        BASE_TRY(text_template_enter(r));
        status = order_items(r, a.items, b.items, out);
        r->depth--;
    } else {
        return text_template_fail(&r->place, "values of types %s and %s have no order",
                                  text_kind_name(a), text_kind_name(b));
    }
    return status;
}

sifr_status text_contains(text_render *r, text_value whole, text_value part, bool *out) {
    text_items *items;
    text_value ignored;
    *out = false;
    if (whole.kind == TEXT_STRING) {
        if (part.kind != TEXT_STRING)
            return text_template_fail(&r->place, "'in' a string needs a string, not %s",
                                      text_kind_name(part));
        *out = text_find(whole.text, part.text, 0) != SIZE_MAX;
        return text_template_charge(r, whole.text.size / 16);
    }
    if (whole.kind == TEXT_DICT) return text_dict_get(r, whole.dict, part, out, &ignored);
    BASE_TRY(text_iterate(r, whole, &items));
    for (size_t i = 0; !*out && i < items->count; i++)
        BASE_TRY(text_equal(r, items->values[i], part, out));
    return SIFR_OK;
}

sifr_status text_compare(text_render *r, int op, text_value a, text_value b, bool *out) {
    int order;
    if (op == TEXT_OP_EQ || op == TEXT_OP_NE) {
        BASE_TRY(text_equal(r, a, b, out));
        if (op == TEXT_OP_NE) *out = !*out;
        return SIFR_OK;
    }
    if (op == TEXT_OP_IN || op == TEXT_OP_NOT_IN) {
        BASE_TRY(text_contains(r, b, a, out));
        if (op == TEXT_OP_NOT_IN) *out = !*out;
        return SIFR_OK;
    }
    BASE_TRY(text_order(r, a, b, &order));
    *out = op == '<'          ? order < 0
           : op == '>'        ? order > 0
           : op == TEXT_OP_LE ? order <= 0
                              : order >= 0;
    return SIFR_OK;
}

/* ---- sorting ---- */

/* Merges the sorted halves of from[0 … count), split at `half`, into `to`, by position. */
static sifr_status merge(text_render *r, const text_value *keys, const size_t *from, size_t half,
                         size_t count, bool reverse, size_t *to) {
    size_t a = 0, b = half;
    for (size_t i = 0; i < count; i++) {
        int order = -1;
        if (a < half && b < count) BASE_TRY(text_order(r, keys[from[a]], keys[from[b]], &order));
        if (reverse) order = -order;
        bool first = b == count || (a < half && order <= 0);
        if (a < half && b < count && !first) first = false;
        to[i] = first ? from[a++] : from[b++];
    }
    return SIFR_OK;
}

sifr_status text_sort(text_render *r, text_value *values, text_value *keys, size_t count,
                      bool reverse) {
    size_t *from, *to;
    text_value *copy;
    if (count == 0) return SIFR_OK;
    BASE_TRY(TEXT_TAKE(r, count, sizeof *from, &from));
    BASE_TRY(TEXT_TAKE(r, count, sizeof *to, &to));
    BASE_TRY(TEXT_TAKE(r, count, sizeof *copy, &copy));
    for (size_t i = 0; i < count; i++) from[i] = i;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t at = 0; at < count; at += 2 * width) {
            size_t rest = count - at, all = rest < 2 * width ? rest : 2 * width;
            BASE_TRY(merge(r, keys, from + at, width < all ? width : all, all, reverse, to + at));
        }
        size_t *swap = from;
        from = to;
        to = swap;
    }
    memcpy(copy, values, count * sizeof *copy);
    for (size_t i = 0; i < count; i++) values[i] = copy[from[i]];
    return SIFR_OK;
}
