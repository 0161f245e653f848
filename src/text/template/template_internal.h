/* What the files of the template interpreter share; see template.h for the interface. */
#ifndef TEXT_TEMPLATE_INTERNAL_H
#define TEXT_TEMPLATE_INTERNAL_H

#include <stdint.h>
#include <string.h>

#include "base/checked.h"
#include "text/template/template.h"

/* Bounds of one rendering: far above any conversation, far below what hurts. */
#define TEXT_TEMPLATE_STEPS 20000000
#define TEXT_TEMPLATE_MEMORY ((size_t)256 << 20)
#define TEXT_TEMPLATE_OUTPUT ((size_t)64 << 20)
#define TEXT_TEMPLATE_SOURCE ((size_t)1 << 20)
enum {
    TEXT_TEMPLATE_DEPTH = 500,   /* nested evaluations */
    TEXT_TEMPLATE_NESTING = 100, /* nested brackets and blocks of a template's text */
    TEXT_TEMPLATE_NAMES = 1000,  /* of variables */
    TEXT_TEMPLATE_RANGE = 100000 /* as in Jinja's sandbox */
};

/* Where a message says that something is wrong: file and line. */
typedef struct text_place {
    const char *name;
    int line;
    sifr_error *error;
} text_place;

/* "NAME, line N: …" as an SIFR_USAGE error. */
#define text_template_fail(place, ...) (text_template_set_error((place), __VA_ARGS__), SIFR_USAGE)
void text_template_set_error(const text_place *place, const char *format, ...) SIFR_PRINTF(2, 3);

/* ---- memory: freed all at once ---- */

typedef struct text_arena {
    struct text_arena_block *blocks;
    size_t used, limit; /* bytes of all blocks */
} text_arena;

/* Uninitialised bytes; SIFR_NO_MEMORY beyond the limit. */
sifr_status text_arena_take(text_arena *arena, const text_place *place, size_t count, size_t size,
                            void *out) SIFR_MUST_CHECK;
void text_arena_free(text_arena *arena);

/* ---- values, as Python has them ---- */

typedef struct text_text {
    const char *bytes; /* valid UTF-8; may hold NUL */
    size_t size;
} text_text;

typedef enum text_value_kind {
    TEXT_ABSENT,    /* an argument that is not given */
    TEXT_UNDEFINED, /* `text` is the name */
    TEXT_NONE,
    TEXT_BOOL,
    TEXT_INT,
    TEXT_FLOAT,
    TEXT_STRING,
    TEXT_SAFE, /* a string marked safe: what + joins with it is escaped */
    TEXT_LIST,
    TEXT_TUPLE,
    TEXT_RANGE,
    TEXT_VIEW,      /* of a dict's keys, values or items */
    TEXT_GENERATOR, /* what lazy filters give: read once, has no length */
    TEXT_DICT,
    TEXT_NAMESPACE,
    TEXT_LOOP,
    TEXT_MACRO,
    TEXT_FUNCTION,
    TEXT_METHOD
} text_value_kind;

typedef struct text_value {
    text_value_kind kind;
    union {
        bool truth;
        int64_t integer;
        double real;
        text_text text;
        struct text_items *items; /* LIST … GENERATOR */
        struct text_dict *dict;   /* DICT, NAMESPACE */
        struct text_loop *loop;
        const struct text_macro *macro;
        const struct text_builtin *function;
        const struct text_method *method;
    };
} text_value;

typedef struct text_items {
    text_value *values;
    size_t count, capacity;
    bool consumed;
    bool group; /* a tuple of groupby, with attributes grouper and list */
} text_items;

typedef struct text_dict {
    text_value *keys, *values; /* in the order of insertion */
    size_t count, capacity;
    size_t message; /* its number among the messages, from 1 on; 0: it is none */
    bool assistant; /* the message is the assistant's */
} text_dict;

/* The arguments of a call: `count` by position, then `named` by name. */
typedef struct text_call {
    const text_value *values;
    const text_text *names;
    size_t count, named;
} text_call;

typedef struct text_render text_render;

/* A filter, test, method or function. `parameters` are names divided by blanks, of which `required`
 * must be given; fixed functions get one value each, TEXT_ABSENT where not given. */
typedef struct text_builtin {
    const char *name, *parameters;
    size_t required;
    sifr_status (*run)(text_render *r, text_value self, const text_value *arguments,
                       text_value *out);
    sifr_status (*run_any)(text_render *r, text_value self, const text_call *call,
                           text_value *out); /* instead, where a call may have any arguments */
} text_builtin;
enum { TEXT_PARAMETERS = 6 };

