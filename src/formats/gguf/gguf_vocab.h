/* A model folder's tokenizer as GGUF's metadata: what llama.cpp's converter writes for it. */
#ifndef FORMATS_GGUF_VOCAB_H
#define FORMATS_GGUF_VOCAB_H

#include <jansson.h>

#include "formats/gguf/gguf_write.h"

/* The tokenizer's files of a folder; NULL: not there. Free with formats_gguf_files_free. */
typedef struct formats_gguf_files {
    const char *folder;
    json_t *config;           /* config.json */
    json_t *tokenizer;        /* tokenizer.json */
    json_t *tokenizer_config; /* tokenizer_config.json */
    json_t *generation;       /* generation_config.json */
} formats_gguf_files;

sifr_status formats_gguf_files_read(const char *folder, formats_gguf_files *out,
                                    sifr_error *error) SIFR_MUST_CHECK;
void formats_gguf_files_free(formats_gguf_files *files); /* harmless on a zeroed one */

/* Which tokenizers the converter looks for, in order. */
typedef enum formats_gguf_vocab_kind {
    FORMATS_GGUF_BYTE_LEVEL,           /* byte-level BPE */
    FORMATS_GGUF_PIECES_OR_BYTE_LEVEL, /* tokenizer.model, byte-level BPE */
    FORMATS_GGUF_LLAMA,  /* tokenizer.model, BPE with bytes as a fallback, byte-level BPE */
    FORMATS_GGUF_PHI3,   /* byte-level BPE where its class is GPT-2's, else tokenizer.model */
    FORMATS_GGUF_GEMMA,  /* tokenizer.model, with CodeGemma's end of a turn */
    FORMATS_GGUF_GEMMA2, /* tokenizer.model */
} formats_gguf_vocab_kind;

/* Tokens, their types and scores, merges, special tokens and chat template. `vocabulary`: of the
 * model; ids without a token become "[PAD<id>]". SIFR_USAGE, by name, for a tokenizer that is not
 * of the kind. */
sifr_status formats_gguf_vocab(const formats_gguf_files *files, int64_t vocabulary,
                               formats_gguf_vocab_kind kind, formats_gguf_meta *meta,
                               sifr_error *error) SIFR_MUST_CHECK;

/* Special tokens, whether texts begin and end with them, and the chat template. `vocabulary`: ids
 * from there on are left out; -1: none are. `no_bos`: texts begin with none, whatever the files
 * say. */
sifr_status formats_gguf_special(const formats_gguf_files *files, int64_t vocabulary, bool no_bos,
                                 formats_gguf_meta *meta, sifr_error *error) SIFR_MUST_CHECK;

/* llama.cpp's name of how a byte-level BPE splits text. */
sifr_status formats_gguf_pre(const formats_gguf_files *files, const char **name,
                             sifr_error *error) SIFR_MUST_CHECK;

typedef struct formats_gguf_pre_name {
    const char *digest, *name; /* digest: SHA-256 of "[1, 2, …]", the ids of the test text */
} formats_gguf_pre_name;

extern const char formats_gguf_pre_text[];
extern const formats_gguf_pre_name formats_gguf_pre_names[];
extern const size_t formats_gguf_pre_count;

#endif
