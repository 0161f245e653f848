/* Calls of macros, functions, methods, filters and tests. */
#include "text/template/template_internal.h"

/* The word number `index` of `parameters`; size 0 past the last. */
static text_text parameter(const char *parameters, size_t index) {
    while (parameters && index-- && parameters) {
        parameters = strchr(parameters, ' ');
        if (parameters) parameters++;
    }
    if (!parameters) return (text_text){"", 0};
    return (text_text){parameters, strcspn(parameters, " ")};
}

static sifr_status place_named(text_render *r, const text_builtin *function, text_text name,
                               text_value v, text_value *arguments) {
    for (size_t i = 0; i < TEXT_PARAMETERS; i++) {
        text_text wanted = parameter(function->parameters, i);
        if (wanted.size == 0) break;
        if (!text_text_equal(wanted, name)) continue;
        if (arguments[i].kind != TEXT_ABSENT)
            return text_template_fail(&r->place, "%s gets %.*s twice", function->name,
                                      (int)name.size, name.bytes);
        arguments[i] = v;
        return SIFR_OK;
    }
    return text_template_fail(&r->place, "%s has no argument %.*s (it has: %s)", function->name,
                              (int)name.size, name.bytes,
                              function->parameters ? function->parameters : "none");
}

sifr_status text_call_builtin(text_render *r, const text_builtin *function, text_value self,
                              const text_call *call, text_value *out) {
    text_value arguments[TEXT_PARAMETERS];
    if (function->run_any) return function->run_any(r, self, call, out);
    if (!function->run)
        return text_template_fail(&r->place, "%s is not supported yet", function->name);
    for (size_t i = 0; i < TEXT_PARAMETERS; i++) {
        arguments[i] = (text_value){.kind = TEXT_ABSENT};
        if (i < call->count && parameter(function->parameters, i).size)
            arguments[i] = call->values[i];
    }
    if (call->count && (call->count > TEXT_PARAMETERS ||
                        parameter(function->parameters, call->count - 1).size == 0))
        return text_template_fail(&r->place, "%s does not take %zu arguments", function->name,
                                  call->count);
    for (size_t i = 0; i < call->named; i++)
        BASE_TRY(
            place_named(r, function, call->names[i], call->values[call->count + i], arguments));
    for (size_t i = 0; i < function->required; i++) {
        if (arguments[i].kind != TEXT_ABSENT) continue;
        text_text name = parameter(function->parameters, i);
        return text_template_fail(&r->place, "%s needs the argument %.*s", function->name,
                                  (int)name.size, name.bytes);
    }
    return function->run(r, self, arguments, out);
}

/* ---- macros ---- */

/* The argument named `name`, or nothing. */
static text_value named_argument(const text_call *call, text_text name) {
    for (size_t i = 0; i < call->named; i++) {
        if (text_text_equal(call->names[i], name)) return call->values[call->count + i];
    }
    return (text_value){.kind = TEXT_ABSENT};
}

static sifr_status set_parameters(text_render *r, const text_node *node, const text_call *call) {
    for (size_t i = 0; i < node->count; i++) {
        const text_node *p = node->items[i];
        text_value v = i < call->count ? call->values[i] : named_argument(call, p->text);
        if (v.kind == TEXT_ABSENT && p->left)
            BASE_TRY(text_eval(r, p->left, &v));
        else if (v.kind == TEXT_ABSENT)
            v = text_undefined(p->text);
        BASE_TRY(text_scope_set(r, p->symbol, v));
    }
    return SIFR_OK;
}

static sifr_status check_arguments(text_render *r, const text_node *node, const text_call *call) {
    if (call->count > node->count)
        return text_template_fail(&r->place, "the macro %.*s takes at most %zu arguments",
                                  (int)node->text.size, node->text.bytes, node->count);
    BASE_TRY(text_template_charge(r, call->named * (node->count + 1) / 8));
    for (size_t i = 0; i < call->named; i++) {
        size_t at = call->count;
        while (at < node->count && !text_text_equal(node->items[at]->text, call->names[i])) at++;
        if (at < node->count || text_text_is(call->names[i], "caller")) continue;
        return text_template_fail(&r->place, "the macro %.*s takes no argument %.*s",
                                  (int)node->text.size, node->text.bytes, (int)call->names[i].size,
                                  call->names[i].bytes);
    }
    return SIFR_OK;
}

static sifr_status run_macro(text_render *r, const text_node *node, const text_call *call,
                             text_value *out) {
    text_value caller = named_argument(call, text_literal("caller"));
    if (caller.kind == TEXT_ABSENT) caller = text_undefined(text_literal("caller"));
    BASE_TRY(text_scope_push(r));
    BASE_TRY(text_scope_set(r, r->t->caller_symbol, caller));
    BASE_TRY(set_parameters(r, node, call));
    return text_capture(r, node->body, out);
}

sifr_status text_call_macro(text_render *r, const text_macro *macro, const text_call *call,
                            text_value *out) {
    text_scope *scope = r->scope;
    BASE_TRY(check_arguments(r, macro->node, call));
    BASE_TRY(text_template_enter(r));
    r->scope = macro->scope;
    sifr_status status = run_macro(r, macro->node, call, out);
    r->scope = scope;
    r->depth--;
    return status;
}

sifr_status text_call_value(text_render *r, text_value function, const text_call *call,
                            text_value *out) {
    text_value nothing = {.kind = TEXT_ABSENT};
    switch (function.kind) {
    case TEXT_MACRO:
        return text_call_macro(r, function.macro, call, out);
    case TEXT_FUNCTION:
        return text_call_builtin(r, function.function, nothing, call, out);
    case TEXT_METHOD:
        return text_call_builtin(r, function.method->function, function.method->self, call, out);
    case TEXT_LOOP:
        return text_call_loop(r, function.loop, call, out);
    case TEXT_UNDEFINED:
        return text_template_fail(&r->place,
                                  "%.*s is undefined or not supported, and cannot be called",
                                  (int)function.text.size, function.text.bytes);
    default:
        return text_template_fail(&r->place, "a value of type %s cannot be called",
                                  text_kind_name(function));
    }
}
