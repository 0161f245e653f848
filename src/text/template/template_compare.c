/* Equality, order and containment, as Python has them. */
#include "text/template/template_internal.h"

static sifr_status items_equal(formats_render *r, const formats_items *a, const formats_items *b,
                               bool *out) {
    *out = a->count == b->count;
    for (size_t i = 0; *out && i < a->count; i++)
        BASE_TRY(formats_equal(r, a->values[i], b->values[i], out));
    return SIFR_OK;
}

static sifr_status dicts_equal(formats_render *r, const formats_dict *a, const formats_dict *b,
                               bool *out) {
    *out = a->count == b->count;
    for (size_t i = 0; *out && i < a->count; i++) {
        formats_value other;
        BASE_TRY(formats_dict_get(r, b, a->keys[i], out, &other));
        if (*out) BASE_TRY(formats_equal(r, a->values[i], other, out));
    }
    return SIFR_OK;
}

static bool numbers_equal(formats_value a, formats_value b) {
    if (a.kind == FORMATS_FLOAT || b.kind == FORMATS_FLOAT)
        return formats_number(a) == formats_number(b);
    int64_t x = a.kind == FORMATS_INT ? a.integer : a.truth;
    int64_t y = b.kind == FORMATS_INT ? b.integer : b.truth;
    return x == y;
}

sifr_status formats_equal(formats_render *r, formats_value a, formats_value b, bool *out) {
    sifr_status status = SIFR_OK;
    BASE_TRY(formats_template_charge(r, 1));
    if (formats_is_number(a) && formats_is_number(b)) {
        *out = numbers_equal(a, b);
        return SIFR_OK;
    }
    if (a.kind == FORMATS_SAFE || b.kind == FORMATS_SAFE)
        return formats_template_fail(&r->place, "comparing a string marked safe is not supported");
    *out = a.kind == b.kind;
    if (!*out) return SIFR_OK;
    BASE_TRY(formats_template_enter(r));
    if (a.kind == FORMATS_STRING) {
        *out = formats_text_equal(a.text, b.text);
        status = formats_template_charge(r, a.text.size / 64);
    } else if (a.kind == FORMATS_LIST || a.kind == FORMATS_TUPLE || a.kind == FORMATS_RANGE) {
        status = items_equal(r, a.items, b.items, out);
    } else if (a.kind == FORMATS_DICT) {
        status = dicts_equal(r, a.dict, b.dict, out);
    } else if (a.kind > FORMATS_NONE) {
        *out = a.items == b.items; /* the same thing */
    }
    r->depth--;
    return status;
}

static int order_texts(formats_text a, formats_text b) {
    size_t least = a.size < b.size ? a.size : b.size;
    int order = least ? memcmp(a.bytes, b.bytes, least) : 0; /* of UTF-8: that of characters */
    return order ? (order > 0) - (order < 0) : (a.size > b.size) - (a.size < b.size);
}

static sifr_status order_items(formats_render *r, const formats_items *a, const formats_items *b,
                               int *out) {
    bool equal;
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        BASE_TRY(formats_equal(r, a->values[i], b->values[i], &equal));
        if (!equal) return formats_order(r, a->values[i], b->values[i], out);
    }
    *out = (a->count > b->count) - (a->count < b->count);
    return SIFR_OK;
}

sifr_status formats_order(formats_render *r, formats_value a, formats_value b, int *out) {
    sifr_status status = SIFR_OK;
    BASE_TRY(formats_template_charge(r, 1));
    if (formats_is_number(a) && formats_is_number(b)) {
        if (a.kind == FORMATS_INT && b.kind == FORMATS_INT) {
            *out = (a.integer > b.integer) - (a.integer < b.integer);
        } else {
            double x = formats_number(a), y = formats_number(b);
            *out = (x > y) - (x < y);
        }
    } else if (a.kind == FORMATS_STRING && b.kind == FORMATS_STRING) {
        *out = order_texts(a.text, b.text);
        status = formats_template_charge(r, a.text.size / 64);
    } else if (a.kind == b.kind && (a.kind == FORMATS_LIST || a.kind == FORMATS_TUPLE)) {
        BASE_TRY(formats_template_enter(r));
        status = order_items(r, a.items, b.items, out);
        r->depth--;
    } else {
        return formats_template_fail(&r->place, "values of types %s and %s have no order",
                                     formats_kind_name(a), formats_kind_name(b));
    }
    return status;
}

sifr_status formats_contains(formats_render *r, formats_value whole, formats_value part,
                             bool *out) {
    formats_items *items;
    formats_value ignored;
    *out = false;
    if (whole.kind == FORMATS_STRING) {
        if (part.kind != FORMATS_STRING)
            return formats_template_fail(&r->place, "'in' a string needs a string, not %s",
                                         formats_kind_name(part));
        *out = formats_find(whole.text, part.text, 0) != SIZE_MAX;
        return formats_template_charge(r, whole.text.size / 16);
    }
    if (whole.kind == FORMATS_DICT) return formats_dict_get(r, whole.dict, part, out, &ignored);
    BASE_TRY(formats_iterate(r, whole, &items));
    for (size_t i = 0; !*out && i < items->count; i++)
        BASE_TRY(formats_equal(r, items->values[i], part, out));
    return SIFR_OK;
}

sifr_status formats_compare(formats_render *r, int op, formats_value a, formats_value b,
                            bool *out) {
    int order;
    if (op == FORMATS_OP_EQ || op == FORMATS_OP_NE) {
        BASE_TRY(formats_equal(r, a, b, out));
        if (op == FORMATS_OP_NE) *out = !*out;
        return SIFR_OK;
    }
    if (op == FORMATS_OP_IN || op == FORMATS_OP_NOT_IN) {
        BASE_TRY(formats_contains(r, b, a, out));
        if (op == FORMATS_OP_NOT_IN) *out = !*out;
        return SIFR_OK;
    }
    BASE_TRY(formats_order(r, a, b, &order));
    *out = op == '<'             ? order < 0
           : op == '>'           ? order > 0
           : op == FORMATS_OP_LE ? order <= 0
                                 : order >= 0;
    return SIFR_OK;
}

/* ---- sorting ---- */

/* Merges the sorted halves of from[0 … count), split at `half`, into `to`, by position. */
static sifr_status merge(formats_render *r, const formats_value *keys, const size_t *from,
                         size_t half, size_t count, bool reverse, size_t *to) {
    size_t a = 0, b = half;
    for (size_t i = 0; i < count; i++) {
        int order = -1;
        if (a < half && b < count) BASE_TRY(formats_order(r, keys[from[a]], keys[from[b]], &order));
        if (reverse) order = -order;
        bool first = b == count || (a < half && order <= 0);
        if (a < half && b < count && !first) first = false;
        to[i] = first ? from[a++] : from[b++];
    }
    return SIFR_OK;
}

sifr_status formats_sort(formats_render *r, formats_value *values, formats_value *keys,
                         size_t count, bool reverse) {
    size_t *from, *to;
    formats_value *copy;
    if (count == 0) return SIFR_OK;
    BASE_TRY(FORMATS_TAKE(r, count, sizeof *from, &from));
    BASE_TRY(FORMATS_TAKE(r, count, sizeof *to, &to));
    BASE_TRY(FORMATS_TAKE(r, count, sizeof *copy, &copy));
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
