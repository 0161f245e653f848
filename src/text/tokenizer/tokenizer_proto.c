#include "text/tokenizer/tokenizer_proto.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "text/tokenizer/tokenizer_table.h"
#include "text/tokenizer/tokenizer_unicode.h"

/* What lies between `at` and `end` is a message; offsets in errors count from `begin`. */
typedef struct reader {
    const uint8_t *begin, *at, *end;
    const char *name;
} reader;

typedef struct field {
    uint64_t number;
    uint64_t value; /* a varint, or the bits of a fixed number */
    text_span span;
    int wire; /* 0: varint, 1: 8 bytes, 2: span, 5: 4 bytes */
    size_t offset;
} field;

static sifr_status damaged(const reader *r, size_t offset, const char *why, sifr_error *error) {
    return base_fail(error, SIFR_USAGE,
                     "%s: byte %zu: %s; this is no sentencepiece model, or a damaged one", r->name,
                     offset, why);
}

static sifr_status read_varint(reader *r, uint64_t *out, sifr_error *error) {
    size_t offset = (size_t)(r->at - r->begin);
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (r->at == r->end) return damaged(r, offset, "a number is cut off", error);
        uint8_t byte = *r->at++;
        if (shift == 63 && byte > 1) break;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return *out = value, SIFR_OK;
    }
    return damaged(r, offset, "a number of more than 64 bits", error);
}

static sifr_status read_fixed(reader *r, size_t size, uint64_t *out, sifr_error *error) {
    if ((size_t)(r->end - r->at) < size)
        return damaged(r, (size_t)(r->at - r->begin), "a number is cut off", error);
    *out = 0;
    for (size_t i = 0; i < size; i++) *out |= (uint64_t)*r->at++ << 8 * i;
    return SIFR_OK;
}

/* The next field of the message; r->at < r->end. */
static sifr_status read_field(reader *r, field *out, sifr_error *error) {
    uint64_t key, length;
    *out = (field){.offset = (size_t)(r->at - r->begin)};
    BASE_TRY(read_varint(r, &key, error));
    out->number = key >> 3;
    out->wire = (int)(key & 7);
    if (out->number == 0 || out->number >= 1u << 29)
        return damaged(r, out->offset, "a field with an impossible number", error);
    switch (out->wire) {
    case 0:
        return read_varint(r, &out->value, error);
    case 1:
        return read_fixed(r, 8, &out->value, error);
    case 5:
        return read_fixed(r, 4, &out->value, error);
    case 2:
        BASE_TRY(read_varint(r, &length, error));
        if (length > (uint64_t)(r->end - r->at))
            return damaged(r, out->offset, "a field that is longer than what is left", error);
        out->span = (text_span){(const char *)r->at, (size_t)length};
        r->at += length;
        return SIFR_OK;
    default:
        return damaged(r, out->offset, "a field of unknown form", error);
    }
}

/* The message inside the span of `f`. */
static reader inside(const reader *r, const field *f) {
    const uint8_t *at = (const uint8_t *)f->span.bytes;
    return (reader){r->begin, at, at + f->span.size, r->name};
}

static sifr_status expect(const reader *r, const field *f, int wire, sifr_error *error) {
    if (f->wire == wire) return SIFR_OK;
    return damaged(r, f->offset, "a field of another form than its number has", error);
}

static sifr_status check_text(const reader *r, const field *f, sifr_error *error) {
    const uint8_t *bytes = (const uint8_t *)f->span.bytes;
    BASE_TRY(expect(r, f, 2, error));
    if (f->span.size > TEXT_PIECE_LENGTH)
        return base_fail(error, SIFR_USAGE,
                         "%s: byte %zu: a piece of %zu bytes; at most %d are supported", r->name,
                         f->offset, f->span.size, TEXT_PIECE_LENGTH);
    if (text_utf8_valid(bytes, f->span.size) != f->span.size ||
        (f->span.size && memchr(bytes, 0, f->span.size)))
        return damaged(r, f->offset, "a piece that is not UTF-8 text", error);
    return SIFR_OK;
}

static sifr_status read_piece(reader r, text_proto *proto, sifr_error *error) {
    text_proto_piece piece = {.type = TEXT_PIECE_NORMAL};
    size_t offset = (size_t)(r.at - r.begin);
    field f;
    while (r.at < r.end) {
        BASE_TRY(read_field(&r, &f, error));
        if (f.number == 1) {
            BASE_TRY(check_text(&r, &f, error));
            piece.text = f.span;
        } else if (f.number == 2) {
            uint32_t bits = (uint32_t)f.value;
            BASE_TRY(expect(&r, &f, 5, error));
            memcpy(&piece.score, &bits, sizeof bits);
            if (!isfinite(piece.score))
                return damaged(&r, f.offset, "a score that is no finite number", error);
        } else if (f.number == 3) {
            BASE_TRY(expect(&r, &f, 0, error));
            piece.type = f.value <= 6 ? (int32_t)f.value : 0;
        }
    }
    if (!piece.text.size) return damaged(&r, offset, "a piece without text", error);
    BASE_TRY(base_grow(&proto->pieces, &proto->capacity, proto->count + 1, sizeof *proto->pieces,
                       error));
    proto->pieces[proto->count++] = piece;
    return SIFR_OK;
}

