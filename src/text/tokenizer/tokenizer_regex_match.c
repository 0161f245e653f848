/* Runs a compiled pattern: depth first, with a stack of what is still to be tried. */
#include <stdlib.h>

#include "base/heap.h"
#include "text/tokenizer/tokenizer_regex_internal.h"
#include "text/tokenizer/tokenizer_unicode.h"

int64_t text_regex_budget(size_t size) {
    return (int64_t)(size < (size_t)1 << 40 ? size : (size_t)1 << 40) * 256 + 20000;
}

typedef struct matcher {
    const text_regex *regex;
    text_regex_state *state;
    const uint8_t *begin, *end;
    sifr_error *error;
} matcher;

static sifr_status push(matcher *m, text_regex_frame frame) {
    text_regex_state *s = m->state;
    if (s->count == s->capacity)
        BASE_TRY(base_grow(&s->frames, &s->capacity, s->count + 1, sizeof *s->frames, m->error));
    s->frames[s->count++] = frame;
    return SIFR_OK;
}

static bool character(const matcher *m, uint32_t class, const uint8_t **p) {
    size_t length;
    if (*p == m->end || !text_regex_has(m->regex, class, text_utf8_get(*p, &length))) return false;
    *p += length;
    return true;
}

static bool anchored(const matcher *m, text_regex_op op, const uint8_t *p) {
    switch (op) {
    case TEXT_REGEX_LINE_BEGIN:
        return p == m->begin || (p[-1] == '\n' && p < m->end);
    case TEXT_REGEX_LINE_END:
        return p == m->end || *p == '\n';
    case TEXT_REGEX_TEXT_BEGIN:
        return p == m->begin;
    default:
        return p == m->end;
    }
}

/* The characters of a RUN; *p moves behind them. What may be given back is put on the stack. */
static sifr_status run(matcher *m, uint32_t pc, const uint8_t **p, bool *fits) {
    const text_regex_code *code = &m->regex->code[pc];
    const uint8_t *low = *p, *q = *p;
    uint32_t count = 0;
    while (count < code->high && character(m, code->a, &q)) {
        if (++count == code->low) low = q;
    }
    m->state->budget -= count;
    *fits = count >= code->low;
    *p = q;
    if (!*fits || code->possessive || q == low) return SIFR_OK;
    return push(m, (text_regex_frame){pc + 1, true, q, low});
}

/* The next thing to try; false: there is none above `floor`. */
static bool retry(matcher *m, size_t floor, uint32_t *pc, const uint8_t **p) {
    text_regex_state *s = m->state;
    if (s->count == floor) return false;
    text_regex_frame *top = &s->frames[s->count - 1];
    *pc = top->pc;
    if (top->run) {
        top->at = text_utf8_back(top->at, top->low);
        *p = top->at;
        if (top->at == top->low) s->count--;
    } else {
        *p = top->at;
        s->count--;
    }
    return true;
}

/* *stop: where the match of the code from `pc` on that begins at p ends, or NULL. Lookahead and
 * atomic groups are matches of their own: the recursion is as deep as their nesting. */
static sifr_status match(matcher *m, uint32_t pc, const uint8_t *p, const uint8_t **stop) {
    size_t floor = m->state->count;
    const uint8_t *inner;
    *stop = NULL;
    for (;;) {
        const text_regex_code *code = &m->regex->code[pc];
        bool fits = true;
        if (--m->state->budget < 0)
            return base_fail(m->error, SIFR_FAILED,
                             "the regular expression \"%.160s\" takes too long on this text",
                             m->regex->pattern);
        switch (code->op) {
        case TEXT_REGEX_MATCH:
            m->state->count = floor;
            *stop = p;
            return SIFR_OK;
        case TEXT_REGEX_CLASS:
            fits = character(m, code->a, &p);
            pc++;
            break;
        case TEXT_REGEX_RUN:
            BASE_TRY(run(m, pc, &p, &fits));
            pc++;
            break;
        case TEXT_REGEX_SPLIT:
            BASE_TRY(push(m, (text_regex_frame){code->b, false, p, p}));
            pc = code->a;
            break;
        case TEXT_REGEX_JUMP:
            pc = code->a;
            break;
        case TEXT_REGEX_LOOK:
        case TEXT_REGEX_REFUSE:
        case TEXT_REGEX_ATOMIC:
            BASE_TRY(match(m, pc + 1, p, &inner));
            fits = (inner != NULL) == (code->op != TEXT_REGEX_REFUSE);
            if (inner && code->op == TEXT_REGEX_ATOMIC) p = inner;
            pc = code->a;
            break;
        default:
            fits = anchored(m, code->op, p);
            pc++;
            break;
        }
        if (!fits && !retry(m, floor, &pc, &p)) return SIFR_OK;
    }
}

