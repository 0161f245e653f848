#include "text/tokenizer/tokenizer_decoder.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/json.h"
#include "text/tokenizer/tokenizer_internal.h"

void text_texts_free(text_texts *texts) {
    text_tokenizer_text_free(&texts->text);
    free(texts->ends);
    *texts = (text_texts){0};
}

sifr_status text_texts_end(text_texts *texts, sifr_error *error) {
    BASE_TRY(
        base_grow(&texts->ends, &texts->capacity, texts->count + 1, sizeof *texts->ends, error));
    texts->ends[texts->count++] = texts->text.count;
    return SIFR_OK;
}

/* A step at work: text i of `in` to the end of `out`. */
typedef struct decoding {
    const text_decoder_step *step;
    const text_texts *in;
    text_texts *out;
    text_regex_state *regex;
    bool inside;
    sifr_error *error;
} decoding;

static const uint8_t *text_of(const text_texts *texts, size_t i, size_t *size) {
    size_t start = i ? texts->ends[i - 1] : 0;
    *size = texts->ends[i] - start;
    return (const uint8_t *)(texts->text.bytes ? texts->text.bytes : "") + start;
}

static sifr_status append(decoding *d, const void *bytes, size_t size) {
    return text_tokenizer_text_append(&d->out->text, bytes, size, d->error);
}

static sifr_status metaspace(decoding *d, size_t i, const uint8_t *p, size_t size) {
    bool drops = i == 0 && !d->inside && d->step->prepend != TEXT_PREPEND_NEVER;
    uint8_t mark[4];
    size_t mark_size = text_utf8_put(d->step->character, mark);
    return text_replace_literal((char *)mark, mark_size, p, size, " ", drops ? 0 : 1, &d->out->text,
                                d->error);
}

/* The library's list, each on what the one before left. */
static sifr_status clean_up(text_tokenizer_text *text, size_t from, sifr_error *error) {
    static const char *const pairs[][2] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    text_tokenizer_text made = {0};
    sifr_status status = SIFR_OK;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs && status == SIFR_OK; i++) {
        made.count = 0;
        status = text_replace_literal(pairs[i][0], strlen(pairs[i][0]),
                                      (const uint8_t *)text->bytes + from, text->count - from,
                                      pairs[i][1], strlen(pairs[i][1]), &made, error);
        if (status != SIFR_OK || made.count == text->count - from) continue;
        if (made.count) memcpy(text->bytes + from, made.bytes, made.count);
        text->count = from + made.count;
    }
    text_tokenizer_text_free(&made);
    return status;
}

static sifr_status wordpiece(decoding *d, size_t i, const uint8_t *p, size_t size) {
    size_t from = d->out->text.count, prefix = strlen(d->step->from);
    if (i != 0 || d->inside) {
        if (size >= prefix && memcmp(p, d->step->from, prefix) == 0)
            p += prefix, size -= prefix;
        else
            BASE_TRY(append(d, " ", 1));
    }
    BASE_TRY(append(d, p, size));
    if (!d->step->cleanup || d->out->text.count == from) return SIFR_OK;
    return clean_up(&d->out->text, from, d->error);
}

static sifr_status strip(decoding *d, const uint8_t *p, size_t size) {
    const uint8_t *end = p + size;
    size_t length;
    for (int64_t i = 0; i < d->step->start && p < end; i++, p += length) {
        if (text_utf8_get(p, &length) != d->step->character) break;
    }
    for (int64_t i = 0; i < d->step->stop && p < end; i++) {
        const uint8_t *last = text_utf8_back(end, p);
        if (text_utf8_get(last, &length) != d->step->character) break;
        end = last;
    }
    return append(d, p, (size_t)(end - p));
}

static sifr_status replace(decoding *d, const uint8_t *p, size_t size) {
    const text_decoder_step *step = d->step;
    size_t to = strlen(step->to);
    if (!step->regex)
        return text_replace_literal(step->from, strlen(step->from), p, size, step->to, to,
                                    &d->out->text, d->error);
    d->regex->budget = text_regex_budget(size);
    return text_replace(step->regex, d->regex, p, size, step->to, to, &d->out->text, d->error);
}

static sifr_status one_text(decoding *d, size_t i) {
    size_t size;
    const uint8_t *p = text_of(d->in, i, &size);
    switch (d->step->kind) {
    case TEXT_DECODER_METASPACE:
        BASE_TRY(metaspace(d, i, p, size));
        break;
    case TEXT_DECODER_WORDPIECE:
        BASE_TRY(wordpiece(d, i, p, size));
        break;
    case TEXT_DECODER_STRIP:
        BASE_TRY(strip(d, p, size));
        break;
    case TEXT_DECODER_REPLACE:
        BASE_TRY(replace(d, p, size));
        break;
    default:
        BASE_TRY(text_replace_literal(d->step->from, strlen(d->step->from), p, size, " ",
                                      i + 1 == d->in->count && !d->inside ? 0 : 1, &d->out->text,
                                      d->error));
    }
    return text_texts_end(d->out, d->error);
}

