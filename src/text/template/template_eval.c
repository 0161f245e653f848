/* Evaluates expressions. */
#include <math.h>

#include "text/template/template_internal.h"

/* ---- arithmetic ---- */

static sifr_status no_operator(formats_render *r, int op, formats_value a, formats_value b) {
    char name[3] = {(char)(op & 255), (char)(op >> 8), 0};
    formats_value missing = a.kind == FORMATS_UNDEFINED ? a : b;
    if (missing.kind == FORMATS_UNDEFINED)
        return formats_template_fail(&r->place, "%.*s is undefined, and '%s' needs a value",
                                     (int)missing.text.size, missing.text.bytes, name);
    return formats_template_fail(&r->place, "'%s' of %s and %s is not possible", name,
                                 formats_kind_name(a), formats_kind_name(b));
}

static sifr_status overflow(formats_render *r) {
    return formats_template_fail(&r->place, "whole numbers beyond 64 bits are not supported");
}

static sifr_status real_power(formats_render *r, double a, double b, formats_value *out) {
    double result = pow(a, b);
    if ((a == 0 && b < 0) || (isfinite(a) && isfinite(b) && !isfinite(result)))
        return formats_template_fail(&r->place, "'**' of these numbers is not possible");
    *out = formats_of_float(result);
    return SIFR_OK;
}

static sifr_status real_binary(formats_render *r, int op, double a, double b, formats_value *out) {
    if ((op == '/' || op == FORMATS_OP_FLOOR || op == '%') && b == 0)
        return formats_template_fail(&r->place, "division by zero");
    if (op == FORMATS_OP_POWER) return real_power(r, a, b, out);
    double rest = op == '%' ? fmod(a, b) : 0;
    if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
    *out = formats_of_float(op == '+'                ? a + b
                            : op == '-'              ? a - b
                            : op == '*'              ? a * b
                            : op == '/'              ? a / b
                            : op == FORMATS_OP_FLOOR ? floor(a / b)
                                                     : rest);
    return SIFR_OK;
}

static sifr_status int_power(formats_render *r, int64_t base, int64_t exponent,
                             formats_value *out) {
    int64_t result = 1;
    if (exponent < 0) return real_binary(r, FORMATS_OP_POWER, (double)base, (double)exponent, out);
    if (base >= -1 && base <= 1) exponent = exponent == 0 ? 0 : 2 - exponent % 2;
    for (int64_t i = 0; i < exponent; i++) {
        if (!base_mul_i64(result, base, &result)) return overflow(r);
    }
    *out = formats_of_int(result);
    return SIFR_OK;
}

/* Division rounds down, as in Python. */
static sifr_status int_divide(formats_render *r, int op, int64_t a, int64_t b, formats_value *out) {
    if (b == 0) return formats_template_fail(&r->place, "division by zero");
    if (b == -1) {
        if (a == INT64_MIN) return overflow(r);
        *out = formats_of_int(op == '%' ? 0 : -a);
        return SIFR_OK;
    }
    int64_t quotient = a / b, rest = a % b;
    if (rest != 0 && (rest < 0) != (b < 0)) {
        quotient--;
        rest += b;
    }
    *out = formats_of_int(op == '%' ? rest : quotient);
    return SIFR_OK;
}

static sifr_status int_binary(formats_render *r, int op, int64_t a, int64_t b, formats_value *out) {
    int64_t result = 0;
    bool fits = true;
    if (op == '/') return real_binary(r, op, (double)a, (double)b, out);
    if (op == FORMATS_OP_POWER) return int_power(r, a, b, out);
    if (op == FORMATS_OP_FLOOR || op == '%') return int_divide(r, op, a, b, out);
    if (op == '+') fits = base_add_i64(a, b, &result);
    if (op == '-') fits = !__builtin_sub_overflow(a, b, &result);
    if (op == '*') fits = base_mul_i64(a, b, &result);
    *out = formats_of_int(result);
    return fits ? SIFR_OK : overflow(r);
}

