/* The parser of statements. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/heap.h"
#include "text/template/template_internal.h"

void text_template_set_error(const text_place *place, const char *format, ...) {
    char text[SIFR_ERROR_LENGTH];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    base_set_error(place->error, SIFR_USAGE, "%s, line %d: %s", place->name, place->line, text);
}

/* ---- tokens ---- */

const text_token *text_parser_peek(const text_parser *p, size_t ahead) {
    const text_token *token = p->tokens + p->at;
    while (ahead-- && token->kind != TEXT_TOKEN_END) token++;
    return token;
}

bool text_parser_is(const text_parser *p, int op) {
    const text_token *token = text_parser_peek(p, 0);
    return token->kind == TEXT_TOKEN_OPERATOR && token->op == op;
}

bool text_parser_is_name(const text_parser *p, const char *name) {
    const text_token *token = text_parser_peek(p, 0);
    return token->kind == TEXT_TOKEN_NAME && text_text_is(token->text, name);
}

bool text_parser_skip(text_parser *p, int op) {
    bool is = text_parser_is(p, op);
    p->at += is;
    return is;
}

bool text_parser_skip_name(text_parser *p, const char *name) {
    bool is = text_parser_is_name(p, name);
    p->at += is;
    return is;
}

static void describe(const text_token *token, char *out, size_t size) {
    switch (token->kind) {
    case TEXT_TOKEN_NAME:
        snprintf(out, size, "\"%.*s\"", (int)(token->text.size < 60 ? token->text.size : 60),
                 token->text.bytes);
        break;
    case TEXT_TOKEN_OPERATOR:
        snprintf(out, size, "'%c%.1s'", token->op & 255,
                 token->op >> 8 ? (char[2]){(char)(token->op >> 8), 0} : "");
        break;
    case TEXT_TOKEN_END:
        snprintf(out, size, "the end of the template");
        break;
    case TEXT_TOKEN_VARIABLE_END:
    case TEXT_TOKEN_BLOCK_END:
        snprintf(out, size, "the end of the tag");
        break;
    default:
        snprintf(out, size, token->kind == TEXT_TOKEN_STRING ? "a string" : "a number");
    }
}

sifr_status text_parser_unexpected(text_parser *p, const char *wanted) {
    char found[96];
    describe(text_parser_peek(p, 0), found, sizeof found);
    p->place.line = text_parser_peek(p, 0)->line;
    return text_template_fail(&p->place, "expected %s, found %s", wanted, found);
}

sifr_status text_parser_expect(text_parser *p, int op) {
    if (text_parser_skip(p, op)) return SIFR_OK;
    return text_parser_unexpected(p, (char[4]){'\'', (char)op, '\'', 0});
}

sifr_status text_parser_enter(text_parser *p) {
    p->place.line = text_parser_peek(p, 0)->line;
    if (++p->depth <= TEXT_TEMPLATE_NESTING) return SIFR_OK;
    return text_template_fail(&p->place, "nested deeper than %d levels", TEXT_TEMPLATE_NESTING);
}

/* ---- nodes ---- */

sifr_status text_parser_node(text_parser *p, text_node_kind kind, text_node **out) {
    p->place.line = text_parser_peek(p, 0)->line;
    BASE_TRY(text_arena_take(&p->t->arena, &p->place, 1, sizeof **out, out));
    **out = (text_node){.kind = kind, .line = p->place.line, .symbol = -1};
    return SIFR_OK;
}

sifr_status text_parser_add(text_parser *p, text_node *node, size_t *capacity, text_node *item) {
    if (node->count == *capacity) {
        text_node **items;
        *capacity = *capacity ? 2 * *capacity : 4;
        BASE_TRY(text_arena_take(&p->t->arena, &p->place, *capacity, sizeof *items, &items));
        if (node->count) memcpy(items, node->items, node->count * sizeof *items);
        node->items = items;
    }
    node->items[node->count++] = item;
    return SIFR_OK;
}

