#include "text/tokenizer/tokenizer_normalizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "text/tokenizer/tokenizer_internal.h"

static sifr_status put(text_tokenizer_text *out, uint32_t c, sifr_error *error) {
    uint8_t bytes[4];
    return text_tokenizer_text_append(out, bytes, text_utf8_put(c, bytes), error);
}

static sifr_status reserve(text_tokenizer_text *out, size_t size, sifr_error *error) {
    return base_grow(&out->bytes, &out->capacity, out->count + size + 1, 1, error);
}

/* What a text of `size` bytes may grow to: replacements of replacements know no bound else. */
static size_t growth_limit(size_t size) {
    return size < SIZE_MAX / 256 ? size * 64 + (1 << 16) : SIZE_MAX / 2;
}

sifr_status text_check_growth(size_t size, size_t limit, sifr_error *error) {
    if (size <= limit) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "the tokenizer's replacements make more than 64 times the text: %zu bytes",
                     size);
}

sifr_status text_replace(const text_regex *regex, text_regex_state *state, const uint8_t *text,
                         size_t size, const char *to, size_t to_size, text_tokenizer_text *out,
                         sifr_error *error) {
    const uint8_t *p = text, *end = text + size, *start, *stop;
    size_t limit = out->count + growth_limit(size);
    for (;;) {
        BASE_TRY(text_regex_find(regex, state, text, p, end, &start, &stop, error));
        BASE_TRY(text_tokenizer_text_append(out, p, (size_t)((start ? start : end) - p), error));
        if (!start) return SIFR_OK;
        BASE_TRY(text_tokenizer_text_append(out, to, to_size, error));
        BASE_TRY(text_check_growth(out->count, limit, error));
        p = stop;
    }
}

sifr_status text_replace_literal(const char *from, size_t from_size, const uint8_t *text,
                                 size_t size, const char *to, size_t to_size,
                                 text_tokenizer_text *out, sifr_error *error) {
    const uint8_t *p = text, *end = text + size;
    size_t limit = out->count + growth_limit(size);
    while (p < end) {
        const uint8_t *found = p;
        while ((found = memchr(found, from[0], (size_t)(end - found)))) {
            if ((size_t)(end - found) < from_size)
                found = NULL;
            else if (memcmp(found, from, from_size) != 0) {
                found++;
                continue;
            }
            break;
        }
        BASE_TRY(text_tokenizer_text_append(out, p, (size_t)((found ? found : end) - p), error));
        if (!found) return SIFR_OK;
        BASE_TRY(text_tokenizer_text_append(out, to, to_size, error));
        BASE_TRY(text_check_growth(out->count, limit, error));
        p = found + from_size;
    }
    return SIFR_OK;
}

static sifr_status lowercase(const uint8_t *p, const uint8_t *end, text_tokenizer_text *out,
                             sifr_error *error) {
    size_t length;
    BASE_TRY(reserve(out, (size_t)(end - p), error));
    for (; p < end; p += length) {
        if (*p < 0x80) {
            length = 1;
            if (out->count == out->capacity) BASE_TRY(reserve(out, (size_t)(end - p), error));
            out->bytes[out->count++] = (char)(*p >= 'A' && *p <= 'Z' ? *p | 0x20 : *p);
            continue;
        }
        uint32_t c = text_utf8_get(p, &length);
        if (c == 0x130)
            BASE_TRY(text_tokenizer_text_append(out, "i\xCC\x87", 3, error));
        else
            BASE_TRY(put(out, text_unicode_lower(c), error));
    }
    return SIFR_OK;
}

static bool is_chinese(uint32_t c) {
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
           (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B81F) ||
           (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) ||
           (c >= 0x2F800 && c <= 0x2FA1F);
}

/* Control characters out, white space to blanks, blanks around Chinese characters. */
static sifr_status bert_clean(const text_normalizer_step *step, const text_unicode *unicode,
                              const uint8_t *p, const uint8_t *end, text_tokenizer_text *out,
                              sifr_error *error) {
    size_t length;
    BASE_TRY(reserve(out, (size_t)(end - p), error));
    for (; p < end; p += length) {
        uint32_t c = text_utf8_get(p, &length);
        uint8_t flags = text_unicode_flags(unicode, c);
        if (step->clean) {
            bool blank = c == '\t' || c == '\n' || c == '\r';
            if (c == 0 || c == 0xFFFD || (!blank && (flags & TEXT_CONTROL))) continue;
            if (blank || (flags & TEXT_CLASS) == TEXT_SPACE) {
                BASE_TRY(text_tokenizer_text_append(out, " ", 1, error));
                continue;
            }
        }
        bool around = step->chinese && c >= 0x3400 && is_chinese(c);
        if (around) BASE_TRY(text_tokenizer_text_append(out, " ", 1, error));
        BASE_TRY(text_tokenizer_text_append(out, p, length, error));
        if (around) BASE_TRY(text_tokenizer_text_append(out, " ", 1, error));
    }
    return SIFR_OK;
}

