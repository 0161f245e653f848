/* A vocabulary on its way into GGUF's metadata. */
#ifndef FORMATS_GGUF_TOKENS_H
#define FORMATS_GGUF_TOKENS_H

#include "formats/gguf/gguf_vocab.h"

/* llama.cpp's types of tokens, which are those of SentencePiece. */
typedef enum formats_gguf_token_type {
    FORMATS_GGUF_TOKEN_NORMAL = 1,
    FORMATS_GGUF_TOKEN_UNKNOWN,
    FORMATS_GGUF_TOKEN_CONTROL,
    FORMATS_GGUF_TOKEN_USER,
    FORMATS_GGUF_TOKEN_UNUSED,
    FORMATS_GGUF_TOKEN_BYTE
} formats_gguf_token_type;

typedef struct formats_gguf_token {
    const char *text; /* elsewhere; NULL: none, "[PAD<id>]" */
    size_t size;
    formats_gguf_token_type type;
    float score;
    bool added, in_model; /* in added_tokens, in the model's vocabulary */
    bool blanks;          /* stands with blanks where the vocabulary writes U+2581 */
} formats_gguf_token;

typedef struct formats_gguf_tokens {
    formats_gguf_token *list;
    int64_t count;  /* of the model's vocabulary */
    int64_t pieces; /* of tokenizer.model, which may be more or fewer */
} formats_gguf_tokens;

/* Does the text begin and end so? */
bool formats_gguf_has_ends(const char *text, size_t size, const char *begin, const char *end);
/* Tokens that published files forget to mark as special. */
bool formats_gguf_looks_special(const char *text, size_t size);

/* The vocabulary, with llama.cpp's name of the model and of the splitting. SIFR_USAGE where a text
 * stands twice, at which llama.cpp stops; `folder` begins the message. */
sifr_status formats_gguf_add_tokens(const formats_gguf_tokens *tokens, const char *folder,
                                    const char *model, const char *pre, bool scores,
                                    formats_gguf_meta *meta, sifr_error *error) SIFR_MUST_CHECK;

/* tokenizer.model, a vocabulary of SentencePiece, into `tokens`, whose count is the model's; tokens
 * point into it, into `files` and into `added`. */
typedef struct formats_gguf_sentencepiece {
    char *model;
    json_t *added; /* added_tokens.json */
} formats_gguf_sentencepiece;

/* *found: whether the folder has the file; `phi3`: by the converter's rules for Phi-3. Free *out in
 * any case. */
sifr_status formats_gguf_sentencepiece_read(const formats_gguf_files *files, bool phi3,
                                            formats_gguf_sentencepiece *out,
                                            formats_gguf_tokens *tokens, bool *found,
                                            sifr_error *error) SIFR_MUST_CHECK;
void formats_gguf_sentencepiece_free(formats_gguf_sentencepiece *out);
/* The same from memory, for tests: pieces only. */
sifr_status formats_gguf_sentencepiece_parse(const char *bytes, size_t size, const char *name,
                                             formats_gguf_tokens *tokens,
                                             sifr_error *error) SIFR_MUST_CHECK;

/* tokenizer.json beside a tokenizer.model of `pieces` pieces: SIFR_USAGE, by name, where its model
 * is another vocabulary; then its added tokens, typed as it says. */
sifr_status formats_gguf_check_pieces(const formats_gguf_files *files, formats_gguf_tokens *tokens,
                                      int64_t pieces, sifr_error *error) SIFR_MUST_CHECK;
sifr_status formats_gguf_add_beside(const formats_gguf_files *files, formats_gguf_tokens *tokens,
                                    int64_t pieces, sifr_error *error) SIFR_MUST_CHECK;

/* Scores of a BPE with bytes as a fallback, whose tokenizer.json has none: llama.cpp merges by
 * score, so a token's score is minus the rank of the first merge that makes it. */
sifr_status formats_gguf_score_by_merges(const formats_gguf_files *files,
                                         formats_gguf_tokens *tokens,
                                         sifr_error *error) SIFR_MUST_CHECK;

#endif