static sifr_status number_binary(formats_render *r, int op, formats_value a, formats_value b,
                                 formats_value *out) {
    if (a.kind == FORMATS_FLOAT || b.kind == FORMATS_FLOAT)
        return real_binary(r, op, formats_number(a), formats_number(b), out);
    return int_binary(r, op, a.kind == FORMATS_INT ? a.integer : a.truth,
                      b.kind == FORMATS_INT ? b.integer : b.truth, out);
}

static sifr_status join_items(formats_render *r, formats_value a, formats_value b,
                              formats_value *out) {
    BASE_TRY(formats_new_items(r, a.kind, a.items->count + b.items->count, out));
    for (size_t i = 0; i < a.items->count; i++)
        BASE_TRY(formats_append(r, out->items, a.items->values[i]));
    for (size_t i = 0; i < b.items->count; i++)
        BASE_TRY(formats_append(r, out->items, b.items->values[i]));
    return SIFR_OK;
}

static sifr_status join_texts(formats_render *r, formats_text a, formats_text b,
                              formats_value *out) {
    formats_builder builder = {0};
    size_t all;
    if (!base_add_size(a.size, b.size, &all) || all > FORMATS_TEMPLATE_OUTPUT)
        return formats_template_fail(&r->place, "a text of more than %zu MiB",
                                     FORMATS_TEMPLATE_OUTPUT >> 20);
    BASE_TRY(FORMATS_TAKE(r, all + 1, 1, &builder.bytes));
    builder.room = all + 1;
    BASE_TRY(formats_build(r, &builder, a.bytes, a.size));
    BASE_TRY(formats_build(r, &builder, b.bytes, b.size));
    *out = formats_of_text(formats_built(&builder));
    return SIFR_OK;
}

/* "ab" * 3, [a] * 3 */
static sifr_status repeat(formats_render *r, formats_value a, int64_t count, formats_value *out) {
    formats_builder b = {0};
    int64_t all;
    if (a.kind == FORMATS_STRING) {
        BASE_TRY(formats_build_repeated(r, &b, a.text, count));
        *out = formats_of_text(formats_built(&b));
        return SIFR_OK;
    }
    if (count < 0) count = 0;
    if (!base_mul_i64((int64_t)a.items->count, count, &all)) all = INT64_MAX;
    BASE_TRY(formats_template_charge(r, (size_t)all));
    BASE_TRY(formats_new_items(r, a.kind, (size_t)all, out));
    for (int64_t i = 0; i < all; i++)
        BASE_TRY(formats_append(r, out->items, a.items->values[(size_t)i % a.items->count]));
    return SIFR_OK;
}

static bool is_series(formats_value v) {
    return v.kind == FORMATS_STRING || v.kind == FORMATS_LIST || v.kind == FORMATS_TUPLE;
}

static bool is_whole(formats_value v) {
    return v.kind == FORMATS_INT || v.kind == FORMATS_BOOL;
}

sifr_status formats_binary(formats_render *r, int op, formats_value a, formats_value b,
                           formats_value *out) {
    if (formats_is_number(a) && formats_is_number(b)) return number_binary(r, op, a, b, out);
    if (op == '+' && a.kind == b.kind && a.kind == FORMATS_STRING)
        return join_texts(r, a.text, b.text, out);
    if (op == '+' && a.kind == b.kind && is_series(a)) return join_items(r, a, b, out);
    if (op == '*' && is_series(a) && is_whole(b))
        return repeat(r, a, b.kind == FORMATS_INT ? b.integer : b.truth, out);
    if (op == '*' && is_series(b) && is_whole(a))
        return repeat(r, b, a.kind == FORMATS_INT ? a.integer : a.truth, out);
    if (op == '%' && a.kind == FORMATS_STRING) return formats_percent(r, a.text, b, out);
    return no_operator(r, op, a, b);
}

static sifr_status eval_unary(formats_render *r, const formats_node *node, formats_value *out) {
    formats_value v;
    BASE_TRY(formats_eval(r, node->left, &v));
    if (node->op == 'n') {
        *out = formats_of_bool(!formats_truth(v));
        return SIFR_OK;
    }
    if (!formats_is_number(v)) return no_operator(r, node->op, v, v);
    if (v.kind == FORMATS_FLOAT) {
        *out = formats_of_float(node->op == '-' ? -v.real : v.real);
        return SIFR_OK;
    }
    return number_binary(r, node->op, formats_of_int(0), v, out);
}

