/* Loops, and what statements assign to. */
#include "text/template/template_internal.h"

/* ---- targets ---- */

static sifr_status assign_member(text_render *r, const text_node *target, text_value v) {
    text_node name = {.symbol = target->symbol, .text = r->t->symbols[target->symbol]};
    text_value space;
    BASE_TRY(text_scope_get(r, &name, &space));
    if (space.kind != TEXT_NAMESPACE)
        return text_template_fail(&r->place, "cannot set %.*s of %.*s, which is no namespace",
                                  (int)target->text.size, target->text.bytes, (int)name.text.size,
                                  name.text.bytes);
    if (target->text.bytes[0] == '_')
        return text_template_fail(&r->place, "a namespace has no names that begin with _");
    return text_dict_set(r, space.dict, text_of_text(target->text), v);
}

sifr_status text_assign(text_render *r, const text_node *target, text_value v) {
    text_items *parts;
    r->place.line = target->line;
    if (target->kind == TEXT_NODE_NAME) return text_scope_set(r, target->symbol, v);
    if (target->kind == TEXT_NODE_MEMBER) return assign_member(r, target, v);
    BASE_TRY(text_iterate(r, v, &parts));
    if (parts->count != target->count)
        return text_template_fail(&r->place, "%zu values for %zu names", parts->count,
                                  target->count);
    for (size_t i = 0; i < parts->count; i++)
        BASE_TRY(text_assign(r, target->items[i], parts->values[i]));
    return SIFR_OK;
}

/* ---- the items of a loop ---- */

static sifr_status passes(text_render *r, const text_loop *loop, text_value v, bool *out) {
    text_value test;
    BASE_TRY(text_scope_push(r));
    BASE_TRY(text_assign(r, loop->node->left, v));
    BASE_TRY(text_eval(r, loop->node->test, &test));
    *out = text_truth(test);
    return SIFR_OK;
}

/* The next item that the condition lets pass. */
static sifr_status take(text_render *r, text_loop *loop, bool *found, text_value *out) {
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
        text_scope *scope = r->scope;
        r->scope = loop->scope;
        sifr_status status = passes(r, loop, *out, found);
        r->scope = scope;
        BASE_TRY(status);
    }
    return SIFR_OK;
}

/* The item after the current one; it is found once. */
static sifr_status peek(text_render *r, text_loop *loop, bool *found, text_value *out) {
    if (!loop->has_after) BASE_TRY(take(r, loop, &loop->has_after, &loop->after));
    *found = loop->has_after;
    if (*found) *out = loop->after;
    return SIFR_OK;
}

static sifr_status advance(text_render *r, text_loop *loop, bool *found) {
    text_value v = {.kind = TEXT_ABSENT};
    BASE_TRY(peek(r, loop, found, &v));
    if (!*found) return SIFR_OK;
    loop->has_after = false;
    loop->before = loop->current;
    loop->current = v;
    loop->index0++;
    return SIFR_OK;
}

static sifr_status length(text_render *r, text_loop *loop, int64_t *out) {
    if (loop->length < 0 && !loop->node->test) loop->length = (int64_t)loop->source->count;
    if (loop->length < 0) {
        text_value rest, v;
        BASE_TRY(text_new_items(r, TEXT_LIST, 0, &rest));
        for (bool found;;) {
            BASE_TRY(take(r, loop, &found, &v));
            if (!found) break;
            BASE_TRY(text_append(r, rest.items, v));
        }
        loop->passed = rest.items;
        loop->passed_next = 0;
        loop->length = (int64_t)rest.items->count + loop->index0 + 1 + loop->has_after;
    }
    *out = loop->length;
    return SIFR_OK;
}

/* ---- the variable `loop` ---- */

static sifr_status cycle(text_render *r, text_value self, const text_call *call, text_value *out) {
    if (call->count == 0) return text_template_fail(&r->place, "loop.cycle needs arguments");
    *out = call->values[(size_t)self.loop->index0 % call->count];
    return SIFR_OK;
}

/* Whether the arguments are others than those of the last call. */
static sifr_status changed(text_render *r, text_value self, const text_call *call,
                           text_value *out) {
    text_loop *loop = self.loop;
    text_value now;
    bool same = false;
    BASE_TRY(text_new_items(r, TEXT_TUPLE, call->count, &now));
    for (size_t i = 0; i < call->count; i++) BASE_TRY(text_append(r, now.items, call->values[i]));
    if (loop->changed.kind == TEXT_TUPLE) BASE_TRY(text_equal(r, loop->changed, now, &same));
    if (!same) loop->changed = now;
    *out = text_of_bool(!same);
    return SIFR_OK;
}

static sifr_status bind_loop(text_render *r, text_loop *loop, bool cycles, text_value *out) {
    static const text_builtin functions[] = {{.name = "loop.changed", .run_any = changed},
                                             {.name = "loop.cycle", .run_any = cycle}};
    text_method *method;
    BASE_TRY(TEXT_TAKE(r, 1, sizeof *method, &method));
    *method = (text_method){&functions[cycles], {.kind = TEXT_LOOP, .loop = loop}};
    *out = (text_value){.kind = TEXT_METHOD, .method = method};
    return SIFR_OK;
}

