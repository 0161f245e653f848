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

/* Tokens, their types and scores, merges, special tokens and chat template. `vocabulary`: of the
 * model; ids without a token become "[PAD<id>]". `byte_level`: the family's tokenizers are
 * byte-level BPE alone; otherwise also BPE with bytes as a fallback, and the converter's rules for
 * the class of Llama hold. SIFR_USAGE, by name, for another tokenizer. */
sifr_status formats_gguf_vocab(const formats_gguf_files *files, int64_t vocabulary, bool byte_level,
                               formats_gguf_meta *meta, sifr_error *error) SIFR_MUST_CHECK;

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
