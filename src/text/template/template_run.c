/* Runs a template: statements, and what a rendering begins with. */
#include <stdlib.h>

#include "base/heap.h"
#include "text/template/template_internal.h"

/* ---- statements ---- */

sifr_status formats_capture(formats_render *r, const formats_node *body, formats_value *out) {
    formats_builder *outer = r->out, inner = {0};
    r->out = &inner;
    sifr_status status = formats_exec(r, body);
    r->out = outer;
    *out = formats_of_text(formats_built(&inner));
    return status;
}

/* The body's output through the filters of node->right. */
static sifr_status filtered(formats_render *r, const formats_node *node, formats_value *out) {
    formats_scope *scope = r->scope;
    BASE_TRY(formats_scope_push(r));
    sifr_status status = formats_capture(r, node->body, out);
    r->scope = scope;
    BASE_TRY(status);
    formats_value outer = r->filtered;
    r->filtered = *out;
    status = formats_eval(r, node->right, out);
    r->filtered = outer;
    return status;
}

static sifr_status exec_output(formats_render *r, const formats_node *node) {
    formats_value v;
    BASE_TRY(formats_eval(r, node->left, &v));
    r->place.line = node->line;
    return formats_print(r, r->out, v);
}

static sifr_status exec_if(formats_render *r, const formats_node *node) {
    for (; node && node->kind == FORMATS_NODE_IF; node = node->other) {
        formats_value test;
        BASE_TRY(formats_eval(r, node->test, &test));
        if (formats_truth(test)) return formats_exec(r, node->body);
    }
    return node ? formats_exec(r, node) : SIFR_OK;
}

static sifr_status exec_set(formats_render *r, const formats_node *node) {
    formats_value v;
    if (node->kind == FORMATS_NODE_SET)
        BASE_TRY(formats_eval(r, node->right, &v));
    else
        BASE_TRY(filtered(r, node, &v));
    return formats_assign(r, node->left, v);
}

static sifr_status exec_with(formats_render *r, const formats_node *node) {
    formats_scope *scope = r->scope;
    formats_value *values;
    BASE_TRY(FORMATS_TAKE(r, node->count + 1, sizeof *values, &values));
    for (size_t i = 0; i < node->count; i++)
        BASE_TRY(formats_eval(r, node->items[i]->right, &values[i]));
    BASE_TRY(formats_scope_push(r));
    sifr_status status = SIFR_OK;
    for (size_t i = 0; status == SIFR_OK && i < node->count; i++)
        status = formats_assign(r, node->items[i]->left, values[i]);
    if (status == SIFR_OK) status = formats_exec(r, node->body);
    r->scope = scope;
    return status;
}

static sifr_status make_macro(formats_render *r, const formats_node *node, formats_value *out) {
    formats_macro *macro;
    BASE_TRY(FORMATS_TAKE(r, 1, sizeof *macro, &macro));
    *macro = (formats_macro){node, r->scope};
    r->macros++;
    *out = (formats_value){.kind = FORMATS_MACRO, .macro = macro};
    return SIFR_OK;
}

static sifr_status exec_macro(formats_render *r, const formats_node *node) {
    formats_value v;
    BASE_TRY(make_macro(r, node, &v));
    return formats_scope_set(r, node->symbol, v);
}

static sifr_status exec_call_block(formats_render *r, const formats_node *node) {
    formats_value function, caller, v;
    formats_call call;
    BASE_TRY(make_macro(r, node->right, &caller));
    BASE_TRY(formats_eval(r, node->left->left, &function));
    BASE_TRY(formats_eval_call(r, node->left, caller, &call));
    r->place.line = node->line;
    BASE_TRY(formats_call_value(r, function, &call, &v));
    return formats_print(r, r->out, v);
}

static sifr_status exec_filter_block(formats_render *r, const formats_node *node) {
    formats_value v;
    BASE_TRY(filtered(r, node, &v));
    return formats_print(r, r->out, v);
}

/* As transformers' tracker: the span begins where the text was when the block ended, which is where
 * the block's output goes unless something captures it. */
