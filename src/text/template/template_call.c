/* Calls of macros, functions, methods, filters and tests. */
#include "text/template/template_internal.h"

/* The word number `index` of `parameters`; size 0 past the last. */
static formats_text parameter(const char *parameters, size_t index) {
    while (parameters && index-- && parameters) {
        parameters = strchr(parameters, ' ');
        if (parameters) parameters++;
    }
    if (!parameters) return (formats_text){"", 0};
    return (formats_text){parameters, strcspn(parameters, " ")};
}

static sifr_status place_named(formats_render *r, const formats_builtin *function,
                               formats_text name, formats_value v, formats_value *arguments) {
    for (size_t i = 0; i < FORMATS_PARAMETERS; i++) {
        formats_text wanted = parameter(function->parameters, i);
        if (wanted.size == 0) break;
        if (!formats_text_equal(wanted, name)) continue;
        if (arguments[i].kind != FORMATS_ABSENT)
            return formats_template_fail(&r->place, "%s gets %.*s twice", function->name,
                                         (int)name.size, name.bytes);
        arguments[i] = v;
        return SIFR_OK;
    }
    return formats_template_fail(&r->place, "%s has no argument %.*s (it has: %s)", function->name,
                                 (int)name.size, name.bytes,
                                 function->parameters ? function->parameters : "none");
}

sifr_status formats_call_builtin(formats_render *r, const formats_builtin *function,
                                 formats_value self, const formats_call *call, formats_value *out) {
    formats_value arguments[FORMATS_PARAMETERS];
    if (function->run_any) return function->run_any(r, self, call, out);
    if (!function->run)
        return formats_template_fail(&r->place, "%s is not supported yet", function->name);
    for (size_t i = 0; i < FORMATS_PARAMETERS; i++) {
        arguments[i] = (formats_value){.kind = FORMATS_ABSENT};
        if (i < call->count && parameter(function->parameters, i).size)
            arguments[i] = call->values[i];
    }
    if (call->count && (call->count > FORMATS_PARAMETERS ||
                        parameter(function->parameters, call->count - 1).size == 0))
        return formats_template_fail(&r->place, "%s does not take %zu arguments", function->name,
                                     call->count);
    for (size_t i = 0; i < call->named; i++)
        BASE_TRY(
            place_named(r, function, call->names[i], call->values[call->count + i], arguments));
    for (size_t i = 0; i < function->required; i++) {
        if (arguments[i].kind != FORMATS_ABSENT) continue;
        formats_text name = parameter(function->parameters, i);
        return formats_template_fail(&r->place, "%s needs the argument %.*s", function->name,
                                     (int)name.size, name.bytes);
    }
    return function->run(r, self, arguments, out);
}

/* ---- macros ---- */

/* The argument named `name`, or nothing. */
static formats_value named_argument(const formats_call *call, formats_text name) {
    for (size_t i = 0; i < call->named; i++) {
        if (formats_text_equal(call->names[i], name)) return call->values[call->count + i];
    }
    return (formats_value){.kind = FORMATS_ABSENT};
}

static sifr_status set_parameters(formats_render *r, const formats_node *node,
                                  const formats_call *call) {
    for (size_t i = 0; i < node->count; i++) {
        const formats_node *p = node->items[i];
        formats_value v = i < call->count ? call->values[i] : named_argument(call, p->text);
        if (v.kind == FORMATS_ABSENT && p->left)
            BASE_TRY(formats_eval(r, p->left, &v));
        else if (v.kind == FORMATS_ABSENT)
            v = formats_undefined(p->text);
        BASE_TRY(formats_scope_set(r, p->symbol, v));
    }
    return SIFR_OK;
}

static sifr_status check_arguments(formats_render *r, const formats_node *node,
                                   const formats_call *call) {
    if (call->count > node->count)
        return formats_template_fail(&r->place, "the macro %.*s takes at most %zu arguments",
                                     (int)node->text.size, node->text.bytes, node->count);
    BASE_TRY(formats_template_charge(r, call->named * (node->count + 1) / 8));
    for (size_t i = 0; i < call->named; i++) {
        size_t at = call->count;
        while (at < node->count && !formats_text_equal(node->items[at]->text, call->names[i])) at++;
        if (at < node->count || formats_text_is(call->names[i], "caller")) continue;
        return formats_template_fail(&r->place, "the macro %.*s takes no argument %.*s",
                                     (int)node->text.size, node->text.bytes,
                                     (int)call->names[i].size, call->names[i].bytes);
    }
    return SIFR_OK;
}

static sifr_status run_macro(formats_render *r, const formats_node *node, const formats_call *call,
                             formats_value *out) {
    formats_value caller = named_argument(call, formats_literal("caller"));
    if (caller.kind == FORMATS_ABSENT) caller = formats_undefined(formats_literal("caller"));
    BASE_TRY(formats_scope_push(r));
    BASE_TRY(formats_scope_set(r, r->t->caller_symbol, caller));
    BASE_TRY(set_parameters(r, node, call));
    return formats_capture(r, node->body, out);
}

sifr_status formats_call_macro(formats_render *r, const formats_macro *macro,
                               const formats_call *call, formats_value *out) {
    formats_scope *scope = r->scope;
    BASE_TRY(check_arguments(r, macro->node, call));
    BASE_TRY(formats_template_enter(r));
    r->scope = macro->scope;
    sifr_status status = run_macro(r, macro->node, call, out);
    r->scope = scope;
    r->depth--;
    return status;
}

sifr_status formats_call_value(formats_render *r, formats_value function, const formats_call *call,
                               formats_value *out) {
    formats_value nothing = {.kind = FORMATS_ABSENT};
    switch (function.kind) {
    case FORMATS_MACRO:
        return formats_call_macro(r, function.macro, call, out);
    case FORMATS_FUNCTION:
        return formats_call_builtin(r, function.function, nothing, call, out);
    case FORMATS_METHOD:
        return formats_call_builtin(r, function.method->function, function.method->self, call, out);
    case FORMATS_LOOP:
        return formats_call_loop(r, function.loop, call, out);
    case FORMATS_UNDEFINED:
        return formats_template_fail(&r->place,
                                     "%.*s is undefined or not supported, and cannot be called",
                                     (int)function.text.size, function.text.bytes);
    default:
        return formats_template_fail(&r->place, "a value of type %s cannot be called",
                                     formats_kind_name(function));
    }
}
