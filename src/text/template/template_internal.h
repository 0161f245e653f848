/* What the files of the template interpreter share; see template.h for the interface. */
#ifndef FORMATS_TEMPLATE_INTERNAL_H
#define FORMATS_TEMPLATE_INTERNAL_H

#include <stdint.h>
#include <string.h>

#include "base/checked.h"
#include "text/template/template.h"

/* Bounds of one rendering: far above any conversation, far below what hurts. */
#define FORMATS_TEMPLATE_STEPS 20000000
#define FORMATS_TEMPLATE_MEMORY ((size_t)256 << 20)
#define FORMATS_TEMPLATE_OUTPUT ((size_t)64 << 20)
#define FORMATS_TEMPLATE_SOURCE ((size_t)1 << 20)
enum {
    FORMATS_TEMPLATE_DEPTH = 500,   /* nested evaluations */
    FORMATS_TEMPLATE_NESTING = 100, /* nested brackets and blocks of a template's text */
    FORMATS_TEMPLATE_NAMES = 1000,  /* of variables */
    FORMATS_TEMPLATE_RANGE = 100000 /* as in Jinja's sandbox */
};

/* Where a message says that something is wrong: file and line. */
typedef struct formats_place {
    const char *name;
    int line;
    sifr_error *error;
} formats_place;

/* "NAME, line N: …" as an SIFR_USAGE error. */
#define formats_template_fail(place, ...)                                                          \
    (formats_template_set_error((place), __VA_ARGS__), SIFR_USAGE)
void formats_template_set_error(const formats_place *place, const char *format, ...)
    SIFR_PRINTF(2, 3);

/* ---- memory: freed all at once ---- */

typedef struct formats_arena {
    struct formats_arena_block *blocks;
    size_t used, limit; /* bytes of all blocks */
} formats_arena;

/* Uninitialised bytes; SIFR_NO_MEMORY beyond the limit. */
sifr_status formats_arena_take(formats_arena *arena, const formats_place *place, size_t count,
                               size_t size, void *out) SIFR_MUST_CHECK;
void formats_arena_free(formats_arena *arena);

/* ---- values, as Python has them ---- */

typedef struct formats_text {
    const char *bytes; /* valid UTF-8; may hold NUL */
    size_t size;
} formats_text;

typedef enum formats_value_kind {
    FORMATS_ABSENT,    /* an argument that is not given */
    FORMATS_UNDEFINED, /* `text` is the name */
    FORMATS_NONE,
    FORMATS_BOOL,
    FORMATS_INT,
    FORMATS_FLOAT,
    FORMATS_STRING,
    FORMATS_SAFE, /* a string marked safe: joined with +, Jinja would escape; can be printed */
    FORMATS_LIST,
    FORMATS_TUPLE,
    FORMATS_RANGE,
    FORMATS_VIEW,      /* of a dict's keys, values or items */
    FORMATS_GENERATOR, /* what lazy filters give: read once, has no length */
    FORMATS_DICT,
    FORMATS_NAMESPACE,
    FORMATS_LOOP,
    FORMATS_MACRO,
    FORMATS_FUNCTION,
    FORMATS_METHOD
} formats_value_kind;

typedef struct formats_value {
    formats_value_kind kind;
    union {
        bool truth;
        int64_t integer;
        double real;
        formats_text text;
        struct formats_items *items; /* LIST … GENERATOR */
        struct formats_dict *dict;   /* DICT, NAMESPACE */
        struct formats_loop *loop;
        const struct formats_macro *macro;
        const struct formats_builtin *function;
        const struct formats_method *method;
    };
} formats_value;

typedef struct formats_items {
    formats_value *values;
    size_t count, room;
    bool consumed;
    bool group; /* a tuple of groupby, with attributes grouper and list */
} formats_items;

typedef struct formats_dict {
    formats_value *keys, *values; /* in the order of insertion */
    size_t count, room;
} formats_dict;