static sifr_status find_symbol(text_parser *p, text_text name, int *out) {
    text_template *t = p->t;
    *out = text_template_symbol(t, name);
    if (*out >= 0) return SIFR_OK;
    if (t->symbol_count == TEXT_TEMPLATE_NAMES)
        return text_template_fail(&p->place, "more than %d names", TEXT_TEMPLATE_NAMES);
    BASE_TRY(base_grow(&t->symbols, &t->symbol_capacity, t->symbol_count + 1, sizeof *t->symbols,
                       p->place.error));
    *out = (int)t->symbol_count;
    t->symbols[t->symbol_count++] = name;
    return SIFR_OK;
}

sifr_status text_parser_name(text_parser *p, text_text *name, int *symbol) {
    const text_token *token = text_parser_peek(p, 0);
    if (token->kind != TEXT_TOKEN_NAME) return text_parser_unexpected(p, "a name");
    *name = token->text;
    p->at++;
    return symbol ? find_symbol(p, *name, symbol) : SIFR_OK;
}

/* ---- statements ---- */

static sifr_status parse_statements(text_parser *p, const char *const *ends, text_node **out);

static sifr_status end_tag(text_parser *p) {
    if (text_parser_peek(p, 0)->kind != TEXT_TOKEN_BLOCK_END)
        return text_parser_unexpected(p, "the end of the tag");
    p->at++;
    return SIFR_OK;
}

/* The tag's end, then statements up to a tag that begins with one of `ends`, whose name is read. */
static sifr_status parse_body(text_parser *p, const char *const *ends, text_node **out,
                              text_text *end) {
    BASE_TRY(end_tag(p));
    BASE_TRY(parse_statements(p, ends, out));
    *end = text_parser_peek(p, 0)->text;
    p->at++;
    return SIFR_OK;
}

static sifr_status parse_target_part(text_parser *p, bool member, text_node **out) {
    text_node *node;
    if (text_parser_skip(p, '('))
        return text_template_fail(&p->place, "brackets in a target are not supported");
    BASE_TRY(text_parser_node(p, TEXT_NODE_NAME, &node));
    BASE_TRY(text_parser_name(p, &node->text, &node->symbol));
    static const char *const constants[] = {"true", "True", "false", "False", "none", "None"};
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++) {
        if (text_text_is(node->text, constants[i]))
            return text_template_fail(&p->place, "cannot assign to %s", constants[i]);
    }
    *out = node;
    if (!member || !text_parser_skip(p, '.')) return SIFR_OK;
    node->kind = TEXT_NODE_MEMBER;
    return text_parser_name(p, &node->text, NULL);
}

/* a, or a, b: what a loop or set assigns to. */
static sifr_status parse_target(text_parser *p, bool member, text_node **out) {
    text_node *node, *item;
    size_t capacity = 0;
    BASE_TRY(parse_target_part(p, member, out));
    if (!text_parser_is(p, ',')) return SIFR_OK;
    BASE_TRY(text_parser_node(p, TEXT_NODE_TUPLE, &node));
    BASE_TRY(text_parser_add(p, node, &capacity, *out));
    while (text_parser_skip(p, ',')) {
        if (text_parser_is_name(p, "in") || text_parser_is(p, '=')) break;
        BASE_TRY(parse_target_part(p, member, &item));
        BASE_TRY(text_parser_add(p, node, &capacity, item));
    }
    *out = node;
    return SIFR_OK;
}

static sifr_status parse_for(text_parser *p, text_node **out) {
    static const char *const ends[] = {"else", "endfor", NULL};
    text_node *node;
    text_text end;
    BASE_TRY(text_parser_node(p, TEXT_NODE_FOR, &node));
    *out = node;
    BASE_TRY(parse_target(p, false, &node->left));
    if (!text_parser_skip_name(p, "in")) return text_parser_unexpected(p, "\"in\"");
    BASE_TRY(text_parser_tuple(p, false, &node->right));
    if (text_parser_skip_name(p, "if")) BASE_TRY(text_parser_expression(p, true, &node->test));
    node->op = text_parser_skip_name(p, "recursive");
    p->loops++;
    BASE_TRY(parse_body(p, ends, &node->body, &end));
    p->loops--;
    if (!text_text_is(end, "else")) return SIFR_OK;
    return parse_body(p, (const char *const[]){"endfor", NULL}, &node->other, &end);
}

