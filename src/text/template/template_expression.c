/* The parser of expressions: Jinja's grammar, from loose operators to tight ones. */
#include "text/template/template_internal.h"

static sifr_status parse_unary(text_parser *p, bool filters, text_node **out);
static sifr_status parse_primary(text_parser *p, text_node **out);
static sifr_status parse_postfix(text_parser *p, text_node **node);

static sifr_status make_binary(text_parser *p, text_node_kind kind, int op, text_node *right,
                               text_node **left) {
    text_node *node;
    BASE_TRY(text_parser_node(p, kind, &node));
    node->op = op;
    node->left = *left;
    node->right = right;
    *left = node;
    return SIFR_OK;
}

/* ---- arguments of calls, filters and tests ---- */

static sifr_status parse_argument(text_parser *p, text_node *call, size_t *capacity,
                                  bool *keywords) {
    const text_token *token = text_parser_peek(p, 0), *next = text_parser_peek(p, 1);
    text_node *value;
    if (text_parser_is(p, '*') || text_parser_is(p, TEXT_OP_POWER))
        return text_template_fail(&p->place,
                                  "arguments with * or ** are not supported; write them out");
    if (token->kind == TEXT_TOKEN_NAME && next->kind == TEXT_TOKEN_OPERATOR && next->op == '=') {
        text_node *keyword;
        BASE_TRY(text_parser_node(p, TEXT_NODE_KEYWORD, &keyword));
        keyword->text = token->text;
        p->at += 2;
        BASE_TRY(text_parser_expression(p, true, &keyword->left));
        *keywords = true;
        return text_parser_add(p, call, capacity, keyword);
    }
    if (*keywords)
        return text_template_fail(&p->place, "an argument without a name after one with a name");
    BASE_TRY(text_parser_expression(p, true, &value));
    return text_parser_add(p, call, capacity, value);
}

/* "(" … ")" into call->items. */
static sifr_status parse_arguments(text_parser *p, text_node *call) {
    size_t capacity = 0;
    bool comma = false, keywords = false;
    BASE_TRY(text_parser_expect(p, '('));
    while (!text_parser_is(p, ')')) {
        if (comma) {
            BASE_TRY(text_parser_expect(p, ','));
            if (text_parser_is(p, ')')) break;
        }
        BASE_TRY(parse_argument(p, call, &capacity, &keywords));
        comma = true;
    }
    return text_parser_expect(p, ')');
}

/* The name behind "|" or "is", and its row. */
static sifr_status parse_function(text_parser *p, bool filter, text_node *node) {
    bool known = false;
    BASE_TRY(text_parser_name(p, &node->text, NULL));
    if (text_parser_is(p, '.'))
        return text_template_fail(&p->place, "names with dots after | or is are not supported");
    node->function = (filter ? text_filter_find : text_test_find)(node->text, &known);
    if (node->function) return SIFR_OK;
    return text_template_fail(&p->place, "%s the %s \"%.*s\"",
                              known ? "not supported yet:" : "Jinja does not have",
                              filter ? "filter" : "test", (int)node->text.size, node->text.bytes);
}

sifr_status text_parser_filters(text_parser *p, bool inside, text_node *value, text_node **out) {
    *out = value;
    while (inside || text_parser_skip(p, '|')) {
        text_node *node;
        BASE_TRY(text_parser_node(p, TEXT_NODE_FILTER, &node));
        BASE_TRY(parse_function(p, true, node));
        if (text_parser_is(p, '(')) BASE_TRY(parse_arguments(p, node));
        node->left = *out;
        *out = node;
        inside = false;
    }
    return SIFR_OK;
}

static bool begins_argument(const text_parser *p) {
    const text_token *token = text_parser_peek(p, 0);
    switch (token->kind) {
    case TEXT_TOKEN_NAME:
        return !text_text_is(token->text, "else") && !text_text_is(token->text, "or") &&
               !text_text_is(token->text, "and");
    case TEXT_TOKEN_STRING:
    case TEXT_TOKEN_INTEGER:
    case TEXT_TOKEN_FLOAT:
        return true;
    case TEXT_TOKEN_OPERATOR:
        return token->op == '[' || token->op == '{';
    default:
        return false;
    }
}