/* The arguments of a call: `count` by position, then `named` by name. */
typedef struct formats_call {
    const formats_value *values;
    const formats_text *names;
    size_t count, named;
} formats_call;

typedef struct formats_render formats_render;

/* A filter, test, method or function. `parameters` are names divided by blanks, of which `required`
 * must be given; fixed functions get one value each, FORMATS_ABSENT where not given. */
typedef struct formats_builtin {
    const char *name, *parameters;
    size_t required;
    sifr_status (*run)(formats_render *r, formats_value self, const formats_value *arguments,
                       formats_value *out);
    sifr_status (*run_any)(formats_render *r, formats_value self, const formats_call *call,
                           formats_value *out); /* instead, where a call may have any arguments */
} formats_builtin;
enum { FORMATS_PARAMETERS = 6 };

typedef struct formats_method {
    const formats_builtin *function;
    formats_value self;
} formats_method;

typedef struct formats_scope {
    struct formats_scope *outer;
    int *symbols;
    formats_value *values;
    size_t count, room;
} formats_scope;

typedef struct formats_macro {
    const struct formats_node *node;
    formats_scope *scope; /* where it was defined */
} formats_macro;

/* A running loop. Items that its condition lets pass are found one ahead at most, as in Jinja. */
typedef struct formats_loop {
    const struct formats_node *node;
    formats_scope *scope; /* outside of the loop */
    formats_items *source;
    size_t next;           /* in source */
    formats_items *passed; /* a filtered loop whose length was asked for: the rest */
    size_t passed_next;
    int64_t index0, length, depth0; /* length: -1 while not known */
    formats_value changed;          /* the last arguments of loop.changed */
    bool has_after;
    formats_value before, current, after;
} formats_loop;

/* ---- the parsed template ---- */

typedef enum formats_node_kind {
    FORMATS_NODE_CONSTANT, /* value */
    FORMATS_NODE_NAME,     /* symbol, text */
    FORMATS_NODE_LIST,     /* items */
    FORMATS_NODE_TUPLE,    /* items */
    FORMATS_NODE_DICT,     /* items: key, value, key … */
    FORMATS_NODE_UNARY,    /* op: - + n(ot); left */
    FORMATS_NODE_BINARY,   /* op; left, right */
    FORMATS_NODE_AND,      /* left, right */
    FORMATS_NODE_OR,       /* left, right */
    FORMATS_NODE_CONCAT,   /* items */
    FORMATS_NODE_COMPARE,  /* left; items: COMPARISON (op, left) */
    FORMATS_NODE_COMPARISON,
    FORMATS_NODE_CHOICE,    /* left if test else right (NULL: undefined) */
    FORMATS_NODE_ATTRIBUTE, /* left . text */
    FORMATS_NODE_ITEM,      /* left [ right ] */
    FORMATS_NODE_SLICE,     /* [ left : right : test ], each may be NULL */
    FORMATS_NODE_CALL,      /* left ( items ); KEYWORDs come last */
    FORMATS_NODE_KEYWORD,   /* text = left */
    FORMATS_NODE_FILTER,    /* left | function ( items ) */
    FORMATS_NODE_TEST,      /* left is function ( items ) */
    FORMATS_NODE_BLOCK,     /* items: statements */
    FORMATS_NODE_DATA,      /* text */
    FORMATS_NODE_OUTPUT,    /* left */
    FORMATS_NODE_IF,        /* test, body; other: IF, BLOCK or NULL */
    FORMATS_NODE_FOR,  /* for left in right if test: body; other: else, or NULL; op: recursive */
    FORMATS_NODE_WITH, /* items: SET; body */
    FORMATS_NODE_SET,  /* left = right */
    FORMATS_NODE_SET_BLOCK, /* left = body, through the filters of right (around FILTERED) */
    FORMATS_NODE_FILTERED,
    FORMATS_NODE_MEMBER,       /* a target: namespace symbol . text */
    FORMATS_NODE_MACRO,        /* symbol; items: PARAMETER; body */
    FORMATS_NODE_PARAMETER,    /* symbol, text; left: default or NULL */
    FORMATS_NODE_CALL_BLOCK,   /* left: CALL; right: MACRO (the caller) */
    FORMATS_NODE_FILTER_BLOCK, /* right: filters; body */
    FORMATS_NODE_GENERATION,   /* body */
    FORMATS_NODE_BREAK,
    FORMATS_NODE_CONTINUE
} formats_node_kind;