/* Without marks: of all three kinds, or (for BERT) the nonspacing ones. */
static sifr_status drop_marks(const text_unicode *unicode, bool bert, const uint8_t *p,
                              const uint8_t *end, text_tokenizer_text *out, sifr_error *error) {
    const uint8_t *from = p;
    size_t length;
    for (; p < end; p += length) {
        uint32_t c = text_utf8_get(p, &length);
        bool mark = c >= 0x300 && (bert ? (text_unicode_flags(unicode, c) & TEXT_MARK) != 0
                                        : text_unicode_is_combining(c));
        if (!mark) continue;
        BASE_TRY(text_tokenizer_text_append(out, from, (size_t)(p - from), error));
        from = p + length;
    }
    return text_tokenizer_text_append(out, from, (size_t)(end - from), error);
}

static sifr_status nmt(const uint8_t *p, const uint8_t *end, text_tokenizer_text *out,
                       sifr_error *error) {
    size_t length;
    for (; p < end; p += length) {
        uint32_t c = text_utf8_get(p, &length);
        if ((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F ||
            c == 0x9F)
            continue;
        bool blank = c == 9 || c == 10 || c == 12 || c == 13 || c == 0x1680 ||
                     (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                     c == 0xFEFF || c == 0xFFFD;
        if (blank)
            BASE_TRY(text_tokenizer_text_append(out, " ", 1, error));
        else
            BASE_TRY(text_tokenizer_text_append(out, p, length, error));
    }
    return SIFR_OK;
}

static void strip(const text_normalizer_step *step, const uint8_t **text, size_t *size) {
    const uint8_t *p = *text, *end = p + *size;
    size_t length;
    while (step->left && p < end && text_unicode_is_space(text_utf8_get(p, &length))) p += length;
    while (step->right && end > p) {
        const uint8_t *last = text_utf8_back(end, p);
        if (!text_unicode_is_space(text_utf8_get(last, &length))) break;
        end = last;
    }
    *text = p;
    *size = (size_t)(end - p);
}

static bool is_ascii(const uint8_t *p, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (p[i] >= 0x80) return false;
    }
    return true;
}

typedef struct step_job {
    const text_unicode *unicode;
    text_normalizer_state *state;
    text_normalizer_place place;
    int next; /* the buffer that the next text goes to */
    const uint8_t **text;
    size_t *size;
} step_job;

static text_tokenizer_text *next_text(step_job *job) {
    text_tokenizer_text *out = &job->state->out[job->next];
    job->next ^= 1;
    out->count = 0;
    return out;
}

static void take_text(step_job *job, const text_tokenizer_text *out) {
    *job->text = out->bytes ? (const uint8_t *)out->bytes : (const uint8_t *)"";
    *job->size = out->count;
}

static sifr_status to_form(step_job *job, text_normal_form form, sifr_error *error) {
    if (is_ascii(*job->text, *job->size)) return SIFR_OK;
    text_tokenizer_text *out = next_text(job);
    BASE_TRY(text_normal_form_of(job->unicode, form, *job->text, *job->size, out, error));
    take_text(job, out);
    return SIFR_OK;
}

static sifr_status bert(const text_normalizer_step *step, step_job *job, sifr_error *error) {
    const uint8_t *end;
    text_tokenizer_text *out;
    if (step->clean || step->chinese) {
        out = next_text(job);
        end = *job->text + *job->size;
        BASE_TRY(bert_clean(step, job->unicode, *job->text, end, out, error));
        take_text(job, out);
    }
    if (step->accents && !is_ascii(*job->text, *job->size)) {
        BASE_TRY(to_form(job, TEXT_NFD, error));
        out = next_text(job);
        end = *job->text + *job->size;
        BASE_TRY(drop_marks(job->unicode, true, *job->text, end, out, error));
        take_text(job, out);
    }
    if (!step->lowercase) return SIFR_OK;
    out = next_text(job);
    BASE_TRY(lowercase(*job->text, *job->text + *job->size, out, error));
    take_text(job, out);
    return SIFR_OK;
}

static sifr_status apply(const text_normalizer_step *step, step_job *job, sifr_error *error) {
    const uint8_t *text = *job->text, *end = text + *job->size;
    size_t size = *job->size;
    if (step->kind == TEXT_NORMALIZER_STRIP) return strip(step, job->text, job->size), SIFR_OK;
    if (step->kind == TEXT_NORMALIZER_FORM) return to_form(job, step->form, error);
    if (step->kind == TEXT_NORMALIZER_BERT) return bert(step, job, error);
    if (step->kind == TEXT_NORMALIZER_CHARSMAP && !step->map) return SIFR_OK;
    if (step->kind == TEXT_NORMALIZER_STRIP_ACCENTS && is_ascii(text, size)) return SIFR_OK;
    text_tokenizer_text *out = next_text(job);
    switch (step->kind) {
    case TEXT_NORMALIZER_LOWERCASE:
        BASE_TRY(lowercase(text, end, out, error));
        break;
    case TEXT_NORMALIZER_STRIP_ACCENTS:
        BASE_TRY(drop_marks(job->unicode, false, text, end, out, error));
        break;
    case TEXT_NORMALIZER_PREPEND:
        if (size) BASE_TRY(text_tokenizer_text_append(out, step->to, step->to_size, error));
        BASE_TRY(text_tokenizer_text_append(out, text, size, error));
        break;
    case TEXT_NORMALIZER_NMT:
        BASE_TRY(nmt(text, end, out, error));
        break;
    case TEXT_NORMALIZER_CHARSMAP:
        BASE_TRY(text_charsmap_apply(step->map, text, size, out, error));
        break;
    case TEXT_NORMALIZER_SENTENCEPIECE:
        BASE_TRY(text_sentencepiece_normalize(step, job->place, text, size, out, error));
        break;
    case TEXT_NORMALIZER_BYTES:
        BASE_TRY(text_content_of_bytes(text, size, out, error));
        break;
    default:
        if (step->regex) {
            job->state->regex.budget = text_regex_budget(size);
            BASE_TRY(text_replace(step->regex, &job->state->regex, text, size, step->to,
                                  step->to_size, out, error));
        } else {
            BASE_TRY(text_replace_literal(step->from, step->from_size, text, size, step->to,
                                          step->to_size, out, error));
        }
    }
    take_text(job, out);
    return SIFR_OK;
}

sifr_status text_normalizer_apply(const text_normalizer *normalizer, const text_unicode *unicode,
                                  text_normalizer_state *state, text_normalizer_place place,
                                  const uint8_t **text, size_t *size, sifr_error *error) {
    step_job job = {unicode, state, place, 0, text, size};
    size_t limit = growth_limit(*size);
    for (size_t i = 0; i < normalizer->count; i++) {
        BASE_TRY(apply(&normalizer->steps[i], &job, error));
        BASE_TRY(text_check_growth(*size, limit, error));
    }
    return SIFR_OK;
}

void text_normalizer_state_free(text_normalizer_state *state) {
    text_tokenizer_text_free(&state->out[0]);
    text_tokenizer_text_free(&state->out[1]);
    free(state->regex.frames);
    state->regex = (text_regex_state){0};
}

void text_normalizer_free(text_normalizer *normalizer) {
    for (size_t i = 0; i < normalizer->count; i++) {
        text_normalizer_step *step = &normalizer->steps[i];
        free(step->from);
        free(step->to);
        text_regex_free(step->regex);
        text_charsmap_free(step->map);
    }
    normalizer->count = 0;
}

bool text_normalizer_cut_is_safe(const text_normalizer *normalizer, bool *marked) {
    *marked = false;
    for (size_t i = 0; i < normalizer->count; i++) {
        const text_normalizer_step *step = &normalizer->steps[i];
        switch (step->kind) {
        case TEXT_NORMALIZER_FORM:
        case TEXT_NORMALIZER_LOWERCASE:
        case TEXT_NORMALIZER_STRIP_ACCENTS:
        case TEXT_NORMALIZER_BERT:
            break;
        case TEXT_NORMALIZER_CHARSMAP:
            if (step->map && !text_charsmap_keeps_words(step->map)) return false;
            break;
        case TEXT_NORMALIZER_REPLACE:
            if (step->regex) {
                if (strcmp(text_regex_pattern(step->regex), " {2,}") != 0 ||
                    strcmp(step->to, " ") != 0)
                    return false;
            } else if (strcmp(step->from, " ") == 0 && strcmp(step->to, "\xE2\x96\x81") == 0) {
                *marked = true;
            } else if (step->from_size != 1 || step->from[0] == ' ') {
                return false;
            }
            break;
        default:
            return false;
        }
    }
    return true;
}