typedef struct text_method {
    const text_builtin *function;
    text_value self;
} text_method;

typedef struct text_scope {
    struct text_scope *outer;
    int *symbols;
    text_value *values;
    size_t count, capacity;
} text_scope;

typedef struct text_macro {
    const struct text_node *node;
    text_scope *scope; /* where it was defined */
} text_macro;

/* A running loop. Items that its condition lets pass are found one ahead at most, as in Jinja. */
typedef struct text_loop {
    const struct text_node *node;
    text_scope *scope; /* outside of the loop */
    text_items *source;
    size_t next;        /* in source */
    text_items *passed; /* a filtered loop whose length was asked for: the rest */
    size_t passed_next;
    int64_t index0, length, depth0; /* length: -1 while not known */
    text_value changed;             /* the last arguments of loop.changed */
    bool has_after;
    text_value before, current, after;
} text_loop;

/* ---- the parsed template ---- */

typedef enum text_node_kind {
    TEXT_NODE_CONSTANT, /* value */
    TEXT_NODE_NAME,     /* symbol, text */
    TEXT_NODE_LIST,     /* items */
    TEXT_NODE_TUPLE,    /* items */
    TEXT_NODE_DICT,     /* items: key, value, key … */
    TEXT_NODE_UNARY,    /* op: - + n(ot); left */
    TEXT_NODE_BINARY,   /* op; left, right */
    TEXT_NODE_AND,      /* left, right */
    TEXT_NODE_OR,       /* left, right */
    TEXT_NODE_CONCAT,   /* items */
    TEXT_NODE_COMPARE,  /* left; items: COMPARISON (op, left) */
    TEXT_NODE_COMPARISON,
    TEXT_NODE_CHOICE,    /* left if test else right (NULL: undefined) */
    TEXT_NODE_ATTRIBUTE, /* left . text */
    TEXT_NODE_ITEM,      /* left [ right ] */
    TEXT_NODE_SLICE,     /* [ left : right : test ], each may be NULL */
    TEXT_NODE_CALL,      /* left ( items ); KEYWORDs come last */
    TEXT_NODE_KEYWORD,   /* text = left */
    TEXT_NODE_FILTER,    /* left | function ( items ) */
    TEXT_NODE_TEST,      /* left is function ( items ) */
    TEXT_NODE_BLOCK,     /* items: statements */
    TEXT_NODE_DATA,      /* text */
    TEXT_NODE_OUTPUT,    /* left */
    TEXT_NODE_IF,        /* test, body; other: IF, BLOCK or NULL */
    TEXT_NODE_FOR,       /* for left in right if test: body; other: else, or NULL; op: recursive */
    TEXT_NODE_WITH,      /* items: SET; body */
    TEXT_NODE_SET,       /* left = right */
    TEXT_NODE_SET_BLOCK, /* left = body, through the filters of right (around FILTERED) */
    TEXT_NODE_FILTERED,
    TEXT_NODE_MEMBER,       /* a target: namespace symbol . text */
    TEXT_NODE_MACRO,        /* symbol; items: PARAMETER; body */
    TEXT_NODE_PARAMETER,    /* symbol, text; left: default or NULL */
    TEXT_NODE_CALL_BLOCK,   /* left: CALL; right: MACRO (the caller) */
    TEXT_NODE_FILTER_BLOCK, /* right: filters; body */
    TEXT_NODE_GENERATION,   /* body */
    TEXT_NODE_BREAK,
    TEXT_NODE_CONTINUE
} text_node_kind;

typedef struct text_node {
    text_node_kind kind;
    int op, line, symbol;
    text_text text;
    text_value value;
    const text_builtin *function;
    struct text_node *left, *right, *test, *body, *other;
    struct text_node **items;
    size_t count;
} text_node;

struct text_template {
    char *name;
    text_arena arena;
    text_text *symbols; /* names of variables, by number */
    size_t symbol_count, symbol_capacity;
    text_text *words; /* all its names and strings, also those of members */
    size_t word_count, word_capacity;
    int loop_symbol, caller_symbol; /* of `loop` and `caller` */
    text_node *root;
    bool marks; /* it has {% generation %} */
};

/* The number of a variable's name; -1: the template never names it. */
int text_template_symbol(const text_template *t, text_text name);

/* ---- tokens ---- */

typedef enum text_token_kind {
    TEXT_TOKEN_END,
    TEXT_TOKEN_DATA,
    TEXT_TOKEN_VARIABLE_BEGIN,
    TEXT_TOKEN_VARIABLE_END,
    TEXT_TOKEN_BLOCK_BEGIN,
    TEXT_TOKEN_BLOCK_END,
    TEXT_TOKEN_NAME,
    TEXT_TOKEN_STRING,
    TEXT_TOKEN_INTEGER,
    TEXT_TOKEN_FLOAT,
    TEXT_TOKEN_OPERATOR
} text_token_kind;