typedef struct formats_node {
    formats_node_kind kind;
    int op, line, symbol;
    formats_text text;
    formats_value value;
    const formats_builtin *function;
    struct formats_node *left, *right, *test, *body, *other;
    struct formats_node **items;
    size_t count;
} formats_node;

struct formats_template {
    char *name;
    formats_arena arena;
    formats_text *symbols; /* names of variables, by number */
    size_t symbol_count, symbol_room;
    formats_text *words; /* all its names and strings, also those of members */
    size_t word_count, word_room;
    int loop_symbol, caller_symbol; /* of `loop` and `caller` */
    formats_node *root;
    bool marks; /* it has {% generation %} */
};

/* The number of a variable's name; -1: the template never names it. */
int formats_template_symbol(const formats_template *t, formats_text name);

/* ---- tokens ---- */

typedef enum formats_token_kind {
    FORMATS_TOKEN_END,
    FORMATS_TOKEN_DATA,
    FORMATS_TOKEN_VARIABLE_BEGIN,
    FORMATS_TOKEN_VARIABLE_END,
    FORMATS_TOKEN_BLOCK_BEGIN,
    FORMATS_TOKEN_BLOCK_END,
    FORMATS_TOKEN_NAME,
    FORMATS_TOKEN_STRING,
    FORMATS_TOKEN_INTEGER,
    FORMATS_TOKEN_FLOAT,
    FORMATS_TOKEN_OPERATOR
} formats_token_kind;

/* An operator of two characters as one number. */
#define FORMATS_OP2(a, b) ((a) | (b) << 8)
enum {
    FORMATS_OP_EQ = FORMATS_OP2('=', '='),
    FORMATS_OP_NE = FORMATS_OP2('!', '='),
    FORMATS_OP_GE = FORMATS_OP2('>', '='),
    FORMATS_OP_LE = FORMATS_OP2('<', '='),
    FORMATS_OP_FLOOR = FORMATS_OP2('/', '/'),
    FORMATS_OP_POWER = FORMATS_OP2('*', '*'),
    FORMATS_OP_IN = FORMATS_OP2('i', 'n'),
    FORMATS_OP_NOT_IN = FORMATS_OP2('n', 'i')
};

typedef struct formats_token {
    formats_token_kind kind;
    int line, op;
    formats_text text; /* of data, names and strings */
    int64_t integer;
    double real;
} formats_token;

typedef struct formats_tokens {
    formats_token *tokens; /* the last one is FORMATS_TOKEN_END */
    size_t count, room;
} formats_tokens;

/* Texts of tokens lie in `arena`; free tokens->tokens with free(), also after an error. */
sifr_status formats_template_lex(const char *text, size_t size, formats_arena *arena,
                                 formats_place *place, formats_tokens *tokens) SIFR_MUST_CHECK;

/* ---- parsing ---- */

typedef struct formats_parser {
    formats_place place;
    formats_template *t;
    const formats_token *tokens;
    size_t at;
    int depth, loops, macros; /* around; loops: those that a break may end */
} formats_parser;

const formats_token *formats_parser_peek(const formats_parser *p, size_t ahead);
bool formats_parser_is(const formats_parser *p, int op);
bool formats_parser_is_name(const formats_parser *p, const char *name);
bool formats_parser_skip(formats_parser *p, int op);
bool formats_parser_skip_name(formats_parser *p, const char *name);
sifr_status formats_parser_expect(formats_parser *p, int op) SIFR_MUST_CHECK;
sifr_status formats_parser_unexpected(formats_parser *p, const char *wanted);
sifr_status formats_parser_node(formats_parser *p, formats_node_kind kind,
                                formats_node **out) SIFR_MUST_CHECK;
