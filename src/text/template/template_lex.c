/* From a template's text to tokens: Jinja's lexer with trim_blocks and lstrip_blocks. */
#include <stdlib.h>

#include "base/heap.h"
#include "text/template/template_internal.h"

enum { BRACKETS = 256 };

typedef struct lexer {
    text_place *place;
    text_arena *arena;
    text_tokens *out;
    const char *text;
    size_t size, at;
    bool line_starting; /* the last match ended a line */
    char brackets[BRACKETS];
    size_t open;
} lexer;

static sifr_status push(lexer *l, text_token token) {
    text_tokens *out = l->out;
    BASE_TRY(base_grow(&out->tokens, &out->capacity, out->count + 1, sizeof *out->tokens,
                       l->place->error));
    token.line = l->place->line;
    out->tokens[out->count++] = token;
    return SIFR_OK;
}

/* Moves to `to` and counts the lines passed. */
static void advance(lexer *l, size_t to) {
    for (; l->at < to; l->at++) l->place->line += l->text[l->at] == '\n';
}

static bool starts(const lexer *l, size_t at, const char *what) {
    size_t size = strlen(what);
    return at <= l->size && l->size - at >= size && memcmp(l->text + at, what, size) == 0;
}

static size_t skip_space(const lexer *l, size_t at) {
    size_t size;
    text_text text = {l->text, l->size};
    while (at < l->size && text_is_space(text_char(text, at, &size))) at += size;
    return at;
}

/* CR LF and CR become LF; a newline at the very end is dropped. */
static sifr_status normalize(lexer *l, const char *text, size_t size) {
    char *copy;
    size_t used = 0;
    BASE_TRY(text_arena_take(l->arena, l->place, size + 1, 1, &copy));
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\r' && i + 1 < size && text[i + 1] == '\n') continue;
        copy[used++] = text[i] == '\r' ? '\n' : text[i];
    }
    if (used && copy[used - 1] == '\n') used--;
    copy[used] = 0;
    l->text = copy;
    l->size = used;
    return SIFR_OK;
}

static sifr_status check_utf8(const lexer *l) {
    text_text text = {l->text, l->size};
    for (size_t at = 0, size; at < l->size; at += size) {
        if (text_char(text, at, &size) < 0)
            return text_template_fail(l->place, "the template is not valid UTF-8");
    }
    return SIFR_OK;
}

/* ---- text outside of tags ---- */

/* The end of "{% raw %}" at `at`, with its sign; 0: it is none. `word` is "raw" or "endraw". */
static size_t raw_tag(const lexer *l, size_t at, const char *word, char *sign) {
    bool end = word[0] == 'e';
    if (!starts(l, at, "{%")) return 0;
    at += 2;
    *sign = 0;
    if (at < l->size && (l->text[at] == '-' || l->text[at] == '+')) *sign = l->text[at++];
    at = skip_space(l, at);
    if (!starts(l, at, word)) return 0;
    at = skip_space(l, at + strlen(word));
    if (starts(l, at, "-%}")) return skip_space(l, at + 3);
    if (end && starts(l, at, "+%}")) return at + 3;
    if (!starts(l, at, "%}")) return 0;
    at += 2;
    return end && at < l->size && l->text[at] == '\n' ? at + 1 : at;
}

/* The text before a tag that begins with `sign`: a '-' takes all whitespace before it, a block or
 * comment without a sign takes blanks that alone precede it in its line. */
static text_text before_tag(const lexer *l, size_t end, char sign, bool variable) {
    text_text text = {l->text + l->at, end - l->at};
    if (sign == '-') return text_strip(text, NULL, false, true);
    if (sign == '+' || variable) return text;
    size_t line = text.size;
    while (line && text.bytes[line - 1] != '\n') line--;
    text_text rest = {text.bytes + line, text.size - line};
    bool blank = text_strip(rest, NULL, true, false).size == 0;
    if ((line > 0 || l->line_starting) && blank) text.size = line;
    return text;
}