static sifr_status parse_test(text_parser *p, text_node **value) {
    text_node *node, *argument;
    size_t capacity = 0;
    bool negated = text_parser_skip_name(p, "not");
    BASE_TRY(text_parser_node(p, TEXT_NODE_TEST, &node));
    BASE_TRY(parse_function(p, false, node));
    node->left = *value;
    if (text_parser_is(p, '(')) {
        BASE_TRY(parse_arguments(p, node));
    } else if (begins_argument(p)) {
        if (text_parser_is_name(p, "is"))
            return text_template_fail(&p->place, "tests with is cannot be chained");
        BASE_TRY(parse_primary(p, &argument));
        BASE_TRY(parse_postfix(p, &argument));
        BASE_TRY(text_parser_add(p, node, &capacity, argument));
    }
    *value = node;
    return negated ? make_binary(p, TEXT_NODE_UNARY, 'n', NULL, value) : SIFR_OK;
}

/* ---- primaries and what follows them ---- */

/* Items up to `close`; of a dict, pairs. */
static sifr_status parse_items(text_parser *p, text_node_kind kind, int close, text_node **out) {
    text_node *node, *item;
    size_t capacity = 0;
    BASE_TRY(text_parser_node(p, kind, &node));
    p->at++;
    for (bool first = true; !text_parser_is(p, close); first = false) {
        if (!first) BASE_TRY(text_parser_expect(p, ','));
        if (text_parser_is(p, close)) break;
        BASE_TRY(text_parser_expression(p, true, &item));
        BASE_TRY(text_parser_add(p, node, &capacity, item));
        if (kind != TEXT_NODE_DICT) continue;
        BASE_TRY(text_parser_expect(p, ':'));
        BASE_TRY(text_parser_expression(p, true, &item));
        BASE_TRY(text_parser_add(p, node, &capacity, item));
    }
    *out = node;
    return text_parser_expect(p, close);
}

/* Strings side by side are one. */
static sifr_status parse_strings(text_parser *p, text_node *node) {
    size_t first = p->at, size = 0;
    char *bytes;
    for (; text_parser_peek(p, 0)->kind == TEXT_TOKEN_STRING; p->at++)
        size += p->tokens[p->at].text.size;
    if (p->at == first + 1) {
        node->value = text_of_text(p->tokens[first].text);
        return SIFR_OK;
    }
    BASE_TRY(text_arena_take(&p->t->arena, &p->place, size + 1, 1, &bytes));
    node->value = text_of_text((text_text){bytes, size});
    for (size_t i = first; i < p->at; i++) {
        memcpy(bytes, p->tokens[i].text.bytes, p->tokens[i].text.size);
        bytes += p->tokens[i].text.size;
    }
    return SIFR_OK;
}

static sifr_status parse_word(text_parser *p, text_node **out) {
    static const struct {
        const char *word;
        text_value_kind kind;
        bool truth;
    } words[] = {{"true", TEXT_BOOL, true},   {"True", TEXT_BOOL, true},
                 {"false", TEXT_BOOL, false}, {"False", TEXT_BOOL, false},
                 {"none", TEXT_NONE, false},  {"None", TEXT_NONE, false}};
    text_node *node;
    BASE_TRY(text_parser_node(p, TEXT_NODE_NAME, &node));
    BASE_TRY(text_parser_name(p, &node->text, &node->symbol));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!text_text_is(node->text, words[i].word)) continue;
        node->kind = TEXT_NODE_CONSTANT;
        node->value = (text_value){.kind = words[i].kind, .truth = words[i].truth};
    }
    if (p->macros && (text_text_is(node->text, "varargs") || text_text_is(node->text, "kwargs")))
        return text_template_fail(&p->place, "%.*s of a macro is not supported",
                                  (int)node->text.size, node->text.bytes);
    *out = node;
    return SIFR_OK;
}

