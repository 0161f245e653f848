/* Evaluates expressions. */
#include <math.h>

#include "text/template/template_internal.h"

/* ---- arithmetic ---- */

static sifr_status no_operator(text_render *r, int op, text_value a, text_value b) {
    char name[3] = {(char)(op & 255), (char)(op >> 8), 0};
    text_value missing = a.kind == TEXT_UNDEFINED ? a : b;
    if (missing.kind == TEXT_UNDEFINED)
        return text_template_fail(&r->place, "%.*s is undefined, and '%s' needs a value",
                                  (int)missing.text.size, missing.text.bytes, name);
    return text_template_fail(&r->place, "'%s' of %s and %s is not possible", name,
                              text_kind_name(a), text_kind_name(b));
}

static sifr_status overflow(text_render *r) {
    return text_template_fail(&r->place, "whole numbers beyond 64 bits are not supported");
}

static sifr_status real_power(text_render *r, double a, double b, text_value *out) {
    double result = pow(a, b);
    if ((a == 0 && b < 0) || (isfinite(a) && isfinite(b) && !isfinite(result)))
        return text_template_fail(&r->place, "'**' of these numbers is not possible");
    *out = text_of_float(result);
    return SIFR_OK;
}

static sifr_status real_binary(text_render *r, int op, double a, double b, text_value *out) {
    if ((op == '/' || op == TEXT_OP_FLOOR || op == '%') && b == 0)
        return text_template_fail(&r->place, "division by zero");
    if (op == TEXT_OP_POWER) return real_power(r, a, b, out);
    double rest = op == '%' ? fmod(a, b) : 0;
    if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
    *out = text_of_float(op == '+'             ? a + b
                         : op == '-'           ? a - b
                         : op == '*'           ? a * b
                         : op == '/'           ? a / b
                         : op == TEXT_OP_FLOOR ? floor(a / b)
                                               : rest);
    return SIFR_OK;
}

static sifr_status int_power(text_render *r, int64_t base, int64_t exponent, text_value *out) {
    int64_t result = 1;
    if (exponent < 0) return real_binary(r, TEXT_OP_POWER, (double)base, (double)exponent, out);
    if (base >= -1 && base <= 1) exponent = exponent == 0 ? 0 : 2 - exponent % 2;
    for (int64_t i = 0; i < exponent; i++) {
        if (!base_mul_i64(result, base, &result)) return overflow(r);
    }
    *out = text_of_int(result);
    return SIFR_OK;
}

/* Division rounds down, as in Python. */
static sifr_status int_divide(text_render *r, int op, int64_t a, int64_t b, text_value *out) {
    if (b == 0) return text_template_fail(&r->place, "division by zero");
    if (b == -1) {
        if (a == INT64_MIN) return overflow(r);
        *out = text_of_int(op == '%' ? 0 : -a);
        return SIFR_OK;
    }
    int64_t quotient = a / b, rest = a % b;
    if (rest != 0 && (rest < 0) != (b < 0)) {
        quotient--;
        rest += b;
    }
    *out = text_of_int(op == '%' ? rest : quotient);
    return SIFR_OK;
}

static sifr_status int_binary(text_render *r, int op, int64_t a, int64_t b, text_value *out) {
    int64_t result = 0;
    bool fits = true;
    if (op == '/') return real_binary(r, op, (double)a, (double)b, out);
    if (op == TEXT_OP_POWER) return int_power(r, a, b, out);
    if (op == TEXT_OP_FLOOR || op == '%') return int_divide(r, op, a, b, out);
    if (op == '+') fits = base_add_i64(a, b, &result);
    if (op == '-') fits = !__builtin_sub_overflow(a, b, &result);
    if (op == '*') fits = base_mul_i64(a, b, &result);
    *out = text_of_int(result);
    return fits ? SIFR_OK : overflow(r);
}

static sifr_status number_binary(text_render *r, int op, text_value a, text_value b,
                                 text_value *out) {
    if (a.kind == TEXT_FLOAT || b.kind == TEXT_FLOAT)
        return real_binary(r, op, text_number(a), text_number(b), out);
    return int_binary(r, op, a.kind == TEXT_INT ? a.integer : a.truth,
                      b.kind == TEXT_INT ? b.integer : b.truth, out);
}