static sifr_status exec_generation(formats_render *r, const formats_node *node) {
    formats_scope *scope = r->scope;
    formats_value v;
    BASE_TRY(formats_scope_push(r));
    sifr_status status = formats_capture(r, node->body, &v);
    r->scope = scope;
    BASE_TRY(status);
    if (r->span_count == r->span_room) {
        formats_template_span *spans;
        r->span_room = r->span_room ? 2 * r->span_room : 16;
        BASE_TRY(FORMATS_TAKE(r, r->span_room, sizeof *spans, &spans));
        if (r->span_count) memcpy(spans, r->spans, r->span_count * sizeof *spans);
        r->spans = spans;
    }
    r->spans[r->span_count++] = (formats_template_span){r->root.size, r->root.size + v.text.size};
    return formats_print(r, r->out, v);
}

static sifr_status exec_block(formats_render *r, const formats_node *node) {
    for (size_t i = 0; i < node->count && r->flow == FORMATS_FLOW_ON; i++)
        BASE_TRY(formats_exec(r, node->items[i]));
    return SIFR_OK;
}

static sifr_status exec_node(formats_render *r, const formats_node *node) {
    switch (node->kind) {
    case FORMATS_NODE_BLOCK:
        return exec_block(r, node);
    case FORMATS_NODE_DATA:
        return formats_build(r, r->out, node->text.bytes, node->text.size);
    case FORMATS_NODE_OUTPUT:
        return exec_output(r, node);
    case FORMATS_NODE_IF:
        return exec_if(r, node);
    case FORMATS_NODE_FOR:
        return formats_exec_for(r, node);
    case FORMATS_NODE_SET:
    case FORMATS_NODE_SET_BLOCK:
        return exec_set(r, node);
    case FORMATS_NODE_WITH:
        return exec_with(r, node);
    case FORMATS_NODE_MACRO:
        return exec_macro(r, node);
    case FORMATS_NODE_CALL_BLOCK:
        return exec_call_block(r, node);
    case FORMATS_NODE_FILTER_BLOCK:
        return exec_filter_block(r, node);
    case FORMATS_NODE_GENERATION:
        return exec_generation(r, node);
    case FORMATS_NODE_BREAK:
        r->flow = FORMATS_FLOW_BREAK;
        return SIFR_OK;
    case FORMATS_NODE_CONTINUE:
        r->flow = FORMATS_FLOW_CONTINUE;
        return SIFR_OK;
    default:
        return formats_template_fail(&r->place, "no statement");
    }
}

sifr_status formats_exec(formats_render *r, const formats_node *node) {
    BASE_TRY(formats_template_charge(r, 1));
    BASE_TRY(formats_template_enter(r));
    r->place.line = node->line;
    sifr_status status = exec_node(r, node);
    r->depth--;
    return status;
}

/* ---- what a rendering begins with ---- */

static sifr_status set_variable(formats_render *r, const char *name, formats_value v) {
    int symbol = formats_template_symbol(r->t, formats_literal(name));
    return symbol < 0 ? SIFR_OK : formats_scope_set(r, symbol, v); /* nobody asks for others */
}

static sifr_status set_text(formats_render *r, const char *name, const char *text) {
    return text ? set_variable(r, name, formats_of_text(formats_literal(text))) : SIFR_OK;
}

static const char *const reasoning_names[] = {"reasoning_content", "thinking", "reasoning"};

static const json_t *reasoning_of(const json_t *message) {
    for (size_t i = 0; i < sizeof reasoning_names / sizeof *reasoning_names; i++) {
        const json_t *v = json_object_get(message, reasoning_names[i]);
        if (v && !json_is_null(v)) return v;
    }
    return NULL;
}

static sifr_status put(formats_render *r, formats_dict *dict, const char *name,
                       const json_t *json) {
    formats_value v;
    size_t size = strlen(name);
    char *copy;
    BASE_TRY(FORMATS_TAKE(r, size + 1, 1, &copy));
    memcpy(copy, name, size);
    BASE_TRY(formats_from_json(r, json, &v));
    return formats_dict_set(r, dict, formats_of_text((formats_text){copy, size}), v);
}

/* Without members that are null; the reasoning has two of its names. */
static sifr_status message_value(formats_render *r, const json_t *message, formats_value *out) {
    const json_t *reasoning = reasoning_of(message);
    const char *name;
    json_t *member;
    BASE_TRY(formats_new_dict(r, FORMATS_DICT, json_object_size(message) + 2, out));
    if (reasoning) BASE_TRY(put(r, out->dict, "thinking", reasoning));
    json_object_foreach((json_t *)(uintptr_t)message, name, member) {
        if (!json_is_null(member)) BASE_TRY(put(r, out->dict, name, member));
    }
    return reasoning ? put(r, out->dict, "reasoning_content", reasoning) : SIFR_OK;
}

