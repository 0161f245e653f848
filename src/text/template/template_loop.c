/* Loops, and what statements assign to. */
#include "text/template/template_internal.h"

/* ---- targets ---- */

static sifr_status assign_member(formats_render *r, const formats_node *target, formats_value v) {
    formats_node name = {.symbol = target->symbol, .text = r->t->symbols[target->symbol]};
    formats_value space;
    BASE_TRY(formats_scope_get(r, &name, &space));
    if (space.kind != FORMATS_NAMESPACE)
        return formats_template_fail(&r->place, "cannot set %.*s of %.*s, which is no namespace",
                                     (int)target->text.size, target->text.bytes,
                                     (int)name.text.size, name.text.bytes);
    if (target->text.bytes[0] == '_')
        return formats_template_fail(&r->place, "a namespace has no names that begin with _");
    return formats_dict_set(r, space.dict, formats_of_text(target->text), v);
}

sifr_status formats_assign(formats_render *r, const formats_node *target, formats_value v) {
    formats_items *parts;
    r->place.line = target->line;
    if (target->kind == FORMATS_NODE_NAME) return formats_scope_set(r, target->symbol, v);
    if (target->kind == FORMATS_NODE_MEMBER) return assign_member(r, target, v);
    BASE_TRY(formats_iterate(r, v, &parts));
    if (parts->count != target->count)
        return formats_template_fail(&r->place, "%zu values for %zu names", parts->count,
                                     target->count);
    for (size_t i = 0; i < parts->count; i++)
        BASE_TRY(formats_assign(r, target->items[i], parts->values[i]));
    return SIFR_OK;
}

/* ---- the items of a loop ---- */

static sifr_status passes(formats_render *r, const formats_loop *loop, formats_value v, bool *out) {
    formats_value test;
    BASE_TRY(formats_scope_push(r));
    BASE_TRY(formats_assign(r, loop->node->left, v));
    BASE_TRY(formats_eval(r, loop->node->test, &test));
    *out = formats_truth(test);
    return SIFR_OK;
}

/* The next item that the condition lets pass. */
static sifr_status take(formats_render *r, formats_loop *loop, bool *found, formats_value *out) {
    *found = false;
    if (loop->passed) {
        *found = loop->passed_next < loop->passed->count;
        if (*found) *out = loop->passed->values[loop->passed_next++];
        return SIFR_OK;
    }
    while (!*found && loop->next < loop->source->count) {
        *out = loop->source->values[loop->next++];
        *found = true;
        if (!loop->node->test) break;
        formats_scope *scope = r->scope;
        r->scope = loop->scope;
        sifr_status status = passes(r, loop, *out, found);
        r->scope = scope;
        BASE_TRY(status);
    }
    return SIFR_OK;
}

/* The item after the current one; it is found once. */
static sifr_status peek(formats_render *r, formats_loop *loop, bool *found, formats_value *out) {
    if (!loop->has_after) BASE_TRY(take(r, loop, &loop->has_after, &loop->after));
    *found = loop->has_after;
    if (*found) *out = loop->after;
    return SIFR_OK;
}

static sifr_status advance(formats_render *r, formats_loop *loop, bool *found) {
    formats_value v = {.kind = FORMATS_ABSENT};
    BASE_TRY(peek(r, loop, found, &v));
    if (!*found) return SIFR_OK;
    loop->has_after = false;
    loop->before = loop->current;
    loop->current = v;
    loop->index0++;
    return SIFR_OK;
}

static sifr_status length(formats_render *r, formats_loop *loop, int64_t *out) {
    if (loop->length < 0 && !loop->node->test) loop->length = (int64_t)loop->source->count;
    if (loop->length < 0) {
        formats_value rest, v;
        BASE_TRY(formats_new_items(r, FORMATS_LIST, 0, &rest));
        for (bool found;;) {
            BASE_TRY(take(r, loop, &found, &v));
            if (!found) break;
            BASE_TRY(formats_append(r, rest.items, v));
        }
        loop->passed = rest.items;
        loop->passed_next = 0;
        loop->length = (int64_t)rest.items->count + loop->index0 + 1 + loop->has_after;
    }
    *out = loop->length;
    return SIFR_OK;
}

/* ---- the variable `loop` ---- */

static sifr_status cycle(formats_render *r, formats_value self, const formats_call *call,
                         formats_value *out) {
    if (call->count == 0) return formats_template_fail(&r->place, "loop.cycle needs arguments");
    *out = call->values[(size_t)self.loop->index0 % call->count];
    return SIFR_OK;
}

/* Whether the arguments are others than those of the last call. */
static sifr_status changed(formats_render *r, formats_value self, const formats_call *call,
                           formats_value *out) {
    formats_loop *loop = self.loop;
    formats_value now;
    bool same = false;
    BASE_TRY(formats_new_items(r, FORMATS_TUPLE, call->count, &now));
    for (size_t i = 0; i < call->count; i++)
        BASE_TRY(formats_append(r, now.items, call->values[i]));
    if (loop->changed.kind == FORMATS_TUPLE) BASE_TRY(formats_equal(r, loop->changed, now, &same));
    if (!same) loop->changed = now;
    *out = formats_of_bool(!same);
    return SIFR_OK;
}

