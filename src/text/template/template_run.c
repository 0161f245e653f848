/* Runs a template: statements, and what a rendering begins with. */
#include <stdlib.h>

#include "base/heap.h"
#include "text/template/template_internal.h"

/* ---- statements ---- */

sifr_status text_capture(text_render *r, const text_node *body, text_value *out) {
    text_builder *outer = r->out, inner = {0};
    r->out = &inner;
    sifr_status status = text_exec(r, body);
    r->out = outer;
    *out = text_of_text(text_built(&inner));
    return status;
}

/* The body's output through the filters of node->right. */
static sifr_status filtered(text_render *r, const text_node *node, text_value *out) {
    text_scope *scope = r->scope;
    BASE_TRY(text_scope_push(r));
    sifr_status status = text_capture(r, node->body, out);
    r->scope = scope;
    BASE_TRY(status);
    text_value outer = r->filtered;
    r->filtered = *out;
    status = text_eval(r, node->right, out);
    r->filtered = outer;
    return status;
}

static sifr_status exec_output(text_render *r, const text_node *node) {
    text_value v;
    BASE_TRY(text_eval(r, node->left, &v));
    r->place.line = node->line;
    return text_print(r, r->out, v);
}

static sifr_status exec_if(text_render *r, const text_node *node) {
    for (; node && node->kind == TEXT_NODE_IF; node = node->other) {
        text_value test;
        BASE_TRY(text_eval(r, node->test, &test));
        if (text_truth(test)) return text_exec(r, node->body);
    }
    return node ? text_exec(r, node) : SIFR_OK;
}

static sifr_status exec_set(text_render *r, const text_node *node) {
    text_value v;
    if (node->kind == TEXT_NODE_SET)
        BASE_TRY(text_eval(r, node->right, &v));
    else
        BASE_TRY(filtered(r, node, &v));
    return text_assign(r, node->left, v);
}

static sifr_status exec_with(text_render *r, const text_node *node) {
    text_scope *scope = r->scope;
    text_value *values;
    BASE_TRY(TEXT_TAKE(r, node->count + 1, sizeof *values, &values));
    for (size_t i = 0; i < node->count; i++)
        BASE_TRY(text_eval(r, node->items[i]->right, &values[i]));
    BASE_TRY(text_scope_push(r));
    sifr_status status = SIFR_OK;
    for (size_t i = 0; status == SIFR_OK && i < node->count; i++)
        status = text_assign(r, node->items[i]->left, values[i]);
    if (status == SIFR_OK) status = text_exec(r, node->body);
    r->scope = scope;
    return status;
}

static sifr_status make_macro(text_render *r, const text_node *node, text_value *out) {
    text_macro *macro;
    BASE_TRY(TEXT_TAKE(r, 1, sizeof *macro, &macro));
    *macro = (text_macro){node, r->scope};
    r->macros++;
    *out = (text_value){.kind = TEXT_MACRO, .macro = macro};
    return SIFR_OK;
}

static sifr_status exec_macro(text_render *r, const text_node *node) {
    text_value v;
    BASE_TRY(make_macro(r, node, &v));
    return text_scope_set(r, node->symbol, v);
}

static sifr_status exec_call_block(text_render *r, const text_node *node) {
    text_value function, caller, v;
    text_call call;
    BASE_TRY(make_macro(r, node->right, &caller));
    BASE_TRY(text_eval(r, node->left->left, &function));
    BASE_TRY(text_eval_call(r, node->left, caller, &call));
    r->place.line = node->line;
    BASE_TRY(text_call_value(r, function, &call, &v));
    return text_print(r, r->out, v);
}

static sifr_status exec_filter_block(text_render *r, const text_node *node) {
    text_value v;
    BASE_TRY(filtered(r, node, &v));
    return text_print(r, r->out, v);
}

/* As transformers' tracker: the span begins where the text was when the block ended, which is where
 * the block's output goes unless something captures it. */
static sifr_status exec_generation(text_render *r, const text_node *node) {
    text_scope *scope = r->scope;
    text_value v;
    BASE_TRY(text_scope_push(r));
    sifr_status status = text_capture(r, node->body, &v);
    r->scope = scope;
    BASE_TRY(status);
    if (r->span_count == r->span_capacity) {
        text_template_span *spans;
        r->span_capacity = r->span_capacity ? 2 * r->span_capacity : 16;
        BASE_TRY(TEXT_TAKE(r, r->span_capacity, sizeof *spans, &spans));
        if (r->span_count) memcpy(spans, r->spans, r->span_count * sizeof *spans);
        r->spans = spans;
    }
    r->spans[r->span_count++] = (text_template_span){r->root.size, r->root.size + v.text.size};
    return text_print(r, r->out, v);
}