static sifr_status parse_parentheses(text_parser *p, text_node **out) {
    p->at++;
    if (text_parser_is(p, ')'))
        BASE_TRY(text_parser_node(p, TEXT_NODE_TUPLE, out));
    else
        BASE_TRY(text_parser_tuple(p, true, out));
    return text_parser_expect(p, ')');
}

static sifr_status parse_primary(text_parser *p, text_node **out) {
    const text_token *token = text_parser_peek(p, 0);
    text_node *node;
    switch (token->kind) {
    case TEXT_TOKEN_NAME:
        return parse_word(p, out);
    case TEXT_TOKEN_STRING:
        BASE_TRY(text_parser_node(p, TEXT_NODE_CONSTANT, &node));
        *out = node;
        return parse_strings(p, node);
    case TEXT_TOKEN_INTEGER:
    case TEXT_TOKEN_FLOAT:
        BASE_TRY(text_parser_node(p, TEXT_NODE_CONSTANT, &node));
        node->value = token->kind == TEXT_TOKEN_FLOAT ? text_of_float(token->real)
                                                      : text_of_int(token->integer);
        p->at++;
        *out = node;
        return SIFR_OK;
    default:
        if (text_parser_is(p, '(')) return parse_parentheses(p, out);
        if (text_parser_is(p, '[')) return parse_items(p, TEXT_NODE_LIST, ']', out);
        if (text_parser_is(p, '{')) return parse_items(p, TEXT_NODE_DICT, '}', out);
        return text_parser_unexpected(p, "an expression");
    }
}

static bool ends_slice(const text_parser *p) {
    return text_parser_is(p, ']') || text_parser_is(p, ',') || text_parser_is(p, ':');
}

/* [a], [a:b] or [a:b:c] behind the bracket. */
static sifr_status parse_subscript(text_parser *p, text_node **out) {
    text_node *first = NULL, *node;
    if (!text_parser_is(p, ':')) BASE_TRY(text_parser_expression(p, true, &first));
    if (!text_parser_skip(p, ':')) {
        *out = first;
        if (!text_parser_is(p, ',')) return SIFR_OK;
        return text_template_fail(&p->place, "commas in [ ] are not supported");
    }
    BASE_TRY(text_parser_node(p, TEXT_NODE_SLICE, &node));
    node->left = first;
    if (!ends_slice(p)) BASE_TRY(text_parser_expression(p, true, &node->right));
    if (text_parser_skip(p, ':') && !ends_slice(p))
        BASE_TRY(text_parser_expression(p, true, &node->test));
    *out = node;
    return SIFR_OK;
}

static sifr_status parse_attribute(text_parser *p, text_node **node) {
    const text_token *token = text_parser_peek(p, 0);
    text_node *number;
    if (token->kind == TEXT_TOKEN_INTEGER) {
        BASE_TRY(parse_primary(p, &number));
        return make_binary(p, TEXT_NODE_ITEM, 0, number, node);
    }
    BASE_TRY(make_binary(p, TEXT_NODE_ATTRIBUTE, 0, NULL, node));
    return text_parser_name(p, &(*node)->text, NULL);
}

static sifr_status parse_call(text_parser *p, text_node **node) {
    text_node *call;
    BASE_TRY(text_parser_node(p, TEXT_NODE_CALL, &call));
    call->left = *node;
    *node = call;
    return parse_arguments(p, call);
}

static sifr_status parse_postfix(text_parser *p, text_node **node) {
    for (int links = 0;; links++) {
        text_node *index;
        if (links > TEXT_TEMPLATE_NESTING)
            return text_template_fail(&p->place, "more than %d accesses in a row",
                                      TEXT_TEMPLATE_NESTING);
        if (text_parser_skip(p, '.')) {
            BASE_TRY(parse_attribute(p, node));
        } else if (text_parser_skip(p, '[')) {
            BASE_TRY(parse_subscript(p, &index));
            BASE_TRY(text_parser_expect(p, ']'));
            BASE_TRY(make_binary(p, TEXT_NODE_ITEM, 0, index, node));
        } else if (text_parser_is(p, '(')) {
            BASE_TRY(parse_call(p, node));
        } else {
            return SIFR_OK;
        }
    }
}

