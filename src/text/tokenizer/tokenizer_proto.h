/* A sentencepiece model: the parts of its protobuf (ModelProto) that a tokenizer is made of. Fields
 * that are not read here are skipped. */
#ifndef FORMATS_TOKENIZER_PROTO_H
#define FORMATS_TOKENIZER_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

enum {
    FORMATS_PIECE_NORMAL = 1,
    FORMATS_PIECE_CONTROL = 3,
    FORMATS_PIECE_USER = 4
}; /* the types that matter, as the file numbers them */

enum { FORMATS_PROTO_UNIGRAM = 1, FORMATS_PROTO_BPE = 2 };

#define FORMATS_PIECE_LENGTH 1024 /* bytes of a piece, at most */

/* Bytes inside the file; size 0 where the field is absent. */
typedef struct formats_span {
    const char *bytes;
    size_t size;
} formats_span;

typedef struct formats_proto_piece {
    formats_span text;
    float score;
    int32_t type;
} formats_proto_piece;

typedef struct formats_proto {
    formats_proto_piece *pieces;
    size_t count, room;
    int64_t model_type; /* FORMATS_PROTO_... or another */
    int64_t unk_id, bos_id, eos_id;
    bool byte_fallback, whitespace_as_suffix;
    /* Of the normalizer; sentencepiece's defaults are true. */
    bool dummy_prefix, remove_extra_whitespaces, escape_whitespaces;
    bool denormalizes; /* decoding has a character map */
    formats_span unk_piece, bos_piece, eos_piece, charsmap;
} formats_proto;

/* Reads the file's bytes, which must stay where they are; `name` begins the messages, which give
 * the byte where reading failed. Every piece is valid UTF-8 without NUL, none occurs twice. */
sifr_status formats_proto_read(const void *bytes, size_t size, const char *name, formats_proto *out,
                               sifr_error *error) SIFR_MUST_CHECK;
void formats_proto_free(formats_proto *proto); /* harmless on a zeroed one */

#endif