static sifr_status set_messages(formats_render *r, const json_t *messages) {
    formats_value list, v;
    size_t count = json_array_size(messages); /* 0 for what is no array */
    if (count == 0)
        return base_fail(r->place.error, SIFR_USAGE,
                         "%s: messages must be a list of at least one message", r->place.name);
    BASE_TRY(formats_new_items(r, FORMATS_LIST, count, &list));
    for (size_t i = 0; i < count; i++) {
        const json_t *message = json_array_get(messages, i);
        if (!json_is_object(message))
            return base_fail(r->place.error, SIFR_USAGE,
                             "%s: message %zu is no object with role and content", r->place.name,
                             i + 1);
        BASE_TRY(message_value(r, message, &v));
        BASE_TRY(formats_append(r, list.items, v));
    }
    return set_variable(r, "messages", list);
}

static sifr_status set_variables(formats_render *r, const json_t *variables) {
    static const char *const taken[] = {"messages", "tools", "documents", "add_generation_prompt"};
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)(uintptr_t)variables, name, member) {
        formats_value v;
        for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
            if (strcmp(name, taken[i]) == 0)
                return base_fail(r->place.error, SIFR_USAGE,
                                 "%s: a variable cannot be called %s, which has a meaning",
                                 r->place.name, name);
        }
        BASE_TRY(formats_from_json(r, member, &v));
        BASE_TRY(set_variable(r, name, v));
    }
    return SIFR_OK;
}

static sifr_status begin(formats_render *r, const formats_template_input *input) {
    formats_value tools = formats_none(), documents = formats_none();
    BASE_TRY(formats_scope_push(r));
    BASE_TRY(set_messages(r, input->messages));
    if (input->tools) BASE_TRY(formats_from_json(r, input->tools, &tools));
    if (input->documents) BASE_TRY(formats_from_json(r, input->documents, &documents));
    BASE_TRY(set_variable(r, "tools", tools));
    BASE_TRY(set_variable(r, "documents", documents));
    BASE_TRY(
        set_variable(r, "add_generation_prompt", formats_of_bool(input->add_generation_prompt)));
    BASE_TRY(set_text(r, "bos_token", input->bos_token));
    BASE_TRY(set_text(r, "eos_token", input->eos_token));
    return set_variables(r, input->variables);
}

static sifr_status give(const formats_render *r, formats_template_output *out, sifr_error *error) {
    *out = (formats_template_output){.size = r->root.size, .span_count = r->span_count};
    BASE_TRY(base_copy_text(r->root.size ? r->root.bytes : "", r->root.size, &out->text, error));
    sifr_status status = base_alloc(r->span_count, sizeof *out->spans, &out->spans, error);
    if (status != SIFR_OK) formats_template_output_free(out);
    for (size_t i = 0; status == SIFR_OK && i < r->span_count; i++) { /* a block may be captured */
        formats_template_span span = r->spans[i];
        out->spans[i].begin = span.begin < out->size ? span.begin : out->size;
        out->spans[i].end = span.end < out->size ? span.end : out->size;
    }
    return status;
}

bool formats_template_marks(const formats_template *t) {
    return t->marks;
}

bool formats_template_names(const formats_template *t, const char *name) {
    return formats_template_symbol(t, (formats_text){name, strlen(name)}) >= 0;
}

bool formats_template_mentions(const formats_template *t, const char *word) {
    formats_text text = {word, strlen(word)};
    for (size_t i = 0; i < t->word_count; i++)
        if (formats_text_equal(t->words[i], text)) return true;
    return false;
}

sifr_status formats_template_render(const formats_template *t, const formats_template_input *input,
                                    formats_template_output *out, sifr_error *error) {
    formats_render r = {.place = {t->name, 1, error},
                        .t = t,
                        .now = input->now,
                        .arena = {.limit = FORMATS_TEMPLATE_MEMORY}};
    r.out = &r.root;
    sifr_status status = begin(&r, input);
    if (status == SIFR_OK) status = formats_exec(&r, t->root);
    if (status == SIFR_OK) status = give(&r, out, error);
    formats_arena_free(&r.arena);
    return status;
}

void formats_template_output_free(formats_template_output *out) {
    free(out->text);
    free(out->spans);
    *out = (formats_template_output){0};
}
