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
    FORMATS_GGUF_GLM4,                 /* byte-level BPE, with GLM's special tokens */
    FORMATS_GGUF_PIECES_OR_BYTE_LEVEL, /* tokenizer.model, byte-level BPE */
    FORMATS_GGUF_LLAMA,  /* tokenizer.model, BPE with bytes as a fallback, byte-level BPE */
    FORMATS_GGUF_PHI3,   /* byte-level BPE where its class is GPT-2's, else tokenizer.model */
    FORMATS_GGUF_GEMMA,  /* tokenizer.model, with CodeGemma's end of a turn */
    FORMATS_GGUF_GEMMA2, /* tokenizer.model */
    FORMATS_GGUF_GEMMA4, /* BPE with bytes as a fallback */
} formats_gguf_vocab_kind;

/* Tokens, their types and scores, merges, special tokens and chat template. `vocabulary`: of the
 * model; ids without a token become "[PAD<id>]". SIFR_USAGE, by name, for a tokenizer that is not
 * of the kind, or that llama.cpp would not follow; `log`: where it follows but for details. */
sifr_status formats_gguf_vocab(const formats_gguf_files *files, int64_t vocabulary,
                               formats_gguf_vocab_kind kind, const sifr_log *log,
                               formats_gguf_meta *meta, sifr_error *error) SIFR_MUST_CHECK;

typedef struct formats_gguf_special_rules {
    int64_t vocabulary; /* ids from there on are left out; -1: none are */
    bool no_bos;        /* texts begin with none, whatever the files say */
    bool bos;           /* llama.cpp begins every text with one */
    bool glm;           /* what the files do not name is GLM-4's */
    bool bos_default;   /* llama.cpp puts one in front where the file says nothing */
    const sifr_log *log;
} formats_gguf_special_rules;

/* Special tokens, whether texts begin and end with them, and the chat template. */
sifr_status formats_gguf_special(const formats_gguf_files *files, formats_gguf_special_rules rules,
                                 formats_gguf_meta *meta, sifr_error *error) SIFR_MUST_CHECK;

/* llama.cpp's name of how a byte-level BPE splits text; what it leaves out is said to `log`. */
sifr_status formats_gguf_pre(const formats_gguf_files *files, const sifr_log *log,
                             const char **name, sifr_error *error) SIFR_MUST_CHECK;

typedef struct formats_gguf_pre_name {
    const char *digest, *name; /* digest: SHA-256 of "[1, 2, …]", the ids of the test text */
} formats_gguf_pre_name;

extern const char formats_gguf_pre_text[];
extern const formats_gguf_pre_name formats_gguf_pre_names[];
extern const size_t formats_gguf_pre_count;

#endif