/* a = 1, b = 2: all of them are worked out before the first is assigned. */
static sifr_status parse_with(text_parser *p, text_node **out) {
    text_node *node, *set;
    text_text end;
    size_t capacity = 0;
    BASE_TRY(text_parser_node(p, TEXT_NODE_WITH, &node));
    *out = node;
    while (text_parser_peek(p, 0)->kind != TEXT_TOKEN_BLOCK_END) {
        if (node->count) BASE_TRY(text_parser_expect(p, ','));
        BASE_TRY(text_parser_node(p, TEXT_NODE_SET, &set));
        BASE_TRY(parse_target_part(p, false, &set->left));
        BASE_TRY(text_parser_expect(p, '='));
        BASE_TRY(text_parser_expression(p, true, &set->right));
        BASE_TRY(text_parser_add(p, node, &capacity, set));
    }
    return parse_body(p, (const char *const[]){"endwith", NULL}, &node->body, &end);
}

static sifr_status parse_if(text_parser *p, text_node **out) {
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    text_node *node;
    text_text end;
    for (;; out = &node->other) {
        BASE_TRY(text_parser_node(p, TEXT_NODE_IF, &node));
        *out = node;
        BASE_TRY(text_parser_tuple(p, false, &node->test));
        BASE_TRY(parse_body(p, ends, &node->body, &end));
        if (!text_text_is(end, "elif")) break;
    }
    if (!text_text_is(end, "else")) return SIFR_OK;
    return parse_body(p, (const char *const[]){"endif", NULL}, &node->other, &end);
}

/* A body in which no break can end a loop outside. */
static sifr_status parse_apart(text_parser *p, const char *end_name, text_node **out) {
    text_text end;
    int loops = p->loops;
    p->loops = 0;
    BASE_TRY(parse_body(p, (const char *const[]){end_name, NULL}, out, &end));
    p->loops = loops;
    return SIFR_OK;
}

static sifr_status parse_set(text_parser *p, text_node **out) {
    text_node *node, *value;
    BASE_TRY(text_parser_node(p, TEXT_NODE_SET, &node));
    *out = node;
    BASE_TRY(parse_target(p, true, &node->left));
    if (text_parser_skip(p, '=')) return text_parser_tuple(p, true, &node->right);
    node->kind = TEXT_NODE_SET_BLOCK;
    BASE_TRY(text_parser_node(p, TEXT_NODE_FILTERED, &value));
    BASE_TRY(text_parser_filters(p, false, value, &node->right));
    return parse_apart(p, "endset", &node->body);
}

/* (a, b=1) of a macro or call block. */
static sifr_status parse_parameters(text_parser *p, text_node *macro) {
    size_t capacity = 0;
    bool defaults = false;
    BASE_TRY(text_parser_expect(p, '('));
    while (!text_parser_is(p, ')')) {
        text_node *parameter;
        if (macro->count) BASE_TRY(text_parser_expect(p, ','));
        BASE_TRY(text_parser_node(p, TEXT_NODE_PARAMETER, &parameter));
        BASE_TRY(text_parser_name(p, &parameter->text, &parameter->symbol));
        if (text_parser_skip(p, '=')) {
            BASE_TRY(text_parser_expression(p, true, &parameter->left));
            defaults = true;
        } else if (defaults) {
            return text_template_fail(&p->place, "a parameter without a default after one with");
        }
        BASE_TRY(text_parser_add(p, macro, &capacity, parameter));
    }
    return text_parser_expect(p, ')');
}

