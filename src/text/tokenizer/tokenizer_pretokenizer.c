#include "text/tokenizer/tokenizer_pretokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "text/tokenizer/tokenizer_internal.h"

/* A step at work on one piece: segments that match or do not go in, pieces come out. */
typedef struct splitter {
    const text_unicode *unicode;
    text_pieces *out;
    text_piece piece;
    text_split_behavior behavior;
    size_t held,
        held_stop;    /* MERGED_WITH_NEXT: a match that waits for what follows; stop 0: none */
    size_t first_out; /* pieces before this one's */
    bool was_match;
    sifr_error *error;
} splitter;

static sifr_status put(splitter *s, size_t start, size_t stop) {
    if (start == stop) return SIFR_OK;
    text_pieces *out = s->out;
    if (out->count == out->capacity)
        BASE_TRY(
            base_grow(&out->items, &out->capacity, out->count + 1, sizeof *out->items, s->error));
    out->items[out->count++] = (text_piece){start, stop, s->piece.first && start == s->piece.start};
    return SIFR_OK;
}

static sifr_status segment(splitter *s, size_t start, size_t stop, bool is_match) {
    bool joins = false;
    if (start == stop) return SIFR_OK;
    switch (s->behavior) {
    case TEXT_REMOVED:
        return is_match ? SIFR_OK : put(s, start, stop);
    case TEXT_ISOLATED:
        return put(s, start, stop);
    case TEXT_CONTIGUOUS:
        joins = is_match == s->was_match;
        break;
    case TEXT_MERGED_WITH_PREVIOUS:
        joins = is_match && !s->was_match;
        break;
    default:
        if (s->held_stop) {
            size_t held = s->held, held_stop = s->held_stop;
            s->held_stop = 0;
            if (!is_match) return put(s, held, stop);
            BASE_TRY(put(s, held, held_stop));
        }
        if (!is_match) return put(s, start, stop);
        s->held = start;
        s->held_stop = stop;
        return SIFR_OK;
    }
    s->was_match = is_match;
    if (!joins || s->out->count == s->first_out) return put(s, start, stop);
    s->out->items[s->out->count - 1].stop = stop;
    return SIFR_OK;
}

static void begin(splitter *s, const text_piece *piece, text_split_behavior behavior) {
    s->piece = *piece;
    s->behavior = behavior;
    s->held_stop = 0;
    s->was_match = false;
    s->first_out = s->out->count;
}

static sifr_status end(splitter *s) {
    return s->held_stop ? put(s, s->held, s->held_stop) : SIFR_OK;
}

/* Characters that a step looks for. */
static bool wanted(const text_pretokenizer_step *step, uint32_t c, uint8_t flags) {
    switch (step->kind) {
    case TEXT_PRETOKENIZER_PUNCTUATION:
        return flags & TEXT_PUNCTUATION;
    case TEXT_PRETOKENIZER_DIGITS:
        return (flags & TEXT_CLASS) == TEXT_NUMBER;
    case TEXT_PRETOKENIZER_WHITESPACE_SPLIT:
        return (flags & TEXT_CLASS) == TEXT_SPACE;
    default:
        return c == step->character;
    }
}

static sifr_status split_by_character(splitter *s, const text_pretokenizer_step *step,
                                      const uint8_t *text) {
    size_t length, from = s->piece.start, at = from;
    for (; at < s->piece.stop; at += length) {
        uint32_t c = text_utf8_get(text + at, &length);
        if (!wanted(step, c, text_unicode_flags(s->unicode, c))) continue;
        BASE_TRY(segment(s, from, at, false));
        BASE_TRY(segment(s, at, at + length, true));
        from = at + length;
    }
    return segment(s, from, s->piece.stop, false);
}

/* White space goes; words, and runs of what is neither, stay: \w+|[^\w\s]+ */
static sifr_status split_words(splitter *s, const uint8_t *text) {
    size_t length, from = s->piece.start, at = from;
    int last = 0; /* 1: in a word, 2: in a run of others */
    for (; at < s->piece.stop; at += length) {
        uint8_t flags = text_unicode_flags(s->unicode, text_utf8_get(text + at, &length));
        int now = flags & TEXT_WORD ? 1 : (flags & TEXT_CLASS) == TEXT_SPACE ? 0 : 2;
        if (now == last) continue;
        if (last) BASE_TRY(put(s, from, at));
        from = at;
        last = now;
    }
    return last ? put(s, from, at) : SIFR_OK;
}