static int hex(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int text_fallback_byte(const void *content, size_t size) {
    const uint8_t *p = content;
    if (size != 6 || memcmp(p, "<0x", 3) != 0 || p[5] != '>') return -1;
    int high = hex(p[3]), low = hex(p[4]);
    if (p[3] == '+' && low >= 0) return low; /* Rust's parser takes a sign */
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Ends a run of byte tokens: one text where they are UTF-8, else U+FFFD for each. */
static sifr_status end_bytes(decoding *d, text_tokenizer_text *bytes) {
    size_t count = bytes->count;
    bytes->count = 0;
    if (!count) return SIFR_OK;
    if (d->inside || text_utf8_valid((const uint8_t *)bytes->bytes, count) == count) {
        BASE_TRY(append(d, bytes->bytes, count));
        return text_texts_end(d->out, d->error);
    }
    for (size_t i = 0; i < count; i++) {
        BASE_TRY(append(d, "\xEF\xBF\xBD", 3));
        BASE_TRY(text_texts_end(d->out, d->error));
    }
    return SIFR_OK;
}

static sifr_status byte_fallback(decoding *d, text_tokenizer_text *bytes) {
    for (size_t i = 0; i < d->in->count; i++) {
        size_t size;
        const uint8_t *p = text_of(d->in, i, &size);
        int byte = text_fallback_byte(p, size);
        if (byte >= 0) {
            uint8_t value = (uint8_t)byte;
            BASE_TRY(text_tokenizer_text_append(bytes, &value, 1, d->error));
            continue;
        }
        BASE_TRY(end_bytes(d, bytes));
        BASE_TRY(append(d, p, size));
        BASE_TRY(text_texts_end(d->out, d->error));
    }
    return end_bytes(d, bytes);
}

/* All texts as one; of ByteLevel, the bytes that they stand for, repaired. */
static sifr_status join(decoding *d, text_tokenizer_text *bytes) {
    uint64_t invalid = 0;
    if (d->step->kind == TEXT_DECODER_FUSE) {
        BASE_TRY(append(d, d->in->text.bytes, d->in->text.count));
        return text_texts_end(d->out, d->error);
    }
    for (size_t i = 0; i < d->in->count; i++) {
        size_t size, count, before = bytes->count;
        const uint8_t *p = text_of(d->in, i, &size);
        BASE_TRY(text_tokenizer_text_append(bytes, p, size, d->error));
        if (size &&
            text_bytes_of_content((const char *)p, size, (uint8_t *)bytes->bytes + before, &count))
            bytes->count = before + count;
        else if (size)
            memcpy(bytes->bytes + before, p, size);
    }
    if (d->inside)
        BASE_TRY(append(d, bytes->bytes, bytes->count));
    else
        BASE_TRY(text_utf8_repair((const uint8_t *)bytes->bytes, bytes->count, &d->out->text,
                                  &invalid, d->error));
    return text_texts_end(d->out, d->error);
}

static sifr_status run_step(decoding *d) {
    text_tokenizer_text bytes = {0};
    sifr_status status = SIFR_OK;
    switch (d->step->kind) {
    case TEXT_DECODER_BYTES:
    case TEXT_DECODER_FUSE:
        status = join(d, &bytes);
        break;
    case TEXT_DECODER_BYTE_FALLBACK:
        status = byte_fallback(d, &bytes);
        break;
    default:
        for (size_t i = 0; i < d->in->count && status == SIFR_OK; i++) status = one_text(d, i);
    }
    text_tokenizer_text_free(&bytes);
    return status;
}

sifr_status text_decoder_apply(const text_decoder *decoder, text_texts *texts, bool inside,
                               text_tokenizer_text *out, sifr_error *error) {
    text_texts other = {0};
    text_texts *in = texts, *made = &other;
    text_regex_state regex = {0};
    size_t limit = 64 * texts->text.count + (1 << 16);
    sifr_status status = SIFR_OK;
    bool fused = false;
    for (size_t i = 0; i < decoder->count; i++) {
        decoding d = {&decoder->steps[i], in, made, &regex, inside, error};
        fused |= d.step->kind == TEXT_DECODER_FUSE;
        if (inside && fused && d.step->kind == TEXT_DECODER_STRIP) continue;
        made->count = made->text.count = 0;
        BASE_TRY_GOTO(status, run_step(&d), done);
        BASE_TRY_GOTO(status, text_check_growth(made->text.count, limit, error), done);
        text_texts *swap = in;
        in = made;
        made = swap;
    }
    if (!decoder->none) {
        status = text_tokenizer_text_append(out, in->text.bytes, in->text.count, error);
        goto done;
    }
    for (size_t i = 0; i < in->count && status == SIFR_OK; i++) {
        size_t size;
        const uint8_t *p = text_of(in, i, &size);
        if (i || inside)
            BASE_TRY_GOTO(status, text_tokenizer_text_append(out, " ", 1, error), done);
        status = text_tokenizer_text_append(out, p, size, error);
    }
done:
    text_texts_free(&other);
    free(regex.frames);
    return status;
}

static sifr_status read_step(text_decoder_step *step, const json_t *part, const char *name,
                             sifr_error *error) {
    const char *text;
    size_t length = 0;
    switch (step->kind) {
    case TEXT_DECODER_METASPACE:
        return text_metaspace_read(part, name, &step->character, &step->prepend, error);
    case TEXT_DECODER_WORDPIECE:
        BASE_TRY(base_json_bool(part, "cleanup", true, &step->cleanup, name, error));
        BASE_TRY(base_json_string(part, "prefix", "##", &text, name, error));
        return base_copy_text(text, strlen(text), &step->from, error);
    case TEXT_DECODER_STRIP:
        BASE_TRY(base_json_int(part, "start", 0, &step->start, name, error));
        BASE_TRY(base_json_int(part, "stop", 0, &step->stop, name, error));
        BASE_TRY(base_json_string(part, "content", " ", &text, name, error));
        if (*text) step->character = text_utf8_get((const uint8_t *)text, &length);
        if (!*text || text[length])
            return base_fail(error, SIFR_USAGE,
                             "%s: decoder Strip: \"content\" must be one "
                             "character",
                             name);
        return SIFR_OK;
    case TEXT_DECODER_REPLACE:
        BASE_TRY(text_pattern_read(part, name, &step->regex, &step->from, error));
        BASE_TRY(base_json_string(part, "content", "", &text, name, error));
        return base_copy_text(text, strlen(text), &step->to, error);
    case TEXT_DECODER_BPE:
        BASE_TRY(base_json_string(part, "suffix", "</w>", &text, name, error));
        if (!*text)
            return base_fail(error, SIFR_USAGE, "%s: decoder BPEDecoder has no suffix", name);
        return base_copy_text(text, strlen(text), &step->from, error);
    default:
        return SIFR_OK;
    }
}

sifr_status text_decoder_read(text_decoder *decoder, const json_t *part, const char *name,
                              sifr_error *error) {
    static const struct {
        const char *type;
        text_decoder_kind kind;
    } kinds[] = {
        {"ByteLevel", TEXT_DECODER_BYTES},     {"Metaspace", TEXT_DECODER_METASPACE},
        {"WordPiece", TEXT_DECODER_WORDPIECE}, {"ByteFallback", TEXT_DECODER_BYTE_FALLBACK},
        {"Fuse", TEXT_DECODER_FUSE},           {"Strip", TEXT_DECODER_STRIP},
        {"Replace", TEXT_DECODER_REPLACE},     {"BPEDecoder", TEXT_DECODER_BPE},
    };
    const json_t *list[TEXT_STEPS_AT_MOST];
    size_t count, of = sizeof kinds / sizeof *kinds;
    BASE_TRY(text_tokenizer_flatten(part, "decoder", "decoders", name, list, &count, error));
    for (size_t i = 0; i < count; i++) {
        text_decoder_step *step = &decoder->steps[i];
        const char *type = json_string_value(json_object_get(list[i], "type"));
        size_t k = 0;
        while (k < of && (!type || strcmp(type, kinds[k].type) != 0)) k++;
        if (k == of)
            return text_tokenizer_refuse(error, name, "decoder", type ? type : "(no type)",
                                         "ByteLevel, Metaspace, WordPiece, ByteFallback, Fuse, "
                                         "Strip, Replace, BPEDecoder, Sequence");
        step->kind = kinds[k].kind;
        decoder->count = i + 1; /* what a step holds is freed also where reading it fails */
        BASE_TRY(read_step(step, list[i], name, error));
    }
    decoder->none = count == 0;
    decoder->bytes = count == 1 && decoder->steps[0].kind == TEXT_DECODER_BYTES;
    return SIFR_OK;
}

void text_decoder_free(text_decoder *decoder) {
    for (size_t i = 0; i < decoder->count; i++) {
        free(decoder->steps[i].from);
        free(decoder->steps[i].to);
        text_regex_free(decoder->steps[i].regex);
    }
    decoder->count = 0;
}