static sifr_status parse_macro(text_parser *p, text_node **out) {
    text_node *node;
    BASE_TRY(text_parser_node(p, TEXT_NODE_MACRO, &node));
    *out = node;
    BASE_TRY(text_parser_name(p, &node->text, &node->symbol));
    BASE_TRY(parse_parameters(p, node));
    p->macros++;
    BASE_TRY(parse_apart(p, "endmacro", &node->body));
    p->macros--;
    return SIFR_OK;
}

static sifr_status parse_call_block(text_parser *p, text_node **out) {
    text_node *node, *caller;
    BASE_TRY(text_parser_node(p, TEXT_NODE_CALL_BLOCK, &node));
    *out = node;
    BASE_TRY(text_parser_node(p, TEXT_NODE_MACRO, &caller));
    caller->text = text_literal("caller");
    if (text_parser_is(p, '(')) BASE_TRY(parse_parameters(p, caller));
    BASE_TRY(text_parser_expression(p, true, &node->left));
    if (node->left->kind != TEXT_NODE_CALL)
        return text_template_fail(&p->place, "{%% call %%} needs a call of a macro");
    node->right = caller;
    return parse_apart(p, "endcall", &caller->body);
}

static sifr_status parse_filter_block(text_parser *p, text_node **out) {
    text_node *node, *value;
    BASE_TRY(text_parser_node(p, TEXT_NODE_FILTER_BLOCK, &node));
    *out = node;
    BASE_TRY(text_parser_node(p, TEXT_NODE_FILTERED, &value));
    BASE_TRY(text_parser_filters(p, true, value, &node->right));
    return parse_apart(p, "endfilter", &node->body);
}

static sifr_status parse_generation(text_parser *p, text_node **out) {
    BASE_TRY(text_parser_node(p, TEXT_NODE_GENERATION, out));
    p->t->marks = true;
    return parse_apart(p, "endgeneration", &(*out)->body);
}

static sifr_status parse_jump(text_parser *p, text_node **out) {
    bool stop = text_text_is(p->tokens[p->at - 1].text, "break");
    if (!p->loops)
        return text_template_fail(&p->place, "{%% %s %%} outside of a loop",
                                  stop ? "break" : "continue");
    return text_parser_node(p, stop ? TEXT_NODE_BREAK : TEXT_NODE_CONTINUE, out);
}

static const struct {
    const char *name;
    sifr_status (*parse)(text_parser *p, text_node **out);
} statements[] = {{"for", parse_for},
                  {"if", parse_if},
                  {"set", parse_set},
                  {"with", parse_with},
                  {"macro", parse_macro},
                  {"call", parse_call_block},
                  {"filter", parse_filter_block},
                  {"generation", parse_generation},
                  {"break", parse_jump},
                  {"continue", parse_jump}};

static sifr_status parse_statement(text_parser *p, text_node **out) {
    text_text name;
    p->place.line = text_parser_peek(p, 0)->line;
    BASE_TRY(text_parser_name(p, &name, NULL));
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        if (!text_text_is(name, statements[i].name)) continue;
        BASE_TRY(statements[i].parse(p, out));
        return end_tag(p);
    }
    if (name.size > 3 && (memcmp(name.bytes, "end", 3) == 0 || text_text_is(name, "else") ||
                          text_text_is(name, "elif")))
        return text_template_fail(&p->place, "unexpected {%% %.*s %%}", (int)name.size, name.bytes);
    return text_template_fail(&p->place,
                              "{%% %.*s %%} is not supported (supported: for, if, set, with, "
                              "macro, call, filter, raw, generation, break, continue)",
                              (int)(name.size < 60 ? name.size : 60), name.bytes);
}

static sifr_status parse_output(text_parser *p, text_node **out) {
    BASE_TRY(text_parser_node(p, TEXT_NODE_OUTPUT, out));
    BASE_TRY(text_parser_tuple(p, true, &(*out)->left));
    if (text_parser_peek(p, 0)->kind != TEXT_TOKEN_VARIABLE_END)
        return text_parser_unexpected(p, "the end of {{ }}");
    p->at++;
    return SIFR_OK;
}

