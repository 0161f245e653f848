/* Patterns to programs: a recursive descent parser into a tree, then code from the tree. */
#include "text/tokenizer/tokenizer_regex.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "text/tokenizer/tokenizer_regex_internal.h"
#include "text/tokenizer/tokenizer_unicode.h"

enum { DEPTH = 24, CODE_AT_MOST = 4096, ITEMS_AT_MOST = 4096, REPEAT_AT_MOST = 1000 };

typedef enum node_kind {
    NODE_EMPTY,
    NODE_CLASS,
    NODE_SEQUENCE,
    NODE_EITHER,
    NODE_REPEAT,
    NODE_AHEAD, /* a: the op of its code */
    NODE_ANCHOR
} node_kind;

typedef struct node {
    node_kind kind;
    bool lazy, possessive;
    uint32_t a; /* class, or op */
    uint32_t low, high;
    uint32_t child, next; /* index + 1, 0: none */
} node;

typedef struct parser {
    const uint8_t *begin, *p, *end;
    const char *name;
    text_regex *regex;
    node *nodes;
    size_t node_count, node_capacity;
    text_regex_item *items;
    size_t item_count, item_capacity;
    bool any_case;
    int depth;
    sifr_error *error;
} parser;

static sifr_status refuse(const parser *s, const uint8_t *at, const char *what) {
    return base_fail(s->error, SIFR_USAGE,
                     "%s: the regular expression \"%.160s\" has %s at byte %zu, which is not "
                     "supported",
                     s->name, s->regex->pattern, what, (size_t)(at - s->begin));
}

static sifr_status add_node(parser *s, node value, uint32_t *out) {
    BASE_TRY(
        base_grow(&s->nodes, &s->node_capacity, s->node_count + 1, sizeof *s->nodes, s->error));
    s->nodes[s->node_count++] = value;
    *out = (uint32_t)s->node_count;
    return SIFR_OK;
}

static sifr_status add_item(parser *s, text_regex_item item) {
    if (s->item_count >= ITEMS_AT_MOST) return refuse(s, s->p, "a class of too many members");
    BASE_TRY(
        base_grow(&s->items, &s->item_capacity, s->item_count + 1, sizeof *s->items, s->error));
    s->items[s->item_count++] = item;
    return SIFR_OK;
}

static bool looking_at(const parser *s, const char *text) {
    size_t size = strlen(text);
    return (size_t)(s->end - s->p) >= size && memcmp(s->p, text, size) == 0;
}

static uint32_t take(parser *s) {
    size_t length;
    uint32_t c = text_utf8_get(s->p, &length);
    s->p += length;
    return c;
}