sifr_status text_regex_find(const text_regex *regex, text_regex_state *state, const uint8_t *begin,
                            const uint8_t *at, const uint8_t *end, const uint8_t **start,
                            const uint8_t **stop, sifr_error *error) {
    matcher m = {regex, state, begin, end, error};
    const text_regex_code *code = regex->code;
    bool runs = code->op == TEXT_REGEX_RUN && code->low <= 1 && code->high == TEXT_REGEX_ENDLESS;
    state->count = 0;
    *start = NULL;
    for (size_t length; at < end; at += length) {
        if (regex->first[*at >> 6] >> (*at & 63) & 1) {
            BASE_TRY(match(&m, 0, at, stop));
            if (*stop && *stop > at) {
                *start = at;
                return SIFR_OK;
            }
            /* What cannot go on behind a run cannot go on behind a part of it either. */
            for (const uint8_t *q = at; runs && character(&m, code->a, &q); at = q) state->budget--;
            if (at == end) break;
        }
        text_utf8_get(at, &length);
        if (--state->budget < 0) /* never for a text that had its own budget */
            return base_fail(error, SIFR_FAILED, "the regular expression takes too long");
    }
    return SIFR_OK;
}

/* Marks what can be reached from `pc` without a character; true: a blank can be taken there, or the
 * end of the text matters. */
static bool takes_blank(const text_regex *r, uint32_t pc, uint8_t *seen) {
    for (; !seen[pc]; pc++) {
        const text_regex_code *code = &r->code[pc];
        seen[pc] = 1;
        switch (code->op) {
        case TEXT_REGEX_MATCH:
            return false;
        case TEXT_REGEX_CLASS:
            return text_regex_has(r, code->a, ' ');
        case TEXT_REGEX_RUN:
            if (text_regex_has(r, code->a, ' ')) return true;
            if (code->low) return false;
            break;
        case TEXT_REGEX_SPLIT:
            if (takes_blank(r, code->a, seen)) return true;
            pc = code->b - 1;
            break;
        case TEXT_REGEX_JUMP:
            pc = code->a - 1;
            break;
        case TEXT_REGEX_REFUSE: /* (?!\S) says the same of a blank as of the end */
            if (r->code[pc + 1].op != TEXT_REGEX_CLASS || r->code[pc + 2].op != TEXT_REGEX_MATCH ||
                text_regex_has(r, r->code[pc + 1].a, ' '))
                return true;
            pc = code->a - 1;
            break;
        default:
            return true;
        }
    }
    return false;
}

bool text_regex_cut_is_safe(const text_regex *regex) {
    uint8_t *seen = malloc(regex->code_count);
    bool safe = seen != NULL;
    for (uint32_t pc = 0; pc < regex->code_count && safe; pc++) {
        const text_regex_code *code = &regex->code[pc];
        bool letter = false;
        if (code->op == TEXT_REGEX_LINE_BEGIN || code->op == TEXT_REGEX_TEXT_BEGIN ||
            code->op == TEXT_REGEX_ATOMIC)
            safe = false; /* the cut is a beginning; what follows a group is not looked for */
        if (code->op != TEXT_REGEX_CLASS && code->op != TEXT_REGEX_RUN) continue;
        for (uint32_t c = 'a'; c <= 'z'; c++)
            letter |= text_regex_has(regex, code->a, c) || text_regex_has(regex, code->a, c - 32);
        if (!letter) continue;
        if (code->op == TEXT_REGEX_RUN && text_regex_has(regex, code->a, ' ')) safe = false;
        for (size_t i = 0; i < regex->code_count; i++) seen[i] = 0;
        if (safe && takes_blank(regex, pc + 1, seen)) safe = false;
    }
    free(seen);
    return safe;
}

bool text_regex_ends_at_blank(const text_regex *regex) {
    text_regex_state state = {0};
    bool all = true;
    for (int i = 0; i < 52 && all; i++) {
        uint8_t text[3] = {(uint8_t)(i < 26 ? 'a' + i : 'A' + i - 26), ' ', 'x'};
        const uint8_t *start = NULL, *stop = NULL;
        state.budget = text_regex_budget(sizeof text);
        all =
            text_regex_find(regex, &state, text, text, text + 3, &start, &stop, NULL) == SIFR_OK &&
            start == text && stop == text + 1;
    }
    free(state.frames);
    return all;
}
