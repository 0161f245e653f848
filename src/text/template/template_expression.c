/* The parser of expressions: Jinja's grammar, from loose operators to tight ones. */
#include "text/template/template_internal.h"

static sifr_status parse_unary(formats_parser *p, bool filters, formats_node **out);
static sifr_status parse_primary(formats_parser *p, formats_node **out);
static sifr_status parse_postfix(formats_parser *p, formats_node **node);

static sifr_status make_binary(formats_parser *p, formats_node_kind kind, int op,
                               formats_node *right, formats_node **left) {
    formats_node *node;
    BASE_TRY(formats_parser_node(p, kind, &node));
    node->op = op;
    node->left = *left;
    node->right = right;
    *left = node;
    return SIFR_OK;
}

/* ---- arguments of calls, filters and tests ---- */

static sifr_status parse_argument(formats_parser *p, formats_node *call, size_t *room,
                                  bool *keywords) {
    const formats_token *token = formats_parser_peek(p, 0), *next = formats_parser_peek(p, 1);
    formats_node *value;
    if (formats_parser_is(p, '*') || formats_parser_is(p, FORMATS_OP_POWER))
        return formats_template_fail(&p->place,
                                     "arguments with * or ** are not supported; write them out");
    if (token->kind == FORMATS_TOKEN_NAME && next->kind == FORMATS_TOKEN_OPERATOR &&
        next->op == '=') {
        formats_node *keyword;
        BASE_TRY(formats_parser_node(p, FORMATS_NODE_KEYWORD, &keyword));
        keyword->text = token->text;
        p->at += 2;
        BASE_TRY(formats_parser_expression(p, true, &keyword->left));
        *keywords = true;
        return formats_parser_add(p, call, room, keyword);
    }
    if (*keywords)
        return formats_template_fail(&p->place, "an argument without a name after one with a name");
    BASE_TRY(formats_parser_expression(p, true, &value));
    return formats_parser_add(p, call, room, value);
}

/* "(" … ")" into call->items. */
static sifr_status parse_arguments(formats_parser *p, formats_node *call) {
    size_t room = 0;
    bool comma = false, keywords = false;
    BASE_TRY(formats_parser_expect(p, '('));
    while (!formats_parser_is(p, ')')) {
        if (comma) {
            BASE_TRY(formats_parser_expect(p, ','));
            if (formats_parser_is(p, ')')) break;
        }
        BASE_TRY(parse_argument(p, call, &room, &keywords));
        comma = true;
    }
    return formats_parser_expect(p, ')');
}

/* The name behind "|" or "is", and its row. */
static sifr_status parse_function(formats_parser *p, bool filter, formats_node *node) {
    bool known = false;
    BASE_TRY(formats_parser_name(p, &node->text, NULL));
    if (formats_parser_is(p, '.'))
        return formats_template_fail(&p->place, "names with dots after | or is are not supported");
    node->function = (filter ? formats_filter_find : formats_test_find)(node->text, &known);
    if (node->function) return SIFR_OK;
    return formats_template_fail(
        &p->place, "%s the %s \"%.*s\"", known ? "not supported yet:" : "Jinja does not have",
        filter ? "filter" : "test", (int)node->text.size, node->text.bytes);
}

sifr_status formats_parser_filters(formats_parser *p, bool inside, formats_node *value,
                                   formats_node **out) {
    *out = value;
    while (inside || formats_parser_skip(p, '|')) {
        formats_node *node;
        BASE_TRY(formats_parser_node(p, FORMATS_NODE_FILTER, &node));
        BASE_TRY(parse_function(p, true, node));
        if (formats_parser_is(p, '(')) BASE_TRY(parse_arguments(p, node));
        node->left = *out;
        *out = node;
        inside = false;
    }
    return SIFR_OK;
}

static bool begins_argument(const formats_parser *p) {
    const formats_token *token = formats_parser_peek(p, 0);
    switch (token->kind) {
    case FORMATS_TOKEN_NAME:
        return !formats_text_is(token->text, "else") && !formats_text_is(token->text, "or") &&
               !formats_text_is(token->text, "and");
    case FORMATS_TOKEN_STRING:
    case FORMATS_TOKEN_INTEGER:
    case FORMATS_TOKEN_FLOAT:
        return true;
    case FORMATS_TOKEN_OPERATOR:
        return token->op == '[' || token->op == '{';
    default:
        return false;
    }
}