/* ---- the other nodes ---- */

static sifr_status eval_items(formats_render *r, const formats_node *node, formats_value *out) {
    formats_value v;
    BASE_TRY(formats_new_items(r, node->kind == FORMATS_NODE_LIST ? FORMATS_LIST : FORMATS_TUPLE,
                               node->count, out));
    for (size_t i = 0; i < node->count; i++) {
        BASE_TRY(formats_eval(r, node->items[i], &v));
        BASE_TRY(formats_append(r, out->items, v));
    }
    return SIFR_OK;
}

static sifr_status eval_dict(formats_render *r, const formats_node *node, formats_value *out) {
    formats_value key, v;
    BASE_TRY(formats_new_dict(r, FORMATS_DICT, node->count / 2, out));
    for (size_t i = 0; i + 1 < node->count; i += 2) {
        BASE_TRY(formats_eval(r, node->items[i], &key));
        BASE_TRY(formats_eval(r, node->items[i + 1], &v));
        BASE_TRY(formats_dict_set(r, out->dict, key, v));
    }
    return SIFR_OK;
}

static sifr_status eval_binary(formats_render *r, const formats_node *node, formats_value *out) {
    formats_value a, b;
    BASE_TRY(formats_eval(r, node->left, &a));
    BASE_TRY(formats_eval(r, node->right, &b));
    r->place.line = node->line;
    return formats_binary(r, node->op, a, b, out);
}

static sifr_status eval_concat(formats_render *r, const formats_node *node, formats_value *out) {
    formats_builder b = {0};
    for (size_t i = 0; i < node->count; i++) {
        formats_value v;
        BASE_TRY(formats_eval(r, node->items[i], &v));
        BASE_TRY(formats_print(r, &b, v));
    }
    *out = formats_of_text(formats_built(&b));
    return SIFR_OK;
}

static sifr_status eval_compare(formats_render *r, const formats_node *node, formats_value *out) {
    formats_value a, b;
    bool truth = true;
    BASE_TRY(formats_eval(r, node->left, &a));
    for (size_t i = 0; truth && i < node->count; i++) {
        BASE_TRY(formats_eval(r, node->items[i]->left, &b));
        r->place.line = node->line;
        BASE_TRY(formats_compare(r, node->items[i]->op, a, b, &truth));
        a = b;
    }
    *out = formats_of_bool(truth);
    return SIFR_OK;
}

static sifr_status eval_choice(formats_render *r, const formats_node *node, formats_value *out) {
    formats_value test;
    BASE_TRY(formats_eval(r, node->test, &test));
    if (formats_truth(test)) return formats_eval(r, node->left, out);
    if (node->right) return formats_eval(r, node->right, out);
    *out = formats_undefined(formats_literal("the value of an if without else"));
    return SIFR_OK;
}

static sifr_status eval_logic(formats_render *r, const formats_node *node, formats_value *out) {
    BASE_TRY(formats_eval(r, node->left, out));
    if (formats_truth(*out) != (node->kind == FORMATS_NODE_AND)) return SIFR_OK;
    return formats_eval(r, node->right, out);
}

static sifr_status eval_slice(formats_render *r, const formats_node *node, formats_value v,
                              formats_value *out) {
    const formats_node *parts[3] = {node->left, node->right, node->test};
    formats_value bounds[3] = {{.kind = FORMATS_ABSENT}};
    for (int i = 0; i < 3; i++) {
        bounds[i].kind = FORMATS_ABSENT;
        if (parts[i]) BASE_TRY(formats_eval(r, parts[i], &bounds[i]));
    }
    return formats_slice(r, v, bounds, out);
}

static sifr_status eval_item(formats_render *r, const formats_node *node, formats_value *out) {
    formats_value v, key;
    BASE_TRY(formats_eval(r, node->left, &v));
    r->place.line = node->line;
    if (node->right->kind == FORMATS_NODE_SLICE) return eval_slice(r, node->right, v, out);
    BASE_TRY(formats_eval(r, node->right, &key));
    return formats_item(r, v, key, out);
}

