/* Tokenizers: text to token ids and back, chat templates, token stores, and training of tokenizers.
 *
 *     sifr_tokenizer_open(context, "models/gpt2", &tokenizer, &error);
 *     sifr_tokenizer_encode(tokenizer, text, strlen(text), true, &ids, &count, &error);
 *
 * Texts are bytes of UTF-8, with their size in bytes; what is no UTF-8 is read as U+FFFD, and the
 * context's log says so. A text or a row of ids that a call returns belongs to the handle, and is
 * there until the next call with that handle that returns one, or until it is freed; texts have a
 * NUL behind them. A handle is used by one thread at a time. Messages name what an option of the
 * program says by its flag.
 */
#ifndef SIFR_TOKENIZER_H
#define SIFR_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sifr/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sifr_tokenizer sifr_tokenizer;

/* `path`: a model folder, or a tokenizer.json. The ids are those of the tokenizers library. The
 * context is borrowed. SIFR_USAGE for a part of the tokenizer that is not built, which is named;
 * SIFR_FAILED for a file that cannot be read. */
SIFR_API sifr_status sifr_tokenizer_open(sifr_context *context, const char *path,
                                         sifr_tokenizer **out, sifr_error *error) SIFR_MUST_CHECK;
SIFR_API void sifr_tokenizer_free(sifr_tokenizer *tokenizer); /* NULL is harmless */

/* The largest id + 1. */
SIFR_API int64_t sifr_tokenizer_vocab_size(const sifr_tokenizer *tokenizer);
/* The id of the token that its file writes so ("<|endoftext|>", "Ġthe"), or -1. */
SIFR_API int32_t sifr_tokenizer_id(const sifr_tokenizer *tokenizer, const char *token);
/* The token that begins a text, and the one that ends it: as tokenizer_config.json says, else by
 * the usual names; or -1. */
SIFR_API int32_t sifr_tokenizer_bos(const sifr_tokenizer *tokenizer);
SIFR_API int32_t sifr_tokenizer_eos(const sifr_tokenizer *tokenizer);
SIFR_API bool sifr_tokenizer_is_special(const sifr_tokenizer *tokenizer, int32_t id);
/* The bytes that a token decodes to, which are the tokenizer's as long as it is there; NULL for an
 * id without a token. *whole (may be NULL): whether they are whole characters. */
SIFR_API const char *sifr_tokenizer_bytes(const sifr_tokenizer *tokenizer, int32_t id, size_t *size,
                                          bool *whole);

/* The ids of a text; with `special` also those that the post-processor puts around it. SIFR_FAILED
 * for a byte that has no token in a vocabulary without an unknown token. */
SIFR_API sifr_status sifr_tokenizer_encode(sifr_tokenizer *tokenizer, const char *text, size_t size,
                                           bool special, const int32_t **ids, size_t *count,
                                           sifr_error *error) SIFR_MUST_CHECK;

/* The text of ids. Of byte-level BPE its bytes, which need not be whole characters. SIFR_FAILED for
 * an id without a token. */
SIFR_API sifr_status sifr_tokenizer_decode(sifr_tokenizer *tokenizer, const int32_t *ids,
                                           size_t count, bool skip_special, const char **text,
                                           size_t *size, sifr_error *error) SIFR_MUST_CHECK;

/* Decoding token by token: bytes of a character that is not complete wait for the next token. */
typedef struct sifr_decoder sifr_decoder;

/* The tokenizer is borrowed. `continues`: another text comes before the first token, which then
 * keeps a blank at its beginning. */
SIFR_API sifr_status sifr_decoder_create(const sifr_tokenizer *tokenizer, bool continues,
                                         sifr_decoder **out, sifr_error *error) SIFR_MUST_CHECK;
SIFR_API void sifr_decoder_free(sifr_decoder *decoder); /* NULL is harmless */
/* What the token completes: no byte, or whole characters. SIFR_FAILED for an id without a token. */
SIFR_API sifr_status sifr_decoder_push(sifr_decoder *decoder, int32_t id, const char **text,
                                       size_t *size, sifr_error *error) SIFR_MUST_CHECK;
/* At the end: U+FFFD where a character stayed incomplete. */
SIFR_API sifr_status sifr_decoder_end(sifr_decoder *decoder, const char **text, size_t *size,
                                      sifr_error *error) SIFR_MUST_CHECK;

/* ---- chat templates ---- */

/* A conversation as a text for a model, as transformers' apply_chat_template makes it. */
typedef struct sifr_chat_template sifr_chat_template;