static sifr_status join_items(text_render *r, text_value a, text_value b, text_value *out) {
    BASE_TRY(text_new_items(r, a.kind, a.items->count + b.items->count, out));
    for (size_t i = 0; i < a.items->count; i++)
        BASE_TRY(text_append(r, out->items, a.items->values[i]));
    for (size_t i = 0; i < b.items->count; i++)
        BASE_TRY(text_append(r, out->items, b.items->values[i]));
    return SIFR_OK;
}

static sifr_status join_texts(text_render *r, text_text a, text_text b, text_value *out) {
    text_builder builder = {0};
    size_t all;
    if (!base_add_size(a.size, b.size, &all) || all > TEXT_TEMPLATE_OUTPUT)
        return text_template_fail(&r->place, "a text of more than %zu MiB",
                                  TEXT_TEMPLATE_OUTPUT >> 20);
    BASE_TRY(TEXT_TAKE(r, all + 1, 1, &builder.bytes));
    builder.capacity = all + 1;
    BASE_TRY(text_build(r, &builder, a.bytes, a.size));
    BASE_TRY(text_build(r, &builder, b.bytes, b.size));
    *out = text_of_text(text_built(&builder));
    return SIFR_OK;
}

static sifr_status escape(text_render *r, text_text text, text_text *out) {
    static const struct {
        char byte;
        const char *as;
    } escapes[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'\'', "&#39;"}, {'"', "&#34;"}};
    text_builder b = {0};
    for (size_t i = 0; i < text.size; i++) {
        text_text part = {text.bytes + i, 1};
        for (size_t k = 0; k < sizeof escapes / sizeof *escapes; k++)
            if (text.bytes[i] == escapes[k].byte) part = text_literal(escapes[k].as);
        BASE_TRY(text_build(r, &b, part.bytes, part.size));
    }
    *out = text_built(&b);
    return SIFR_OK;
}

/* A string marked safe stays so, and what is joined with it by + is escaped, as by MarkupSafe. */
static sifr_status join_safe(text_render *r, text_value a, text_value b, text_value *out) {
    if (a.kind == TEXT_STRING) BASE_TRY(escape(r, a.text, &a.text));
    if (b.kind == TEXT_STRING) BASE_TRY(escape(r, b.text, &b.text));
    BASE_TRY(join_texts(r, a.text, b.text, out));
    out->kind = TEXT_SAFE;
    return SIFR_OK;
}

/* "ab" * 3, [a] * 3 */
static sifr_status repeat(text_render *r, text_value a, int64_t count, text_value *out) {
    text_builder b = {0};
    int64_t all;
    if (a.kind == TEXT_STRING) {
        BASE_TRY(text_build_repeated(r, &b, a.text, count));
        *out = text_of_text(text_built(&b));
        return SIFR_OK;
    }
    if (count < 0) count = 0;
    if (!base_mul_i64((int64_t)a.items->count, count, &all)) all = INT64_MAX;
    BASE_TRY(text_template_charge(r, (size_t)all));
    BASE_TRY(text_new_items(r, a.kind, (size_t)all, out));
    for (int64_t i = 0; i < all; i++)
        BASE_TRY(text_append(r, out->items, a.items->values[(size_t)i % a.items->count]));
    return SIFR_OK;
}

static bool is_series(text_value v) {
    return v.kind == TEXT_STRING || v.kind == TEXT_LIST || v.kind == TEXT_TUPLE;
}

static bool is_text(text_value v) {
    return v.kind == TEXT_STRING || v.kind == TEXT_SAFE;
}

static bool is_whole(text_value v) {
    return v.kind == TEXT_INT || v.kind == TEXT_BOOL;
}

sifr_status text_binary(text_render *r, int op, text_value a, text_value b, text_value *out) {
    if (text_is_number(a) && text_is_number(b)) return number_binary(r, op, a, b, out);
    if (op == '+' && a.kind == b.kind && a.kind == TEXT_STRING)
        return join_texts(r, a.text, b.text, out);
    if (op == '+' && is_text(a) && is_text(b)) return join_safe(r, a, b, out);
    if (op == '+' && a.kind == b.kind && is_series(a)) return join_items(r, a, b, out);
    if (op == '*' && is_series(a) && is_whole(b))
        return repeat(r, a, b.kind == TEXT_INT ? b.integer : b.truth, out);
    if (op == '*' && is_series(b) && is_whole(a))
        return repeat(r, b, a.kind == TEXT_INT ? a.integer : a.truth, out);
    if (op == '%' && a.kind == TEXT_STRING) return text_percent(r, a.text, b, out);
    return no_operator(r, op, a, b);
}