static sifr_status parse_test(formats_parser *p, formats_node **value) {
    formats_node *node, *argument;
    size_t room = 0;
    bool negated = formats_parser_skip_name(p, "not");
    BASE_TRY(formats_parser_node(p, FORMATS_NODE_TEST, &node));
    BASE_TRY(parse_function(p, false, node));
    node->left = *value;
    if (formats_parser_is(p, '(')) {
        BASE_TRY(parse_arguments(p, node));
    } else if (begins_argument(p)) {
        if (formats_parser_is_name(p, "is"))
            return formats_template_fail(&p->place, "tests with is cannot be chained");
        BASE_TRY(parse_primary(p, &argument));
        BASE_TRY(parse_postfix(p, &argument));
        BASE_TRY(formats_parser_add(p, node, &room, argument));
    }
    *value = node;
    return negated ? make_binary(p, FORMATS_NODE_UNARY, 'n', NULL, value) : SIFR_OK;
}

/* ---- primaries and what follows them ---- */

/* Items up to `close`; of a dict, pairs. */
static sifr_status parse_items(formats_parser *p, formats_node_kind kind, int close,
                               formats_node **out) {
    formats_node *node, *item;
    size_t room = 0;
    BASE_TRY(formats_parser_node(p, kind, &node));
    p->at++;
    for (bool first = true; !formats_parser_is(p, close); first = false) {
        if (!first) BASE_TRY(formats_parser_expect(p, ','));
        if (formats_parser_is(p, close)) break;
        BASE_TRY(formats_parser_expression(p, true, &item));
        BASE_TRY(formats_parser_add(p, node, &room, item));
        if (kind != FORMATS_NODE_DICT) continue;
        BASE_TRY(formats_parser_expect(p, ':'));
        BASE_TRY(formats_parser_expression(p, true, &item));
        BASE_TRY(formats_parser_add(p, node, &room, item));
    }
    *out = node;
    return formats_parser_expect(p, close);
}

/* Strings side by side are one. */
static sifr_status parse_strings(formats_parser *p, formats_node *node) {
    size_t first = p->at, size = 0;
    char *bytes;
    for (; formats_parser_peek(p, 0)->kind == FORMATS_TOKEN_STRING; p->at++)
        size += p->tokens[p->at].text.size;
    if (p->at == first + 1) {
        node->value = formats_of_text(p->tokens[first].text);
        return SIFR_OK;
    }
    BASE_TRY(formats_arena_take(&p->t->arena, &p->place, size + 1, 1, &bytes));
    node->value = formats_of_text((formats_text){bytes, size});
    for (size_t i = first; i < p->at; i++) {
        memcpy(bytes, p->tokens[i].text.bytes, p->tokens[i].text.size);
        bytes += p->tokens[i].text.size;
    }
    return SIFR_OK;
}

static sifr_status parse_word(formats_parser *p, formats_node **out) {
    static const struct {
        const char *word;
        formats_value_kind kind;
        bool truth;
    } words[] = {{"true", FORMATS_BOOL, true},   {"True", FORMATS_BOOL, true},
                 {"false", FORMATS_BOOL, false}, {"False", FORMATS_BOOL, false},
                 {"none", FORMATS_NONE, false},  {"None", FORMATS_NONE, false}};
    formats_node *node;
    BASE_TRY(formats_parser_node(p, FORMATS_NODE_NAME, &node));
    BASE_TRY(formats_parser_name(p, &node->text, &node->symbol));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!formats_text_is(node->text, words[i].word)) continue;
        node->kind = FORMATS_NODE_CONSTANT;
        node->value = (formats_value){.kind = words[i].kind, .truth = words[i].truth};
    }
    if (p->macros &&
        (formats_text_is(node->text, "varargs") || formats_text_is(node->text, "kwargs")))
        return formats_template_fail(&p->place, "%.*s of a macro is not supported",
                                     (int)node->text.size, node->text.bytes);
    *out = node;
    return SIFR_OK;
}