sifr_status text_loop_attribute(text_render *r, text_loop *loop, text_text name, text_value *out) {
    int64_t all;
    bool found;
    if (text_text_is(name, "index")) {
        *out = text_of_int(loop->index0 + 1);
    } else if (text_text_is(name, "index0")) {
        *out = text_of_int(loop->index0);
    } else if (text_text_is(name, "first")) {
        *out = text_of_bool(loop->index0 == 0);
    } else if (text_text_is(name, "last")) {
        BASE_TRY(peek(r, loop, &found, out));
        *out = text_of_bool(!found);
    } else if (text_text_is(name, "length")) {
        BASE_TRY(length(r, loop, &all));
        *out = text_of_int(all);
    } else if (text_text_is(name, "revindex") || text_text_is(name, "revindex0")) {
        BASE_TRY(length(r, loop, &all));
        *out = text_of_int(all - loop->index0 - (name.size == strlen("revindex0")));
    } else if (text_text_is(name, "previtem")) {
        *out = loop->index0 ? loop->before : text_undefined(name);
    } else if (text_text_is(name, "nextitem")) {
        BASE_TRY(peek(r, loop, &found, out));
        if (!found) *out = text_undefined(name);
    } else if (text_text_is(name, "depth") || text_text_is(name, "depth0")) {
        *out = text_of_int(loop->depth0 + (name.size == strlen("depth")));
    } else if (text_text_is(name, "cycle") || text_text_is(name, "changed")) {
        return bind_loop(r, loop, text_text_is(name, "cycle"), out);
    } else {
        *out = text_undefined(name);
    }
    return SIFR_OK;
}

/* ---- the statement ---- */

/* One iteration, in the scope that is already pushed. */
static sifr_status iterate(text_render *r, const text_node *node, text_loop *loop) {
    text_value v = {.kind = TEXT_LOOP, .loop = loop};
    text_owner outer;
    BASE_TRY(text_scope_set(r, r->t->loop_symbol, v));
    BASE_TRY(text_assign(r, node->left, loop->current));
    BASE_TRY(text_owner_enter(r, loop->current, &outer));
    BASE_TRY(text_exec(r, node->body));
    if (r->flow == TEXT_FLOW_CONTINUE) r->flow = TEXT_FLOW_ON;
    return text_owner_leave(r, outer);
}

static sifr_status run_loop(text_render *r, const text_node *node, text_loop *loop) {
    text_scope *inner = NULL;
    size_t macros = r->macros;
    for (bool found;;) {
        BASE_TRY(advance(r, loop, &found));
        if (!found) return SIFR_OK;
        r->scope = loop->scope;
        if (inner && macros == r->macros) { /* nothing refers to the last iteration's */
            r->scope = inner;
            inner->count = 0;
        } else {
            BASE_TRY(text_scope_push(r));
        }
        inner = r->scope;
        macros = r->macros;
        BASE_TRY(iterate(r, node, loop));
        if (r->flow == TEXT_FLOW_ON) continue;
        r->flow = TEXT_FLOW_ON;
        return SIFR_OK;
    }
}

/* A loop over `v`, from the scope that is outside of it. */
static sifr_status run_over(text_render *r, const text_node *node, text_value v, int64_t depth0) {
    text_loop *loop;
    text_scope *scope = r->scope;
    BASE_TRY(TEXT_TAKE(r, 1, sizeof *loop, &loop));
    *loop = (text_loop){.node = node, .scope = scope, .index0 = -1, .length = -1, .depth0 = depth0};
    BASE_TRY(text_iterate(r, v, &loop->source));
    sifr_status status = run_loop(r, node, loop);
    r->scope = scope;
    BASE_TRY(status);
    if (loop->index0 >= 0 || !node->other) return SIFR_OK;
    BASE_TRY(text_scope_push(r));
    status = text_exec(r, node->other);
    r->scope = scope;
    return status;
}

sifr_status text_exec_for(text_render *r, const text_node *node) {
    text_value v;
    BASE_TRY(text_eval(r, node->right, &v));
    return run_over(r, node, v, 0);
}

sifr_status text_call_loop(text_render *r, text_loop *loop, const text_call *call,
                           text_value *out) {
    text_scope *scope = r->scope;
    text_builder *outer = r->out, inner = {0};
    if (!loop->node->op)
        return text_template_fail(&r->place, "loop is called, but it is not recursive");
    if (call->count != 1 || call->named)
        return text_template_fail(&r->place, "loop is called with one list");
    r->out = &inner;
    r->scope = loop->scope;
    sifr_status status = text_template_enter(r);
    if (status == SIFR_OK) {
        status = run_over(r, loop->node, call->values[0], loop->depth0 + 1);
        r->depth--;
    }
    r->scope = scope;
    r->out = outer;
    *out = text_of_text(text_built(&inner));
    return status;
}
