/* The normalizer of sentencepiece (0.2.3, src/normalizer.cc): the longest prefix that the character
 * map has, blanks as U+2581, one in front. In a text that added tokens cut, only its ends are those
 * of the text. */
#include <string.h>

#include "text/tokenizer/tokenizer_internal.h"

static const char blank[] = "\xE2\x96\x81";
enum { BLANK_SIZE = sizeof blank - 1 };

typedef struct mapped {
    const char *text;
    size_t size, taken; /* taken: bytes of what is normalized */
} mapped;

static mapped next_mapped(const text_charsmap *map, const uint8_t *p, size_t size) {
    mapped m = {.taken = 0};
    m.text = map ? text_charsmap_longest(map, p, size, &m.taken) : NULL;
    if (m.text) {
        m.size = strlen(m.text);
    } else {
        text_utf8_get(p, &m.taken);
        m.text = (const char *)p;
        m.size = m.taken;
    }
    return m;
}

/* Appends with U+2581 for each blank. */
static sifr_status append_escaped(const mapped *m, text_tokenizer_text *out, sifr_error *error) {
    for (size_t i = 0; i < m->size; i++) {
        bool is_blank = m->text[i] == ' ';
        BASE_TRY(text_tokenizer_text_append(out, is_blank ? blank : m->text + i,
                                            is_blank ? BLANK_SIZE : 1, error));
    }
    return SIFR_OK;
}

static size_t skip_blanks(const text_charsmap *map, const uint8_t *p, size_t size) {
    size_t at = 0;
    while (at < size) {
        mapped m = next_mapped(map, p + at, size - at);
        if (m.size != 1 || m.text[0] != ' ') break;
        at += m.taken;
    }
    return at;
}

static void drop_last_blanks(text_tokenizer_text *out, size_t from) {
    while (out->count >= from + BLANK_SIZE &&
           memcmp(out->bytes + out->count - BLANK_SIZE, blank, BLANK_SIZE) == 0)
        out->count -= BLANK_SIZE;
}

sifr_status text_sentencepiece_normalize(const text_normalizer_step *step,
                                         text_normalizer_place place, const uint8_t *text,
                                         size_t size, text_tokenizer_text *out, sifr_error *error) {
    size_t from = out->count, limit = from + 64 * size + (1 << 16), at = 0;
    bool after_blank = step->remove_extra && place.first;
    if (after_blank) at = skip_blanks(step->map, text, size);
    if (at == size && place.last) return SIFR_OK;
    if (step->prefix && place.first)
        BASE_TRY(text_tokenizer_text_append(out, blank, BLANK_SIZE, error));
    while (at < size) {
        mapped m = next_mapped(step->map, text + at, size - at);
        at += m.taken;
        for (; after_blank && m.size && *m.text == ' '; m.size--) m.text++;
        if (m.size) after_blank = step->remove_extra && m.text[m.size - 1] == ' ';
        BASE_TRY(append_escaped(&m, out, error));
        BASE_TRY(text_check_growth(out->count, limit, error));
    }
    if (step->remove_extra && place.last) drop_last_blanks(out, from);
    return SIFR_OK;
}

bool text_normalizer_has_prefix(const text_normalizer *normalizer) {
    for (size_t i = 0; i < normalizer->count; i++) {
        const text_normalizer_step *step = &normalizer->steps[i];
        if (step->kind == TEXT_NORMALIZER_SENTENCEPIECE && step->prefix) return true;
    }
    return false;
}