/* Adds to node->items, which `room` belongs to. */
sifr_status formats_parser_add(formats_parser *p, formats_node *node, size_t *room,
                               formats_node *item) SIFR_MUST_CHECK;
sifr_status formats_parser_name(formats_parser *p, formats_text *name, int *symbol) SIFR_MUST_CHECK;
/* An expression; without `choice`, `a if b` ends before `if`. */
sifr_status formats_parser_expression(formats_parser *p, bool choice,
                                      formats_node **out) SIFR_MUST_CHECK;
/* Expressions divided by commas are a tuple. */
sifr_status formats_parser_tuple(formats_parser *p, bool choice,
                                 formats_node **out) SIFR_MUST_CHECK;
sifr_status formats_parser_filters(formats_parser *p, bool inside, formats_node *value,
                                   formats_node **out) SIFR_MUST_CHECK;
sifr_status formats_parser_enter(formats_parser *p) SIFR_MUST_CHECK;

/* ---- rendering ---- */

/* A text that grows. */
typedef struct formats_builder {
    char *bytes;
    size_t size, room;
} formats_builder;

typedef enum formats_flow {
    FORMATS_FLOW_ON,
    FORMATS_FLOW_BREAK,
    FORMATS_FLOW_CONTINUE
} formats_flow;

struct formats_render {
    formats_place place;
    const formats_template *t;
    const struct tm *now;
    formats_arena arena;
    int64_t steps;
    int depth;
    formats_flow flow;
    size_t macros; /* made so far; their scopes must stay */
    formats_scope *scope;
    formats_builder root, *out;
    formats_value filtered; /* of FORMATS_NODE_FILTERED: a block, before its filters */
    formats_template_span *spans;
    size_t span_count, span_room;
};

#define FORMATS_TAKE(r, count, size, out)                                                          \
    formats_arena_take(&(r)->arena, &(r)->place, (count), (size), (out))

/* Counts work; fails beyond the bound. */
sifr_status formats_template_charge(formats_render *r, size_t steps) SIFR_MUST_CHECK;
/* The work of comparing each of `count` things with `size` bytes. */
sifr_status formats_template_charge_all(formats_render *r, size_t count,
                                        size_t size) SIFR_MUST_CHECK;
/* One level deeper; undo with r->depth--. */
sifr_status formats_template_enter(formats_render *r) SIFR_MUST_CHECK;

/* template_value.c */
formats_value formats_none(void);
formats_value formats_undefined(formats_text name);
formats_value formats_of_bool(bool truth);
formats_value formats_of_int(int64_t integer);
formats_value formats_of_float(double real);
formats_value formats_of_text(formats_text text);
formats_text formats_literal(const char *text);
const char *formats_kind_name(formats_value v); /* "str", "dict" …, as Python calls the types */
bool formats_text_equal(formats_text a, formats_text b);
bool formats_text_is(formats_text a, const char *b);
bool formats_is_items(formats_value v);
bool formats_is_number(formats_value v); /* bool, int or float */
double formats_number(formats_value v);
bool formats_truth(formats_value v);
sifr_status formats_new_items(formats_render *r, formats_value_kind kind, size_t room,
                              formats_value *out) SIFR_MUST_CHECK;
sifr_status formats_append(formats_render *r, formats_items *items,
                           formats_value v) SIFR_MUST_CHECK;
sifr_status formats_pair(formats_render *r, formats_value a, formats_value b,
                         formats_value *out) SIFR_MUST_CHECK;
sifr_status formats_new_dict(formats_render *r, formats_value_kind kind, size_t room,
                             formats_value *out) SIFR_MUST_CHECK;