/* An operator of two characters as one number. */
#define TEXT_OP2(a, b) ((a) | (b) << 8)
enum {
    TEXT_OP_EQ = TEXT_OP2('=', '='),
    TEXT_OP_NE = TEXT_OP2('!', '='),
    TEXT_OP_GE = TEXT_OP2('>', '='),
    TEXT_OP_LE = TEXT_OP2('<', '='),
    TEXT_OP_FLOOR = TEXT_OP2('/', '/'),
    TEXT_OP_POWER = TEXT_OP2('*', '*'),
    TEXT_OP_IN = TEXT_OP2('i', 'n'),
    TEXT_OP_NOT_IN = TEXT_OP2('n', 'i')
};

typedef struct text_token {
    text_token_kind kind;
    int line, op;
    text_text text; /* of data, names and strings */
    int64_t integer;
    double real;
} text_token;

typedef struct text_tokens {
    text_token *tokens; /* the last one is TEXT_TOKEN_END */
    size_t count, capacity;
} text_tokens;

/* Texts of tokens lie in `arena`; free tokens->tokens with free(), also after an error. */
sifr_status text_template_lex(const char *text, size_t size, text_arena *arena, text_place *place,
                              text_tokens *tokens) SIFR_MUST_CHECK;

/* ---- parsing ---- */

typedef struct text_parser {
    text_place place;
    text_template *t;
    const text_token *tokens;
    size_t at;
    int depth, loops, macros; /* around; loops: those that a break may end */
} text_parser;

const text_token *text_parser_peek(const text_parser *p, size_t ahead);
bool text_parser_is(const text_parser *p, int op);
bool text_parser_is_name(const text_parser *p, const char *name);
bool text_parser_skip(text_parser *p, int op);
bool text_parser_skip_name(text_parser *p, const char *name);
sifr_status text_parser_expect(text_parser *p, int op) SIFR_MUST_CHECK;
sifr_status text_parser_unexpected(text_parser *p, const char *wanted);
sifr_status text_parser_node(text_parser *p, text_node_kind kind, text_node **out) SIFR_MUST_CHECK;
/* Adds to node->items, which `capacity` belongs to. */
sifr_status text_parser_add(text_parser *p, text_node *node, size_t *capacity,
                            text_node *item) SIFR_MUST_CHECK;
sifr_status text_parser_name(text_parser *p, text_text *name, int *symbol) SIFR_MUST_CHECK;
/* An expression; without `choice`, `a if b` ends before `if`. */
sifr_status text_parser_expression(text_parser *p, bool choice, text_node **out) SIFR_MUST_CHECK;
/* Expressions divided by commas are a tuple. */
sifr_status text_parser_tuple(text_parser *p, bool choice, text_node **out) SIFR_MUST_CHECK;
sifr_status text_parser_filters(text_parser *p, bool inside, text_node *value,
                                text_node **out) SIFR_MUST_CHECK;
sifr_status text_parser_enter(text_parser *p) SIFR_MUST_CHECK;

/* ---- rendering ---- */

/* A text that grows. */
typedef struct text_builder {
    char *bytes;
    size_t size, capacity;
} text_builder;

/* Whose what is written is: the message that the innermost loop over messages has, from 1 on; 0:
 * none. */
typedef struct text_owner {
    size_t message;
    bool assistant;
    bool inner; /* a loop over something else runs within */
} text_owner;

typedef enum text_flow { TEXT_FLOW_ON, TEXT_FLOW_BREAK, TEXT_FLOW_CONTINUE } text_flow;

struct text_render {
    text_place place;
    const text_template *t;
    const struct tm *now;
    text_arena arena;
    int64_t steps;
    int depth;
    text_flow flow;
    size_t macros; /* made so far; their scopes must stay */
    text_scope *scope;
    text_builder root, *out;
    text_value filtered; /* of TEXT_NODE_FILTERED: a block, before its filters */
    text_template_span *spans;
    size_t span_count, span_capacity;
    text_owner owner;
    size_t owned; /* of the root's text, where what the owner has written begins */
    text_template_piece *pieces;
    size_t piece_count, piece_capacity;
    bool mixed;
};

#define TEXT_TAKE(r, count, size, out)                                                             \
    text_arena_take(&(r)->arena, &(r)->place, (count), (size), (out))