static sifr_status parse_parentheses(formats_parser *p, formats_node **out) {
    p->at++;
    if (formats_parser_is(p, ')'))
        BASE_TRY(formats_parser_node(p, FORMATS_NODE_TUPLE, out));
    else
        BASE_TRY(formats_parser_tuple(p, true, out));
    return formats_parser_expect(p, ')');
}

static sifr_status parse_primary(formats_parser *p, formats_node **out) {
    const formats_token *token = formats_parser_peek(p, 0);
    formats_node *node;
    switch (token->kind) {
    case FORMATS_TOKEN_NAME:
        return parse_word(p, out);
    case FORMATS_TOKEN_STRING:
        BASE_TRY(formats_parser_node(p, FORMATS_NODE_CONSTANT, &node));
        *out = node;
        return parse_strings(p, node);
    case FORMATS_TOKEN_INTEGER:
    case FORMATS_TOKEN_FLOAT:
        BASE_TRY(formats_parser_node(p, FORMATS_NODE_CONSTANT, &node));
        node->value = token->kind == FORMATS_TOKEN_FLOAT ? formats_of_float(token->real)
                                                         : formats_of_int(token->integer);
        p->at++;
        *out = node;
        return SIFR_OK;
    default:
        if (formats_parser_is(p, '(')) return parse_parentheses(p, out);
        if (formats_parser_is(p, '[')) return parse_items(p, FORMATS_NODE_LIST, ']', out);
        if (formats_parser_is(p, '{')) return parse_items(p, FORMATS_NODE_DICT, '}', out);
        return formats_parser_unexpected(p, "an expression");
    }
}

static bool ends_slice(const formats_parser *p) {
    return formats_parser_is(p, ']') || formats_parser_is(p, ',') || formats_parser_is(p, ':');
}

/* [a], [a:b] or [a:b:c] behind the bracket. */
static sifr_status parse_subscript(formats_parser *p, formats_node **out) {
    formats_node *first = NULL, *node;
    if (!formats_parser_is(p, ':')) BASE_TRY(formats_parser_expression(p, true, &first));
    if (!formats_parser_skip(p, ':')) {
        *out = first;
        if (!formats_parser_is(p, ',')) return SIFR_OK;
        return formats_template_fail(&p->place, "commas in [ ] are not supported");
    }
    BASE_TRY(formats_parser_node(p, FORMATS_NODE_SLICE, &node));
    node->left = first;
    if (!ends_slice(p)) BASE_TRY(formats_parser_expression(p, true, &node->right));
    if (formats_parser_skip(p, ':') && !ends_slice(p))
        BASE_TRY(formats_parser_expression(p, true, &node->test));
    *out = node;
    return SIFR_OK;
}

static sifr_status parse_attribute(formats_parser *p, formats_node **node) {
    const formats_token *token = formats_parser_peek(p, 0);
    formats_node *number;
    if (token->kind == FORMATS_TOKEN_INTEGER) {
        BASE_TRY(parse_primary(p, &number));
        return make_binary(p, FORMATS_NODE_ITEM, 0, number, node);
    }
    BASE_TRY(make_binary(p, FORMATS_NODE_ATTRIBUTE, 0, NULL, node));
    return formats_parser_name(p, &(*node)->text, NULL);
}

static sifr_status parse_call(formats_parser *p, formats_node **node) {
    formats_node *call;
    BASE_TRY(formats_parser_node(p, FORMATS_NODE_CALL, &call));
    call->left = *node;
    *node = call;
    return parse_arguments(p, call);
}

static sifr_status parse_postfix(formats_parser *p, formats_node **node) {
    for (int links = 0;; links++) {
        formats_node *index;
        if (links > FORMATS_TEMPLATE_NESTING)
            return formats_template_fail(&p->place, "more than %d accesses in a row",
                                         FORMATS_TEMPLATE_NESTING);
        if (formats_parser_skip(p, '.')) {
            BASE_TRY(parse_attribute(p, node));
        } else if (formats_parser_skip(p, '[')) {
            BASE_TRY(parse_subscript(p, &index));
            BASE_TRY(formats_parser_expect(p, ']'));
            BASE_TRY(make_binary(p, FORMATS_NODE_ITEM, 0, index, node));
        } else if (formats_parser_is(p, '(')) {
            BASE_TRY(parse_call(p, node));
        } else {
            return SIFR_OK;
        }
    }
}