static sifr_status eval_unary(text_render *r, const text_node *node, text_value *out) {
    text_value v;
    BASE_TRY(text_eval(r, node->left, &v));
    if (node->op == 'n') {
        *out = text_of_bool(!text_truth(v));
        return SIFR_OK;
    }
    if (!text_is_number(v)) return no_operator(r, node->op, v, v);
    if (v.kind == TEXT_FLOAT) {
        *out = text_of_float(node->op == '-' ? -v.real : v.real);
        return SIFR_OK;
    }
    return number_binary(r, node->op, text_of_int(0), v, out);
}

/* ---- the other nodes ---- */

static sifr_status eval_items(text_render *r, const text_node *node, text_value *out) {
    text_value v;
    BASE_TRY(
        text_new_items(r, node->kind == TEXT_NODE_LIST ? TEXT_LIST : TEXT_TUPLE, node->count, out));
    for (size_t i = 0; i < node->count; i++) {
        BASE_TRY(text_eval(r, node->items[i], &v));
        BASE_TRY(text_append(r, out->items, v));
    }
    return SIFR_OK;
}

static sifr_status eval_dict(text_render *r, const text_node *node, text_value *out) {
    text_value key, v;
    BASE_TRY(text_new_dict(r, TEXT_DICT, node->count / 2, out));
    for (size_t i = 0; i + 1 < node->count; i += 2) {
        BASE_TRY(text_eval(r, node->items[i], &key));
        BASE_TRY(text_eval(r, node->items[i + 1], &v));
        BASE_TRY(text_dict_set(r, out->dict, key, v));
    }
    return SIFR_OK;
}

static sifr_status eval_binary(text_render *r, const text_node *node, text_value *out) {
    text_value a, b;
    BASE_TRY(text_eval(r, node->left, &a));
    BASE_TRY(text_eval(r, node->right, &b));
    r->place.line = node->line;
    return text_binary(r, node->op, a, b, out);
}

static sifr_status eval_concat(text_render *r, const text_node *node, text_value *out) {
    text_builder b = {0};
    for (size_t i = 0; i < node->count; i++) {
        text_value v;
        BASE_TRY(text_eval(r, node->items[i], &v));
        BASE_TRY(text_print(r, &b, v));
    }
    *out = text_of_text(text_built(&b));
    return SIFR_OK;
}

static sifr_status eval_compare(text_render *r, const text_node *node, text_value *out) {
    text_value a, b;
    bool truth = true;
    BASE_TRY(text_eval(r, node->left, &a));
    for (size_t i = 0; truth && i < node->count; i++) {
        BASE_TRY(text_eval(r, node->items[i]->left, &b));
        r->place.line = node->line;
        BASE_TRY(text_compare(r, node->items[i]->op, a, b, &truth));
        a = b;
    }
    *out = text_of_bool(truth);
    return SIFR_OK;
}

static sifr_status eval_choice(text_render *r, const text_node *node, text_value *out) {
    text_value test;
    BASE_TRY(text_eval(r, node->test, &test));
    if (text_truth(test)) return text_eval(r, node->left, out);
    if (node->right) return text_eval(r, node->right, out);
    *out = text_undefined(text_literal("the value of an if without else"));
    return SIFR_OK;
}

static sifr_status eval_logic(text_render *r, const text_node *node, text_value *out) {
    BASE_TRY(text_eval(r, node->left, out));
    if (text_truth(*out) != (node->kind == TEXT_NODE_AND)) return SIFR_OK;
    return text_eval(r, node->right, out);
}

static sifr_status eval_slice(text_render *r, const text_node *node, text_value v,
                              text_value *out) {
    const text_node *parts[3] = {node->left, node->right, node->test};
    text_value bounds[3] = {{.kind = TEXT_ABSENT}};
    for (int i = 0; i < 3; i++) {
        bounds[i].kind = TEXT_ABSENT;
        if (parts[i]) BASE_TRY(text_eval(r, parts[i], &bounds[i]));
    }
    return text_slice(r, v, bounds, out);
}