/* Counts work; fails beyond the bound. */
sifr_status text_template_charge(text_render *r, size_t steps) SIFR_MUST_CHECK;
/* The work of comparing each of `count` things with `size` bytes. */
sifr_status text_template_charge_all(text_render *r, size_t count, size_t size) SIFR_MUST_CHECK;
/* One level deeper; undo with r->depth--. */
sifr_status text_template_enter(text_render *r) SIFR_MUST_CHECK;

/* template_value.c */
text_value text_none(void);
text_value text_undefined(text_text name);
text_value text_of_bool(bool truth);
text_value text_of_int(int64_t integer);
text_value text_of_float(double real);
text_value text_of_text(text_text text);
text_text text_literal(const char *text);
const char *text_kind_name(text_value v); /* "str", "dict" …, as Python calls the types */
bool text_text_equal(text_text a, text_text b);
bool text_text_is(text_text a, const char *b);
bool text_is_items(text_value v);
bool text_is_number(text_value v); /* bool, int or float */
double text_number(text_value v);
bool text_truth(text_value v);
sifr_status text_new_items(text_render *r, text_value_kind kind, size_t capacity,
                           text_value *out) SIFR_MUST_CHECK;
sifr_status text_append(text_render *r, text_items *items, text_value v) SIFR_MUST_CHECK;
sifr_status text_pair(text_render *r, text_value a, text_value b, text_value *out) SIFR_MUST_CHECK;
sifr_status text_new_dict(text_render *r, text_value_kind kind, size_t capacity,
                          text_value *out) SIFR_MUST_CHECK;
sifr_status text_dict_set(text_render *r, text_dict *dict, text_value key,
                          text_value v) SIFR_MUST_CHECK;
/* *found is false, and *out untouched, where there is no such key. */
sifr_status text_dict_get(text_render *r, const text_dict *dict, text_value key, bool *found,
                          text_value *out) SIFR_MUST_CHECK;
sifr_status text_from_json(text_render *r, const json_t *json, text_value *out) SIFR_MUST_CHECK;
/* The values that a loop over `v` meets; fails for what cannot be iterated. */
sifr_status text_iterate(text_render *r, text_value v, text_items **out) SIFR_MUST_CHECK;
sifr_status text_length(text_render *r, text_value v, int64_t *out) SIFR_MUST_CHECK;

/* template_compare.c */
sifr_status text_equal(text_render *r, text_value a, text_value b, bool *out) SIFR_MUST_CHECK;
/* -1, 0, 1; fails for what has no order. */
sifr_status text_order(text_render *r, text_value a, text_value b, int *out) SIFR_MUST_CHECK;
sifr_status text_contains(text_render *r, text_value whole, text_value part,
                          bool *out) SIFR_MUST_CHECK;
sifr_status text_compare(text_render *r, int op, text_value a, text_value b,
                         bool *out) SIFR_MUST_CHECK;
/* Sorts values by keys, stably. */
sifr_status text_sort(text_render *r, text_value *values, text_value *keys, size_t count,
                      bool reverse) SIFR_MUST_CHECK;

/* template_print.c */
sifr_status text_build(text_render *r, text_builder *b, const char *bytes,
                       size_t size) SIFR_MUST_CHECK;
text_text text_built(const text_builder *b); /* never a NULL pointer */
sifr_status text_build_repeated(text_render *r, text_builder *b, text_text text,
                                int64_t count) SIFR_MUST_CHECK;
/* Appends str(v). */
sifr_status text_print(text_render *r, text_builder *b, text_value v) SIFR_MUST_CHECK;
sifr_status text_string(text_render *r, text_value v, text_text *out) SIFR_MUST_CHECK;
void text_float_text(double real, char out[32]); /* repr */
sifr_status text_filter_tojson(text_render *r, text_value self, const text_value *arguments,
                               text_value *out);

/* template_text.c: characters, and what str does with them */
int32_t text_char(text_text text, size_t at, size_t *size);
size_t text_char_put(int32_t c, char out[4]);
size_t text_char_count(text_text text);
bool text_is_space(int32_t c);
text_text text_strip(text_text text, const text_text *chars, bool left, bool right);
size_t text_find(text_text text, text_text part, size_t from); /* SIZE_MAX: not there */
sifr_status text_template_replace(text_render *r, text_text text, text_text from, text_text to,
                                  int64_t most, text_text *out) SIFR_MUST_CHECK;
typedef enum text_case {
    TEXT_UPPER,
    TEXT_LOWER,
    TEXT_CAPITALIZE,
    TEXT_TITLE, /* str.title */
    TEXT_TITLE_FILTER
} text_case;
sifr_status text_change_case(text_render *r, text_text text, text_case how,
                             text_text *out) SIFR_MUST_CHECK;