/* White space goes, punctuation stands alone. */
static sifr_status split_bert(splitter *s, const uint8_t *text) {
    size_t length, from = s->piece.start, at = from;
    for (; at < s->piece.stop; at += length) {
        uint8_t flags = text_unicode_flags(s->unicode, text_utf8_get(text + at, &length));
        bool blank = (flags & TEXT_CLASS) == TEXT_SPACE;
        if (!blank && !(flags & TEXT_PUNCTUATION)) continue;
        BASE_TRY(put(s, from, at));
        if (!blank) BASE_TRY(put(s, at, at + length));
        from = at + length;
    }
    return put(s, from, at);
}

static sifr_status split_by_kind(splitter *s, text_split_kind kind, const uint8_t *text) {
    const uint8_t *p = text + s->piece.start, *stop = text + s->piece.stop;
    while (p < stop) {
        const uint8_t *next = text_split_next(kind, s->unicode, p, stop);
        BASE_TRY(put(s, (size_t)(p - text), (size_t)(next - text)));
        p = next;
    }
    return SIFR_OK;
}

static sifr_status split_by_regex(splitter *s, const text_pretokenizer_step *step,
                                  text_regex_state *state, const uint8_t *text) {
    const uint8_t *begin = text + s->piece.start, *end = text + s->piece.stop;
    const uint8_t *p = begin, *start, *stop;
    for (;;) {
        BASE_TRY(text_regex_find(step->regex, state, begin, p, end, &start, &stop, s->error));
        if (!start) return segment(s, (size_t)(p - text), s->piece.stop, step->invert);
        BASE_TRY(segment(s, (size_t)(p - text), (size_t)(start - text), step->invert));
        BASE_TRY(segment(s, (size_t)(start - text), (size_t)(stop - text), !step->invert));
        p = stop;
    }
}

/* The pieces of `in`, changed, one behind the other in *out, and their places in `pieces`: what a
 * step that writes text does before it splits. */
static sifr_status rewrite(const text_pretokenizer_step *step, const text_pieces *in,
                           const uint8_t *text, text_tokenizer_text *out, text_pieces *pieces,
                           sifr_error *error) {
    uint8_t mark[4];
    size_t mark_size = 1;
    bool bytes = step->kind == TEXT_PRETOKENIZER_BYTES;
    mark[0] = ' ';
    if (!bytes) mark_size = text_utf8_put(step->character, mark);
    out->count = pieces->count = 0;
    BASE_TRY(base_grow(&pieces->items, &pieces->capacity, in->count, sizeof *pieces->items, error));
    for (size_t i = 0; i < in->count; i++) {
        const text_piece *piece = &in->items[i];
        const uint8_t *p = text + piece->start;
        size_t size = piece->stop - piece->start, start = out->count;
        bool prepend = bytes ? step->prefix_space
                             : step->prepend == TEXT_PREPEND_ALWAYS ||
                                   (step->prepend == TEXT_PREPEND_FIRST && piece->first);
        bool there = *p == ' ' || (!bytes && size >= mark_size && memcmp(p, mark, mark_size) == 0);
        if (prepend && !there) BASE_TRY(text_tokenizer_text_append(out, mark, mark_size, error));
        if (bytes)
            BASE_TRY(text_tokenizer_text_append(out, p, size, error));
        else
            BASE_TRY(text_replace_literal(" ", 1, p, size, (char *)mark, mark_size, out, error));
        pieces->items[pieces->count++] = (text_piece){start, out->count, piece->first};
    }
    return SIFR_OK;
}

/* The pieces in the byte alphabet. */
static sifr_status to_alphabet(text_pieces *pieces, const uint8_t *text, text_tokenizer_text *out,
                               sifr_error *error) {
    out->count = 0;
    for (size_t i = 0; i < pieces->count; i++) {
        text_piece *piece = &pieces->items[i];
        size_t start = out->count;
        BASE_TRY(
            text_content_of_bytes(text + piece->start, piece->stop - piece->start, out, error));
        piece->start = start;
        piece->stop = out->count;
    }
    return SIFR_OK;
}