static sifr_status parse_behind(text_parser *p, text_node **node) {
    for (int links = 0;; links++) {
        if (links > TEXT_TEMPLATE_NESTING)
            return text_template_fail(&p->place, "more than %d filters in a row",
                                      TEXT_TEMPLATE_NESTING);
        if (text_parser_skip(p, '|')) {
            BASE_TRY(text_parser_filters(p, true, *node, node));
        } else if (text_parser_skip_name(p, "is")) {
            BASE_TRY(parse_test(p, node));
        } else if (text_parser_is(p, '(')) {
            BASE_TRY(parse_call(p, node));
        } else {
            return SIFR_OK;
        }
    }
}

static sifr_status parse_unary(text_parser *p, bool filters, text_node **out) {
    BASE_TRY(text_parser_enter(p));
    int op = text_parser_is(p, '-') ? '-' : text_parser_is(p, '+') ? '+' : 0;
    if (op) {
        p->at++;
        BASE_TRY(parse_unary(p, false, out));
        BASE_TRY(make_binary(p, TEXT_NODE_UNARY, op, NULL, out));
    } else {
        BASE_TRY(parse_primary(p, out));
    }
    BASE_TRY(parse_postfix(p, out));
    if (filters) BASE_TRY(parse_behind(p, out));
    p->depth--;
    return SIFR_OK;
}

/* ---- operators ---- */

typedef sifr_status parse_function_type(text_parser *p, text_node **out);

/* Operands of `next` joined, left to right, by any of `operators`. */
static sifr_status parse_chain(text_parser *p, const int *operators, size_t count,
                               parse_function_type *next, text_node **out) {
    BASE_TRY(next(p, out));
    for (int links = 0;; links++) {
        text_node *right;
        int op = 0;
        for (size_t i = 0; i < count; i++) {
            if (text_parser_is(p, operators[i])) op = operators[i];
        }
        if (!op) return SIFR_OK;
        if (links > TEXT_TEMPLATE_NESTING)
            return text_template_fail(&p->place, "more than %d operators in a row",
                                      TEXT_TEMPLATE_NESTING);
        p->at++;
        BASE_TRY(next(p, &right));
        BASE_TRY(make_binary(p, TEXT_NODE_BINARY, op, right, out));
    }
}

static sifr_status parse_operand(text_parser *p, text_node **out) {
    return parse_unary(p, true, out);
}

static sifr_status parse_power(text_parser *p, text_node **out) {
    static const int operators[] = {TEXT_OP_POWER};
    return parse_chain(p, operators, 1, parse_operand, out);
}

static sifr_status parse_product(text_parser *p, text_node **out) {
    static const int operators[] = {'*', '/', TEXT_OP_FLOOR, '%'};
    return parse_chain(p, operators, 4, parse_power, out);
}

static sifr_status parse_concat(text_parser *p, text_node **out) {
    text_node *node, *item;
    size_t capacity = 0;
    BASE_TRY(parse_product(p, out));
    if (!text_parser_is(p, '~')) return SIFR_OK;
    BASE_TRY(text_parser_node(p, TEXT_NODE_CONCAT, &node));
    BASE_TRY(text_parser_add(p, node, &capacity, *out));
    while (text_parser_skip(p, '~')) {
        BASE_TRY(parse_product(p, &item));
        BASE_TRY(text_parser_add(p, node, &capacity, item));
    }
    *out = node;
    return SIFR_OK;
}

static sifr_status parse_sum(text_parser *p, text_node **out) {
    static const int operators[] = {'+', '-'};
    return parse_chain(p, operators, 2, parse_concat, out);
}