sifr_status formats_dict_set(formats_render *r, formats_dict *dict, formats_value key,
                             formats_value v) SIFR_MUST_CHECK;
/* *found is false, and *out untouched, where there is no such key. */
sifr_status formats_dict_get(formats_render *r, const formats_dict *dict, formats_value key,
                             bool *found, formats_value *out) SIFR_MUST_CHECK;
sifr_status formats_from_json(formats_render *r, const json_t *json,
                              formats_value *out) SIFR_MUST_CHECK;
/* The values that a loop over `v` meets; fails for what cannot be iterated. */
sifr_status formats_iterate(formats_render *r, formats_value v,
                            formats_items **out) SIFR_MUST_CHECK;
sifr_status formats_length(formats_render *r, formats_value v, int64_t *out) SIFR_MUST_CHECK;

/* template_compare.c */
sifr_status formats_equal(formats_render *r, formats_value a, formats_value b,
                          bool *out) SIFR_MUST_CHECK;
/* -1, 0, 1; fails for what has no order. */
sifr_status formats_order(formats_render *r, formats_value a, formats_value b,
                          int *out) SIFR_MUST_CHECK;
sifr_status formats_contains(formats_render *r, formats_value whole, formats_value part,
                             bool *out) SIFR_MUST_CHECK;
sifr_status formats_compare(formats_render *r, int op, formats_value a, formats_value b,
                            bool *out) SIFR_MUST_CHECK;
/* Sorts values by keys, stably. */
sifr_status formats_sort(formats_render *r, formats_value *values, formats_value *keys,
                         size_t count, bool reverse) SIFR_MUST_CHECK;

/* template_print.c */
sifr_status formats_build(formats_render *r, formats_builder *b, const char *bytes,
                          size_t size) SIFR_MUST_CHECK;
formats_text formats_built(const formats_builder *b); /* never a NULL pointer */
sifr_status formats_build_repeated(formats_render *r, formats_builder *b, formats_text text,
                                   int64_t count) SIFR_MUST_CHECK;
/* Appends str(v). */
sifr_status formats_print(formats_render *r, formats_builder *b, formats_value v) SIFR_MUST_CHECK;
sifr_status formats_string(formats_render *r, formats_value v, formats_text *out) SIFR_MUST_CHECK;
void formats_float_text(double real, char out[32]); /* repr */
sifr_status formats_filter_tojson(formats_render *r, formats_value self,
                                  const formats_value *arguments, formats_value *out);

/* template_text.c: characters, and what str does with them */
int32_t formats_char(formats_text text, size_t at, size_t *size);
size_t formats_char_put(int32_t c, char out[4]);
size_t formats_char_count(formats_text text);
bool formats_is_space(int32_t c);
formats_text formats_strip(formats_text text, const formats_text *chars, bool left, bool right);
size_t formats_find(formats_text text, formats_text part, size_t from); /* SIZE_MAX: not there */
sifr_status formats_template_replace(formats_render *r, formats_text text, formats_text from,
                                     formats_text to, int64_t most,
                                     formats_text *out) SIFR_MUST_CHECK;
typedef enum formats_case {
    FORMATS_UPPER,
    FORMATS_LOWER,
    FORMATS_CAPITALIZE,
    FORMATS_TITLE, /* str.title */
    FORMATS_TITLE_FILTER
} formats_case;
sifr_status formats_change_case(formats_render *r, formats_text text, formats_case how,
                                formats_text *out) SIFR_MUST_CHECK;
bool formats_is_case(formats_text text, bool upper);
sifr_status formats_splitlines(formats_render *r, formats_text text, bool keep,
                               formats_value *out) SIFR_MUST_CHECK;
/* [start:stop:step] of a length, as Python's slice.indices. */
sifr_status formats_slice(formats_render *r, formats_value v, const formats_value bounds[3],
                          formats_value *out) SIFR_MUST_CHECK;