static sifr_status exec_block(text_render *r, const text_node *node) {
    for (size_t i = 0; i < node->count && r->flow == TEXT_FLOW_ON; i++)
        BASE_TRY(text_exec(r, node->items[i]));
    return SIFR_OK;
}

static sifr_status exec_node(text_render *r, const text_node *node) {
    switch (node->kind) {
    case TEXT_NODE_BLOCK:
        return exec_block(r, node);
    case TEXT_NODE_DATA:
        return text_build(r, r->out, node->text.bytes, node->text.size);
    case TEXT_NODE_OUTPUT:
        return exec_output(r, node);
    case TEXT_NODE_IF:
        return exec_if(r, node);
    case TEXT_NODE_FOR:
        return text_exec_for(r, node);
    case TEXT_NODE_SET:
    case TEXT_NODE_SET_BLOCK:
        return exec_set(r, node);
    case TEXT_NODE_WITH:
        return exec_with(r, node);
    case TEXT_NODE_MACRO:
        return exec_macro(r, node);
    case TEXT_NODE_CALL_BLOCK:
        return exec_call_block(r, node);
    case TEXT_NODE_FILTER_BLOCK:
        return exec_filter_block(r, node);
    case TEXT_NODE_GENERATION:
        return exec_generation(r, node);
    case TEXT_NODE_BREAK:
        r->flow = TEXT_FLOW_BREAK;
        return SIFR_OK;
    case TEXT_NODE_CONTINUE:
        r->flow = TEXT_FLOW_CONTINUE;
        return SIFR_OK;
    default:
        return text_template_fail(&r->place, "no statement");
    }
}

sifr_status text_exec(text_render *r, const text_node *node) {
    BASE_TRY(text_template_charge(r, 1));
    BASE_TRY(text_template_enter(r));
    r->place.line = node->line;
    sifr_status status = exec_node(r, node);
    r->depth--;
    return status;
}

/* ---- what a rendering begins with ---- */

static sifr_status set_variable(text_render *r, const char *name, text_value v) {
    int symbol = text_template_symbol(r->t, text_literal(name));
    return symbol < 0 ? SIFR_OK : text_scope_set(r, symbol, v); /* nobody asks for others */
}

static sifr_status set_text(text_render *r, const char *name, const char *text) {
    return text ? set_variable(r, name, text_of_text(text_literal(text))) : SIFR_OK;
}

static const char *const reasoning_names[] = {"reasoning_content", "thinking", "reasoning"};

static const json_t *reasoning_of(const json_t *message) {
    for (size_t i = 0; i < sizeof reasoning_names / sizeof *reasoning_names; i++) {
        const json_t *v = json_object_get(message, reasoning_names[i]);
        if (v && !json_is_null(v)) return v;
    }
    return NULL;
}

static sifr_status put(text_render *r, text_dict *dict, const char *name, const json_t *json) {
    text_value v;
    size_t size = strlen(name);
    char *copy;
    BASE_TRY(TEXT_TAKE(r, size + 1, 1, &copy));
    memcpy(copy, name, size);
    BASE_TRY(text_from_json(r, json, &v));
    return text_dict_set(r, dict, text_of_text((text_text){copy, size}), v);
}

/* Without members that are null; the reasoning has two of its names. */
static sifr_status message_value(text_render *r, const json_t *message, text_value *out) {
    const json_t *reasoning = reasoning_of(message);
    const char *name;
    json_t *member;
    BASE_TRY(text_new_dict(r, TEXT_DICT, json_object_size(message) + 2, out));
    if (reasoning) BASE_TRY(put(r, out->dict, "thinking", reasoning));
    json_object_foreach((json_t *)(uintptr_t)message, name, member) {
        if (!json_is_null(member)) BASE_TRY(put(r, out->dict, name, member));
    }
    return reasoning ? put(r, out->dict, "reasoning_content", reasoning) : SIFR_OK;
}