/* The comparison that begins here, skipped; 0: none. */
static int comparison(text_parser *p) {
    static const int operators[] = {TEXT_OP_EQ, TEXT_OP_NE, TEXT_OP_GE, TEXT_OP_LE, '<', '>'};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (text_parser_skip(p, operators[i])) return operators[i];
    }
    if (text_parser_skip_name(p, "in")) return TEXT_OP_IN;
    const text_token *next = text_parser_peek(p, 1);
    if (!text_parser_is_name(p, "not") || next->kind != TEXT_TOKEN_NAME ||
        !text_text_is(next->text, "in"))
        return 0;
    p->at += 2;
    return TEXT_OP_NOT_IN;
}

static sifr_status parse_compare(text_parser *p, text_node **out) {
    text_node *node = NULL, *part;
    size_t capacity = 0;
    BASE_TRY(parse_sum(p, out));
    for (int op; (op = comparison(p)) != 0;) {
        if (!node) {
            BASE_TRY(text_parser_node(p, TEXT_NODE_COMPARE, &node));
            node->left = *out;
            *out = node;
        }
        BASE_TRY(text_parser_node(p, TEXT_NODE_COMPARISON, &part));
        part->op = op;
        BASE_TRY(parse_sum(p, &part->left));
        BASE_TRY(text_parser_add(p, node, &capacity, part));
    }
    return SIFR_OK;
}

static sifr_status parse_not(text_parser *p, text_node **out) {
    if (!text_parser_skip_name(p, "not")) return parse_compare(p, out);
    BASE_TRY(text_parser_enter(p));
    BASE_TRY(parse_not(p, out));
    p->depth--;
    return make_binary(p, TEXT_NODE_UNARY, 'n', NULL, out);
}

/* `and` or `or`. */
static sifr_status parse_logic(text_parser *p, bool both, text_node **out) {
    BASE_TRY(both ? parse_not(p, out) : parse_logic(p, true, out));
    for (int links = 0; text_parser_skip_name(p, both ? "and" : "or"); links++) {
        text_node *right;
        if (links > TEXT_TEMPLATE_NESTING)
            return text_template_fail(&p->place, "more than %d operators in a row",
                                      TEXT_TEMPLATE_NESTING);
        BASE_TRY(both ? parse_not(p, &right) : parse_logic(p, true, &right));
        BASE_TRY(make_binary(p, both ? TEXT_NODE_AND : TEXT_NODE_OR, 0, right, out));
    }
    return SIFR_OK;
}

sifr_status text_parser_expression(text_parser *p, bool choice, text_node **out) {
    BASE_TRY(text_parser_enter(p));
    BASE_TRY(parse_logic(p, false, out));
    for (int links = 0; choice && text_parser_skip_name(p, "if"); links++) {
        text_node *node;
        if (links > TEXT_TEMPLATE_NESTING)
            return text_template_fail(&p->place, "more than %d conditions in a row",
                                      TEXT_TEMPLATE_NESTING);
        BASE_TRY(text_parser_node(p, TEXT_NODE_CHOICE, &node));
        node->left = *out;
        BASE_TRY(parse_logic(p, false, &node->test));
        if (text_parser_skip_name(p, "else"))
            BASE_TRY(text_parser_expression(p, true, &node->right));
        *out = node;
    }
    p->depth--;
    return SIFR_OK;
}

static bool ends_tuple(const text_parser *p) {
    text_token_kind kind = text_parser_peek(p, 0)->kind;
    return kind == TEXT_TOKEN_VARIABLE_END || kind == TEXT_TOKEN_BLOCK_END ||
           text_parser_is(p, ')') || text_parser_is_name(p, "recursive");
}

sifr_status text_parser_tuple(text_parser *p, bool choice, text_node **out) {
    text_node *node, *item;
    size_t capacity = 0;
    BASE_TRY(text_parser_expression(p, choice, out));
    if (!text_parser_is(p, ',')) return SIFR_OK;
    BASE_TRY(text_parser_node(p, TEXT_NODE_TUPLE, &node));
    BASE_TRY(text_parser_add(p, node, &capacity, *out));
    while (text_parser_skip(p, ',') && !ends_tuple(p)) {
        BASE_TRY(text_parser_expression(p, choice, &item));
        BASE_TRY(text_parser_add(p, node, &capacity, item));
    }
    *out = node;
    return SIFR_OK;
}