static sifr_status parse_behind(formats_parser *p, formats_node **node) {
    for (int links = 0;; links++) {
        if (links > FORMATS_TEMPLATE_NESTING)
            return formats_template_fail(&p->place, "more than %d filters in a row",
                                         FORMATS_TEMPLATE_NESTING);
        if (formats_parser_skip(p, '|')) {
            BASE_TRY(formats_parser_filters(p, true, *node, node));
        } else if (formats_parser_skip_name(p, "is")) {
            BASE_TRY(parse_test(p, node));
        } else if (formats_parser_is(p, '(')) {
            BASE_TRY(parse_call(p, node));
        } else {
            return SIFR_OK;
        }
    }
}

static sifr_status parse_unary(formats_parser *p, bool filters, formats_node **out) {
    BASE_TRY(formats_parser_enter(p));
    int op = formats_parser_is(p, '-') ? '-' : formats_parser_is(p, '+') ? '+' : 0;
    if (op) {
        p->at++;
        BASE_TRY(parse_unary(p, false, out));
        BASE_TRY(make_binary(p, FORMATS_NODE_UNARY, op, NULL, out));
    } else {
        BASE_TRY(parse_primary(p, out));
    }
    BASE_TRY(parse_postfix(p, out));
    if (filters) BASE_TRY(parse_behind(p, out));
    p->depth--;
    return SIFR_OK;
}

/* ---- operators ---- */

typedef sifr_status parse_function_type(formats_parser *p, formats_node **out);

/* Operands of `next` joined, left to right, by any of `operators`. */
static sifr_status parse_chain(formats_parser *p, const int *operators, size_t count,
                               parse_function_type *next, formats_node **out) {
    BASE_TRY(next(p, out));
    for (int links = 0;; links++) {
        formats_node *right;
        int op = 0;
        for (size_t i = 0; i < count; i++) {
            if (formats_parser_is(p, operators[i])) op = operators[i];
        }
        if (!op) return SIFR_OK;
        if (links > FORMATS_TEMPLATE_NESTING)
            return formats_template_fail(&p->place, "more than %d operators in a row",
                                         FORMATS_TEMPLATE_NESTING);
        p->at++;
        BASE_TRY(next(p, &right));
        BASE_TRY(make_binary(p, FORMATS_NODE_BINARY, op, right, out));
    }
}

static sifr_status parse_operand(formats_parser *p, formats_node **out) {
    return parse_unary(p, true, out);
}

static sifr_status parse_power(formats_parser *p, formats_node **out) {
    static const int operators[] = {FORMATS_OP_POWER};
    return parse_chain(p, operators, 1, parse_operand, out);
}

static sifr_status parse_product(formats_parser *p, formats_node **out) {
    static const int operators[] = {'*', '/', FORMATS_OP_FLOOR, '%'};
    return parse_chain(p, operators, 4, parse_power, out);
}

static sifr_status parse_concat(formats_parser *p, formats_node **out) {
    formats_node *node, *item;
    size_t room = 0;
    BASE_TRY(parse_product(p, out));
    if (!formats_parser_is(p, '~')) return SIFR_OK;
    BASE_TRY(formats_parser_node(p, FORMATS_NODE_CONCAT, &node));
    BASE_TRY(formats_parser_add(p, node, &room, *out));
    while (formats_parser_skip(p, '~')) {
        BASE_TRY(parse_product(p, &item));
        BASE_TRY(formats_parser_add(p, node, &room, item));
    }
    *out = node;
    return SIFR_OK;
}

static sifr_status parse_sum(formats_parser *p, formats_node **out) {
    static const int operators[] = {'+', '-'};
    return parse_chain(p, operators, 2, parse_concat, out);
}