static sifr_status eval_item(text_render *r, const text_node *node, text_value *out) {
    text_value v, key;
    BASE_TRY(text_eval(r, node->left, &v));
    r->place.line = node->line;
    if (node->right->kind == TEXT_NODE_SLICE) return eval_slice(r, node->right, v, out);
    BASE_TRY(text_eval(r, node->right, &key));
    return text_item(r, v, key, out);
}

/* The arguments of a call node; `extra`, where it is no TEXT_ABSENT, is one more: caller. */
sifr_status text_eval_call(text_render *r, const text_node *node, text_value extra,
                           text_call *out) {
    text_value *values;
    text_text *names;
    size_t all = node->count + 1;
    BASE_TRY(TEXT_TAKE(r, all, sizeof *values, &values));
    BASE_TRY(TEXT_TAKE(r, all, sizeof *names, &names));
    *out = (text_call){.values = values, .names = names};
    for (size_t i = 0; i < node->count; i++) {
        const text_node *item = node->items[i];
        bool named = item->kind == TEXT_NODE_KEYWORD;
        BASE_TRY(text_eval(r, named ? item->left : item, &values[i]));
        if (named)
            names[out->named++] = item->text;
        else
            out->count++;
    }
    if (extra.kind == TEXT_ABSENT) return SIFR_OK;
    values[node->count] = extra;
    names[out->named++] = text_literal("caller");
    return SIFR_OK;
}

static sifr_status eval_call(text_render *r, const text_node *node, text_value *out) {
    text_value function;
    text_call call;
    BASE_TRY(text_eval(r, node->left, &function));
    BASE_TRY(text_eval_call(r, node, (text_value){.kind = TEXT_ABSENT}, &call));
    r->place.line = node->line;
    return text_call_value(r, function, &call, out);
}

static sifr_status eval_filter(text_render *r, const text_node *node, text_value *out) {
    text_value self;
    text_call call;
    BASE_TRY(text_eval(r, node->left, &self));
    BASE_TRY(text_eval_call(r, node, (text_value){.kind = TEXT_ABSENT}, &call));
    r->place.line = node->line;
    return text_call_builtin(r, node->function, self, &call, out);
}

static sifr_status eval_node(text_render *r, const text_node *node, text_value *out) {
    switch (node->kind) {
    case TEXT_NODE_CONSTANT:
        *out = node->value;
        return SIFR_OK;
    case TEXT_NODE_NAME:
        return text_scope_get(r, node, out);
    case TEXT_NODE_LIST:
    case TEXT_NODE_TUPLE:
        return eval_items(r, node, out);
    case TEXT_NODE_DICT:
        return eval_dict(r, node, out);
    case TEXT_NODE_UNARY:
        return eval_unary(r, node, out);
    case TEXT_NODE_BINARY:
        return eval_binary(r, node, out);
    case TEXT_NODE_AND:
    case TEXT_NODE_OR:
        return eval_logic(r, node, out);
    case TEXT_NODE_CONCAT:
        return eval_concat(r, node, out);
    case TEXT_NODE_COMPARE:
        return eval_compare(r, node, out);
    case TEXT_NODE_CHOICE:
        return eval_choice(r, node, out);
    case TEXT_NODE_ATTRIBUTE: {
        text_value v;
        BASE_TRY(text_eval(r, node->left, &v));
        r->place.line = node->line;
        return text_attribute(r, v, node->text, out);
    }
    case TEXT_NODE_ITEM:
        return eval_item(r, node, out);
    case TEXT_NODE_CALL:
        return eval_call(r, node, out);
    case TEXT_NODE_FILTER:
    case TEXT_NODE_TEST:
        return eval_filter(r, node, out);
    case TEXT_NODE_FILTERED: /* set by who evaluates the filters around it */
        *out = r->filtered;
        return SIFR_OK;
    default:
        return text_template_fail(&r->place, "no expression");
    }
}

sifr_status text_eval(text_render *r, const text_node *node, text_value *out) {
    BASE_TRY(text_template_charge(r, 1));
    BASE_TRY(text_template_enter(r));
    r->place.line = node->line;
    sifr_status status = eval_node(r, node, out);
    r->depth--;
    return status;
}