static sifr_status push_data(lexer *l, text_text text) {
    if (text.size == 0) return SIFR_OK;
    return push(l, (text_token){.kind = TEXT_TOKEN_DATA, .text = text});
}

static sifr_status lex_raw(lexer *l, size_t begin) {
    char sign;
    advance(l, begin);
    l->line_starting = begin && l->text[begin - 1] == '\n';
    for (size_t at = l->at; at < l->size; at++) {
        size_t end = raw_tag(l, at, "endraw", &sign);
        if (!end) continue;
        BASE_TRY(push_data(l, before_tag(l, at, sign, false)));
        advance(l, end);
        l->line_starting = l->text[end - 1] == '\n';
        return SIFR_OK;
    }
    return text_template_fail(l->place, "{%% raw %%} without {%% endraw %%}");
}

static sifr_status lex_comment(lexer *l, size_t begin) {
    advance(l, begin);
    for (size_t at = begin; at < l->size; at++) {
        if (!starts(l, at, "#}")) continue;
        char sign = at > begin ? l->text[at - 1] : 0;
        at += 2;
        if (sign == '-')
            at = skip_space(l, at);
        else if (sign != '+' && at < l->size && l->text[at] == '\n')
            at++;
        advance(l, at);
        l->line_starting = l->text[at - 1] == '\n';
        return SIFR_OK;
    }
    return text_template_fail(l->place, "{# without #}");
}

/* ---- inside of a tag ---- */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

static size_t digits(const lexer *l, size_t at) {
    while (at < l->size && (is_digit(l->text[at]) ||
                            (l->text[at] == '_' && at + 1 < l->size && is_digit(l->text[at + 1]))))
        at++;
    return at;
}

/* The end of the float at `at`; 0: it is none. */
static size_t float_end(const lexer *l, size_t at) {
    const char *t = l->text;
    size_t end = digits(l, at), whole = end;
    if (at && t[at - 1] == '.') return 0;
    if (end + 1 < l->size && t[end] == '.' && is_digit(t[end + 1])) end = digits(l, end + 1);
    if (end < l->size && (t[end] == 'e' || t[end] == 'E')) {
        size_t exponent = end + 1;
        if (exponent < l->size && (t[exponent] == '+' || t[exponent] == '-')) exponent++;
        if (exponent < l->size && is_digit(t[exponent])) end = digits(l, exponent);
    }
    return end > whole ? end : 0;
}

static sifr_status lex_number(lexer *l) {
    char plain[64];
    size_t end = float_end(l, l->at), used = 0;
    bool real = end > 0;
    if (!real) end = digits(l, l->at);
    if (!real && l->text[l->at] == '0' && end == l->at + 1 && end < l->size &&
        strchr("xXoObB", l->text[end]))
        return text_template_fail(l->place, "numbers like 0x10 are not supported");
    for (size_t i = l->at; i < end && used < sizeof plain - 1; i++) {
        if (l->text[i] != '_') plain[used++] = l->text[i];
    }
    plain[used] = 0;
    if (end - l->at >= sizeof plain) return text_template_fail(l->place, "a number too long");
    text_token token = {.kind = TEXT_TOKEN_FLOAT};
    if (real) {
        token.real = strtod(plain, NULL);
    } else {
        token.kind = TEXT_TOKEN_INTEGER;
        for (size_t i = 0; i < used; i++) {
            if (!base_mul_i64(token.integer, 10, &token.integer) ||
                !base_add_i64(token.integer, plain[i] - '0', &token.integer))
                return text_template_fail(l->place,
                                          "%s: numbers beyond 64 bits are not "
                                          "supported",
                                          plain);
        }
    }
    BASE_TRY(push(l, token));
    advance(l, end);
    return SIFR_OK;
}