static int hex_digit(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* \xHH, \x{H…}, \uHHHH behind their letter. */
static sifr_status take_hex(parser *s, int digits, const uint8_t *at, uint32_t *c) {
    bool braces = digits == 2 && s->p < s->end && *s->p == '{';
    int count = 0;
    *c = 0;
    if (braces) s->p++, digits = 8;
    for (; count < digits && s->p < s->end && hex_digit(*s->p) >= 0; count++)
        *c = *c << 4 | (uint32_t)hex_digit(*s->p++);
    if (braces && (s->p == s->end || *s->p++ != '}')) return refuse(s, at, "an unfinished \\x{");
    if (!count || (!braces && digits == 4 && count < 4) || *c > 0x10FFFF ||
        (*c >= 0xD800 && *c < 0xE000))
        return refuse(s, at, "no character behind a backslash");
    return SIFR_OK;
}

/* \p{NAME}, \p{^NAME}, \P{NAME} behind the letter. */
static sifr_status take_property(parser *s, bool negated, const uint8_t *at) {
    const uint8_t *close =
        s->p < s->end && *s->p == '{' ? memchr(s->p, '}', (size_t)(s->end - s->p)) : NULL;
    if (!close) return refuse(s, at, "a \\p without braces");
    const char *name = (const char *)s->p + 1;
    size_t size = (size_t)(close - s->p) - 1;
    if (size && *name == '^') name++, size--, negated = !negated;
    text_regex_item item = {TEXT_ITEM_KINDS, negated, text_regex_kinds(name, size), 0};
    if (size == 3 && memcmp(name, "Han", 3) == 0) item.what = TEXT_ITEM_HAN;
    if (item.what == TEXT_ITEM_KINDS && !item.low)
        return refuse(s, at, "a \\p of another name than the general categories and Han");
    s->p = close + 1;
    return add_item(s, item);
}

/* What stands behind a backslash, as an item, or as the one character *c with *single. */
static sifr_status take_escape(parser *s, bool *single, uint32_t *c) {
    const uint8_t *at = s->p - 1;
    static const char letters[] = "nrtfvae", values[] = "\n\r\t\f\v\a\x1b";
    if (s->p == s->end) return refuse(s, at, "a backslash at its end");
    *single = false;
    *c = take(s);
    text_regex_item item = {TEXT_ITEM_SPACE, false, 0, 0};
    switch (*c) {
    case 'S':
    case 's':
        item.negated = *c == 'S';
        return add_item(s, item);
    case 'D':
    case 'd':
        item = (text_regex_item){TEXT_ITEM_KINDS, *c == 'D', text_regex_kinds("Nd", 2), 0};
        return add_item(s, item);
    case 'W':
    case 'w':
        item = (text_regex_item){TEXT_ITEM_WORD, *c == 'W', 0, 0};
        return add_item(s, item);
    case 'P':
    case 'p':
        return take_property(s, *c == 'P', at);
    case 'x':
        *single = true;
        return take_hex(s, 2, at, c);
    case 'u':
        *single = true;
        return take_hex(s, 4, at, c);
    default:
        break;
    }
    *single = true;
    const char *letter = *c < 128 ? strchr(letters, (int)*c) : NULL;
    if (letter)
        *c = (uint8_t)values[letter - letters];
    else if ((*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') || (*c >= 'a' && *c <= 'z'))
        return refuse(s, at, "an escape of another letter or digit");
    return SIFR_OK;
}

/* A class, behind its [. */
static sifr_status take_class(parser *s) {
    const uint8_t *at = s->p - 1;
    bool first = true, negated = s->p < s->end && *s->p == '^';
    if (++s->depth > DEPTH) return refuse(s, at, "classes nested too deep");
    BASE_TRY(add_item(s, (text_regex_item){TEXT_ITEM_OPEN, negated, 0, 0}));
    if (negated) s->p++;
    for (;; first = false) {
        bool single = true;
        uint32_t low, high;
        if (s->p == s->end) return refuse(s, at, "a class without an end");
        if (*s->p == ']' && !first) break;
        if (looking_at(s, "&&")) return refuse(s, s->p, "an intersection of classes");
        if (looking_at(s, "[:")) return refuse(s, s->p, "a POSIX class");
        low = take(s);
        if (low == '[') {
            BASE_TRY(take_class(s));
            continue;
        }
        if (low == '\\') BASE_TRY(take_escape(s, &single, &low));
        if (!single) continue;
        high = low;
        if (s->end - s->p >= 2 && *s->p == '-' && s->p[1] != ']' && s->p[1] != '[') {
            const uint8_t *dash = s->p++;
            high = take(s);
            if (high == '\\') BASE_TRY(take_escape(s, &single, &high));
            if (!single || high < low) return refuse(s, dash, "a range that is none");
        }
        BASE_TRY(add_item(s, (text_regex_item){TEXT_ITEM_RANGE, false, low, high}));
    }
    s->p++;
    s->depth--;
    return add_item(s, (text_regex_item){TEXT_ITEM_CLOSE, false, 0, 0});
}

/* A node for the class that the items since `from` describe. */
static sifr_status end_class(parser *s, uint32_t *out) {
    uint32_t index;
    sifr_status status =
        text_regex_add_class(s->regex, s->items, s->item_count, s->any_case, &index, s->error);
    if (status != SIFR_OK) return base_fail_in(s->error, status, "%s", s->name);
    s->item_count = 0;
    return add_node(s, (node){.kind = NODE_CLASS, .a = index}, out);
}

static sifr_status one_class(parser *s, text_regex_item item, uint32_t *out) {
    BASE_TRY(add_item(s, (text_regex_item){TEXT_ITEM_OPEN, false, 0, 0}));
    BASE_TRY(add_item(s, item));
    BASE_TRY(add_item(s, (text_regex_item){TEXT_ITEM_CLOSE, false, 0, 0}));
    return end_class(s, out);
}

static sifr_status take_either(parser *s, uint32_t *out);

/* A group, behind its (. */
static sifr_status take_group(parser *s, uint32_t *out) {
    const uint8_t *at = s->p - 1;
    bool any_case = s->any_case;
    text_regex_op op = TEXT_REGEX_MATCH; /* none */
    if (looking_at(s, "?:")) {
        s->p += 2;
    } else if (looking_at(s, "?i:")) {
        s->p += 3;
        s->any_case = true;
    } else if (looking_at(s, "?i)")) { /* up to the end of the group around it */
        s->p += 3;
        s->any_case = true;
        return take_either(s, out);
    } else if (looking_at(s, "?=") || looking_at(s, "?!") || looking_at(s, "?>")) {
        op = s->p[1] == '='   ? TEXT_REGEX_LOOK
             : s->p[1] == '!' ? TEXT_REGEX_REFUSE
                              : TEXT_REGEX_ATOMIC;
        s->p += 2;
    } else if (looking_at(s, "?")) {
        return refuse(s, at, "a group of another kind");
    }
    BASE_TRY(take_either(s, out));
    if (s->p == s->end || *s->p != ')') return refuse(s, at, "a group without an end");
    s->p++;
    s->any_case = any_case;
    if (op == TEXT_REGEX_MATCH) return SIFR_OK;
    return add_node(s, (node){.kind = NODE_AHEAD, .a = op, .child = *out}, out);
}

static sifr_status take_atom(parser *s, uint32_t *out) {
    const uint8_t *at = s->p;
    uint32_t c = take(s);
    bool single = true;
    switch (c) {
    case '(':
        return take_group(s, out);
    case '[':
        BASE_TRY(take_class(s));
        return end_class(s, out);
    case '.':
        return one_class(s, (text_regex_item){TEXT_ITEM_RANGE, true, '\n', '\n'}, out);
    case '^':
        return add_node(s, (node){.kind = NODE_ANCHOR, .a = TEXT_REGEX_LINE_BEGIN}, out);
    case '$':
        return add_node(s, (node){.kind = NODE_ANCHOR, .a = TEXT_REGEX_LINE_END}, out);
    case '*':
    case '+':
    case '?':
        return refuse(s, at, "a repeat of nothing");
    default:
        break;
    }
    if (c == '\\' && s->p < s->end && (*s->p == 'A' || *s->p == 'z')) {
        uint32_t op = *s->p++ == 'A' ? TEXT_REGEX_TEXT_BEGIN : TEXT_REGEX_TEXT_END;
        return add_node(s, (node){.kind = NODE_ANCHOR, .a = op}, out);
    }
    if (c == '\\') {
        BASE_TRY(add_item(s, (text_regex_item){TEXT_ITEM_OPEN, false, 0, 0}));
        BASE_TRY(take_escape(s, &single, &c));
        if (!single) {
            BASE_TRY(add_item(s, (text_regex_item){TEXT_ITEM_CLOSE, false, 0, 0}));
            return end_class(s, out);
        }
        s->item_count = 0;
    }
    return one_class(s, (text_regex_item){TEXT_ITEM_RANGE, false, c, c}, out);
}

/* {m}, {m,}, {,n}, {m,n}; false: the brace is a character. */
static bool take_bounds(parser *s, uint32_t *low, uint32_t *high) {
    const uint8_t *q = s->p + 1;
    uint32_t bounds[2] = {0, TEXT_REGEX_ENDLESS};
    int digits[2] = {0, 0}, which = 0;
    for (; q < s->end && *q != '}'; q++) {
        if (*q == ',' && which == 0) {
            which = 1;
            continue;
        }
        if (*q < '0' || *q > '9' || digits[which] > 5) return false;
        if (!digits[which]++) bounds[which] = 0;
        bounds[which] = bounds[which] * 10 + (uint32_t)(*q - '0');
    }
    if (q == s->end || (!digits[0] && !digits[1])) return false;
    s->p = q + 1;
    *low = bounds[0];
    *high = which ? bounds[1] : bounds[0];
    return true;
}

static sifr_status take_repeats(parser *s, uint32_t *out) {
    while (s->p < s->end) {
        const uint8_t *at = s->p;
        node value = {.kind = NODE_REPEAT, .child = *out, .high = TEXT_REGEX_ENDLESS};
        bool braces = false;
        if (*s->p == '*' || *s->p == '+' || *s->p == '?') {
            if (*s->p == '+') value.low = 1;
            if (*s->p == '?') value.high = 1;
            s->p++;
        } else if (*s->p == '{' && take_bounds(s, &value.low, &value.high)) {
            braces = true;
            if (value.low > REPEAT_AT_MOST || value.low > value.high ||
                (value.high > REPEAT_AT_MOST && value.high != TEXT_REGEX_ENDLESS))
                return refuse(s, at, "bounds of a repeat");
        } else {
            return SIFR_OK;
        }
        if (s->nodes[*out - 1].kind == NODE_ANCHOR || s->nodes[*out - 1].kind == NODE_AHEAD)
            return refuse(s, at, "a repeat of an anchor or lookahead");
        if (s->p < s->end && *s->p == '?')
            value.lazy = true, s->p++;
        else if (s->p < s->end && *s->p == '+' && !braces)
            value.possessive = true, s->p++;
        BASE_TRY(add_node(s, value, out));
    }
    return SIFR_OK;
}

static sifr_status take_sequence(parser *s, uint32_t *out) {
    uint32_t all, last = 0, atom;
    BASE_TRY(add_node(s, (node){.kind = NODE_SEQUENCE}, &all));
    while (s->p < s->end && *s->p != '|' && *s->p != ')') {
        BASE_TRY(take_atom(s, &atom));
        BASE_TRY(take_repeats(s, &atom));
        if (s->nodes[atom - 1].next) { /* a node stands in one list */
            uint32_t inner = atom;
            BASE_TRY(add_node(s, (node){.kind = NODE_SEQUENCE, .child = inner}, &atom));
        }
        if (last)
            s->nodes[last - 1].next = atom;
        else
            s->nodes[all - 1].child = atom;
        last = atom;
    }
    *out = all;
    return SIFR_OK;
}

static sifr_status take_either(parser *s, uint32_t *out) {
    uint32_t all, last = 0, one;
    if (++s->depth > DEPTH) return refuse(s, s->p, "groups nested too deep");
    BASE_TRY(add_node(s, (node){.kind = NODE_EITHER}, &all));
    for (;;) {
        BASE_TRY(take_sequence(s, &one));
        if (last)
            s->nodes[last - 1].next = one;
        else
            s->nodes[all - 1].child = one;
        last = one;
        if (s->p == s->end || *s->p != '|') break;
        s->p++;
    }
    s->depth--;
    *out = all;
    return SIFR_OK;
}

static bool may_be_empty(const parser *s, uint32_t at) {
    const node *n = &s->nodes[at - 1];
    switch (n->kind) {
    case NODE_CLASS:
        return false;
    case NODE_REPEAT:
        return n->low == 0 || may_be_empty(s, n->child);
    case NODE_AHEAD:
        return n->a != TEXT_REGEX_ATOMIC || may_be_empty(s, n->child);
    case NODE_SEQUENCE:
        for (uint32_t i = n->child; i; i = s->nodes[i - 1].next)
            if (!may_be_empty(s, i)) return false;
        return true;
    case NODE_EITHER:
        for (uint32_t i = n->child; i; i = s->nodes[i - 1].next)
            if (may_be_empty(s, i)) return true;
        return false;
    default:
        return true;
    }
}

static sifr_status emit(parser *s, text_regex_code code, uint32_t *at) {
    text_regex *r = s->regex;
    if (r->code_count >= CODE_AT_MOST)
        return refuse(s, s->begin, "repeats and alternatives of more than 4,096 steps");
    BASE_TRY(base_grow(&r->code, &r->code_capacity, r->code_count + 1, sizeof *r->code, s->error));
    *at = (uint32_t)r->code_count;
    r->code[r->code_count++] = code;
    return SIFR_OK;
}

static sifr_status generate(parser *s, uint32_t at);

/* One more turn of a repeat that may be left out. */
static sifr_status generate_split(parser *s, bool lazy, uint32_t *at) {
    BASE_TRY(emit(s, (text_regex_code){.op = TEXT_REGEX_SPLIT, .possessive = lazy}, at));
    s->regex->code[*at].a = s->regex->code[*at].b = *at + 1;
    return SIFR_OK;
}

/* Where a SPLIT goes when it leaves the repeat. */
static void leave_to(text_regex *r, uint32_t split, uint32_t target) {
    bool lazy = r->code[split].possessive;
    *(lazy ? &r->code[split].a : &r->code[split].b) = target;
    r->code[split].possessive = false;
}

static sifr_status generate_repeat(parser *s, const node *n) {
    text_regex *r = s->regex;
    uint32_t at, splits[REPEAT_AT_MOST], count = 0, atomic = 0;
    const node *child = &s->nodes[n->child - 1];
    while (child->kind == NODE_EITHER && !s->nodes[child->child - 1].next) { /* (?:x) is x */
        const node *only = &s->nodes[child->child - 1];
        if (!only->child || s->nodes[only->child - 1].next) break;
        child = &s->nodes[only->child - 1];
    }
    if (child->kind == NODE_CLASS && !n->lazy)
        return emit(s,
                    (text_regex_code){.op = TEXT_REGEX_RUN,
                                      .possessive = n->possessive,
                                      .a = child->a,
                                      .low = n->low,
                                      .high = n->high},
                    &at);
    if (n->high == TEXT_REGEX_ENDLESS && may_be_empty(s, n->child))
        return refuse(s, s->begin, "a repeat of what may be empty");
    if (n->possessive) BASE_TRY(emit(s, (text_regex_code){.op = TEXT_REGEX_ATOMIC}, &atomic));
    for (uint32_t i = 0; i < n->low; i++) BASE_TRY(generate(s, n->child));
    if (n->high == TEXT_REGEX_ENDLESS) {
        BASE_TRY(generate_split(s, n->lazy, &splits[count++]));
        BASE_TRY(generate(s, n->child));
        BASE_TRY(emit(s, (text_regex_code){.op = TEXT_REGEX_JUMP, .a = splits[0]}, &at));
    } else {
        for (uint32_t i = n->low; i < n->high; i++) {
            BASE_TRY(generate_split(s, n->lazy, &splits[count++]));
            BASE_TRY(generate(s, n->child));
        }
    }
    for (uint32_t i = 0; i < count; i++) leave_to(r, splits[i], (uint32_t)r->code_count);
    if (!n->possessive) return SIFR_OK;
    BASE_TRY(emit(s, (text_regex_code){.op = TEXT_REGEX_MATCH}, &at));
    r->code[atomic].a = at + 1;
    return SIFR_OK;
}

static sifr_status generate_either(parser *s, const node *n) {
    text_regex *r = s->regex;
    uint32_t split, jump = UINT32_MAX, at;
    for (uint32_t i = n->child, next; i; i = next) {
        next = s->nodes[i - 1].next;
        if (next) BASE_TRY(emit(s, (text_regex_code){.op = TEXT_REGEX_SPLIT}, &split));
        BASE_TRY(generate(s, i));
        if (!next) break;
        BASE_TRY(emit(s, (text_regex_code){.op = TEXT_REGEX_JUMP, .a = jump}, &jump));
        r->code[split].a = split + 1;
        r->code[split].b = (uint32_t)r->code_count;
    }
    for (; jump != UINT32_MAX; jump = at) { /* the list of jumps goes through their targets */
        at = r->code[jump].a;
        r->code[jump].a = (uint32_t)r->code_count;
    }
    return SIFR_OK;
}

static sifr_status generate(parser *s, uint32_t index) {
    node n = s->nodes[index - 1];
    uint32_t at, end;
    switch (n.kind) {
    case NODE_CLASS:
        return emit(s, (text_regex_code){.op = TEXT_REGEX_CLASS, .a = n.a}, &at);
    case NODE_ANCHOR:
        return emit(s, (text_regex_code){.op = (text_regex_op)n.a}, &at);
    case NODE_SEQUENCE:
        for (uint32_t i = n.child; i; i = s->nodes[i - 1].next) BASE_TRY(generate(s, i));
        return SIFR_OK;
    case NODE_EITHER:
        return generate_either(s, &n);
    case NODE_REPEAT:
        return generate_repeat(s, &n);
    case NODE_AHEAD:
        BASE_TRY(emit(s, (text_regex_code){.op = (text_regex_op)n.a}, &at));
        BASE_TRY(generate(s, n.child));
        BASE_TRY(emit(s, (text_regex_code){.op = TEXT_REGEX_MATCH}, &end));
        s->regex->code[at].a = end + 1;
        return SIFR_OK;
    default:
        return SIFR_OK;
    }
}

/* The bytes with which what the code from `pc` on matches may begin. */
static void find_first(text_regex *r, uint32_t pc, uint8_t *seen) {
    for (; !seen[pc]; pc++) {
        const text_regex_code *code = &r->code[pc];
        seen[pc] = 1;
        switch (code->op) {
        case TEXT_REGEX_MATCH:
            memset(r->first, 0xFF, sizeof r->first); /* nothing before it was a character */
            return;
        case TEXT_REGEX_CLASS:
        case TEXT_REGEX_RUN:
            r->first[0] |= r->classes[code->a].ascii[0];
            r->first[1] |= r->classes[code->a].ascii[1];
            r->first[2] = r->first[3] = UINT64_MAX;
            if (code->op == TEXT_REGEX_CLASS || code->low) return;
            break;
        case TEXT_REGEX_SPLIT:
            find_first(r, code->a, seen);
            pc = code->b - 1;
            break;
        case TEXT_REGEX_JUMP:
        case TEXT_REGEX_LOOK:
        case TEXT_REGEX_REFUSE:
            pc = code->a - 1;
            break;
        case TEXT_REGEX_ATOMIC:
            memset(r->first, 0xFF, sizeof r->first);
            return;
        default:
            break;
        }
    }
}

static sifr_status finish(parser *s, uint32_t root) {
    uint32_t at;
    uint8_t *seen;
    if (may_be_empty(s, root)) return refuse(s, s->begin, "a match that may be empty");
    BASE_TRY(generate(s, root));
    BASE_TRY(emit(s, (text_regex_code){.op = TEXT_REGEX_MATCH}, &at));
    BASE_TRY(base_alloc(s->regex->code_count, 1, &seen, s->error));
    find_first(s->regex, 0, seen);
    free(seen);
    return SIFR_OK;
}

sifr_status text_regex_compile(const char *pattern, const char *name, text_regex **out,
                               sifr_error *error) {
    parser s = {.begin = (const uint8_t *)pattern, .name = name, .error = error};
    uint32_t root;
    size_t size = strlen(pattern);
    sifr_status status = base_alloc(1, sizeof *s.regex, &s.regex, error);
    if (status != SIFR_OK) return status;
    s.p = s.begin;
    s.end = s.begin + size;
    BASE_TRY_GOTO(status, base_copy_text(pattern, size, &s.regex->pattern, error), done);
    if (!size) status = refuse(&s, s.begin, "nothing");
    BASE_TRY_GOTO(status, status, done);
    BASE_TRY_GOTO(status, take_either(&s, &root), done);
    if (s.p < s.end) status = refuse(&s, s.p, "a parenthesis too many");
    BASE_TRY_GOTO(status, status, done);
    status = finish(&s, root);
done:
    free(s.nodes);
    free(s.items);
    text_regex_free_draft(s.regex);
    if (status == SIFR_OK)
        *out = s.regex;
    else
        text_regex_free(s.regex);
    return status;
}

const char *text_regex_pattern(const text_regex *regex) {
    return regex->pattern;
}

void text_regex_free(text_regex *regex) {
    if (!regex) return;
    free(regex->code);
    free(regex->classes);
    free(regex->bits);
    free(regex->pattern);
    text_regex_free_draft(regex);
    free(regex);
}