static bool ends_here(const text_parser *p, const char *const *ends) {
    for (; *ends; ends++) {
        if (text_parser_is_name(p, *ends)) return true;
    }
    return false;
}

/* With `ends`, up to the name of one of them in a tag; otherwise up to the template's end. */
static sifr_status parse_statements(text_parser *p, const char *const *ends, text_node **out) {
    text_node *block, *node;
    size_t capacity = 0;
    BASE_TRY(text_parser_enter(p));
    int line = p->at ? p->tokens[p->at - 1].line : 1;
    BASE_TRY(text_parser_node(p, TEXT_NODE_BLOCK, &block));
    *out = block;
    for (;;) {
        const text_token *token = text_parser_peek(p, 0);
        p->at++;
        if (token->kind == TEXT_TOKEN_END) {
            if (!ends) break;
            while (ends[1]) ends++;
            p->place.line = line;
            return text_template_fail(&p->place, "the block that begins here has no {%% %s %%}",
                                      *ends);
        } else if (token->kind == TEXT_TOKEN_DATA) {
            BASE_TRY(text_parser_node(p, TEXT_NODE_DATA, &node));
            node->text = token->text;
        } else if (token->kind == TEXT_TOKEN_VARIABLE_BEGIN) {
            BASE_TRY(parse_output(p, &node));
        } else if (ends && ends_here(p, ends)) {
            break;
        } else {
            BASE_TRY(parse_statement(p, &node));
        }
        BASE_TRY(text_parser_add(p, block, &capacity, node));
    }
    p->depth--;
    return SIFR_OK;
}

/* ---- the template ---- */

int text_template_symbol(const text_template *t, text_text name) {
    for (size_t i = 0; i < t->symbol_count; i++) {
        if (text_text_equal(t->symbols[i], name)) return (int)i;
    }
    return -1;
}

/* The words of the template, whose texts lie in its arena. */
static sifr_status keep_words(text_template *t, const text_tokens *tokens, sifr_error *error) {
    for (size_t i = 0; i < tokens->count; i++) {
        const text_token *token = &tokens->tokens[i];
        if (token->kind != TEXT_TOKEN_NAME && token->kind != TEXT_TOKEN_STRING) continue;
        BASE_TRY(
            base_grow(&t->words, &t->word_capacity, t->word_count + 1, sizeof *t->words, error));
        t->words[t->word_count++] = token->text;
    }
    return SIFR_OK;
}

static sifr_status parse(text_template *t, const char *text, size_t size, text_tokens *tokens,
                         sifr_error *error) {
    text_parser p = {.place = {t->name, 1, error}, .t = t};
    BASE_TRY(text_template_lex(text, size, &t->arena, &p.place, tokens));
    BASE_TRY(keep_words(t, tokens, error));
    p.tokens = tokens->tokens;
    p.place.line = 1;
    BASE_TRY(find_symbol(&p, text_literal("loop"), &t->loop_symbol));
    BASE_TRY(find_symbol(&p, text_literal("caller"), &t->caller_symbol));
    return parse_statements(&p, NULL, &t->root);
}

sifr_status text_template_parse(const char *text, size_t size, const char *name,
                                text_template **out, sifr_error *error) {
    text_template *t;
    text_tokens tokens = {0};
    BASE_TRY(base_alloc(1, sizeof *t, &t, error));
    t->arena.limit = TEXT_TEMPLATE_MEMORY;
    sifr_status status = base_copy_text(name, strlen(name), &t->name, error);
    if (status == SIFR_OK) status = parse(t, text, size, &tokens, error);
    free(tokens.tokens);
    if (status == SIFR_OK)
        *out = t;
    else
        text_template_free(t);
    return status;
}

void text_template_free(text_template *t) {
    if (!t) return;
    text_arena_free(&t->arena);
    free(t->symbols);
    free(t->words);
    free(t->name);
    free(t);
}