/* template_eval.c */
sifr_status formats_eval(formats_render *r, const formats_node *node,
                         formats_value *out) SIFR_MUST_CHECK;
sifr_status formats_eval_call(formats_render *r, const formats_node *node, formats_value extra,
                              formats_call *out) SIFR_MUST_CHECK;
sifr_status formats_binary(formats_render *r, int op, formats_value a, formats_value b,
                           formats_value *out) SIFR_MUST_CHECK;

/* template_lookup.c: names, attributes, items */
sifr_status formats_scope_push(formats_render *r) SIFR_MUST_CHECK;
sifr_status formats_scope_set(formats_render *r, int symbol, formats_value v) SIFR_MUST_CHECK;
sifr_status formats_scope_get(formats_render *r, const formats_node *name,
                              formats_value *out) SIFR_MUST_CHECK;
sifr_status formats_attribute(formats_render *r, formats_value v, formats_text name,
                              formats_value *out) SIFR_MUST_CHECK;
sifr_status formats_item(formats_render *r, formats_value v, formats_value key,
                         formats_value *out) SIFR_MUST_CHECK;

/* template_call.c */
sifr_status formats_call_value(formats_render *r, formats_value function, const formats_call *call,
                               formats_value *out) SIFR_MUST_CHECK;
sifr_status formats_call_builtin(formats_render *r, const formats_builtin *function,
                                 formats_value self, const formats_call *call,
                                 formats_value *out) SIFR_MUST_CHECK;
sifr_status formats_call_macro(formats_render *r, const formats_macro *macro,
                               const formats_call *call, formats_value *out) SIFR_MUST_CHECK;

/* template_run.c */
sifr_status formats_exec(formats_render *r, const formats_node *node) SIFR_MUST_CHECK;
/* Runs a body and gives its output as a string. */
sifr_status formats_capture(formats_render *r, const formats_node *body,
                            formats_value *out) SIFR_MUST_CHECK;

/* template_loop.c */
sifr_status formats_exec_for(formats_render *r, const formats_node *node) SIFR_MUST_CHECK;
sifr_status formats_assign(formats_render *r, const formats_node *target,
                           formats_value v) SIFR_MUST_CHECK;
/* loop(items), inside of a recursive one. */
sifr_status formats_call_loop(formats_render *r, formats_loop *loop, const formats_call *call,
                              formats_value *out) SIFR_MUST_CHECK;
sifr_status formats_loop_attribute(formats_render *r, formats_loop *loop, formats_text name,
                                   formats_value *out) SIFR_MUST_CHECK;

/* Tables; NULL for a name that is not there. *known: Jinja or Python has it, this does not. */
const formats_builtin *formats_filter_find(formats_text name, bool *known);
const formats_builtin *formats_test_find(formats_text name, bool *known);
const formats_builtin *formats_function_find(formats_text name);
const formats_builtin *formats_method_find(formats_value v, formats_text name);

/* Integer, or a failure that names `what`. */
sifr_status formats_want_int(formats_render *r, formats_value v, const char *what,
                             int64_t *out) SIFR_MUST_CHECK;
sifr_status formats_want_text(formats_render *r, formats_value v, const char *what,
                              formats_text *out) SIFR_MUST_CHECK;
/* Follows "a.b.0" from `v`; a step that leads nowhere gives `fallback`, unless that is none. */
sifr_status formats_path(formats_render *r, formats_value v, formats_value path,
                         formats_value fallback, formats_value *out) SIFR_MUST_CHECK;

/* template_format.c: '...' % values */
sifr_status formats_percent(formats_render *r, formats_text text, formats_value values,
                            formats_value *out) SIFR_MUST_CHECK;
sifr_status formats_filter_format(formats_render *r, formats_value self, const formats_call *call,
                                  formats_value *out);

/* template_sequence.c: filters of sequences */
const formats_builtin *formats_sequence_filters(size_t *count);

#endif