static sifr_status bind_loop(formats_render *r, formats_loop *loop, bool cycles,
                             formats_value *out) {
    static const formats_builtin functions[] = {{.name = "loop.changed", .run_any = changed},
                                                {.name = "loop.cycle", .run_any = cycle}};
    formats_method *method;
    BASE_TRY(FORMATS_TAKE(r, 1, sizeof *method, &method));
    *method = (formats_method){&functions[cycles], {.kind = FORMATS_LOOP, .loop = loop}};
    *out = (formats_value){.kind = FORMATS_METHOD, .method = method};
    return SIFR_OK;
}

sifr_status formats_loop_attribute(formats_render *r, formats_loop *loop, formats_text name,
                                   formats_value *out) {
    int64_t all;
    bool found;
    if (formats_text_is(name, "index")) {
        *out = formats_of_int(loop->index0 + 1);
    } else if (formats_text_is(name, "index0")) {
        *out = formats_of_int(loop->index0);
    } else if (formats_text_is(name, "first")) {
        *out = formats_of_bool(loop->index0 == 0);
    } else if (formats_text_is(name, "last")) {
        BASE_TRY(peek(r, loop, &found, out));
        *out = formats_of_bool(!found);
    } else if (formats_text_is(name, "length")) {
        BASE_TRY(length(r, loop, &all));
        *out = formats_of_int(all);
    } else if (formats_text_is(name, "revindex") || formats_text_is(name, "revindex0")) {
        BASE_TRY(length(r, loop, &all));
        *out = formats_of_int(all - loop->index0 - (name.size == strlen("revindex0")));
    } else if (formats_text_is(name, "previtem")) {
        *out = loop->index0 ? loop->before : formats_undefined(name);
    } else if (formats_text_is(name, "nextitem")) {
        BASE_TRY(peek(r, loop, &found, out));
        if (!found) *out = formats_undefined(name);
    } else if (formats_text_is(name, "depth") || formats_text_is(name, "depth0")) {
        *out = formats_of_int(loop->depth0 + (name.size == strlen("depth")));
    } else if (formats_text_is(name, "cycle") || formats_text_is(name, "changed")) {
        return bind_loop(r, loop, formats_text_is(name, "cycle"), out);
    } else {
        *out = formats_undefined(name);
    }
    return SIFR_OK;
}

/* ---- the statement ---- */

/* One iteration, in the scope that is already pushed. */
static sifr_status iterate(formats_render *r, const formats_node *node, formats_loop *loop) {
    formats_value v = {.kind = FORMATS_LOOP, .loop = loop};
    BASE_TRY(formats_scope_set(r, r->t->loop_symbol, v));
    BASE_TRY(formats_assign(r, node->left, loop->current));
    BASE_TRY(formats_exec(r, node->body));
    if (r->flow == FORMATS_FLOW_CONTINUE) r->flow = FORMATS_FLOW_ON;
    return SIFR_OK;
}

static sifr_status run_loop(formats_render *r, const formats_node *node, formats_loop *loop) {
    formats_scope *inner = NULL;
    size_t macros = r->macros;
    for (bool found;;) {
        BASE_TRY(advance(r, loop, &found));
        if (!found) return SIFR_OK;
        r->scope = loop->scope;
        if (inner && macros == r->macros) { /* nothing refers to the last iteration's */
            r->scope = inner;
            inner->count = 0;
        } else {
            BASE_TRY(formats_scope_push(r));
        }
        inner = r->scope;
        macros = r->macros;
        BASE_TRY(iterate(r, node, loop));
        if (r->flow == FORMATS_FLOW_ON) continue;
        r->flow = FORMATS_FLOW_ON;
        return SIFR_OK;
    }
}

/* A loop over `v`, from the scope that is outside of it. */
static sifr_status run_over(formats_render *r, const formats_node *node, formats_value v,
                            int64_t depth0) {
    formats_loop *loop;
    formats_scope *scope = r->scope;
    BASE_TRY(FORMATS_TAKE(r, 1, sizeof *loop, &loop));
    *loop =
        (formats_loop){.node = node, .scope = scope, .index0 = -1, .length = -1, .depth0 = depth0};
    BASE_TRY(formats_iterate(r, v, &loop->source));
    sifr_status status = run_loop(r, node, loop);
    r->scope = scope;
    BASE_TRY(status);
    if (loop->index0 >= 0 || !node->other) return SIFR_OK;
    BASE_TRY(formats_scope_push(r));
    status = formats_exec(r, node->other);
    r->scope = scope;
    return status;
}

sifr_status formats_exec_for(formats_render *r, const formats_node *node) {
    formats_value v;
    BASE_TRY(formats_eval(r, node->right, &v));
    return run_over(r, node, v, 0);
}

sifr_status formats_call_loop(formats_render *r, formats_loop *loop, const formats_call *call,
                              formats_value *out) {
    formats_scope *scope = r->scope;
    formats_builder *outer = r->out, inner = {0};
    if (!loop->node->op)
        return formats_template_fail(&r->place, "loop is called, but it is not recursive");
    if (call->count != 1 || call->named)
        return formats_template_fail(&r->place, "loop is called with one list");
    r->out = &inner;
    r->scope = loop->scope;
    sifr_status status = formats_template_enter(r);
    if (status == SIFR_OK) {
        status = run_over(r, loop->node, call->values[0], loop->depth0 + 1);
        r->depth--;
    }
    r->scope = scope;
    r->out = outer;
    *out = formats_of_text(formats_built(&inner));
    return status;
}
