/* A sentencepiece model: the parts of its protobuf (ModelProto) that a tokenizer is made of. Fields
 * that are not read here are skipped. */
#ifndef TEXT_TOKENIZER_PROTO_H
#define TEXT_TOKENIZER_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

enum {
    TEXT_PIECE_NORMAL = 1,
    TEXT_PIECE_CONTROL = 3,
    TEXT_PIECE_USER = 4
}; /* the types that matter, as the file numbers them */

enum { TEXT_PROTO_UNIGRAM = 1, TEXT_PROTO_BPE = 2 };

#define TEXT_PIECE_LENGTH 1024 /* bytes of a piece, at most */

/* Bytes inside the file; size 0 where the field is absent. */
typedef struct text_span {
    const char *bytes;
    size_t size;
} text_span;

typedef struct text_proto_piece {
    text_span text;
    float score;
    int32_t type;
} text_proto_piece;

typedef struct text_proto {
    text_proto_piece *pieces;
    size_t count, capacity;
    int64_t model_type; /* FORMATS_PROTO_... or another */
    int64_t unk_id, bos_id, eos_id;
    bool byte_fallback, whitespace_as_suffix;
    /* Of the normalizer; sentencepiece's defaults are true. */
    bool dummy_prefix, remove_extra_whitespaces, escape_whitespaces;
    bool denormalizes; /* decoding has a character map */
    text_span unk_piece, bos_piece, eos_piece, charsmap;
} text_proto;

/* Reads the file's bytes, which must stay where they are; `name` begins the messages, which give
 * the byte where reading failed. Every piece is valid UTF-8 without NUL, none occurs twice. */
sifr_status text_proto_read(const void *bytes, size_t size, const char *name, text_proto *out,
                            sifr_error *error) SIFR_MUST_CHECK;
void text_proto_free(text_proto *proto); /* harmless on a zeroed one */

#endif