bool text_is_case(text_text text, bool upper);
sifr_status text_splitlines(text_render *r, text_text text, bool keep,
                            text_value *out) SIFR_MUST_CHECK;
/* [start:stop:step] of a length, as Python's slice.indices. */
sifr_status text_slice(text_render *r, text_value v, const text_value bounds[3],
                       text_value *out) SIFR_MUST_CHECK;

/* template_eval.c */
sifr_status text_eval(text_render *r, const text_node *node, text_value *out) SIFR_MUST_CHECK;
sifr_status text_eval_call(text_render *r, const text_node *node, text_value extra,
                           text_call *out) SIFR_MUST_CHECK;
sifr_status text_binary(text_render *r, int op, text_value a, text_value b,
                        text_value *out) SIFR_MUST_CHECK;

/* template_lookup.c: names, attributes, items */
sifr_status text_scope_push(text_render *r) SIFR_MUST_CHECK;
sifr_status text_scope_set(text_render *r, int symbol, text_value v) SIFR_MUST_CHECK;
sifr_status text_scope_get(text_render *r, const text_node *name, text_value *out) SIFR_MUST_CHECK;
sifr_status text_attribute(text_render *r, text_value v, text_text name,
                           text_value *out) SIFR_MUST_CHECK;
sifr_status text_item(text_render *r, text_value v, text_value key,
                      text_value *out) SIFR_MUST_CHECK;

/* template_call.c */
sifr_status text_call_value(text_render *r, text_value function, const text_call *call,
                            text_value *out) SIFR_MUST_CHECK;
sifr_status text_call_builtin(text_render *r, const text_builtin *function, text_value self,
                              const text_call *call, text_value *out) SIFR_MUST_CHECK;
sifr_status text_call_macro(text_render *r, const text_macro *macro, const text_call *call,
                            text_value *out) SIFR_MUST_CHECK;

/* template_run.c */
sifr_status text_exec(text_render *r, const text_node *node) SIFR_MUST_CHECK;
/* Runs a body and gives its output as a string. */
sifr_status text_capture(text_render *r, const text_node *body, text_value *out) SIFR_MUST_CHECK;

/* template_owner.c: which message each part of the text is written for */
void text_owner_mark(text_dict *message, size_t number, const json_t *role);
/* Around one iteration of a loop, whose item is v; *outer is what was before. */
sifr_status text_owner_enter(text_render *r, text_value v, text_owner *outer) SIFR_MUST_CHECK;
sifr_status text_owner_leave(text_render *r, text_owner outer) SIFR_MUST_CHECK;
/* A member of a message was read. */
sifr_status text_owner_reads(text_render *r, const text_dict *message,
                             text_value key) SIFR_MUST_CHECK;

/* template_loop.c */
sifr_status text_exec_for(text_render *r, const text_node *node) SIFR_MUST_CHECK;
sifr_status text_assign(text_render *r, const text_node *target, text_value v) SIFR_MUST_CHECK;
/* loop(items), inside of a recursive one. */
sifr_status text_call_loop(text_render *r, text_loop *loop, const text_call *call,
                           text_value *out) SIFR_MUST_CHECK;
sifr_status text_loop_attribute(text_render *r, text_loop *loop, text_text name,
                                text_value *out) SIFR_MUST_CHECK;

/* Tables; NULL for a name that is not there. *known: Jinja or Python has it, this does not. */
const text_builtin *text_filter_find(text_text name, bool *known);
const text_builtin *text_test_find(text_text name, bool *known);
const text_builtin *text_function_find(text_text name);
const text_builtin *text_method_find(text_value v, text_text name);

/* Integer, or a failure that names `what`. */
sifr_status text_want_int(text_render *r, text_value v, const char *what,
                          int64_t *out) SIFR_MUST_CHECK;
sifr_status text_want_text(text_render *r, text_value v, const char *what,
                           text_text *out) SIFR_MUST_CHECK;
/* Follows "a.b.0" from `v`; a step that leads nowhere gives `fallback`, unless that is none. */
sifr_status text_path(text_render *r, text_value v, text_value path, text_value fallback,
                      text_value *out) SIFR_MUST_CHECK;

/* template_format.c: '...' % values */
sifr_status text_percent(text_render *r, text_text text, text_value values,
                         text_value *out) SIFR_MUST_CHECK;
sifr_status text_filter_format(text_render *r, text_value self, const text_call *call,
                               text_value *out);

/* template_sequence.c: filters of sequences */
const text_builtin *text_sequence_filters(size_t *count);

#endif