static sifr_status read_trainer(reader r, text_proto *proto, sifr_error *error) {
    field f;
    while (r.at < r.end) {
        BASE_TRY(read_field(&r, &f, error));
        int64_t *number = f.number == 3    ? &proto->model_type
                          : f.number == 40 ? &proto->unk_id
                          : f.number == 41 ? &proto->bos_id
                          : f.number == 42 ? &proto->eos_id
                                           : NULL;
        text_span *text = f.number == 45   ? &proto->unk_piece
                          : f.number == 46 ? &proto->bos_piece
                          : f.number == 47 ? &proto->eos_piece
                                           : NULL;
        if (number) {
            BASE_TRY(expect(&r, &f, 0, error));
            *number = (int32_t)(uint32_t)f.value;
        } else if (text) {
            BASE_TRY(check_text(&r, &f, error));
            *text = f.span;
        } else if (f.number == 35 || f.number == 24) {
            BASE_TRY(expect(&r, &f, 0, error));
            *(f.number == 35 ? &proto->byte_fallback : &proto->whitespace_as_suffix) = f.value != 0;
        }
    }
    return SIFR_OK;
}

static sifr_status read_normalizer(reader r, text_proto *proto, sifr_error *error) {
    field f;
    while (r.at < r.end) {
        BASE_TRY(read_field(&r, &f, error));
        bool *flag = f.number == 3   ? &proto->dummy_prefix
                     : f.number == 4 ? &proto->remove_extra_whitespaces
                     : f.number == 5 ? &proto->escape_whitespaces
                                     : NULL;
        if (flag) {
            BASE_TRY(expect(&r, &f, 0, error));
            *flag = f.value != 0;
        } else if (f.number == 2) {
            BASE_TRY(expect(&r, &f, 2, error));
            proto->charsmap = f.span;
        }
    }
    return SIFR_OK;
}

static sifr_status read_denormalizer(reader r, text_proto *proto, sifr_error *error) {
    text_proto of = {0};
    BASE_TRY(read_normalizer(r, &of, error));
    proto->denormalizes = of.charsmap.size > 0;
    return SIFR_OK;
}

static sifr_status check_repeats(const text_proto *proto, const char *name, sifr_error *error) {
    text_table seen = {0};
    sifr_status status = SIFR_OK;
    for (size_t i = 0, there; i < proto->count && status == SIFR_OK; i++) {
        const text_span *text = &proto->pieces[i].text;
        bool added;
        status = text_table_add(&seen, text->bytes, text->size, &there, &added, error);
        if (status == SIFR_OK && !added)
            status = base_fail(error, SIFR_USAGE, "%s: pieces %zu and %zu are both \"%.*s\"", name,
                               there, i, (int)(text->size < 60 ? text->size : 60), text->bytes);
    }
    text_table_free(&seen);
    return status;
}

sifr_status text_proto_read(const void *bytes, size_t size, const char *name, text_proto *out,
                            sifr_error *error) {
    static const char unknown[] = "<unk>", begin[] = "<s>", end[] = "</s>"; /* sentencepiece's */
    reader r = {bytes, bytes, (const uint8_t *)bytes + size, name};
    field f;
    sifr_status status = SIFR_OK;
    *out = (text_proto){.model_type = TEXT_PROTO_UNIGRAM,
                        .bos_id = 1,
                        .eos_id = 2,
                        .dummy_prefix = true,
                        .remove_extra_whitespaces = true,
                        .escape_whitespaces = true};
    while (r.at < r.end) {
        BASE_TRY_GOTO(status, read_field(&r, &f, error), done);
        if (f.number < 1 || f.number > 5 || f.number == 4) continue;
        BASE_TRY_GOTO(status, expect(&r, &f, 2, error), done);
        reader part = inside(&r, &f);
        status = f.number == 1   ? read_piece(part, out, error)
                 : f.number == 2 ? read_trainer(part, out, error)
                 : f.number == 3 ? read_normalizer(part, out, error)
                                 : read_denormalizer(part, out, error);
        if (status != SIFR_OK) goto done;
    }
    if (!out->count) status = damaged(&r, size, "the file ends without a piece", error);
    if (status == SIFR_OK) status = check_repeats(out, name, error);
    if (!out->unk_piece.size) out->unk_piece = (text_span){unknown, sizeof unknown - 1};
    if (!out->bos_piece.size) out->bos_piece = (text_span){begin, sizeof begin - 1};
    if (!out->eos_piece.size) out->eos_piece = (text_span){end, sizeof end - 1};
done:
    if (status != SIFR_OK) text_proto_free(out);
    return status;
}

void text_proto_free(text_proto *proto) {
    free(proto->pieces);
    *proto = (text_proto){0};
}
