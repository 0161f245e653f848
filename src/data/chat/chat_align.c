#include "data/chat/chat_align.h"

#include <string.h>

static bool is_blank(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* How many bytes of the text a token is; *skip those before it that no token is, at least so many:
 * blanks, which some special tokens take with them. A token may also begin with a blank that the
 * text does not have.
 */
static bool match_token(const char *bytes, size_t count, const char *text, size_t size,
                        size_t *skip, size_t *taken) {
    for (;; ++*skip) {
        for (size_t drop = 0; drop < 2; drop++) {
            if (drop && (count == 0 || bytes[0] != ' ')) break;
            *taken = count - drop;
            if (*taken <= size - *skip && memcmp(bytes + drop, text + *skip, *taken) == 0)
                return true;
        }
        if (*skip == size || !is_blank(text[*skip])) return false;
    }
}

/* Blanks at its begin that are none of the token's, where the tokenizer trims. */
static size_t count_front(const char *bytes, size_t count, bool trims) {
    size_t blanks = 0;
    while (trims && blanks < count && bytes[blanks] == ' ') blanks++;
    return blanks;
}

/* The blanks that the token before takes with it. */
static size_t count_taken(const text_tokenizer *t, int32_t before, const char *text, size_t size) {
    size_t blanks = 0;
    if (!size || !is_blank(*text) || !text_tokenizer_strips_behind(t, before)) return 0;
    while (blanks < size && is_blank(text[blanks])) blanks++;
    return blanks;
}

/* Follows the ids through the text and calls a token part of a span where they share a byte. A
 * token that is only a blank put in front belongs to the token behind it, and blanks that no token
 * is to the special token before them, as in the tokenizers library. */
static bool follow(const text_tokenizer *t, const char *text, size_t size,
                   const text_template_span *span, bool trims, const text_tokenizer_ids *ids,
                   data_chat_run *run) {
    size_t at = 0, front = 0; /* tokens just before that are only a blank put in front */
    *run = (data_chat_run){SIZE_MAX, 0};
    for (size_t i = 0; i < ids->count; i++) {
        size_t count, taken, skip = i ? count_taken(t, ids->ids[i - 1], text + at, size - at) : 0;
        const char *bytes = text_tokenizer_bytes(t, ids->ids[i], &count);
        if (!bytes || !match_token(bytes, count, text + at, size - at, &skip, &taken)) return false;
        if (skip && i > front && at < span->end && at + skip > span->begin) {
            if (run->first == SIZE_MAX) run->first = i - front - 1;
            run->end = i - front;
        }
        at += skip;
        size_t begin = at + count_front(text + at, taken, trims);
        if (taken && begin < span->end && at + taken > span->begin) {
            if (run->first == SIZE_MAX) run->first = i - front;
            run->end = i + 1;
        }
        front = taken ? 0 : front + 1;
        at += taken;
    }
    while (at < size && is_blank(text[at])) at++;
    return at == size;
}

/* Tokens of the text before `at`, where they begin those of the whole; else SIZE_MAX. */
static sifr_status count_before(const text_tokenizer *t, text_tokenizer_scratch *scratch,
                                const char *text, size_t at, const text_tokenizer_ids *ids,
                                size_t *out, sifr_error *error) {
    text_tokenizer_ids before = {0};
    sifr_status status = text_tokenizer_encode(t, scratch, text, at, false, &before, error);
    bool same =
        status == SIFR_OK && before.count <= ids->count &&
        (before.count == 0 || memcmp(before.ids, ids->ids, before.count * sizeof *ids->ids) == 0);
    *out = same ? before.count : SIZE_MAX;
    text_tokenizer_ids_free(&before);
    return status;
}

sifr_status data_chat_find_run(const text_tokenizer *t, text_tokenizer_scratch *scratch,
                               const char *text, size_t size, const text_template_span *span,
                               bool trims, const text_tokenizer_ids *ids, data_chat_run *run,
                               bool *placed, sifr_error *error) {
    *placed = follow(t, text, size, span, trims, ids, run);
    if (*placed) return SIFR_OK;
    BASE_TRY(count_before(t, scratch, text, span->begin, ids, &run->first, error));
    BASE_TRY(count_before(t, scratch, text, span->end, ids, &run->end, error));
    *placed = run->first != SIZE_MAX && run->end != SIZE_MAX;
    if (*placed && run->first > 0 && span->begin < size &&
        count_taken(t, ids->ids[run->first - 1], text + span->begin, size - span->begin))
        run->first--;
    if (run->first == run->end) run->first = SIZE_MAX;
    return SIFR_OK;
}

sifr_status data_chat_align(const text_tokenizer *tokenizer, text_tokenizer_scratch *scratch,
                            const char *text, size_t size, const text_template_span *spans,
                            size_t span_count, const text_tokenizer_ids *ids, bool *learned,
                            bool *placed, sifr_error *error) {
    *placed = true;
    memset(learned, 0, ids->count);
    for (size_t s = 0; s < span_count; s++) {
        data_chat_run run;
        BASE_TRY(data_chat_find_run(tokenizer, scratch, text, size, &spans[s], false, ids, &run,
                                    placed, error));
        if (!*placed) return SIFR_OK;
        if (run.first == SIZE_MAX) continue;
        for (size_t i = run.first; i < run.end; i++) learned[i] = true;
    }
    return SIFR_OK;
}

void data_chat_align_open(const text_tokenizer *tokenizer, const text_tokenizer_ids *ids,
                          bool *learned) {
    for (size_t i = 1; i < ids->count; i++) {
        bool ends = learned[i - 1] && !learned[i];
        if (!ends || !text_tokenizer_is_special(tokenizer, ids->ids[i])) continue;
        learned[i++] = true;
    }
}