static int hex(char c) {
    return is_digit(c)            ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The character of \x41, \u0041 or \U00000041, whose digits begin at s[*at]; -1: it is none. */
static int32_t hex_escape(text_text s, size_t *at, int count) {
    int64_t c = 0;
    for (int i = 0; i < count; i++, ++*at) {
        int digit = *at < s.size ? hex(s.bytes[*at]) : -1;
        if (digit < 0) return -1;
        c = c * 16 + digit;
    }
    return c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? -1 : (int32_t)c;
}

static int32_t octal_escape(text_text s, size_t *at) {
    int32_t c = 0;
    for (int i = 0; i < 3 && *at < s.size && s.bytes[*at] >= '0' && s.bytes[*at] <= '7'; i++)
        c = c * 8 + (s.bytes[(*at)++] - '0');
    return c;
}

/* Python's escapes; an unknown one stays as it is. */
static sifr_status unescape(lexer *l, text_text s, text_text *out) {
    static const char letters[] = "\\'\"abfnrtv", values[] = "\\'\"\a\b\f\n\r\t\v";
    char *copy;
    size_t used = 0;
    BASE_TRY(text_arena_take(l->arena, l->place, s.size + 1, 1, &copy));
    for (size_t i = 0; i < s.size;) {
        char c = s.bytes[i++];
        if (c != '\\' || i == s.size) {
            copy[used++] = c;
            continue;
        }
        c = s.bytes[i++];
        const char *letter = c ? strchr(letters, c) : NULL;
        int32_t wide = 0;
        if (c == '\n') {
            continue;
        } else if (letter) {
            copy[used++] = values[letter - letters];
            continue;
        } else if (c == 'x' || c == 'u' || c == 'U') {
            wide = hex_escape(s, &i, c == 'x' ? 2 : c == 'u' ? 4 : 8);
        } else if (c >= '0' && c <= '7') {
            i--;
            wide = octal_escape(s, &i);
        } else if (c == 'N') {
            wide = -1;
        } else {
            copy[used++] = '\\';
            copy[used++] = c;
            continue;
        }
        if (wide < 0)
            return text_template_fail(l->place, "the escape \\%c in a string is not supported", c);
        used += text_char_put(wide, copy + used);
    }
    *out = (text_text){copy, used};
    return SIFR_OK;
}

static sifr_status lex_string(lexer *l) {
    char quote = l->text[l->at];
    size_t end = l->at + 1;
    text_token token = {.kind = TEXT_TOKEN_STRING};
    while (end < l->size && l->text[end] != quote) end += l->text[end] == '\\' ? 2 : 1;
    if (end >= l->size)
        return text_template_fail(l->place, "a string without its second %c", quote);
    BASE_TRY(unescape(l, (text_text){l->text + l->at + 1, end - l->at - 1}, &token.text));
    BASE_TRY(push(l, token));
    advance(l, end + 1);
    return SIFR_OK;
}

static sifr_status bracket(lexer *l, int op) {
    if (op == '(' || op == '[' || op == '{') {
        if (l->open == BRACKETS)
            return text_template_fail(l->place, "more than %d open brackets", BRACKETS);
        l->brackets[l->open++] = (char)(op == '(' ? ')' : op + 2);
    } else if (op == ')' || op == ']' || op == '}') {
        if (l->open == 0) return text_template_fail(l->place, "unexpected '%c'", op);
        if (l->brackets[--l->open] != op)
            return text_template_fail(l->place, "unexpected '%c', expected '%c'", op,
                                      l->brackets[l->open]);
    }
    return SIFR_OK;
}

static sifr_status lex_operator(lexer *l) {
    static const char *const two[] = {"//", "**", "==", "!=", ">=", "<="};
    text_token token = {.kind = TEXT_TOKEN_OPERATOR};
    size_t size = 1;
    for (size_t i = 0; i < sizeof two / sizeof *two; i++) {
        if (starts(l, l->at, two[i])) size = 2;
    }
    unsigned char c = (unsigned char)l->text[l->at];
    token.op = size == 2 ? TEXT_OP2(c, l->text[l->at + 1]) : c;
    if (size == 1 && (c == 0 || !strchr("+-/*%~[](){}><=.:|,;", c))) {
        if (c > ' ' && c < 127) return text_template_fail(l->place, "unexpected character '%c'", c);
        return text_template_fail(l->place, "unexpected character of code %d; names are ASCII", c);
    }
    BASE_TRY(bracket(l, token.op));
    BASE_TRY(push(l, token));
    advance(l, l->at + size);
    return SIFR_OK;
}

/* The end of the tag's end at l->at; 0: it does not end here. */
static size_t tag_end(const lexer *l, bool variable) {
    size_t at = l->at;
    const char *end = variable ? "}}" : "%}";
    if (l->open) return 0;
    if (l->text[at] == '-' && starts(l, at + 1, end)) return skip_space(l, at + 3);
    if (!variable && l->text[at] == '+' && starts(l, at + 1, end)) return at + 3;
    if (!starts(l, at, end)) return 0;
    at += 2;
    return !variable && at < l->size && l->text[at] == '\n' ? at + 1 : at;
}

static sifr_status lex_tag(lexer *l, bool variable) {
    l->open = 0;
    for (;;) {
        advance(l, skip_space(l, l->at));
        if (l->at >= l->size) return SIFR_OK; /* the parser says what is missing */
        size_t end = tag_end(l, variable);
        char c = l->text[l->at];
        if (end) {
            BASE_TRY(push(l, (text_token){.kind = variable ? TEXT_TOKEN_VARIABLE_END
                                                           : TEXT_TOKEN_BLOCK_END}));
            advance(l, end);
            l->line_starting = l->text[end - 1] == '\n';
            return SIFR_OK;
        }
        if (is_digit(c)) {
            BASE_TRY(lex_number(l));
        } else if (is_word(c)) {
            size_t word = l->at;
            while (word < l->size && is_word(l->text[word])) word++;
            text_text text = {l->text + l->at, word - l->at};
            BASE_TRY(push(l, (text_token){.kind = TEXT_TOKEN_NAME, .text = text}));
            advance(l, word);
        } else if (c == '"' || c == '\'') {
            BASE_TRY(lex_string(l));
        } else {
            BASE_TRY(lex_operator(l));
        }
    }
}

/* The next "{{", "{%" or "{#"; or the end. */
static size_t find_tag(const lexer *l) {
    size_t at = l->at;
    for (;; at++) {
        const char *brace = at < l->size ? memchr(l->text + at, '{', l->size - at) : NULL;
        if (!brace) return l->size;
        at = (size_t)(brace - l->text);
        char next = at + 1 < l->size ? brace[1] : 0;
        if (next == '{' || next == '%' || next == '#') return at;
    }
}

static sifr_status lex_next(lexer *l) {
    size_t at = find_tag(l), begin = at + 2;
    char sign = 0, raw_sign;
    if (at == l->size) {
        BASE_TRY(push_data(l, (text_text){l->text + l->at, at - l->at}));
        advance(l, at);
        return SIFR_OK;
    }
    char kind = l->text[at + 1];
    size_t raw = raw_tag(l, at, "raw", &raw_sign);
    if (begin < l->size && (l->text[begin] == '-' || l->text[begin] == '+'))
        sign = l->text[begin++];
    BASE_TRY(push_data(l, before_tag(l, at, raw ? raw_sign : sign, kind == '{')));
    if (raw) return lex_raw(l, raw);
    if (kind == '#') return lex_comment(l, begin);
    advance(l, begin);
    BASE_TRY(push(
        l, (text_token){.kind = kind == '{' ? TEXT_TOKEN_VARIABLE_BEGIN : TEXT_TOKEN_BLOCK_BEGIN}));
    return lex_tag(l, kind == '{');
}

sifr_status text_template_lex(const char *text, size_t size, text_arena *arena, text_place *place,
                              text_tokens *tokens) {
    lexer l = {.place = place, .arena = arena, .out = tokens, .line_starting = true};
    place->line = 1;
    if (size > TEXT_TEMPLATE_SOURCE)
        return text_template_fail(place, "the template has more than %zu bytes",
                                  TEXT_TEMPLATE_SOURCE);
    BASE_TRY(normalize(&l, text, size));
    BASE_TRY(check_utf8(&l));
    while (l.at < l.size) BASE_TRY(lex_next(&l));
    return push(&l, (text_token){.kind = TEXT_TOKEN_END});
}