/* The arguments of a call node; `extra`, where it is no FORMATS_ABSENT, is one more: caller. */
sifr_status formats_eval_call(formats_render *r, const formats_node *node, formats_value extra,
                              formats_call *out) {
    formats_value *values;
    formats_text *names;
    size_t all = node->count + 1;
    BASE_TRY(FORMATS_TAKE(r, all, sizeof *values, &values));
    BASE_TRY(FORMATS_TAKE(r, all, sizeof *names, &names));
    *out = (formats_call){.values = values, .names = names};
    for (size_t i = 0; i < node->count; i++) {
        const formats_node *item = node->items[i];
        bool named = item->kind == FORMATS_NODE_KEYWORD;
        BASE_TRY(formats_eval(r, named ? item->left : item, &values[i]));
        if (named)
            names[out->named++] = item->text;
        else
            out->count++;
    }
    if (extra.kind == FORMATS_ABSENT) return SIFR_OK;
    values[node->count] = extra;
    names[out->named++] = formats_literal("caller");
    return SIFR_OK;
}

static sifr_status eval_call(formats_render *r, const formats_node *node, formats_value *out) {
    formats_value function;
    formats_call call;
    BASE_TRY(formats_eval(r, node->left, &function));
    BASE_TRY(formats_eval_call(r, node, (formats_value){.kind = FORMATS_ABSENT}, &call));
    r->place.line = node->line;
    return formats_call_value(r, function, &call, out);
}

static sifr_status eval_filter(formats_render *r, const formats_node *node, formats_value *out) {
    formats_value self;
    formats_call call;
    BASE_TRY(formats_eval(r, node->left, &self));
    BASE_TRY(formats_eval_call(r, node, (formats_value){.kind = FORMATS_ABSENT}, &call));
    r->place.line = node->line;
    return formats_call_builtin(r, node->function, self, &call, out);
}

static sifr_status eval_node(formats_render *r, const formats_node *node, formats_value *out) {
    switch (node->kind) {
    case FORMATS_NODE_CONSTANT:
        *out = node->value;
        return SIFR_OK;
    case FORMATS_NODE_NAME:
        return formats_scope_get(r, node, out);
    case FORMATS_NODE_LIST:
    case FORMATS_NODE_TUPLE:
        return eval_items(r, node, out);
    case FORMATS_NODE_DICT:
        return eval_dict(r, node, out);
    case FORMATS_NODE_UNARY:
        return eval_unary(r, node, out);
    case FORMATS_NODE_BINARY:
        return eval_binary(r, node, out);
    case FORMATS_NODE_AND:
    case FORMATS_NODE_OR:
        return eval_logic(r, node, out);
    case FORMATS_NODE_CONCAT:
        return eval_concat(r, node, out);
    case FORMATS_NODE_COMPARE:
        return eval_compare(r, node, out);
    case FORMATS_NODE_CHOICE:
        return eval_choice(r, node, out);
    case FORMATS_NODE_ATTRIBUTE: {
        formats_value v;
        BASE_TRY(formats_eval(r, node->left, &v));
        r->place.line = node->line;
        return formats_attribute(r, v, node->text, out);
    }
    case FORMATS_NODE_ITEM:
        return eval_item(r, node, out);
    case FORMATS_NODE_CALL:
        return eval_call(r, node, out);
    case FORMATS_NODE_FILTER:
    case FORMATS_NODE_TEST:
        return eval_filter(r, node, out);
    case FORMATS_NODE_FILTERED: /* set by who evaluates the filters around it */
        *out = r->filtered;
        return SIFR_OK;
    default:
        return formats_template_fail(&r->place, "no expression");
    }
}

sifr_status formats_eval(formats_render *r, const formats_node *node, formats_value *out) {
    BASE_TRY(formats_template_charge(r, 1));
    BASE_TRY(formats_template_enter(r));
    r->place.line = node->line;
    sifr_status status = eval_node(r, node, out);
    r->depth--;
    return status;
}