static sifr_status set_messages(text_render *r, const json_t *messages) {
    text_value list, v;
    size_t count = json_array_size(messages); /* 0 for what is no array */
    if (count == 0)
        return base_fail(r->place.error, SIFR_USAGE,
                         "%s: messages must be a list of at least one message", r->place.name);
    BASE_TRY(text_new_items(r, TEXT_LIST, count, &list));
    for (size_t i = 0; i < count; i++) {
        const json_t *message = json_array_get(messages, i);
        if (!json_is_object(message))
            return base_fail(r->place.error, SIFR_USAGE,
                             "%s: message %zu is no object with role and content", r->place.name,
                             i + 1);
        BASE_TRY(message_value(r, message, &v));
        text_owner_mark(v.dict, i + 1, json_object_get(message, "role"));
        BASE_TRY(text_append(r, list.items, v));
    }
    return set_variable(r, "messages", list);
}

static sifr_status set_variables(text_render *r, const json_t *variables) {
    static const char *const taken[] = {"messages", "tools", "documents", "add_generation_prompt"};
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)(uintptr_t)variables, name, member) {
        text_value v;
        for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
            if (strcmp(name, taken[i]) == 0)
                return base_fail(r->place.error, SIFR_USAGE,
                                 "%s: a variable cannot be called %s, which has a meaning",
                                 r->place.name, name);
        }
        BASE_TRY(text_from_json(r, member, &v));
        BASE_TRY(set_variable(r, name, v));
    }
    return SIFR_OK;
}

static sifr_status begin(text_render *r, const text_template_input *input) {
    text_value tools = text_none(), documents = text_none();
    BASE_TRY(text_scope_push(r));
    BASE_TRY(set_messages(r, input->messages));
    if (input->tools) BASE_TRY(text_from_json(r, input->tools, &tools));
    if (input->documents) BASE_TRY(text_from_json(r, input->documents, &documents));
    BASE_TRY(set_variable(r, "tools", tools));
    BASE_TRY(set_variable(r, "documents", documents));
    BASE_TRY(set_variable(r, "add_generation_prompt", text_of_bool(input->add_generation_prompt)));
    BASE_TRY(set_text(r, "bos_token", input->bos_token));
    BASE_TRY(set_text(r, "eos_token", input->eos_token));
    return set_variables(r, input->variables);
}

static sifr_status give(const text_render *r, text_template_output *out, sifr_error *error) {
    *out = (text_template_output){.size = r->root.size,
                                  .span_count = r->span_count,
                                  .piece_count = r->piece_count,
                                  .mixed = r->mixed};
    BASE_TRY(base_copy_text(r->root.size ? r->root.bytes : "", r->root.size, &out->text, error));
    sifr_status status = base_alloc(r->span_count, sizeof *out->spans, &out->spans, error);
    if (status == SIFR_OK)
        status = base_alloc(r->piece_count, sizeof *out->pieces, &out->pieces, error);
    if (status != SIFR_OK) text_template_output_free(out);
    if (status == SIFR_OK && r->piece_count)
        memcpy(out->pieces, r->pieces, r->piece_count * sizeof *out->pieces);
    for (size_t i = 0; status == SIFR_OK && i < r->span_count; i++) { /* a block may be captured */
        text_template_span span = r->spans[i];
        out->spans[i].begin = span.begin < out->size ? span.begin : out->size;
        out->spans[i].end = span.end < out->size ? span.end : out->size;
    }
    return status;
}

bool text_template_marks(const text_template *t) {
    return t->marks;
}

bool text_template_names(const text_template *t, const char *name) {
    return text_template_symbol(t, (text_text){name, strlen(name)}) >= 0;
}

bool text_template_mentions(const text_template *t, const char *word) {
    text_text text = {word, strlen(word)};
    for (size_t i = 0; i < t->word_count; i++)
        if (text_text_equal(t->words[i], text)) return true;
    return false;
}

sifr_status text_template_render(const text_template *t, const text_template_input *input,
                                 text_template_output *out, sifr_error *error) {
    text_render r = {.place = {t->name, 1, error},
                     .t = t,
                     .now = input->now,
                     .arena = {.limit = TEXT_TEMPLATE_MEMORY}};
    r.out = &r.root;
    sifr_status status = begin(&r, input);
    if (status == SIFR_OK) status = text_exec(&r, t->root);
    if (status == SIFR_OK) status = give(&r, out, error);
    text_arena_free(&r.arena);
    return status;
}

void text_template_output_free(text_template_output *out) {
    free(out->text);
    free(out->spans);
    free(out->pieces);
    *out = (text_template_output){0};
}