static sifr_status split_piece(const text_pretokenizer_step *step, splitter *s,
                               const text_piece *piece, text_regex_state *state,
                               const uint8_t *text) {
    begin(s, piece, step->behavior);
    switch (step->kind) {
    case TEXT_PRETOKENIZER_BYTES:
        if (!step->splits) return put(s, piece->start, piece->stop);
        return split_by_kind(s, TEXT_SPLIT_GPT2, text);
    case TEXT_PRETOKENIZER_METASPACE:
        if (!step->splits) return put(s, piece->start, piece->stop);
        BASE_TRY(split_by_character(s, step, text));
        return end(s);
    case TEXT_PRETOKENIZER_WHITESPACE:
        return split_words(s, text);
    case TEXT_PRETOKENIZER_BERT:
        return split_bert(s, text);
    case TEXT_PRETOKENIZER_SPLIT:
        if (step->known >= 0) return split_by_kind(s, (text_split_kind)step->known, text);
        BASE_TRY(split_by_regex(s, step, state, text));
        return end(s);
    default:
        BASE_TRY(split_by_character(s, step, text));
        return end(s);
    }
}

sifr_status text_pretokenizer_apply(const text_pretokenizer *pretokenizer,
                                    const text_unicode *unicode, text_pretokenizer_state *state,
                                    bool first, const uint8_t **text, size_t *size,
                                    const text_pieces **out, sifr_error *error) {
    int now = 0, written = 0;
    text_pieces *in = &state->pieces[0];
    in->count = 0;
    BASE_TRY(base_grow(&in->items, &in->capacity, 1, sizeof *in->items, error));
    if (*size) in->items[in->count++] = (text_piece){0, *size, first};
    state->regex.budget = text_regex_budget(*size);
    for (size_t i = 0; i < pretokenizer->count; i++) {
        const text_pretokenizer_step *step = &pretokenizer->steps[i];
        bool bytes = step->kind == TEXT_PRETOKENIZER_BYTES;
        if ((bytes && step->prefix_space) || step->kind == TEXT_PRETOKENIZER_METASPACE) {
            text_tokenizer_text *made = &state->text[written];
            BASE_TRY(rewrite(step, in, *text, made, &state->pieces[now ^ 1], error));
            *text = (const uint8_t *)(made->bytes ? made->bytes : "");
            *size = made->count;
            written ^= 1;
            now ^= 1;
            in = &state->pieces[now];
        }
        text_pieces *next = &state->pieces[now ^ 1];
        splitter s = {.unicode = unicode, .out = next, .error = error};
        next->count = 0;
        for (size_t k = 0; k < in->count; k++)
            BASE_TRY(split_piece(step, &s, &in->items[k], &state->regex, *text));
        now ^= 1;
        in = next;
        if (bytes && step->in_alphabet) {
            text_tokenizer_text *made = &state->text[written];
            BASE_TRY(to_alphabet(in, *text, made, error));
            *text = (const uint8_t *)(made->bytes ? made->bytes : "");
            *size = made->count;
            written ^= 1;
        }
    }
    *out = in;
    return SIFR_OK;
}

void text_pretokenizer_state_free(text_pretokenizer_state *state) {
    for (int i = 0; i < 2; i++) {
        free(state->pieces[i].items);
        text_tokenizer_text_free(&state->text[i]);
    }
    free(state->regex.frames);
    *state = (text_pretokenizer_state){0};
}

/* Whether the step ends a piece between a letter and a blank; false in *safe: what it does before
 * the blank may depend on what is behind. */
static bool separates(const text_pretokenizer_step *step, bool *safe) {
    switch (step->kind) {
    case TEXT_PRETOKENIZER_BYTES:
        return step->splits;
    case TEXT_PRETOKENIZER_METASPACE:
        return step->splits;
    case TEXT_PRETOKENIZER_WHITESPACE:
    case TEXT_PRETOKENIZER_WHITESPACE_SPLIT:
    case TEXT_PRETOKENIZER_BERT:
        return true;
    case TEXT_PRETOKENIZER_PUNCTUATION:
    case TEXT_PRETOKENIZER_DIGITS:
        *safe = true;
        return false;
    case TEXT_PRETOKENIZER_DELIMITER:
        return step->character == ' ';
    default:
        *safe = step->known >= 0 || text_regex_cut_is_safe(step->regex);
        return *safe && (step->known >= 0 || ((step->behavior == TEXT_ISOLATED ||
                                               (step->behavior == TEXT_REMOVED && step->invert)) &&
                                              text_regex_ends_at_blank(step->regex)));
    }
}

bool text_pretokenizer_cut_is_safe(const text_pretokenizer *pretokenizer) {
    for (size_t i = 0; i < pretokenizer->count; i++) {
        bool safe = true;
        if (separates(&pretokenizer->steps[i], &safe)) return true;
        if (!safe) return false;
    }
    return false;
}