/* The comparison that begins here, skipped; 0: none. */
static int comparison(formats_parser *p) {
    static const int operators[] = {FORMATS_OP_EQ, FORMATS_OP_NE, FORMATS_OP_GE,
                                    FORMATS_OP_LE, '<',           '>'};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (formats_parser_skip(p, operators[i])) return operators[i];
    }
    if (formats_parser_skip_name(p, "in")) return FORMATS_OP_IN;
    const formats_token *next = formats_parser_peek(p, 1);
    if (!formats_parser_is_name(p, "not") || next->kind != FORMATS_TOKEN_NAME ||
        !formats_text_is(next->text, "in"))
        return 0;
    p->at += 2;
    return FORMATS_OP_NOT_IN;
}

static sifr_status parse_compare(formats_parser *p, formats_node **out) {
    formats_node *node = NULL, *part;
    size_t room = 0;
    BASE_TRY(parse_sum(p, out));
    for (int op; (op = comparison(p)) != 0;) {
        if (!node) {
            BASE_TRY(formats_parser_node(p, FORMATS_NODE_COMPARE, &node));
            node->left = *out;
            *out = node;
        }
        BASE_TRY(formats_parser_node(p, FORMATS_NODE_COMPARISON, &part));
        part->op = op;
        BASE_TRY(parse_sum(p, &part->left));
        BASE_TRY(formats_parser_add(p, node, &room, part));
    }
    return SIFR_OK;
}

static sifr_status parse_not(formats_parser *p, formats_node **out) {
    if (!formats_parser_skip_name(p, "not")) return parse_compare(p, out);
    BASE_TRY(formats_parser_enter(p));
    BASE_TRY(parse_not(p, out));
    p->depth--;
    return make_binary(p, FORMATS_NODE_UNARY, 'n', NULL, out);
}

/* `and` or `or`. */
static sifr_status parse_logic(formats_parser *p, bool both, formats_node **out) {
    BASE_TRY(both ? parse_not(p, out) : parse_logic(p, true, out));
    for (int links = 0; formats_parser_skip_name(p, both ? "and" : "or"); links++) {
        formats_node *right;
        if (links > FORMATS_TEMPLATE_NESTING)
            return formats_template_fail(&p->place, "more than %d operators in a row",
                                         FORMATS_TEMPLATE_NESTING);
        BASE_TRY(both ? parse_not(p, &right) : parse_logic(p, true, &right));
        BASE_TRY(make_binary(p, both ? FORMATS_NODE_AND : FORMATS_NODE_OR, 0, right, out));
    }
    return SIFR_OK;
}

sifr_status formats_parser_expression(formats_parser *p, bool choice, formats_node **out) {
    BASE_TRY(formats_parser_enter(p));
    BASE_TRY(parse_logic(p, false, out));
    for (int links = 0; choice && formats_parser_skip_name(p, "if"); links++) {
        formats_node *node;
        if (links > FORMATS_TEMPLATE_NESTING)
            return formats_template_fail(&p->place, "more than %d conditions in a row",
                                         FORMATS_TEMPLATE_NESTING);
        BASE_TRY(formats_parser_node(p, FORMATS_NODE_CHOICE, &node));
        node->left = *out;
        BASE_TRY(parse_logic(p, false, &node->test));
        if (formats_parser_skip_name(p, "else"))
            BASE_TRY(formats_parser_expression(p, true, &node->right));
        *out = node;
    }
    p->depth--;
    return SIFR_OK;
}

static bool ends_tuple(const formats_parser *p) {
    formats_token_kind kind = formats_parser_peek(p, 0)->kind;
    return kind == FORMATS_TOKEN_VARIABLE_END || kind == FORMATS_TOKEN_BLOCK_END ||
           formats_parser_is(p, ')') || formats_parser_is_name(p, "recursive");
}

sifr_status formats_parser_tuple(formats_parser *p, bool choice, formats_node **out) {
    formats_node *node, *item;
    size_t room = 0;
    BASE_TRY(formats_parser_expression(p, choice, out));
    if (!formats_parser_is(p, ',')) return SIFR_OK;
    BASE_TRY(formats_parser_node(p, FORMATS_NODE_TUPLE, &node));
    BASE_TRY(formats_parser_add(p, node, &room, *out));
    while (formats_parser_skip(p, ',') && !ends_tuple(p)) {
        BASE_TRY(formats_parser_expression(p, choice, &item));
        BASE_TRY(formats_parser_add(p, node, &room, item));
    }
    *out = node;
    return SIFR_OK;
}