typedef struct sifr_chat_template_options {
    size_t size;               /* sizeof(sifr_chat_template_options) */
    const char *chat_template; /* in place of the folder's: a file, a name such as "chatml", or the
                                  template itself */
    const char *tools;         /* JSON array of objects, which describe functions to the model */
    const char *tools_file;    /* the same as a file, in place of `tools` */
    /* JSON object with further variables of the template, such as {"enable_thinking": false} */
    const char *variables;
} sifr_chat_template_options;

/* `folder`: a model folder, for its template and the names of its special tokens. The options may
 * be NULL, and are copied. SIFR_USAGE for a folder without a template where none is given, for a
 * template or an option that cannot be used, with the reason. */
SIFR_API sifr_status sifr_chat_template_open(sifr_context *context, const char *folder,
                                             const sifr_chat_template_options *options,
                                             sifr_chat_template **out,
                                             sifr_error *error) SIFR_MUST_CHECK;
SIFR_API void sifr_chat_template_free(sifr_chat_template *chat); /* NULL is harmless */

/* `messages`: JSON array of objects with "role" and "content", and what else the template reads.
 * `prompt`: the text ends with the beginning of the assistant's next message. It has special tokens
 * in it: encode it with `special` false. SIFR_USAGE for messages that are no such array, and where
 * the template refuses them. */
SIFR_API sifr_status sifr_chat_template_render(sifr_chat_template *chat, const char *messages,
                                               size_t messages_size, bool prompt, const char **text,
                                               size_t *size, sifr_error *error) SIFR_MUST_CHECK;

/* ---- texts in files ---- */

typedef struct sifr_tokenize_options {
    size_t size;              /* sizeof(sifr_tokenize_options) */
    const char *tokenizer;    /* a model folder, or a tokenizer.json */
    const char *const *paths; /* [path_count] text files, folders, or patterns */
    size_t path_count;
    const char *output; /* prefix of the store, whose folder is made; only a store is replaced */
    bool no_special_tokens; /* leaves out what the post-processor puts around a text */
    int32_t threads;        /* 0: one for each processor */
    /* Called from time to time on the caller's thread; may be NULL. */
    void (*progress)(void *user, uint64_t bytes, uint64_t total, double seconds);
    void *user;
} sifr_tokenize_options;

typedef struct sifr_tokenized {
    size_t size;                       /* sizeof(sifr_tokenized), set by the caller */
    int64_t documents, tokens;         /* written */
    uint64_t bytes;                    /* of text */
    uint64_t invalid_sequences;        /* no UTF-8, read as U+FFFD */
    int64_t invalid_documents;         /* with such */
    int64_t empty_files;               /* left out */
    int64_t documents_without_newline; /* at their end */
    double seconds;
} sifr_tokenized;

/* Writes a token store in Megatron's format, PREFIX.bin and PREFIX.idx: each file becomes a
 * document, with the end-of-text token behind it. It is the same for any number of threads. `out`
 * may be NULL. SIFR_USAGE for a tokenizer without an end-of-text token, and for paths that name no
 * text. */
SIFR_API sifr_status sifr_tokenize(sifr_context *context, const sifr_tokenize_options *options,
                                   sifr_tokenized *out, sifr_error *error) SIFR_MUST_CHECK;

typedef struct sifr_tokenizer_train_options {
    size_t size;              /* sizeof(sifr_tokenizer_train_options) */
    int64_t vocab_size;       /* tokens in all, with bytes or characters and special tokens */
    const char *type;         /* "bpe" (also NULL), "unigram" or "wordpiece" */
    const char *split;        /* of bpe: "gpt2" (also NULL), "llama3" or "qwen2" */
    bool lowercase;           /* of wordpiece: letters become small, without accents */
    int64_t min_frequency;    /* pairs that are rarer are not merged */
    int64_t model_max_length; /* for tokenizer_config.json; 0: not written */
    const char *const *paths; /* [path_count] text files, folders, or patterns */
    size_t path_count;
    const char *output; /* folder of tokenizer.json and tokenizer_config.json; made if need be */
    bool overwrite;     /* else a tokenizer that is there is SIFR_USAGE */
} sifr_tokenizer_train_options;

typedef struct sifr_tokenizer_trained {
    size_t size;        /* sizeof(sifr_tokenizer_trained), set by the caller */
    int64_t vocab_size; /* fewer than asked for where the text has not enough */
    uint64_t bytes;     /* of text */
    uint64_t invalid_sequences;
    int64_t documents, empty_files;
} sifr_tokenizer_trained;

/* Trains a tokenizer as the trainers of the tokenizers library do, and writes its two files. `out`
 * may be NULL. */
SIFR_API sifr_status sifr_tokenizer_train(sifr_context *context,
                                          const sifr_tokenizer_train_options *options,
                                          sifr_tokenizer_trained *out,
                                          sifr_error *error) SIFR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
